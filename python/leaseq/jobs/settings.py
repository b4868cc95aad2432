"""The settings of an App: its functions, its queues, and the format of arguments and results."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leaseq.durability import Durability, checked
from leaseq.errors import BadArgumentError
from leaseq.jobs import codecs
from leaseq.jobs.codecs import Codec
from leaseq.jobs.definition import Definition
from leaseq.jobs.options import Options
from leaseq.jobs.routes import Routes
from leaseq.jobs.serializer import Format, Serializer, check_format, check_serializer
from leaseq.jobs.signals import Receivers
from leaseq.keys import QueueKeys


class Settings:
    """Raises BadNameError, BadTypeError, BadArgumentError.

    Attributes:
        group: of all queues.
        defaults: the options of a function that says nothing else and has no route.
        routes: which queue the jobs of a function wait in that names none.
        form: in which jobs and results are written.
        serializer: that writes what is in them, if there is one; with codecs, these as well.
        checks_values: whether the format decides which values arrive as they are sent; a custom serializer decides itself.
        serializers: that can be read, by name: with codecs, also some of them.
        functions: by name.
        receivers: of signals.
        headers: functions that give headers to each call that is enqueued.
        durable: what an enqueue waits for.
        ahead: seconds by which a test has moved the clock of jobs, else 0.0.
    """

    def __init__(
        self,
        group: str,
        queue: str,
        form: Format,
        serializer: Serializer | None,
        durable: Durability | None = None,
        codec: Codec | Sequence[Codec] | None = None,
        routes: Mapping[str, str] | None = None,
    ) -> None:
        QueueKeys(queue, group)
        self.group = group
        self.defaults = Options(queue=queue)
        self.routes = Routes(routes)
        self.form = check_format(form)
        self.serializer = check_serializer(serializer)
        self.checks_values = serializer is None
        self.serializers = {} if self.serializer is None else {self.serializer.name: self.serializer}
        if applied := codecs.checked(codec):
            reading = codecs.readers(self.form, self.serializer, applied)
            self.serializers.update({each.name: each for each in reading})
            self.serializer = reading[-1]
        self.functions: dict[str, Definition] = {}
        self.receivers = Receivers()
        self.headers: list[Callable[[Any], Any]] = []
        self.durable = None if durable is None else checked(durable)
        self.ahead = 0.0

    def routed(self, name: str, options: Options) -> Options:
        """Return the options of a function that names no queue."""
        queue = self.routes.queue_of(name)
        return options if queue is None else dataclasses.replace(options, queue=queue)

    def define(self, name: str, function: Callable[..., Any], options: Options) -> Definition:
        """Add a function. Raises BadArgumentError if there is one with this name."""
        known = self.functions.get(name)
        if known is not None and known.function is not function:
            raise BadArgumentError(f"there is a job function {name!r} already: give one of them another name")
        self.functions[name] = Definition(name, function, options)
        return self.functions[name]

    @property
    def queues(self) -> list[str]:
        """The queues that it knows: its own, those of its functions and of its routes."""
        return list(
            dict.fromkeys(
                [
                    self.defaults.queue,
                    *(each.options.queue for each in self.functions.values()),
                    *self.routes.queues,
                ]
            )
        )

"""The settings of an App: its functions, its queues, and the format of arguments and results."""

from collections.abc import Callable
from typing import Any

from leaseq.durability import Durability, checked
from leaseq.errors import BadArgumentError
from leaseq.jobs.definition import Definition
from leaseq.jobs.options import Options
from leaseq.jobs.serializer import Format, Serializer, check_format, check_serializer
from leaseq.jobs.signals import Receivers
from leaseq.keys import QueueKeys


class Settings:
    """Raises BadNameError, BadTypeError, BadArgumentError.

    Attributes:
        group: of all queues.
        defaults: the options of a function that says nothing else.
        form: in which jobs and results are written.
        serializer: that writes what is in them, if there is one.
        serializers: the same, by name.
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
    ) -> None:
        QueueKeys(queue, group)
        self.group = group
        self.defaults = Options(queue=queue)
        self.form = check_format(form)
        self.serializer = check_serializer(serializer)
        self.serializers = {} if serializer is None else {serializer.name: serializer}
        self.functions: dict[str, Definition] = {}
        self.receivers = Receivers()
        self.headers: list[Callable[[Any], Any]] = []
        self.durable = None if durable is None else checked(durable)
        self.ahead = 0.0

    def define(self, name: str, function: Callable[..., Any], options: Options) -> Definition:
        """Add a function. Raises BadArgumentError if there is one with this name."""
        known = self.functions.get(name)
        if known is not None and known.function is not function:
            raise BadArgumentError(f"there is a job function {name!r} already: give one of them another name")
        self.functions[name] = Definition(name, function, options)
        return self.functions[name]

    @property
    def queues(self) -> list[str]:
        """The queues that it knows: its own and those of its functions."""
        return list(
            dict.fromkeys([self.defaults.queue, *(each.options.queue for each in self.functions.values())])
        )

"""Writing jobs to the outbox, and its rows for a relay. Models are imported late: an application is imported before them."""

from typing import TYPE_CHECKING, Any, Unpack

from leaseq.commands.completions import AddOptions
from leaseq.item import Item
from leaseq.jobs.call import Call
from leaseq.outbox import record
from leaseq.outbox.rows import Rows

if TYPE_CHECKING:
    from leaseq.jobs.aio import App as AsyncApp
    from leaseq.jobs.app import App


class Outbox:
    """The outbox of a Django project, for jobs that a relay enqueues once their transaction is committed.

        outbox = Outbox(app)

        with transaction.atomic():
            order.save()
            outbox.add(confirm.call(order.pk))

    `app` is the App of the jobs; None is enough for plain items. `using` is the alias of the database; None: where the router
    of the project writes the model `leaseq_outbox.OutboxRow`.
    """

    def __init__(self, app: "App | AsyncApp | None" = None, using: str | None = None) -> None:
        self._app = app
        self._using = using

    def add(self, call: Call[Any]) -> str:
        """Write a job to the outbox, in the transaction of this thread. Return its id.

        A delay counts from now, and so does the time to expire. For a chain, pass `app.chain(...).then(...).call()`. The
        signal "enqueued" is not sent. In asyncio, call it with `sync_to_async`, as models.

        Raises BadTypeError, BadIdError, BadArgumentError, SerializationError and errors of Django.
        """
        return self._create(record.of_call(call, record.settings_of(self._app)))

    def add_item(
        self, item: Item, queue: str, group: str | None = None, **options: Unpack[AddOptions]
    ) -> str:
        """Write a plain item for a queue to the outbox, with options as `WorkQueue.add_item` has them. Return its id.

        `group` is that of the queue, by default its name. Raises BadTypeError, BadIdError, BadNameError, BadArgumentError
        and errors of Django.
        """
        return self._create(record.of_item(item, queue, group, record.options_of(options)))

    def _create(self, columns: record.Columns) -> str:
        from leaseq.outbox.django.models import OutboxRow

        OutboxRow.objects.using(self._using).create(**columns)
        return columns["item_id"]


def rows(using: str | None = None) -> Rows:
    """Return the rows of the outbox in a database of the project, for a `Relay`."""
    from leaseq.outbox.django.django_rows import DjangoRows

    return DjangoRows(using)

"""The table of the outbox, the same as `leaseq.outbox.sqlalchemy.table` has it."""

from typing import Any

from django.db import models


class OutboxRow(models.Model):  # type: ignore[misc] # Django has no types
    """A job or an item that waits for a relay. Times are seconds since 1970."""

    id = models.BigAutoField(primary_key=True)
    item_id = models.CharField(max_length=256)
    queue = models.CharField(max_length=100)
    queue_group = models.CharField(max_length=100)
    item = models.TextField()
    created = models.FloatField()
    tried: Any = models.FloatField(null=True, blank=True)
    error: Any = models.TextField(null=True, blank=True)  # noqa: DJ001 (no error is another thing than an empty one)

    class Meta:
        """The name of the table."""

        db_table = "leaseq_outbox"

    def __str__(self) -> str:
        return f"{self.item_id} for {self.queue}"

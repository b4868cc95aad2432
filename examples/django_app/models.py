"""The tables of the project."""

from django.db import models


class Order(models.Model):  # type: ignore[misc] # Django has no types
    """An order. `job` is the id of the job that writes its invoice."""

    customer = models.CharField(max_length=100)
    euros = models.IntegerField()
    job = models.CharField(max_length=100, default="")
    invoice = models.TextField(default="")

    def __str__(self) -> str:
        return f"order {self.pk} of {self.customer}"

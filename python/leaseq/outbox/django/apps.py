"""The application of Django."""

from django.apps import AppConfig


class OutboxConfig(AppConfig):  # type: ignore[misc] # Django has no types
    """The application "leaseq.outbox.django"."""

    name = "leaseq.outbox.django"
    label = "leaseq_outbox"
    verbose_name = "leaseq outbox"
    default_auto_field = "django.db.models.BigAutoField"

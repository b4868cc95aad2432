"""The outbox in a database of Django: jobs are written in the transaction of your models.

Add "leaseq.outbox.django" to INSTALLED_APPS and run `manage.py migrate`. `manage.py leaseq_relay` hands on.
"""

from leaseq.outbox.django.outbox import Outbox, rows

__all__ = ["Outbox", "rows"]

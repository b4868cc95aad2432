"""The jobs, which the views and the workers import."""

import os

import django
from django.conf import settings

import leaseq.jobs
from leaseq.jobs.integrations import django as django_jobs
from leaseq.outbox.django import Outbox

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "django_app.settings")
django.setup()

from django_app.models import Order  # noqa: E402 # models need the line above

app = leaseq.jobs.App(settings.LEASEQ_URL)
django_jobs.install(app)
outbox = Outbox(app)


@app.job(name="orders.write_invoice", retries=2)
def write_invoice(number: int) -> str:
    """Write the invoice of an order into its row. Doing it again writes the same."""
    order = Order.objects.get(pk=number)
    invoice = f"Invoice {number}: {order.customer} owes {order.euros} euros"
    Order.objects.filter(pk=number).update(invoice=invoice)
    return invoice

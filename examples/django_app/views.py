"""The views: take an order, show an order."""

import json

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404

from django_app.jobs import app, outbox, write_invoice
from django_app.models import Order

CREDIT_EUROS = 1000


class NoCreditError(Exception):
    """The customer has too many orders."""


def orders(request: HttpRequest) -> JsonResponse:
    """POST: take an order. GET: return the number of orders."""
    if request.method != "POST":
        return JsonResponse({"orders": Order.objects.count()})
    wanted = json.loads(request.body)
    try:
        number = take(wanted["customer"], wanted["euros"])
    except NoCreditError as error:
        return JsonResponse({"error": str(error)}, status=402)
    return JsonResponse({"number": number}, status=202)


def take(customer: str, euros: int) -> int:
    """Write an order, and the job of its invoice, in one transaction: both are there or neither is."""
    with transaction.atomic():
        order = Order.objects.create(customer=customer, euros=euros)
        order.job = outbox.add(write_invoice.call(order.pk))
        order.save()
        total = sum(Order.objects.filter(customer=customer).values_list("euros", flat=True))
        if total > CREDIT_EUROS:
            raise NoCreditError(
                f"{customer} would owe {total} euros"
            )  # this rolls the order and its job back
    return int(order.pk)


def order(_request: HttpRequest, number: int) -> JsonResponse:
    """Return an order, with the status of its job and its invoice."""
    found = get_object_or_404(Order, pk=number)
    status = app.handle(found.job).status()  # "unknown" until the relay has handed the job on
    return JsonResponse({"customer": found.customer, "job": status, "invoice": found.invoice})

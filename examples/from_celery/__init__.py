"""A shop on Celery, and the same shop on leaseq. `make example-celery` runs both."""

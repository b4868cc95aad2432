"""A shop on RQ, and the same shop on leaseq. `make example-rq` runs both."""

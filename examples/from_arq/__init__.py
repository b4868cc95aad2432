"""A shop on arq, and the same shop on leaseq. `make example-arq` runs both."""

"""The cleaner of leaseq queues, as a service and as a class."""

"""The store for threads: generated from `leaseq.jobs.store._aio`."""

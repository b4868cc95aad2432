"""The job layer as programs use it, for threads: generated from `leaseq.jobs._aio`."""

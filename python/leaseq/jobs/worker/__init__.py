"""Runs jobs: `job_worker` in one process, on `leaseq.worker`; `supervisor` in several. Exports nothing: import from the modules."""

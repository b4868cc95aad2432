"""Jobs: a worker program and a job client, each with the suite in the place of the other (spec/jobs.md)."""

from leaseq_conformance.jobs.suite import cases, run

__all__ = ["cases", "run"]

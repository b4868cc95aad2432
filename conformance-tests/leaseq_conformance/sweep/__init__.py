"""The sweep: every operation, struck before and after each command that the client sends for it."""

from leaseq_conformance.sweep.suite import cases, run

__all__ = ["cases", "run"]

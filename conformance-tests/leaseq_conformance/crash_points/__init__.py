"""Crash points: every operation, broken off at each command that the client sends for it."""

from leaseq_conformance.crash_points.suite import cases, run

__all__ = ["cases", "run"]

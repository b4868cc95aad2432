"""Scenarios: what several actors do to one queue, written in YAML, run step by step."""

from leaseq_conformance.scenarios.suite import cases, run

__all__ = ["cases", "run"]

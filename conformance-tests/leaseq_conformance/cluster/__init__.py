"""Cases on a cluster of the suite's own: a primary that has every slot, and its replica."""

from leaseq_conformance.cluster.suite import cases, run

__all__ = ["cases", "run"]

"""Wire cases: a method call and the exact bytes that it sends, a reply of any kind and what the client makes of it."""

from leaseq_conformance.wire.suite import cases, run

__all__ = ["cases", "run"]

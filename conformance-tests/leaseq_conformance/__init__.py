"""The conformance suite of the leaseq protocol. It imports no client: what it knows is in its cases, manifest and model."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("leaseq-conformance")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0"

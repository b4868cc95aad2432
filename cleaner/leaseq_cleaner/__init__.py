"""The cleaner of leaseq queues, as a service (`leaseq-cleaner`) and as a class.

cleaner = Cleaner("redis://localhost", queues=["orders", "mail-*"])
await cleaner.run()  # until cleaner.stop() is called
"""

from typing import TYPE_CHECKING, Any

from leaseq import extras

if TYPE_CHECKING:
    from leaseq_cleaner.cleaner import Cleaner
    from leaseq_cleaner.report import QueueReport

__all__ = ["Cleaner", "QueueReport"]


def __getattr__(name: str) -> Any:
    """Import the names above when they are used: without the extra, the program reports in one line that it is missing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from leaseq_cleaner import cleaner
    except ModuleNotFoundError as error:
        raise extras.missing("cleaner", "leaseq_cleaner", error) from error
    return getattr(cleaner, name)

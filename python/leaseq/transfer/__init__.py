r"""Queues as lines of JSON, to move or keep them, and queues of redis-work-queue taken over.

for line in leaseq.transfer.export_queue(queue):
    file.write(json.dumps(line) + "\n")
leaseq.transfer.import_lines(other, file)
"""

from leaseq.transfer.exporting import export_queue
from leaseq.transfer.importing import Imported, import_lines
from leaseq.transfer.original import OriginalQueue
from leaseq.transfer.taking_over import StillLeasedError, TakenOver, take_over

__all__ = [
    "Imported",
    "OriginalQueue",
    "StillLeasedError",
    "TakenOver",
    "export_queue",
    "import_lines",
    "take_over",
]

r"""Queues as lines of JSON, to move or keep them, and queues of redis-work-queue taken over.

for line in leaseq.transfer.export_queue(queue):
    file.write(json.dumps(line) + "\n")
leaseq.transfer.import_lines(other, file)
"""

from leaseq.transfer.export import export_queue
from leaseq.transfer.importer import Imported, import_lines
from leaseq.transfer.migration import Migration, StillLeasedError, migrate
from leaseq.transfer.redis_work_queue import ImportRunningError, OriginalQueue

__all__ = [
    "ImportRunningError",
    "Imported",
    "Migration",
    "OriginalQueue",
    "StillLeasedError",
    "export_queue",
    "import_lines",
    "migrate",
]

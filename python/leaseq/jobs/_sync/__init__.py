"""What the job layer reads and writes, for threads; generated from `_aio`."""

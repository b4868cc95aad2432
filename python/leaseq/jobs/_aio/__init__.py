"""What the job layer reads and writes, for asyncio."""

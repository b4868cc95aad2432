"""The job layer as programs use it, for asyncio: written by hand."""

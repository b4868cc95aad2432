"""The store for asyncio: written by hand."""

"""The asyncio half of the worker. The half for threads is generated from it, but for `pool.py` and `system.py`."""

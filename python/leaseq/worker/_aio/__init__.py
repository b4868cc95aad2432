"""The asyncio half of the worker. The half for threads is generated from it, but for `crew.py` and `system.py`."""

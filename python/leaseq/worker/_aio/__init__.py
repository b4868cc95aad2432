"""The asyncio half of the worker.

The half for threads is generated from it, except `handler_pool.py` and `background.py`.
"""

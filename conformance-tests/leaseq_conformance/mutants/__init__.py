"""Seeded bugs: clients and scripts that are wrong on purpose, each in one way, so that the cases can be judged by them.

`registry` lists them. Those of adapters patch the Python client inside an adapter process (`adapters/mutant.py`).
"""

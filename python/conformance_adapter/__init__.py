"""Adapters of the Python clients, and examples of how short an adapter is."""

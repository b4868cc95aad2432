"""The half of the worker for threads."""

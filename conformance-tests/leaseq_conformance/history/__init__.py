"""Histories: random runs of several clients under kills and lost replies, recorded and judged by the reference model.

`workload` draws what each actor does, `run` does it and records calls, commands and the server's own order. `replay` makes the
same calls on the model in that order: every reply, every answer of a client and what is left must be as the model has it.
"""

"""Histories: random runs of several clients under kills and lost replies, recorded and checked in two independent ways.

`program` draws what each actor does, `run` does it and records calls, commands and the server's own order. `replay` holds
what was recorded against the reference model in the server's order; `items` and `linearize` hold what the clients were told
against a model of one item with Porcupine, which looks for an order by itself.
"""

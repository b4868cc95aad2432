"""The reference model: a queue in plain Python, written from the specification and not from the scripts."""

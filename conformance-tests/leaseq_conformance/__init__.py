"""The conformance suite of leaseq: what a client of the protocol must do, whatever language it is written in."""

"""`python -m leaseq`: the program `leaseq`, of the Python that runs it."""

from leaseq.cli import main

main()

"""The outbox: jobs that are written to a table of your database, in your transaction, and handed on by a relay.

`leaseq.outbox.sqlalchemy` and `leaseq.outbox.django` write to the table. A `Relay` reads it and adds the jobs to their queues:
`leaseq outbox relay`, `manage.py leaseq_relay`, or this class in a program. Needs the extra `jobs`.
"""

from leaseq.outbox.relay import Relay

__all__ = ["Relay"]

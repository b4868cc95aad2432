"""A proxy between clients and a real server that sees every command and can break the connection at any point of it.

    with FaultProxy(server.url) as proxy:
        listener = proxy.listener("w1")              # a port for one client, so that every command has a name on it
        point = proxy.add_breakpoint("w1", "lease", when="after")
        ...                                          # w1 connects to listener.url and leases
        point.wait()                                 # the server has leased; the reply is held here
        point.disconnect()                           # and never arrives

        listener.latency = 0.1                       # each way: a round trip takes 0.2 s longer
        listener.cut_replies_after = 0               # the next command runs on the server, its reply is lost

Breakpoints are about commands, the attributes of a listener (`LinkFaults`) about bytes.
"""

from leaseq_conformance.fault_proxy.breakpoints import (
    Action,
    Breakpoint,
    FaultProxyError,
    Refusal,
    When,
)
from leaseq_conformance.fault_proxy.command import ANY_CALL, ANY_SCRIPT, COMPLETION, Command, DeferredReply
from leaseq_conformance.fault_proxy.connection import ProxiedConnection
from leaseq_conformance.fault_proxy.link_faults import LinkFaults
from leaseq_conformance.fault_proxy.proxy import FaultProxy, Listener

__all__ = [
    "ANY_CALL",
    "ANY_SCRIPT",
    "COMPLETION",
    "Action",
    "Breakpoint",
    "Command",
    "DeferredReply",
    "FaultProxy",
    "FaultProxyError",
    "LinkFaults",
    "Listener",
    "ProxiedConnection",
    "Refusal",
    "When",
]

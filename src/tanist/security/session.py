"""The session of a connection: who is at the other end, as far as it has proved that.

One object for each accepted connection; what authenticates the client changes it. The requests that a broker passes on
to the controller have sessions of their own there, of the client and not of the broker.

Owns also `Access`, by which a session knows what its client may do: this one allows all, and `authorizer.Authorizer`
decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

from tanist.security.principal import ANONYMOUS, Principal
from tanist.security.requirements import Row
from tanist.wire.acls import CLUSTER_NAME, SUPPORTED_OPERATIONS


class View:
    """What was decided about one principal at one host, in one epoch."""

    __slots__ = ("allowed", "epoch", "operations", "principal")

    def __init__(self, epoch: int, principal: Principal) -> None:
        self.epoch = epoch
        self.principal = principal
        self.allowed: dict[Row, dict[str, bool]] = {}
        self.operations: dict[tuple[Row, str], int] = {}


class Access:
    """A node without an authorizer: each check passes, and all operations that a type has are the client's."""

    enabled = False
    loaded = True
    """Whether the entries are known. Before, nobody but super users may do anything."""

    def may(self, session: Session, row: Row, name: str | None = CLUSTER_NAME) -> bool:
        """Whether the client may do what the row needs, on the resource of this name."""
        return True

    def operations(self, session: Session, row: Row, name: str = CLUSTER_NAME) -> int:
        """What the client may do on the resource: a bit for each operation."""
        return _BITS[row.needs[0].resource_type]

    def load(self) -> None:
        """All that is committed is known."""

    def visible(self, session: Session) -> object:
        """Equal for sessions that may see the same of an answer; what caches of answers hang on."""
        return None


_BITS: Final = {kind: sum(1 << each for each in operations) for kind, operations in SUPPORTED_OPERATIONS.items()}
OPEN: Final = Access()
"""Of a node without an authorizer."""


@dataclass(slots=True, eq=False)
class Session:
    """Who asks."""

    listener: str
    security_protocol: str
    host: str
    """The client's address as Java writes it and ACLs name it: `10.0.0.1`, `0:0:0:0:0:0:0:1`."""
    principal: Principal = ANONYMOUS
    by_token: bool = False
    """It has authenticated by a delegation token (KIP-48)."""
    expires_ms: int | None = None
    """The clock's time at which it has to authenticate again (KIP-368); None: never."""
    access: Access = OPEN
    """Of the node: what the client may do."""
    view: View | None = None
    """What `access` has decided about it so far."""

    @property
    def may_ask_for_tokens(self) -> bool:
        """Whether it has said who it is, and not by a delegation token: such have no others made (KIP-48)."""
        return not self.by_token and self.principal != ANONYMOUS


def host_of(peer: str) -> str:
    """The address in `host:port` or `[host]:port`, as Java writes it. A name stays what it is."""
    return host_name(peer.rpartition(":")[0].strip("[]").partition("%")[0])


def host_name(host: str) -> str:
    """An address as Java writes it. A name stays what it is."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return host_text(address.packed)


def host_text(packed: bytes) -> str:
    """Four or sixteen bytes as Java writes an address. ValueError for another number of bytes."""
    address = ip_address(packed)
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return ":".join(f"{int(part, 16):x}" for part in address.exploded.split(":"))
    return str(address)


def packed_host(host: str) -> bytes:
    """The bytes of a session's host; the simulator's hosts, which have names, are this one."""
    try:
        return ip_address(host).packed
    except ValueError:
        return b"\x7f\0\0\1"

"""A cluster in virtual time with an authorizer, and clients that authenticate by their names.

Nodes and `admin` are super users.
"""

from __future__ import annotations

from typing import Any, Final

from tanist.client.acls import AclEntry, AclFilter, create_request, delete_request
from tanist.security.jaas import PLAIN_MODULE
from tanist.sim.world.world import BROKER_PORT
from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.schema import Struct
from tests.broker.authentication.sasl_rig import login
from tests.broker.cluster_rig import Cluster

USERS: Final = ("admin", "alice", "bob")
_JAAS: Final = f'{PLAIN_MODULE} required username="node" password="secret" ' + " ".join(
    f'user_{name}="secret"' for name in ("node", *USERS)
)
SECURED: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node;User:admin",
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": f"{_JAAS};",
    "listener.name.controller.plain.sasl.jaas.config": f"{_JAAS};",
}
"""Everybody authenticates; nodes are `node` to each other."""
DENIED: Final = frozenset({29, 30, 31, 53})
"""The errors of denials."""


class SecuredCluster(Cluster):
    """A cluster whose nodes have an authorizer. `client` is `admin`'s, a super user's."""

    def __init__(self, **how: Any) -> None:
        how["config"] = {**SECURED, **how.get("config", {})}
        super().__init__(**how)
        self.clients = {name: self.new_client(name, login("PLAIN", name, "secret")) for name in USERS}
        self.client = self.clients["admin"]

    def ask_as(
        self, user: str, request: Any, version: int, *, to: int = 1, port: int = BROKER_PORT, timeout_ms: int = 20_000
    ) -> Any:
        """`ask` as another than `admin`."""
        return self.ask(request, version, to=to, port=port, timeout_ms=timeout_ms, client=self.clients[user])

    def allow(self, user: str, *needed: tuple[int, int, str], deny: bool = False, host: str = "*") -> None:
        """Let the user do these (operation, resource type, name); a name that ends in + is a prefix."""
        permission = AclPermission.DENY if deny else AclPermission.ALLOW
        entries = [
            AclEntry(
                ResourceType(kind),
                name.removesuffix("+"),
                PatternType.PREFIXED if name.endswith("+") else PatternType.LITERAL,
                f"User:{user}",
                host,
                AclOperation(operation),
                permission,
            )
            for operation, kind, name in needed
        ]
        answer = self.ask(create_request(entries), 3)
        assert {each.error_code for each in answer.results} <= {0}, answer
        self._settle()

    def revoke(self, user: str) -> None:
        """Remove all entries of the user."""
        (result,) = self.ask(delete_request((AclFilter(principal=f"User:{user}"),)), 3).filter_results
        assert result.error_code == 0
        self._settle()

    def _settle(self) -> None:
        """Each node has what is committed."""
        offset = max(node.metadata.applied_offset for node in self.world.nodes())
        self.until(lambda: all(node.metadata.applied_offset >= offset for node in self.world.nodes()))


def error_codes(answer: object) -> set[int]:
    """All errors in an answer."""
    found: set[int] = set()
    if isinstance(answer, Struct):
        for field in answer.FIELDS:
            value = getattr(answer, field.name)
            if field.name.endswith("error_code"):
                found.add(value)
            else:
                found |= error_codes(value)
    elif isinstance(answer, tuple | list):
        for each in answer:
            found |= error_codes(each)
    return found

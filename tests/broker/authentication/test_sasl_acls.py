"""Authentication and authorization together: who logs in by SASL is who the access control lists are about."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from tanist.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from tanist.wire.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from tests.broker.authentication.sasl_rig import PLAIN_JAAS, SASL_EVERYWHERE, login
from tests.broker.cluster_rig import Cluster

BOB_TOO = PLAIN_JAAS.replace(";", ' user_bob="bob-secret";')
SECURED = {
    **SASL_EVERYWHERE,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node",
    "delegation.token.secret.key": "secret-of-all",
    "listener.name.plaintext.plain.sasl.jaas.config": BOB_TOO,
}
LOGINS = {name: login("PLAIN", name, f"{name}-secret") for name in ("node", "alice", "bob")}


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    made = Cluster(config=SECURED, login=LOGINS["node"])
    made.create_topic("orders")
    return made


def as_user(cluster: Cluster, name: str) -> Cluster:
    """The cluster as a client of this user asks it."""
    other = Cluster.__new__(Cluster)
    other.__dict__.update(cluster.__dict__)
    other.client = cluster.new_client(name, LOGINS[name])
    return other


def allow(cluster: Cluster, who: str, operation: AclOperation, kind: ResourceType, name: str) -> None:
    creation = AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=PatternType.LITERAL,
        principal=who,
        host="*",
        operation=operation,
        permission_type=AclPermission.ALLOW,
    )
    answer = cluster.ask(CreateAclsRequest(creations=(creation,)), 3)
    assert [each.error_code for each in answer.results] == [0]
    count = len(cluster.node(1).metadata.image.acls)
    cluster.until(lambda: all(len(node.metadata.image.acls) >= count for node in cluster.world.nodes()))


def test_a_user_is_refused_then_allowed(cluster: Cluster) -> None:
    alice, bob = as_user(cluster, "alice"), as_user(cluster, "bob")
    assert alice.produce("orders", [b"one"]).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    allow(cluster, "User:alice", AclOperation.WRITE, ResourceType.TOPIC, "orders")
    assert alice.produce("orders", [b"one"]).error_code == 0
    assert bob.produce("orders", [b"two"]).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert cluster.values("orders") == [b"one"]


def _token_for(owner: str | None) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else "User", owner_principal_name=owner, max_lifetime_ms=-1
    )


def test_a_token_for_another_owner_has_to_be_allowed_through_any_broker(cluster: Cluster) -> None:
    bob = as_user(cluster, "bob")
    for node_id in cluster.world.hosts:
        answer = bob.ask(_token_for("alice"), 3, to=node_id)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (answer.principal_name, answer.token_requester_principal_name) == ("alice", "bob")
        assert (answer.hmac, answer.token_id, answer.issue_timestamp_ms) == (b"", "", -1)
        assert bob.ask(_token_for(None), 3, to=node_id).error_code == 0, "for oneself nothing is needed"
    allow(cluster, "User:bob", AclOperation.CREATE_TOKENS, ResourceType.USER, "User:alice")
    assert bob.ask(_token_for("alice"), 3, to=2).error_code == 0


@pytest.mark.parametrize(
    ("operation", "kind"),
    [(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN), (AclOperation.DESCRIBE_TOKENS, ResourceType.USER)],
)
def test_tokens_of_others_are_seen_where_that_is_allowed(operation: AclOperation, kind: ResourceType) -> None:
    cluster = Cluster(nodes=1, config=SECURED, login=LOGINS["node"])
    made: Any = as_user(cluster, "alice").ask(_token_for(None), 3)
    bob, everything = as_user(cluster, "bob"), DescribeDelegationTokenRequest(owners=None)
    assert bob.ask(everything, 3).tokens == ()
    name = made.token_id if kind == ResourceType.DELEGATION_TOKEN else "User:alice"
    allow(cluster, "User:bob", operation, kind, name)
    assert [each.token_id for each in bob.ask(everything, 3).tokens] == [made.token_id]
    assert [each.hmac for each in as_user(cluster, "alice").ask(everything, 3).tokens] == [made.hmac]

"""Access control lists on nodes: what clients may do changes with the entries, and nobody sees another's."""

from __future__ import annotations

import pytest

from tanist.events.process import AuthorizationDenied
from tanist.wire.acls import AclOperation, ResourceType
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.join_group_request import JoinGroupRequest
from tests.broker.acl_rig import SecuredCluster, authenticated, error_codes

__all__ = ["authenticated"]

READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER


@pytest.fixture
def cluster(authenticated: None) -> SecuredCluster:
    return SecuredCluster(nodes=3)


def test_a_whole_request_is_denied_then_allowed_then_denied(cluster: SecuredCluster) -> None:
    request = JoinGroupRequest(group_id="g", protocol_type="consumer", session_timeout_ms=10_000)
    for version in range(10):
        answer = cluster.ask_as("alice", request, version)
        assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    cluster.allow("alice", (READ, GROUP, "g"))
    assert cluster.ask_as("alice", request, 5).error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert error_codes(cluster.ask_as("bob", request, 5)) == {ErrorCode.GROUP_AUTHORIZATION_FAILED}
    cluster.revoke("alice")
    assert cluster.ask_as("alice", request, 5).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_denial_is_reported_once_a_second_with_the_principal_as_it_is_written(cluster: SecuredCluster) -> None:
    request = JoinGroupRequest(group_id="g", protocol_type="consumer", session_timeout_ms=10_000)
    for _ in range(5):
        cluster.ask_as("alice", request, 5)
    (first,) = cluster.seen(AuthorizationDenied)
    assert first == AuthorizationDenied("User:alice", "alice", "READ", "GROUP", "g", "JOIN_GROUP", 0)
    cluster.run(1_000)
    cluster.ask_as("alice", request, 5)
    assert [each.left_out for each in cluster.seen(AuthorizationDenied)] == [0, 4]

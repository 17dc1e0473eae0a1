"""Brokers that log in to each other by SCRAM: the first users are formatted, later ones outlive their controllers."""

from __future__ import annotations

import pytest

from tanist.broker.node import Node
from tanist.controller.security.scram import credential_record
from tanist.security.sasl.scram import SHA_512
from tanist.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.broker.authentication.sasl_rig import SASL_EVERYWHERE, failures_of, login
from tests.broker.cluster_rig import Cluster

SALT = b"a salt"
NODE = credential_record("node", SHA_512.type, SHA_512.salted_password("node-secret", SALT, 4096), SALT, 4096)
BY_SCRAM = {
    **SASL_EVERYWHERE,
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}


def set_user(cluster: Cluster, name: str, password: str) -> None:
    upsertion = ScramCredentialUpsertion(
        name=name,
        mechanism=SHA_512.type,
        iterations=4096,
        salt=SALT,
        salted_password=SHA_512.salted_password(password, SALT, 4096),
    )
    answer = cluster.ask(AlterUserScramCredentialsRequest(upsertions=(upsertion,)), 0, to=_living(cluster))
    assert answer.results[0].error_code == 0


def _living(cluster: Cluster) -> int:
    return next(node.node_id for node in cluster.world.nodes())


def _leads(node: Node) -> bool:
    service = node.quorum.controller_service
    return service is not None and service.active


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(config=BY_SCRAM, credentials=(NODE,), login=login("PLAIN", "alice", "alice-secret"))


def test_followers_log_in_by_scram_as_users_that_were_formatted(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    assert cluster.produce("t", [b"one"]).error_code == 0
    leader = cluster.node(cluster.leader("t") or 1)
    followers = [each for each in leader.components.connections if each.client_id.endswith("-fetcher")]
    assert {str(each.session.principal) for each in followers} == {"User:node"}
    assert len(followers) == 2
    for node in cluster.world.nodes():
        assert node.metadata.image.scram["node", SHA_512.type] == NODE


def test_users_outlive_controllers_snapshots_and_restarts(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    for number in range(20):
        set_user(cluster, f"user-{number}", f"secret-{number}")
    set_user(cluster, "bob", "bob-secret")
    for _ in range(3):
        active = cluster.controller()
        cluster.world.hosts[active].kill()
        cluster.until(lambda: any(_leads(node) for node in cluster.world.nodes()))
        assert cluster.asked_by(login("SCRAM-SHA-512", "bob", "bob-secret"), to=_living(cluster)) == "User:bob"
        cluster.world.hosts[active].start()
        cluster.until(cluster.world.ready)
        assert cluster.asked_by(login("SCRAM-SHA-512", "bob", "bob-secret"), to=active) == "User:bob"
    assert cluster.produce("t", [b"one"]).error_code == 0
    assert cluster.values("t") == [b"one"]


def test_a_user_that_was_deleted_comes_in_nowhere(cluster: Cluster) -> None:
    set_user(cluster, "bob", "bob-secret")
    deletion = ScramCredentialDeletion(name="bob", mechanism=SHA_512.type)
    assert cluster.ask(AlterUserScramCredentialsRequest(deletions=(deletion,)), 0).results[0].error_code == 0
    cluster.until(lambda: all(("bob", 2) not in node.metadata.image.scram for node in cluster.world.nodes()))
    active = cluster.controller()
    cluster.world.hosts[active].kill()
    cluster.world.hosts[active].start()
    cluster.until(cluster.world.ready)
    for node_id in cluster.world.hosts:
        bob = login("SCRAM-SHA-512", "bob", "bob-secret")
        assert cluster.asked_by(bob, to=node_id) is None
        assert len(failures_of(bob)) == 1

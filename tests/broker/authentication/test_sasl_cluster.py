"""A cluster whose nodes and clients authenticate by SASL to each other."""

from __future__ import annotations

from base64 import b64encode

import pytest

from tanist.broker.metadata.replica_log_info import ReplicaLogInfoRequests
from tanist.broker.metrics.scrape import scrape
from tanist.controller.configs.description import describe_broker
from tanist.controller.configs.settings import Levels
from tanist.controller.partitions.unclean_recovery import AskReplica
from tanist.controller.security.scram import ALGORITHMS
from tanist.events.process import PeerAuthenticationFailed
from tanist.sim.scripted.cluster import ScriptedCluster
from tanist.sim.world.world import World
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tanist.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from tests.broker.authentication.sasl_rig import PLAIN_JAAS, SASL_EVERYWHERE, failures_of, login
from tests.broker.cluster_rig import Cluster, Heard
from tests.security.tokens import BY_TYPE


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster(config=SASL_EVERYWHERE, login=login("PLAIN", "alice", "alice-secret"))


def _upsertion(name: str, mechanism: int, password: str, iterations: int = 4096) -> ScramCredentialUpsertion:
    salt = b"salt of " + name.encode()
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        salted_password=BY_TYPE[mechanism].salted_password(password, salt, iterations),
    )


def test_records_come_back_from_a_cluster_in_which_everybody_authenticates(cluster: Cluster) -> None:
    cluster.create_topic("plain")
    assert cluster.produce("plain", [b"one", b"two"]).error_code == 0
    assert cluster.values("plain") == [b"one", b"two"]
    principals = {
        str(connection.session.principal)
        for node in cluster.world.nodes()
        for connection in node.components.connections
    }
    assert principals == {"User:alice", "User:node"}


@pytest.mark.parametrize("mechanism", sorted(ALGORITHMS))
def test_a_user_of_scram_comes_in_when_an_administrator_has_made_him_one(cluster: Cluster, mechanism: int) -> None:
    name = f"bob-{mechanism}"
    request = AlterUserScramCredentialsRequest(upsertions=(_upsertion(name, mechanism, "bob-secret"),))
    answer = cluster.ask(request, 0, to=2)
    assert [(each.user, each.error_code) for each in answer.results] == [(name, ErrorCode.NONE)]
    hash_ = BY_TYPE[mechanism]
    bob = login(hash_.name, name, "bob-secret")
    assert cluster.asked_by(bob) == f"User:{name}"
    wrong = login(hash_.name, name, "alice-secret")
    assert cluster.asked_by(wrong) is None
    assert failures_of(wrong) == [
        f"Authentication failed during authentication due to invalid credentials with SASL mechanism {hash_.name}"
    ]
    deletion = AlterUserScramCredentialsRequest(deletions=(ScramCredentialDeletion(name=name, mechanism=mechanism),))
    assert cluster.ask(deletion, 0, to=3).results[0].error_code == ErrorCode.NONE
    assert cluster.asked_by(login(hash_.name, name, "bob-secret")) is None


def test_a_wrong_password_of_plain_is_refused_as_apache_kafka_does(cluster: Cluster) -> None:
    for user, password in (("alice", "wrong"), ("nobody", "alice-secret"), ("alice", "alice-secret2")):
        wrong = login("PLAIN", user, password)
        assert cluster.asked_by(wrong) is None
        assert failures_of(wrong) == ["Authentication failed: Invalid username or password"]


def test_a_node_with_a_wrong_password_logs_it_once_a_second_and_stays_out() -> None:
    wrong = PLAIN_JAAS.replace('password="node-secret"', 'password="other"')
    own = {3: {"listener.name.controller.plain.sasl.jaas.config": wrong}}
    cluster = ScriptedCluster(World(1, nodes=3, config=SASL_EVERYWHERE, own_config=own))
    heard = Heard(cluster, PeerAuthenticationFailed)
    cluster.world.start()
    cluster.until(lambda: len(heard.events) > 1, 20_000)
    assert {each.problem for each in heard.of(PeerAuthenticationFailed)} == {
        "Authentication failed: Invalid username or password"
    }
    cluster.run(10_000)
    assert len(heard.events) <= 32
    assert cluster.node(3).lifecycle.state.value != "RUNNING"


def _log_ends(cluster: Cluster) -> object:
    """What a controller that is no broker hears of a broker's logs."""
    node, topic_id = cluster.node(2), cluster.image.topic_ids["t"]
    answers: list[object] = []
    asking = ReplicaLogInfoRequests(
        node.context, lambda: node.metadata.image, lambda broker_id, logs: answers.append(logs)
    )
    question = AskReplica(1, ((topic_id, 0),))
    cluster.world.scheduler.after(0, lambda: asking.ask(question), cluster.host(2).process)
    cluster.until(lambda: bool(answers))
    asking.close()
    return answers[0]


def test_a_controller_alone_authenticates_to_the_brokers_that_it_asks_for_their_logs() -> None:
    """In an unclean recovery. Its file says nothing of how brokers talk to each other."""
    cluster = Cluster(
        roles={1: "broker", 2: "controller"}, config=SASL_EVERYWHERE, login=login("PLAIN", "alice", "alice-secret")
    )
    cluster.create_topic("t", factor=1)
    assert _log_ends(cluster)


def test_a_password_of_controllers_with_tls_is_shown_to_no_broker_without_it() -> None:
    cluster = Cluster(
        roles={1: "broker", 2: "controller"},
        config={
            **SASL_EVERYWHERE,
            "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_SSL",
            "ssl.keystore.location": "/node.pem",
        },
        login=login("PLAIN", "alice", "alice-secret"),
    )
    cluster.create_topic("t", factor=1)
    assert _log_ends(cluster) is None
    assert not [
        connection
        for connection in cluster.node(1).components.connections
        if connection.session.principal.name == "node"
    ]


def test_no_secret_is_in_a_log_an_event_a_metric_or_a_crash_report() -> None:
    """Of a cluster that has met all kinds of logins, and of what was written down about them."""
    cluster = Cluster(
        config={**SASL_EVERYWHERE, "delegation.token.secret.key": "secret-of-all"},
        login=login("PLAIN", "alice", "alice-secret"),
    )
    request = AlterUserScramCredentialsRequest(upsertions=(_upsertion("bob", 1, "bob-secret"),))
    assert cluster.ask(request, 0).results[0].error_code == ErrorCode.NONE
    mine = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name=None, max_lifetime_ms=-1)
    made = cluster.ask(mine, 3)
    hmac = b64encode(made.hmac).decode()
    for user, password, options in (
        ("bob", "bob-secret", {}),
        ("bob", "no-secret-of-bob", {}),
        (made.token_id, hmac, {"tokenauth": "true"}),
    ):
        cluster.asked_by(login("SCRAM-SHA-256", user, password, **options))
    cluster.asked_by(login("PLAIN", "alice", "wrong-secret"))
    said = ["\n".join(cluster.log), repr(cluster.heard.events), repr(request), repr(made)]
    for node in cluster.world.nodes():
        image = node.metadata.image
        said += node.context.recent_events()
        said += [scrape(node.components).render(), repr(node.context.config), repr(node.status())]
        said += [
            repr(list(image.scram.values())),
            repr(list(image.tokens.values())),
            repr(node.context.logins.to_brokers),
        ]
        said.append(repr(describe_broker(Levels.of(image.configs, node.node_id, node.context.config.static))))
    record = cluster.node(1).metadata.image.scram["bob", 1]
    keys = [repr(each)[2:-1] for each in (record.stored_key, record.server_key, made.hmac)]
    for secret in ("-secret", "secret-of-all", hmac, *keys):
        assert not [each for each in said if secret in each], secret

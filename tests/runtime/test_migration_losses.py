"""`tanist.runtime.migration`: what is judged, without a cluster: losses, problems, the order of the roll."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tanist.runtime.client.admin import ConfigEntry, PartitionDescription, TopicDescription
from tanist.runtime.client.features import Feature, Features
from tanist.runtime.migration.api_names import api_name
from tanist.runtime.migration.losses import LOST, NOTE, REFUSED, Finding, losses
from tanist.runtime.migration.nodes import APACHE, TANIST, ClusterDescription, Node, Quorum
from tanist.runtime.migration.roll import steps
from tanist.runtime.migration.safety import UNAVAILABLE, Partitions, Problem, Verdict, of_nodes, of_partitions, of_stop
from tanist.runtime.migration.usage import TransactionListing, Usage
from tanist.wire.apis import BROKER_APIS, ApiKey

FILE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093,2@127.0.0.1:9094",
    "log.dirs": "/var/lib/kafka",
}
USAGE = Usage(Features(1, ()), (), {}, {int(key): versions for key, versions in BROKER_APIS.items()})


def entry(name: str, value: str, source: str = "static") -> ConfigEntry:
    return ConfigEntry(name, value, source, True, False)


def node(node_id: int = 1, software: str | None = APACHE, **more: Any) -> Node:
    file = {**FILE, "node.id": str(node_id), **{name.replace("_", "."): value for name, value in more.items()}}
    settings = {name: entry(name, value) for name, value in file.items()}
    return Node(node_id, ("127.0.0.1", 9092), True, True, True, software=software, settings=settings)


def cluster(*nodes: Node, leader: int = 1) -> ClusterDescription:
    voters = {each.node_id: 10 for each in nodes if each.is_voter}
    return ClusterDescription("id", {each.node_id: each for each in nodes}, Quorum(leader, 10, voters, {}, {}))


def of(usage: Usage = USAGE, *nodes: Node, target: str = TANIST) -> list[Finding]:
    return losses(cluster(*(nodes or (node(),))), usage, target)


def kinds(found: list[Finding]) -> set[tuple[str, str]]:
    return {(each.severity, each.kind) for each in found}


def test_a_plain_cluster_loses_nothing() -> None:
    assert of() == []


def test_a_cluster_with_tls_loses_nothing() -> None:
    with_tls = node(
        listeners="SSL://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        listener_security_protocol_map="SSL:SSL,CONTROLLER:SSL",
        ssl_keystore_location="/etc/kafka/server.p12",
        ssl_keystore_type="PKCS12",
    )
    assert of(USAGE, with_tls) == []


@pytest.mark.parametrize(
    ("more", "kind", "said"),
    [
        (
            {"listeners": "SSL://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
             "listener_security_protocol_map": "SSL:SSL,CONTROLLER:PLAINTEXT",
             "listener_name_ssl_ssl_keystore_location": "/etc/kafka/server.jks"},
            "listeners",
            "a Java key store (JKS) cannot be read; convert it to PKCS12 with keytool",
        ),
        ({"authorizer_class_name": "com.example.Authorizer"}, "configurations", "'com.example.Authorizer' is not"),
        ({"alter_config_policy_class_name": "a.Policy"}, "configurations", "would not enforce it"),
    ],
)  # fmt: skip
def test_a_file_that_tanist_does_not_start_from_is_refused(more: Mapping[str, Any], kind: str, said: str) -> None:
    (found,) = (each for each in of(USAGE, node(**more)) if each.severity == REFUSED)
    assert found.kind == kind
    assert said in found.message


def test_an_authorizer_whose_super_users_apache_kafka_does_not_describe_is_taken() -> None:
    standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    assert of(USAGE, node(authorizer_class_name=standard)) == []
    found = of(USAGE, node(authorizer_class_name=standard, super_users="User:admin"))
    assert "super.users lacks User:ANONYMOUS" in found[0].message


@pytest.mark.parametrize(
    ("name", "level", "severity"),
    [
        ("metadata.version", 33, None),
        ("metadata.version", 34, REFUSED),
        ("kraft.version", 1, None),
        ("kraft.version", 2, REFUSED),
        ("transaction.version", 2, None),
        ("share.version", 1, None),
        ("share.version", 2, None),
        ("share.version", 3, REFUSED),
        ("transaction.version", 3, REFUSED),
        ("something.version", 1, REFUSED),
        ("something.version", 0, None),
    ],
)
def test_features_are_judged_by_their_levels(name: str, level: int, severity: str | None) -> None:
    found = of(replace(USAGE, features=Features(1, (Feature(name, 0, level, level),))))
    assert kinds(found) == (set() if severity is None else {(severity, "features")})


def test_transactions_move_and_those_without_a_coordinator_are_noted() -> None:
    known = replace(
        USAGE,
        transactions=(TransactionListing("billing", "Ongoing", 4001), TransactionListing("orders", "Empty", 4002)),
        open_transactions=((("orders", 3), 4001),),
    )
    (found,) = of(known)
    assert (found.severity, found.details) == (NOTE, ("billing: Ongoing", "orders: Empty"))
    (hanging,) = of(replace(USAGE, open_transactions=((("orders", 3), 4001),)))
    assert (hanging.severity, hanging.details) == (NOTE, ("orders-3: producer 4001",))


def test_security_goes_on() -> None:
    found = of(replace(USAGE, acls=["User:a on t"] * 7, scram_users=["a"], tokens=2))
    assert kinds(found) == {(NOTE, kind) for kind in ("acls", "scram", "tokens")}
    (acls,) = (each for each in found if each.kind == "acls")
    assert acls.message == "7 ACLs kept and enforced"
    assert acls.details[-1] == "and 2 more"


def test_what_the_cluster_does_not_answer_is_to_be_accepted() -> None:
    assert kinds(of(replace(USAGE, unanswered=["ACLs: CLUSTER_AUTHORIZATION_FAILED"]))) == {(LOST, "unknown")}


def test_tiered_topics_are_refused() -> None:
    settings = {"t": {"remote.storage.enable": entry("remote.storage.enable", "true", "topic")}}
    found = of(replace(USAGE, topic_settings=settings))
    assert (REFUSED, "tiered-storage") in kinds(found)
    settings = {"t": {"remote.storage.enable": entry("remote.storage.enable", "false", "default")}}
    assert of(replace(USAGE, topic_settings=settings)) == []


def test_properties_without_effect_are_noted_with_their_places() -> None:
    settings = {"t": {"preallocate": entry("preallocate", "true", "topic")}}
    found = of(replace(USAGE, topic_settings=settings), node(1, num_io_threads="16"), node(2, num_io_threads="16"))
    assert [each.details for each in found] == [("num.io.threads (nodes 1,2)",), ("preallocate (t)",)]
    assert kinds(found) == {(NOTE, "configurations")}


def test_requests_and_versions_that_are_not_served_are_named() -> None:
    found = of(replace(USAGE, versions={**USAGE.versions, 4: (0, 7), ApiKey.FETCH: (0, 17), 76: (1, 1)}))
    assert kinds(found) == {(NOTE, "requests"), (LOST, "old-clients")}
    assert [each.details for each in found] == [("Fetch 0 to 3",), ("LeaderAndIsr",)]
    assert [api_name(key) for key in (0, 34, 76, 99)] == [
        "Produce", "AlterReplicaLogDirs", "ShareGroupHeartbeat", "request 99",
    ]  # fmt: skip


def test_back_to_apache_kafka_strategies_of_recovery_are_lost() -> None:
    settings = {"t": {"unclean.recovery.strategy": entry("unclean.recovery.strategy", "Balanced", "topic")}}
    ours = node(1, TANIST, tanist_metrics_listener=":1")
    found = of(replace(USAGE, topic_settings=settings), ours, target=APACHE)
    assert kinds(found) == {(LOST, "unclean-recovery"), (NOTE, "configurations")}


# -- the order


def test_brokers_go_first_and_the_active_controller_last() -> None:
    broker = replace(node(5), is_controller=False, is_voter=False)
    found = steps(cluster(node(1), node(2), node(3, TANIST), node(4), broker, leader=2), TANIST)
    assert [step.node.node_id for step in found] == [5, 1, 4, 2]
    assert "last" in found[-1].reason


def test_a_node_that_does_not_answer_is_the_step_under_way() -> None:
    found = steps(cluster(node(1), node(2, None), node(3, TANIST)), APACHE)
    assert [(step.node.node_id, step.under_way) for step in found] == [(2, True), (3, False)]


# -- safety


def partition(isr: tuple[int, ...], replicas: tuple[int, ...] = (1, 2, 3), leader: int = 1) -> PartitionDescription:
    return PartitionDescription(0, leader, 0, replicas, isr, (), (), ())


def partitions(*isrs: PartitionDescription, min_isr: int = 2) -> Partitions:
    topics = [TopicDescription(f"t{at}", UUID(int=at + 1), False, (each,)) for at, each in enumerate(isrs)]
    return Partitions(topics, {topic.topic: min_isr for topic in topics})


def test_partitions_are_reported_by_the_worst_that_is_wrong_with_them() -> None:
    found = of_partitions(
        partitions(partition((1, 2, 3)), partition((1, 2)), partition((1,)), partition((), leader=-1))
    )
    assert [problem.kind for problem in found] == ["leader", "min-isr", "sync"]
    assert found[1].message == "1 partition under min.insync.replicas: t2-0 (ISR 1 of 1,2,3)"
    assert of_partitions(partitions(partition((3, 2, 1)))) == []


def test_a_node_with_the_only_replica_cannot_stop_unnoticed() -> None:
    three = cluster(node(1), node(2), node(3))
    assert of_stop(three, partitions(partition((1, 2, 3))), node(1)) == []
    assert [each.kind for each in of_stop(three, partitions(partition((1,), (1,))), node(1))] == [UNAVAILABLE]
    assert of_stop(three, partitions(partition((2,), (2,))), node(1)) == []
    (found,) = of_stop(three, partitions(partition((1, 2), (1, 2))), node(1))
    assert "under min.insync.replicas while node 1 is stopped" in found.message


@pytest.mark.parametrize(("voters", "left"), [(1, False), (2, False), (3, True), (4, True)])
def test_the_other_voters_must_be_a_majority(voters: int, left: bool) -> None:
    whole = cluster(*(node(each + 1) for each in range(voters)))
    assert of_stop(whole, partitions(), node(1)) == [] if left else of_stop(whole, partitions(), node(1)) != []


def test_nodes_that_are_down_or_fenced_and_a_quorum_without_a_leader_are_problems() -> None:
    found = of_nodes(cluster(node(1), node(2, None), replace(node(3), fenced=True), leader=-1))
    assert [each.message for each in found] == [
        "node 2 (broker and controller) does not answer",
        "broker 3 is fenced",
        "there is no active controller",
    ]


def test_only_what_is_unavailable_for_a_time_can_be_accepted() -> None:
    verdict = Verdict([Problem(UNAVAILABLE, "a"), Problem("sync", "b")], 2)
    assert verdict.unaccepted((), node()) == list(verdict.problems)
    assert verdict.unaccepted((UNAVAILABLE, "sync"), node()) == [Problem("sync", "b")]


def test_a_controller_alone_may_change_though_brokers_are_down_and_the_quorum_must_be_well() -> None:
    controller = replace(node(), is_broker=False)
    problems = [Problem(kind, kind) for kind in ("down", "leader", "min-isr", "sync", "quorum", "bytes")]
    left = Verdict(problems, 2).unaccepted(("down", "leader", "min-isr", "sync", "quorum", "bytes"), controller)
    assert [problem.kind for problem in left] == ["quorum", "bytes"]


def test_voters_that_are_down_do_not_count_towards_the_majority() -> None:
    three = cluster(node(1), node(2, None), node(3))
    assert [each.kind for each in of_stop(three, partitions(), node(1))] == [UNAVAILABLE]

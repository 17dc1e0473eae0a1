"""Quotas for what clients create and delete: decided by the controller, said and heeded by the broker (KIP-599)."""

from __future__ import annotations

from functools import partial

import pytest

from tanist.sim.world.world import CONTROLLER_PORT
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tests.broker.cluster_rig import Cluster
from tests.broker.throttle_rig import Caller, Sent, set_quota

EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
MUTATIONS = "controller_mutation_rate"
TEXT = "The throttling quota has been exceeded."


def creation(*topics: tuple[str, int], validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=tuple(CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in topics),
        timeout_ms=5_000,
        validate_only=validate_only,
    )


def errors(sent: Sent) -> dict[str, int]:
    return {topic.name: topic.error_code for topic in sent.response.topics}


@pytest.fixture
def cluster() -> Cluster:
    """Half a partition a second: 5.5 may be made at once."""
    cluster = Cluster()
    set_quota(cluster, {"client-id": "a"}, **{MUTATIONS: 0.5})
    return cluster


def broker_beside_controller(cluster: Cluster) -> int:
    return next(node_id for node_id in cluster.world.hosts if node_id != cluster.controller())


def test_a_topic_that_comes_when_the_quota_is_used_up_is_refused(cluster: Cluster) -> None:
    to = broker_beside_controller(cluster)
    caller = Caller(cluster, "a")
    sent = caller.ask(creation(("first", 3), ("second", 10), ("third", 1), ("bad name!", 1)), 7, to=to)
    assert errors(sent) == {"first": 0, "second": 0, "third": EXCEEDED, "bad name!": ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert {topic.error_message for topic in sent.response.topics if topic.error_code == EXCEEDED} == {TEXT}
    assert sent.throttle_ms == 15_000  # 7.5 partitions are owed
    waiting = caller.send(creation(("third", 1)), 7, to=to)
    elsewhere = caller.send(creation(("third", 1)), 7, to=cluster.controller())
    cluster.until(lambda: elsewhere.answered)  # the same client by another broker: refused, by any broker
    assert errors(elsewhere) == {"third": EXCEEDED}
    assert 14_000 < elsewhere.throttle_ms < 15_000
    assert errors(Caller(cluster, "b").ask(creation(("b", 10)), 7, to=to)) == {"b": 0}  # not muted with it
    assert not waiting.answered
    cluster.until(lambda: waiting.answered)
    assert errors(waiting) == {"third": 0}
    assert waiting.throttle_ms == 0
    image = cluster.node(to).metadata.image
    assert {topic.name for topic in image.topics.values()} == {"first", "second", "third", "b"}


def test_older_versions_are_carried_out_and_throttled(cluster: Cluster) -> None:
    caller = Caller(cluster, "a")
    sent = caller.ask(creation(("first", 10), ("second", 1)), 5)
    assert errors(sent) == {"first": 0, "second": 0}
    assert sent.throttle_ms == 11_000
    began_ms = cluster.world.now_ms
    again = caller.ask(creation(("third", 1)), 5)
    assert errors(again) == {"third": 0}
    assert again.at_ms >= began_ms + 10_900


def test_what_is_only_validated_counts(cluster: Cluster) -> None:
    caller = Caller(cluster, "a")
    assert errors(caller.ask(creation(("first", 10), validate_only=True), 7)) == {"first": 0}
    assert errors(caller.ask(creation(("first", 1)), 7)) == {"first": EXCEEDED}
    assert not cluster.node(1).metadata.image.topics


def test_what_is_refused_for_another_reason_does_not_count(cluster: Cluster) -> None:
    caller = Caller(cluster, "a")
    factor = CreatableTopic(name="x", num_partitions=100, replication_factor=9)
    assert list(errors(caller.ask(CreateTopicsRequest(topics=(factor,), timeout_ms=5_000), 7)).values()) == [38]
    assert errors(caller.ask(creation(("first", 1)), 7)) == {"first": 0}


def _deletion(version: int, *names: str) -> DeleteTopicsRequest:
    if version >= 6:
        return DeleteTopicsRequest(topics=tuple(DeleteTopicState(name=name) for name in names), timeout_ms=5_000)
    return DeleteTopicsRequest(topic_names=names, timeout_ms=5_000)


@pytest.mark.parametrize(("version", "strict"), [(4, False), (5, True), (6, True)])
def test_deletions(cluster: Cluster, version: int, strict: bool) -> None:
    other = Caller(cluster, "b")
    assert set(errors(other.ask(creation(("first", 8), ("second", 2)), 7)).values()) == {0}
    sent = Caller(cluster, "a").ask(_deletion(version, "first", "second"), version)
    found = {each.name: each.error_code for each in sent.response.responses}
    assert found == {"first": 0, "second": EXCEEDED if strict else 0}
    assert sent.throttle_ms == (5_000 if strict else 9_000)
    if strict and version > 4:
        assert {each.error_message for each in sent.response.responses} == {None, TEXT}


@pytest.mark.parametrize(("version", "strict"), [(2, False), (3, True)])
def test_more_partitions(cluster: Cluster, version: int, strict: bool) -> None:
    other = Caller(cluster, "b")
    assert set(errors(other.ask(creation(("first", 1), ("second", 1)), 7)).values()) == {0}
    more = tuple(CreatePartitionsTopic(name=name, count=9, assignments=None) for name in ("first", "second"))
    sent = Caller(cluster, "a").ask(CreatePartitionsRequest(topics=more, timeout_ms=5_000), version)
    found = {each.name: each.error_code for each in sent.response.results}
    assert found == {"first": 0, "second": EXCEEDED if strict else 0}
    assert sent.throttle_ms == (5_000 if strict else 21_000)


def test_a_client_of_the_controllers_listener_is_muted_there(cluster: Cluster) -> None:
    """KIP-919: nobody stands between."""
    active = cluster.controller()
    caller = Caller(cluster, "a")
    sent = caller.ask(creation(("first", 8), ("second", 1)), 7, to=active, port=CONTROLLER_PORT)
    assert sent.throttle_ms == 5_000
    began_ms = cluster.world.now_ms
    again = caller.ask(creation(("second", 1)), 7, to=active, port=CONTROLLER_PORT)
    assert again.at_ms >= began_ms + 4_900
    assert errors(again) == {"second": 0}


def test_a_user_is_known_to_the_controller_by_the_envelope() -> None:
    cluster = Cluster()
    set_quota(cluster, {"user": "ANONYMOUS"}, **{MUTATIONS: 0.5})
    to = broker_beside_controller(cluster)
    assert errors(Caller(cluster, "a").ask(creation(("first", 8)), 7, to=to)) == {"first": 0}
    assert errors(Caller(cluster, "b").ask(creation(("second", 1)), 7, to=to)) == {"second": EXCEEDED}


def test_topics_that_clients_need_are_made_all_the_same() -> None:
    """A client that asks for a topic, or for its group's coordinator, does not know error 89."""
    cluster = Cluster(config={"auto.create.topics.enable": "true", "num.partitions": "8"})
    set_quota(cluster, {"user": None}, **{MUTATIONS: 0.5})
    caller = Caller(cluster, "a")

    def made(request: MetadataRequest) -> bool:
        return bool(caller.ask(request, 9).response.topics[0].error_code == 0)

    for name in ("first", "second"):
        request = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=True)
        cluster.until(partial(made, request))


def test_a_new_controller_begins_with_full_buckets(cluster: Cluster) -> None:
    """As Apache Kafka's: what was used is known to the controller only."""
    caller = Caller(cluster, "a")
    assert errors(caller.ask(creation(("first", 8)), 7)) == {"first": 0}
    cluster.host(cluster.controller()).kill()
    to = next(node.node_id for node in cluster.world.nodes())
    assert errors(Caller(cluster, "a again").ask(creation(("second", 1)), 7, to=to)) == {"second": 0}

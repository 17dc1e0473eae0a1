"""CreateTopics, DeleteTopics, CreatePartitions."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tanist.controller.topic_names import name_error
from tanist.controller.topics import create_partitions, create_topics, delete_topics
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tanist.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from tanist.wire.metadata import ConfigRecord, FeatureLevelRecord, PartitionRecord, TopicRecord
from tests.controller.world import World


class Dice:
    def __init__(self) -> None:
        self.random = random.Random(5)

    def below(self, n: int) -> int:
        return self.random.randrange(n)

    def bytes(self, n: int) -> bytes:
        return self.random.randbytes(n)


def world(unfenced: tuple[int, ...] = (1, 2, 3), topics: dict[str, Any] | None = None) -> World:
    return World(
        {"cluster": {"brokers": [1, 2, 3, 4], "unfenced": list(unfenced), "elr": True}, "topics": topics or {}}
    )


def topic(
    name: str = "foo", partitions: int = 1, factor: int = 1, configs: Any = (), manual: Any = ()
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs),
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(replicas))
            for number, replicas in manual
        ),
    )


def create(there: World, *topics: CreatableTopic, validate_only: bool = False) -> tuple[Any, list[Any]]:
    request = CreateTopicsRequest(topics=topics, validate_only=validate_only)
    decision = create_topics(there.image, request, there.settings, Dice())
    response: Any = decision.response
    records = list(decision.records)
    there.apply(decision)
    return response.topics, records


def error_of(there: World, wanted: CreatableTopic) -> ErrorCode:
    (result,), records = create(there, wanted)
    if result.error_code:
        assert not records
        assert result.error_message
    return ErrorCode(result.error_code)


# -- CreateTopics -----------------------------------------------------------------------------------------------------


def test_a_topic_is_created_with_its_unfenced_replicas_in_sync() -> None:
    there = world(unfenced=(2, 3))
    (result,), records = create(
        there, topic(partitions=-1, factor=-1, manual=[(1, (3, 2, 1)), (0, (1, 2, 3))], configs=[("retention.ms", "5")])
    )
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 3)
    assert [type(record) for record in records] == [TopicRecord, ConfigRecord, PartitionRecord, PartitionRecord]
    there.expect(
        {
            "foo-0": {"replicas": [1, 2, 3], "isr": [2, 3], "leader": 2, "leader_epoch": 0, "partition_epoch": 0},
            "foo-1": {"replicas": [3, 2, 1], "isr": [3, 2], "leader": 3},
        }
    )
    topic_id, state = there.partition("foo", 0)
    assert result.topic_id == topic_id
    assert topic_id.version == 4
    assert state.directories == tuple(there.directory(broker) for broker in (1, 2, 3))


def test_replicas_are_placed_for_who_only_gives_numbers() -> None:
    there = world()
    (result,), _ = create(there, topic(partitions=6, factor=3))
    assert (result.num_partitions, result.replication_factor) == (6, 3)
    states = list(there.image.topics[there.image.topic_ids["foo"]].partitions.values())
    assert len(states) == 6
    assert all(len(state.replicas) == 3 and state.isr == state.replicas for state in states)
    assert {state.leader for state in states} == {1, 2, 3}


def test_minus_one_is_the_default() -> None:
    there = world()
    there.settings = replace(there.settings, num_partitions=4, default_replication_factor=2)
    (result,), _ = create(there, topic(partitions=-1, factor=-1))
    assert (result.num_partitions, result.replication_factor) == (4, 2)


def test_the_answer_has_the_configurations_in_force() -> None:
    there = world()
    there.replay(ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2"))
    (result,), _ = create(there, topic(configs=[("retention.ms", "5")]))
    entries = {each.name: (each.value, each.config_source) for each in result.configs}
    assert entries["retention.ms"] == ("5", 1)
    assert entries["min.insync.replicas"] == ("2", 3)
    assert entries["cleanup.policy"] == ("delete", 5)
    assert [each.name for each in result.configs] == sorted(entries)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (topic(name=""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(name="a" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(name="a" * 249), ErrorCode.NONE),
        (topic(name="a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(name="grüße"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(name=".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(name="__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (topic(name="there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic(name="with.dot"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(partitions=0), ErrorCode.INVALID_PARTITIONS),
        (topic(partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (topic(factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic(factor=-2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic(factor=5), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic(configs=[("no.such", "1")]), ErrorCode.INVALID_CONFIG),
        (topic(configs=[("retention.ms", None)]), ErrorCode.INVALID_CONFIG),
        (topic(configs=[("retention.ms", "soon")]), ErrorCode.INVALID_CONFIG),
        (topic(partitions=10_001), ErrorCode.POLICY_VIOLATION),
        (topic(manual=[(0, (1,))]), ErrorCode.INVALID_REQUEST),
        (topic(manual=[(0, (1,))], factor=-1), ErrorCode.INVALID_REQUEST),
        (topic(manual=[(0, (1,)), (0, (2,))], factor=-1, partitions=-1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic(manual=[(0, (1,)), (2, (2,))], factor=-1, partitions=-1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic(manual=[(0, (1,)), (1, (2, 3))], factor=-1, partitions=-1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic(manual=[(0, ())], factor=-1, partitions=-1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic(manual=[(0, (1, 1))], factor=-1, partitions=-1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic(manual=[(0, (1, 9))], factor=-1, partitions=-1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic(manual=[(0, (4,))], factor=-1, partitions=-1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else None,
)
def test_what_cannot_be_created(wanted: CreatableTopic, error: ErrorCode) -> None:
    there = world(topics={"there": {"assignments": [[1]]}, "with_dot": {"assignments": [[1]]}})
    assert error_of(there, wanted) is error


def test_topics_of_one_request_fail_one_by_one() -> None:
    there = world()
    results, _ = create(there, topic("a"), topic("b", factor=9), topic("c.d"), topic("c_d"))
    assert [each.error_code for each in results] == [0, ErrorCode.INVALID_REPLICATION_FACTOR, 0, 17]
    assert sorted(there.image.topic_ids) == ["a", "c.d"]


def test_a_name_given_twice_is_reported_once_and_created_never() -> None:
    there = world()
    results, records = create(there, topic("a"), topic("a"), topic("b"))
    assert [(each.name, each.error_code) for each in results] == [("a", ErrorCode.INVALID_REQUEST), ("b", 0)]
    assert sum(isinstance(record, TopicRecord) for record in records) == 1


def test_validating_writes_nothing() -> None:
    there = world()
    (result,), records = create(there, topic(partitions=2), validate_only=True)
    assert (result.error_code, result.num_partitions, result.topic_id) == (0, 2, UUID(int=0))
    assert records == []


def test_all_brokers_fenced_or_shutting_down() -> None:
    there = world(unfenced=(1,))
    there.controlled_shutdown(1)
    assert error_of(there, topic()) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert error_of(there, topic(manual=[(0, (1,))], factor=-1, partitions=-1)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_before_3_7_partitions_have_no_directories() -> None:
    there = world()
    there.replay(FeatureLevelRecord(name="metadata.version", feature_level=16))
    _, records = create(there, topic())
    assert records[-1].directories == ()


def test_topic_ids_can_be_written_on_a_command_line() -> None:
    class Dashes(Dice):
        """Gives first an id whose text begins with "-", then one that is taken, then a good one."""

        def __init__(self) -> None:
            super().__init__()
            self.given = [b"\xf8" * 16, b"\x11" * 16, b"\x22" * 16]

        def bytes(self, n: int) -> bytes:
            return self.given.pop(0)

    there = world()
    there.replay(TopicRecord(name="x", topic_id=UUID(bytes=b"\x11" * 16, version=4)))
    decision = create_topics(there.image, CreateTopicsRequest(topics=(topic(),)), there.settings, Dashes())
    response: Any = decision.response
    assert response.topics[0].topic_id == UUID(bytes=b"\x22" * 16, version=4)


def test_names() -> None:
    assert name_error("Az09._-") is None
    assert name_error("") == "Topic name is invalid: the empty string is not allowed"


# -- DeleteTopics -----------------------------------------------------------------------------------------------------


def delete(there: World, *names: str, topics: Any = ()) -> list[tuple[str | None, ErrorCode]]:
    decision = delete_topics(there.image, DeleteTopicsRequest(topic_names=names, topics=tuple(topics)), there.settings)
    response: Any = decision.response
    there.apply(decision)
    return [(each.name, ErrorCode(each.error_code)) for each in response.responses]


def test_topics_are_deleted_by_name_and_by_id() -> None:
    there = world(topics={name: {"assignments": [[1, 2]]} for name in ("a", "b", "c")})
    assert delete(there, "a", "zz") == [("a", ErrorCode.NONE), ("zz", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    by_id = DeleteTopicState(topic_id=there.image.topic_ids["b"])
    assert delete(there, topics=[by_id, DeleteTopicState(name="c")]) == [("b", ErrorCode.NONE), ("c", ErrorCode.NONE)]
    assert there.image.topics == {}
    assert delete(there, topics=[by_id]) == [(None, ErrorCode.UNKNOWN_TOPIC_ID)]


def test_a_deletion_has_one_way_to_name_a_topic_and_names_it_once() -> None:
    there = world(topics={"a": {"assignments": [[1, 2]]}})
    topic_id = there.image.topic_ids["a"]
    wanted = [
        DeleteTopicState(name="a", topic_id=topic_id),
        DeleteTopicState(),
        DeleteTopicState(name="a"),
        DeleteTopicState(name="a"),
        DeleteTopicState(topic_id=topic_id),
    ]
    codes = [code for _, code in delete(there, topics=wanted)]
    assert codes == [42, 42, 0, 42, 42]


def test_deletion_can_be_switched_off() -> None:
    there = world(topics={"a": {"assignments": [[1, 2]]}})
    there.settings = replace(there.settings, delete_topic_enable=False)
    assert delete(there, "a") == [("a", ErrorCode.TOPIC_DELETION_DISABLED)]
    assert "a" in there.image.topic_ids


# -- CreatePartitions -------------------------------------------------------------------------------------------------


def grow(there: World, name: str, count: int, manual: Any = None, validate_only: bool = False) -> tuple[ErrorCode, int]:
    wanted = CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None if manual is None else tuple(CreatePartitionsAssignment(broker_ids=each) for each in manual),
    )
    request = CreatePartitionsRequest(topics=(wanted,), validate_only=validate_only)
    decision = create_partitions(there.image, request, there.settings, Dice())
    response: Any = decision.response
    there.apply(decision)
    return ErrorCode(response.results[0].error_code), len(decision.records)


def test_a_topic_gets_more_partitions() -> None:
    there = world(topics={"a": {"assignments": [[1, 2]]}})
    assert grow(there, "a", 3, validate_only=True) == (ErrorCode.NONE, 0)
    assert grow(there, "a", 3) == (ErrorCode.NONE, 2)
    assert len(there.partition("a", 2)[1].replicas) == 2
    assert grow(there, "a", 4, manual=[(4, 3)]) == (ErrorCode.NONE, 1)
    there.expect({"a-3": {"replicas": [4, 3], "isr": [3], "leader": 3}})


@pytest.mark.parametrize(
    ("name", "count", "manual", "error"),
    [
        ("zz", 2, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a", 1, None, ErrorCode.INVALID_PARTITIONS),
        ("a", 0, None, ErrorCode.INVALID_PARTITIONS),
        ("a", 10_002, None, ErrorCode.POLICY_VIOLATION),
        ("a", 3, [(1, 2)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("a", 2, [(1,)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("a", 2, [(1, 9)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("a", 2, [(4, 4)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_cannot_grow(name: str, count: int, manual: Any, error: ErrorCode) -> None:
    there = world(topics={"a": {"assignments": [[1, 2]]}})
    assert grow(there, name, count, manual) == (error, 0)


def test_new_partitions_have_the_factor_that_the_topic_is_moving_to() -> None:
    there = world(topics={"a": {"assignments": [[1, 2]]}})
    there.fence(4)
    there.reassign({"topic": "a", "p": 0, "replicas": [4, 3, 1]})
    assert grow(there, "a", 2) == (ErrorCode.NONE, 1)
    assert len(there.partition("a", 1)[1].replicas) == 3


def test_a_topic_named_twice_does_not_grow() -> None:
    there = world(topics={"a": {"assignments": [[1, 2]]}})
    twice = CreatePartitionsTopic(name="a", count=2, assignments=None)
    request = CreatePartitionsRequest(topics=(twice, twice))
    decision = create_partitions(there.image, request, there.settings, Dice())
    response: Any = decision.response
    assert [each.error_code for each in response.results] == [ErrorCode.INVALID_REQUEST]
    assert decision.records == ()

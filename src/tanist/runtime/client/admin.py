"""Topics and settings of any Kafka cluster, asked for and changed through `Client`.

Every function is one question or one change. A refusal is a `KafkaError` with the broker's own message. A change
that must not be asked for twice goes through `changes.carry_out`: when its answer is lost, what is there is looked up.
Settings are safe to set again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from tanist.client.admin import BROKER_RESOURCE, alter_configs_request, new_topic
from tanist.runtime.client.changes import ask_once, carry_out
from tanist.runtime.client.client import DENIALS, Client, KafkaError, Unsupported
from tanist.runtime.client.quorum import ask_controller
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import METADATA_TOPIC, NO_LEADER
from tanist.wire.messages import (
    create_partitions_request,
    create_topics_request,
    delete_topics_request,
    describe_configs_request,
    describe_quorum_request,
    describe_topic_partitions_request,
)
from tanist.wire.messages.create_partitions_response import CreatePartitionsResponse
from tanist.wire.messages.create_topics_response import CreateTopicsResponse
from tanist.wire.messages.delete_topics_response import DeleteTopicsResponse
from tanist.wire.messages.describe_configs_response import DescribeConfigsResponse, DescribeConfigsResult
from tanist.wire.messages.describe_quorum_response import DescribeQuorumResponse
from tanist.wire.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse
from tanist.wire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse

_NEWS_PATIENCE_S = 2.0
_REPLICA_S = 0.003
"""How much longer each replica may take: brokers create their logs before they answer anything else."""


_SOURCES = {
    1: "topic",
    2: "broker",
    3: "cluster",
    4: "static",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition, with KIP-966's fields: None where the cluster does not have them."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None
    last_known_elr: tuple[int, ...] | None
    offline: tuple[int, ...]
    last_unclean_epoch: int = -1
    """The leader epoch that last began with an unclean election; -1: none, or it is not known (Apache Kafka)."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    topic: str
    topic_id: UUID
    internal: bool
    partitions: tuple[PartitionDescription, ...]


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str | None
    source: str
    read_only: bool
    sensitive: bool

    @property
    def is_default(self) -> bool:
        return self.source == "default"


def quorum_leader(client: Client) -> int | None:
    """The active controller, as the answering broker knows it. Metadata's controller id is any broker's, in KRaft."""
    topic = describe_quorum_request.TopicData(
        topic_name=METADATA_TOPIC, partitions=(describe_quorum_request.PartitionData(partition_index=0),)
    )
    answer = client.ask(describe_quorum_request.DescribeQuorumRequest(topics=(topic,)), DescribeQuorumResponse)
    _raise_for(answer.error_code, answer.error_message)
    for found in answer.topics:
        for partition in found.partitions:
            _raise_for(partition.error_code, partition.error_message)
            return partition.leader_id if partition.leader_id != NO_LEADER else None
    return None


def list_topics(client: Client) -> list[tuple[str, int, bool]]:
    """(name, number of partitions, internal) of every topic, by name."""
    view = client.persist(lambda: client.metadata(None))
    return sorted((topic.name, len(topic.partitions), topic.internal) for topic in view.topics.values())


def describe_topics(client: Client, names: Iterable[str] = ()) -> list[TopicDescription]:
    """The named topics, or all; in the order of their names. `KafkaError` for one that there is not."""
    wanted = sorted(set(names))
    # A topic that was just created may not have come to the broker that we ask; one that never was does not come.
    patience_s = min(client.timeout_s, _NEWS_PATIENCE_S)
    try:
        return client.persist(lambda: _describe_with_elr(client, wanted), timeout_s=patience_s)
    except Unsupported:
        return client.persist(lambda: _describe_by_metadata(client, wanted), timeout_s=patience_s)


def create_topic(
    client: Client,
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    assignment: Sequence[Sequence[int]] = (),
    config: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> UUID:
    """Create a topic; gives its id. -1: as the cluster's defaults say. With an assignment both are taken from it."""
    topic = new_topic(
        name, partitions=partitions, replication_factor=replication_factor, assignment=assignment, configs=config
    )

    def attempt(patience_s: float) -> UUID:
        request = create_topics_request.CreateTopicsRequest(
            topics=(topic,), timeout_ms=round(patience_s * 1000), validate_only=validate_only
        )
        answer = ask_once(client, request, CreateTopicsResponse, patience_s)
        _raise_for(answer.topics[0].error_code, answer.topics[0].error_message)
        return answer.topics[0].topic_id

    def find_result() -> UUID | None:
        found = client.metadata([name]).topics.get(name)
        if found is None or found.error_code:
            return None
        replicas = [found.partitions[index].replicas for index in sorted(found.partitions)]
        wanted = [tuple(each) for each in assignment]
        same = replicas == wanted if wanted else partitions in (-1, len(replicas))
        if same and (wanted or replication_factor in (-1, len(replicas[0]))):
            return found.topic_id
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists, with other partitions.")

    if validate_only:
        return client.persist(lambda: attempt(client.timeout_s))
    return carry_out(
        client,
        f"create topic {name}",
        attempt,
        find_result,
        already=(ErrorCode.TOPIC_ALREADY_EXISTS,),
        patience_s=client.timeout_s + _REPLICA_S * max(1, partitions) * max(1, replication_factor),
    )


def delete_topic(client: Client, name: str) -> None:
    """Delete the topic that has this name now: by its id where the brokers can, for another may take the name."""
    topic_id = client.persist(lambda: _id_of(client, name), timeout_s=min(client.timeout_s, _NEWS_PATIENCE_S))
    state = delete_topics_request.DeleteTopicState(name=None if topic_id.int else name, topic_id=topic_id)

    def attempt(patience_s: float) -> bool:
        request = delete_topics_request.DeleteTopicsRequest(
            topic_names=(name,), topics=(state,), timeout_ms=round(patience_s * 1000)
        )
        response = ask_once(client, request, DeleteTopicsResponse, patience_s).responses[0]
        if response.error_code in DENIALS:
            raise _no_topic(response.error_code, name)
        _raise_for(response.error_code, response.error_message)
        return True

    def find_result() -> bool | None:
        found = client.metadata([name]).topics.get(name)
        return True if found is None or found.error_code in DENIALS or found.topic_id != topic_id else None

    carry_out(client, f"delete topic {name}", attempt, find_result, already=DENIALS)


def add_partitions(client: Client, name: str, count: int, assignment: Sequence[Sequence[int]] = ()) -> None:
    """Give a topic `count` partitions altogether; `assignment` places the new ones."""
    topic = create_partitions_request.CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=tuple(
            create_partitions_request.CreatePartitionsAssignment(broker_ids=tuple(replicas)) for replicas in assignment
        )
        or None,
    )

    def attempt(patience_s: float) -> bool:
        request = create_partitions_request.CreatePartitionsRequest(
            topics=(topic,), timeout_ms=round(patience_s * 1000)
        )
        result = ask_once(client, request, CreatePartitionsResponse, patience_s).results[0]
        if result.error_code in DENIALS:
            raise _no_topic(result.error_code, name)
        _raise_for(result.error_code, result.error_message)
        return True

    def find_result() -> bool | None:
        found = client.metadata([name]).topics.get(name)
        has = 0 if found is None else len(found.partitions)
        if has > count:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic '{name}' has {has} partitions.")
        return True if has == count else None

    carry_out(
        client,
        f"give topic {name} {count} partitions",
        attempt,
        find_result,
        already=(ErrorCode.INVALID_PARTITIONS,),
        patience_s=client.timeout_s + _REPLICA_S * count,
    )


def describe_configs(client: Client, kind: int, name: str) -> list[ConfigEntry]:
    """Settings of a topic, or of a broker (whose id is its name), by name."""
    resource = describe_configs_request.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = describe_configs_request.DescribeConfigsRequest(resources=(resource,))
    node_id = int(name) if kind == BROKER_RESOURCE and name else None

    def attempt() -> list[ConfigEntry]:
        found = client.ask(request, DescribeConfigsResponse, node_id=node_id).results[0]
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise _no_topic(found.error_code, name, final=not _has(client, name))
        _raise_for(found.error_code, found.error_message)
        return config_entries(found)

    return client.persist(attempt)


def config_entries(described: DescribeConfigsResult) -> list[ConfigEntry]:
    """The settings in a part of DescribeConfigs' answer, by name."""
    entries = (
        ConfigEntry(
            entry.name, entry.value, _SOURCES.get(entry.config_source, "?"), entry.read_only, entry.is_sensitive
        )
        for entry in described.configs
    )
    return sorted(entries, key=lambda entry: entry.name)


def alter_configs(client: Client, kind: int, name: str, changes: Mapping[str, str | None]) -> None:
    """Set settings; None takes one back to its default."""
    request = alter_configs_request(kind, name, changes)
    node_id = int(name) if kind == BROKER_RESOURCE and name else None

    def attempt() -> None:
        answer = ask_controller(client, request, IncrementalAlterConfigsResponse, node_id=node_id)
        found = answer.responses[0]
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise _no_topic(found.error_code, name)
        _raise_for(found.error_code, found.error_message)

    client.persist(attempt)


def _describe_with_elr(client: Client, names: Sequence[str]) -> list[TopicDescription]:
    """By DescribeTopicPartitions (KIP-966), page by page."""
    found: dict[str, TopicDescription] = {}
    cursor: describe_topic_partitions_request.Cursor | None = None
    while True:
        request = describe_topic_partitions_request.DescribeTopicPartitionsRequest(
            topics=tuple(describe_topic_partitions_request.TopicRequest(name=name) for name in names), cursor=cursor
        )
        answer = client.ask(request, DescribeTopicPartitionsResponse)
        for topic in answer.topics:
            name = topic.name or ""
            _raise_for_topic(topic.error_code, name)
            before = found[name].partitions if name in found else ()
            found[name] = TopicDescription(
                name,
                topic.topic_id,
                topic.is_internal,
                before
                + tuple(
                    PartitionDescription(
                        partition.partition_index,
                        partition.leader_id,
                        partition.leader_epoch,
                        partition.replica_nodes,
                        partition.isr_nodes,
                        partition.eligible_leader_replicas or (),
                        partition.last_known_elr or (),
                        partition.offline_replicas,
                        partition.last_unclean_epoch,
                    )
                    for partition in topic.partitions
                ),
            )
        if answer.next_cursor is None:
            return _with_all_known(client, names, found)
        following = describe_topic_partitions_request.Cursor(
            topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index
        )
        if following == cursor:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker's next page is the page that it just gave")
        cursor = following


def _with_all_known(client: Client, names: Sequence[str], found: dict[str, TopicDescription]) -> list[TopicDescription]:
    """An answer, if it does not leave out a topic that another broker has; else another one is to be asked."""
    if not names and (not found or not client.known_topics <= found.keys()):
        there = client.metadata(None).topics.keys() if not found else client.known_topics
        denied = next((name for name in sorted(there) if name not in found and _has(client, name)), None)
        if denied is not None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"a broker does not know topic {denied} yet")
    client.known_topics |= found.keys()
    return list(found.values())


def _describe_by_metadata(client: Client, names: Sequence[str]) -> list[TopicDescription]:
    """Of a cluster that is older than KIP-966."""
    view = client.metadata(names or None)
    described = []
    for topic in sorted(view.topics.values(), key=lambda topic: topic.name):
        _raise_for_topic(topic.error_code, topic.name)
        partitions = tuple(
            PartitionDescription(
                index, found.leader, found.leader_epoch, found.replicas, found.isr, None, None, found.offline
            )
            for index, found in sorted(topic.partitions.items())
        )
        described.append(TopicDescription(topic.name, topic.topic_id, topic.internal, partitions))
    return described


def _raise_for(code: int, message: str | None) -> None:
    if code:
        raise KafkaError(code, message)


def _raise_for_topic(code: int, name: str) -> None:
    _raise_for(code, f"there is no topic {name}" if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else f"topic {name}")


def _id_of(client: Client, name: str) -> UUID:
    """The id of a topic; all zeros of a cluster that is older than ids."""
    found = client.metadata([name]).topics.get(name)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else found.error_code
    if found is None or code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise KafkaError(code, f"there is no topic {name}")
    _raise_for(code, f"topic {name}")
    return found.topic_id


def _has(client: Client, name: str) -> bool:
    """Whether any broker has the topic: the one that has just denied it may lag behind."""
    found = client.metadata([name]).topics.get(name)
    return found is not None and found.error_code not in DENIALS


def _no_topic(code: int, name: str, *, final: bool = True) -> KafkaError:
    return KafkaError(code, f"there is no topic {name}", final=final)

"""Creating and deleting topics, and giving topics more partitions.

Owns CreateTopics, DeleteTopics and CreatePartitions: names, counts, manual assignments and configurations are checked,
in Kafka's order and with its error codes, before the records are made. A new partition has its unfenced replicas in
sync, the first of them leads, and its epochs are 0. `placement` chooses the brokers, `settings` defines the legal
configurations.

DEVIATION from rule 56: no ClearElrRecord is written for a new topic with its own min.insync.replicas. There is no
ELR yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from tanist.controller.configs.description import describe_topic
from tanist.controller.configs.settings import Levels
from tanist.controller.configs.validation import validate_topic_configs
from tanist.controller.decision import NO_QUOTA, ControllerSettings, Decision, MutationQuota
from tanist.controller.image.image import TOPIC, MetadataImage, TopicImage
from tanist.controller.partitions.context import PartitionContexts, supports_directories
from tanist.controller.partitions.reassignment import Refused, check_assignment
from tanist.controller.placement import PlacementError, Placer, UsableBroker
from tanist.controller.topic_names import TakenNames, name_error
from tanist.ports import Random
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import METADATA_TOPIC, ZERO_UUID
from tanist.wire.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from tanist.wire.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from tanist.wire.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from tanist.wire.metadata import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from tanist.wire.schema import MetadataRecord

TOO_MANY = "Excessively large number of partitions per request."

# -- new partitions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _NewPartition:
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class _Allocator:
    """Turns counts or manual assignments into new partitions, for one request."""

    __slots__ = ("_contexts", "_image", "_placer", "_with_directories")

    def __init__(self, image: MetadataImage, settings: ControllerSettings, random: Random) -> None:
        self._image = image
        self._contexts = PartitionContexts(image, settings)
        self._with_directories = supports_directories(image.metadata_version)
        self._placer = Placer(
            (
                UsableBroker(broker.id, broker.rack, broker.fenced)
                for broker in image.brokers.values()
                if not broker.in_controlled_shutdown
            ),
            random,
        )

    def place(self, count: int, replication_factor: int) -> list[_NewPartition]:
        try:
            assignments = [self._placer.place(replication_factor) for _ in range(count)]
        except PlacementError as error:
            raise Refused(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {replication_factor} time(s): {error}",
            ) from error
        return [_NewPartition(replicas, self._active(replicas)) for replicas in assignments]

    def manual(self, partition: int, replicas: tuple[int, ...], factor: int | None) -> _NewPartition:
        check_assignment(self._image, replicas, factor)
        isr = self._active(replicas)
        if not isr:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"All brokers specified in the manual partition assignment for partition {partition} are fenced or in "
                "controlled shutdown.",
            )
        return _NewPartition(replicas, isr)

    def record(self, topic_id: UUID, partition: int, new: _NewPartition) -> PartitionRecord:
        directories: tuple[UUID, ...] = ()
        if self._with_directories:
            directories = tuple(self._contexts.default_directory(replica) for replica in new.replicas)
        return PartitionRecord(
            partition_id=partition,
            topic_id=topic_id,
            replicas=new.replicas,
            isr=new.isr,
            leader=new.isr[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=directories,
        )

    def _active(self, replicas: Iterable[int]) -> tuple[int, ...]:
        return tuple(replica for replica in replicas if self._image.brokers[replica].active)


def _take(quota: MutationQuota, partitions: int) -> None:
    """Have the client's quota pay for partitions that are created or deleted, or would be but for `validate_only`."""
    if not quota.take(partitions):
        raise Refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")


# -- CreateTopics -----------------------------------------------------------------------------------------------------


def create_topics(
    image: MetadataImage,
    request: CreateTopicsRequest,
    settings: ControllerSettings,
    random: Random,
    quota: MutationQuota = NO_QUOTA,
) -> Decision:
    """Each topic succeeds or fails by itself; all that succeed are created at once."""
    requested = {topic.name: topic for topic in request.topics}
    duplicates = _duplicates(topic.name for topic in request.topics)
    if _partitions_asked(requested.values(), settings) > settings.max_partitions_per_batch:
        refused = Refused(ErrorCode.POLICY_VIOLATION, TOO_MANY)
        return Decision(response=CreateTopicsResponse(topics=tuple(_not_created(name, refused) for name in requested)))
    allocator = _Allocator(image, settings, random)
    names = TakenNames(image.topic_ids)
    records: list[MetadataRecord] = []
    results: list[CreatableTopicResult] = []
    for name, topic in requested.items():
        try:
            if name in duplicates:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            _check_new_name(image, names, name)
            configs = _creation_configs(topic)
            partitions = _new_partitions(topic, allocator, settings)
            _take(quota, len(partitions))
        except Refused as refused:
            results.append(_not_created(name, refused))
            continue
        names.add(name)
        topic_id = ZERO_UUID if request.validate_only else new_topic_id(image, random)
        results.append(_created(image, settings, name, topic_id, partitions, configs))
        records.append(TopicRecord(name=name, topic_id=topic_id))
        # Before the partitions, so that brokers know the configuration when they open the logs.
        records.extend(
            ConfigRecord(resource_type=TOPIC, resource_name=name, name=key, value=value)
            for key, value in configs.items()
        )
        records.extend(allocator.record(topic_id, number, partition) for number, partition in partitions.items())
    response = CreateTopicsResponse(topics=tuple(results))
    return Decision(records=() if request.validate_only else tuple(records), response=response)


def new_topic_id(image: MetadataImage, random: Random) -> UUID:
    """A random id that is free and whose text does not begin with "-", which command lines would take for an option."""
    while True:
        topic_id = UUID(bytes=random.bytes(16), version=4)
        if topic_id not in image.topics and topic_id.bytes[0] >> 2 != _DASH:
            return topic_id


_DASH = 62
"""The place of "-" in the URL-safe base64 alphabet, in which Kafka prints ids."""


def _check_new_name(image: MetadataImage, names: TakenNames, name: str) -> None:
    if name == METADATA_TOPIC:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
    error = name_error(name)
    if error is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, error)
    if name in image.topic_ids:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    collision = names.collision(name)
    if collision is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {collision}")


def _creation_configs(topic: CreatableTopic) -> dict[str, str]:
    given = {config.name: config.value for config in topic.configs}
    error = validate_topic_configs(given)
    if error is not None:
        raise Refused(ErrorCode.INVALID_CONFIG, error)
    return {name: value for name, value in given.items() if value is not None}


def _new_partitions(
    topic: CreatableTopic, allocator: _Allocator, settings: ControllerSettings
) -> dict[int, _NewPartition]:
    if topic.assignments:
        return _manual_partitions(topic, allocator)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise Refused(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    count = settings.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = settings.default_replication_factor if topic.replication_factor == -1 else topic.replication_factor
    return dict(enumerate(allocator.place(count, factor)))


def _manual_partitions(topic: CreatableTopic, allocator: _Allocator) -> dict[int, _NewPartition]:
    if topic.replication_factor != -1:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if topic.num_partitions != -1:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    partitions: dict[int, _NewPartition] = {}
    factor: int | None = None
    for assignment in topic.assignments:
        number = assignment.partition_index
        if number in partitions:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {number}",
            )
        partitions[number] = allocator.manual(number, assignment.broker_ids, factor)
        factor = len(assignment.broker_ids)
    if set(partitions) != set(range(len(partitions))):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    return dict(sorted(partitions.items()))


def _partitions_asked(topics: Iterable[CreatableTopic], settings: ControllerSettings) -> int:
    """Counted before any allocation: the number comes from the request."""
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        else:
            total += settings.num_partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0)
    return total


def _created(
    image: MetadataImage,
    settings: ControllerSettings,
    name: str,
    topic_id: UUID,
    partitions: dict[int, _NewPartition],
    configs: dict[str, str],
) -> CreatableTopicResult:
    levels = Levels.of(image.configs, settings.node_id, settings.static_configs)
    entries = sorted(describe_topic(configs, levels), key=lambda entry: entry.name)
    return CreatableTopicResult(
        name=name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=tuple(
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
            for entry in entries
        ),
    )


def _not_created(name: str, refused: Refused) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=refused.error, error_message=refused.message)


def _duplicates(names: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    twice: set[str] = set()
    for name in names:
        (twice if name in seen else seen).add(name)
    return twice


# -- DeleteTopics -----------------------------------------------------------------------------------------------------


def delete_topics(
    image: MetadataImage, request: DeleteTopicsRequest, settings: ControllerSettings, quota: MutationQuota = NO_QUOTA
) -> Decision:
    """By name (all versions) or by id (version 6)."""
    requested = [*(DeleteTopicState(name=name) for name in request.topic_names), *request.topics]
    records: list[MetadataRecord] = []
    results: list[DeletableTopicResult] = []
    done: set[UUID] = set()
    for each in requested:
        try:
            if not settings.delete_topic_enable:
                raise Refused(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
            topic = _topic_to_delete(image, each)
            if topic.topic_id in done:
                what = "name" if each.topic_id == ZERO_UUID else "id"
                raise Refused(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
            _take(quota, len(topic.partitions))
        except Refused as refused:
            results.append(
                DeletableTopicResult(
                    name=each.name, topic_id=each.topic_id, error_code=refused.error, error_message=refused.message
                )
            )
            continue
        done.add(topic.topic_id)
        records.append(RemoveTopicRecord(topic_id=topic.topic_id))
        results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
    return Decision(records=tuple(records), response=DeleteTopicsResponse(responses=tuple(results)))


def _topic_to_delete(image: MetadataImage, requested: DeleteTopicState) -> TopicImage:
    if requested.topic_id != ZERO_UUID:
        if requested.name is not None:
            raise Refused(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        topic = image.topics.get(requested.topic_id)
        if topic is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        return topic
    if requested.name is None:
        raise Refused(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    topic = image.topic(requested.name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    return topic


# -- CreatePartitions -------------------------------------------------------------------------------------------------


def create_partitions(
    image: MetadataImage,
    request: CreatePartitionsRequest,
    settings: ControllerSettings,
    random: Random,
    quota: MutationQuota = NO_QUOTA,
) -> Decision:
    """More partitions for existing topics. `count` is the new total, not the number to add."""
    requested = {topic.name: topic for topic in request.topics}
    duplicates = _duplicates(topic.name for topic in request.topics)
    allocator = _Allocator(image, settings, random)
    records: list[MetadataRecord] = []
    results: list[CreatePartitionsTopicResult] = []
    remaining = settings.max_partitions_per_batch
    for name, each in requested.items():
        try:
            if name in duplicates:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            topic = image.topic(name)
            if topic is None:
                raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
            added = _additional_partitions(topic, each, allocator, remaining, quota)
        except Refused as refused:
            results.append(
                CreatePartitionsTopicResult(name=name, error_code=refused.error, error_message=refused.message)
            )
            continue
        remaining -= len(added)
        first = len(topic.partitions)
        records.extend(
            allocator.record(topic.topic_id, first + number, partition) for number, partition in enumerate(added)
        )
        results.append(CreatePartitionsTopicResult(name=name))
    response = CreatePartitionsResponse(results=tuple(results))
    return Decision(records=() if request.validate_only else tuple(records), response=response)


def _additional_partitions(
    topic: TopicImage, requested: CreatePartitionsTopic, allocator: _Allocator, remaining: int, quota: MutationQuota
) -> list[_NewPartition]:
    present = len(topic.partitions)
    if requested.count == present:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if requested.count < present:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {requested.count} would not be an increase.",
        )
    additional = requested.count - present
    if additional > remaining:
        raise Refused(ErrorCode.POLICY_VIOLATION, TOO_MANY)
    state = topic.partitions[0]
    factor = len(state.replicas) - len(state.removing)  # its replicas after the present reassignment
    if requested.assignments is not None and len(requested.assignments) != additional:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only {len(requested.assignments)} "
            "assignment(s) were specified.",
        )
    _take(quota, additional)
    if requested.assignments is None:
        return allocator.place(additional, factor)
    return [
        allocator.manual(present + number, assignment.broker_ids, factor)
        for number, assignment in enumerate(requested.assignments)
    ]

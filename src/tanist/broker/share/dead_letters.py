"""The dead letters of share groups (KIP-1191): records that a member has rejected, or that were delivered too often.

Owns which topic they go to, whether they may, the records that are written of them, and the asking again. A letter goes
to the partition of its own number, modulo. It has the group, the record's place and why as headers, and the record's
key and value if the group is configured so. It is written at least once, unless the topic may not have it or cannot be
written to in five tries: then the record is archived without (Apache Kafka's ShareGroupDLQStateManager), and an event
tells of it. Who calls hears when it is done either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tanist.broker.coordinator_runtime.components import CoordinatorComponents
from tanist.broker.metadata.image_queries import GroupValues
from tanist.broker.metadata.internal_topics import InternalTopics
from tanist.broker.network.peers import Peer, Peers
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.throttled import Throttled
from tanist.controller.configs.settings import (
    TOPIC_RESOURCE,
    Levels,
    resolve_broker_config,
    resolve_topic_config,
)
from tanist.controller.features import SHARE_VERSION
from tanist.coordinator.share.partition import DeadLetter
from tanist.events.coordination import DeadLettersLeftOut, DeadLettersNotWritten, DeadLettersWritten
from tanist.log.log import OffsetOutOfRange
from tanist.log.scan import DamagedBatch
from tanist.ports import Timer
from tanist.wire.batch import NewRecord, Record, decode_batch, encode_batch, iterate_batches
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData

_TOPIC: Final = "errors.deadletterqueue.topic.name"
_COPIES: Final = "errors.deadletterqueue.copy.record.enable"
_ALLOWED: Final = "errors.deadletterqueue.group.enable"
_PREFIX: Final = "errors.deadletterqueue.topic.name.prefix"
_CREATES: Final = "errors.deadletterqueue.auto.create.topics.enable"

_VERSION: Final = 12
"""The last that names topics."""
_ALL: Final = -1
_TIMEOUT_MS: Final = 30_000
_TRIES: Final = 5
_BACKOFF_MS: Final = 1_000
_REPORT_MS: Final = 60_000
_MAX_FRAME_BYTES: Final = 16 << 20
_READ_BYTES: Final = 1 << 20
_BATCH_BYTES, _RECORD_BYTES = 61, 40
"""Of a batch's header, and more than a record's numbers need."""
_LATER: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
REJECTED: Final = "Offset rejected by client."
TOO_OFTEN: Final = "Offset delivery count exceeded the threshold."


@dataclass(slots=True, eq=False)
class _Task:
    """A letter that is being written."""

    group_id: str
    hosted: HostedPartition
    letter: DeadLetter
    then: Callable[[], None]
    next_offset: int
    tries: int = 0
    where: tuple[str, int] = ("", -1)
    """Topic and partition that it goes to."""


class DeadLetters:
    """Those of the partitions that this broker leads."""

    def __init__(self, components: CoordinatorComponents, internal_topics: InternalTopics) -> None:
        self._context = components.context
        self._metadata = components.metadata
        self._values = GroupValues(components.context, components.metadata)
        self._internal_topics = internal_topics
        self._peers: Peers[list[_Task]] = Peers(
            self._context, self._metadata.inter_broker_endpoint, "dead-letters", _MAX_FRAME_BYTES, list, self._send
        )
        self._not_written = Throttled(self._context.clock, self._context.events, _REPORT_MS)
        self._timers: set[Timer] = set()
        self._closed = False

    def has_group(self, group_id: str) -> bool:
        """Whether the group has a dead letter topic; none has before share.version 2."""
        return self._metadata.image.features.get(SHARE_VERSION, 0) >= 2 and bool(self._values.text(group_id, _TOPIC))

    def write(self, group_id: str, hosted: HostedPartition, letter: DeadLetter, then: Callable[[], None]) -> None:
        """Call `then` when it is written, or cannot be."""
        self._go_on(_Task(group_id, hosted, letter, then, letter.first))

    def close(self) -> None:
        """The broker is going down; nobody waits any more."""
        self._closed = True
        for timer in self._timers:
            timer.cancel()
        self._peers.close()

    # -- where it goes

    def _go_on(self, task: _Task) -> None:
        if self._closed:
            return
        name = self._values.text(task.group_id, _TOPIC)
        refusal = self._refusal(name)
        topic = self._metadata.image.topic(name)
        if refusal:
            self._leave_out(task, refusal)
        elif topic is None:
            self._internal_topics.create(name, _Creation(self, task), _new_topic(name))
        else:
            index = task.hosted.index % len(topic.partitions)
            task.where = (name, index)
            peer = self._peers.find(topic.partitions[index].leader)
            if peer is None:
                self.answered(task, ErrorCode.LEADER_NOT_AVAILABLE)
                return
            peer.queue.append(task)
            peer.schedule()

    def _refusal(self, name: str) -> str:
        """Why the topic of this name may have no dead letters, if it may not."""
        configs = self._metadata.image.configs
        levels = Levels.of(configs, self._context.node_id, self._context.config.static)
        prefix = resolve_broker_config(_PREFIX, levels).value or ""
        if not name:
            return "the group has no dead letter topic any more"
        if name.startswith("__") or not name.startswith(prefix):
            return f"the name of {name} does not begin with {prefix!r}, or is that of an internal topic"
        if self._metadata.image.topic(name) is None:
            creates = resolve_broker_config(_CREATES, levels).value == "true"
            return "" if creates else f"{name} does not exist, and {_CREATES} is false"
        own = configs.get((TOPIC_RESOURCE, name), {})
        allowed = resolve_topic_config(_ALLOWED, own, levels).value == "true"
        return "" if allowed else f"{name} has {_ALLOWED}=false"

    # -- writing

    def _send(self, peer: Peer[list[_Task]]) -> None:
        """As many letters as a batch of their topic may have; of each partition one batch."""
        if self._closed:
            return
        batches: dict[tuple[str, int], list[NewRecord]] = {}
        left: dict[tuple[str, int], int] = {}
        sent: dict[_Task, int] = {}
        rest: list[_Task] = []
        for task in peer.queue:
            space = left.setdefault(task.where, self._space(task.where[0]))
            first = task.where not in batches
            records = list(self._fitting(task, space, first=first)) if space > 0 or first else []
            if not records:
                rest.append(task)
                continue
            batches.setdefault(task.where, []).extend(records)
            sent[task] = task.next_offset + len(records)
            whole = sent[task] > task.letter.last
            left[task.where] = space - sum(map(_size_of, records)) if whole else 0
        peer.queue = rest
        topics: dict[str, list[PartitionProduceData]] = {}
        for (name, index), records in batches.items():
            data = PartitionProduceData(index=index, records=memoryview(encode_batch(records)))
            topics.setdefault(name, []).append(data)
        request = ProduceRequest(
            acks=_ALL,
            timeout_ms=_TIMEOUT_MS,
            topic_data=tuple(TopicProduceData(name=name, partition_data=tuple(topics[name])) for name in topics),
        )
        peer.call(request, _VERSION, _TIMEOUT_MS + _BACKOFF_MS, partial(self._received, sent))

    def _space(self, name: str) -> int:
        levels = Levels.of(self._metadata.image.configs, self._context.node_id, self._context.config.static)
        own = self._metadata.image.configs.get((TOPIC_RESOURCE, name), {})
        return int(resolve_topic_config("max.message.bytes", own, levels).value or 0) - _BATCH_BYTES

    def _fitting(self, task: _Task, space: int, *, first: bool) -> Iterator[NewRecord]:
        """Its next records, as many as there is space for; at least one, if it is the first of its batch."""
        copies = self._copies(task) if self._values.text(task.group_id, _COPIES) == "true" else {}
        wall_ms = self._context.clock.wall_ms()
        for offset in range(task.next_offset, task.letter.last + 1):
            copied = copies.get(offset)
            record = NewRecord(
                wall_ms,
                None if copied is None else copied.key,
                None if copied is None else copied.value,
                _headers(task, offset),
            )
            space -= _size_of(record)
            if space < 0 and not first:
                return
            yield record
            first = False

    def _copies(self, task: _Task) -> Mapping[int, Record]:
        """The records by offset, as far as they can be read now."""
        log = task.hosted.log
        try:
            piece = log.read(task.next_offset, _READ_BYTES, min(task.letter.last + 1, log.log_end_offset))
            if piece is None:
                return {}
            data = memoryview(piece.chunk.file.read(piece.chunk.offset, piece.chunk.length))
            found = [record for _, batch in iterate_batches(data) for record in decode_batch(batch)]
        except (OffsetOutOfRange, DamagedBatch, WireError):
            return {}
        except OSError as failure:
            task.hosted.disk_failed(failure)
            return {}
        return {record.offset: record for record in found}

    def _received(self, sent: Mapping[_Task, int], response: Any | None) -> None:
        errors = {
            (topic.name, part.index): part.error_code
            for topic in (() if response is None else response.responses)
            for part in topic.partition_responses
        }
        for task, next_offset in sent.items():
            error = errors.get(task.where, ErrorCode.NETWORK_EXCEPTION)
            if error:
                self.answered(task, error)
                continue
            if self._context.events.fine:
                event = DeadLettersWritten(
                    task.group_id, task.hosted.name, task.next_offset, next_offset - 1, task.where[0]
                )
                self._context.events.emit(event)
            task.next_offset, task.tries = next_offset, 0
            if next_offset <= task.letter.last:
                self._go_on(task)
            else:
                task.then()

    # -- asking again

    def answered(self, task: _Task, error: int) -> None:
        """It could not be written: try again a little later, if that may help."""
        task.tries += 1
        if error not in _LATER or task.tries >= _TRIES:
            self._leave_out(task, ErrorCode.name_of(error))
            return

        def again() -> None:
            self._timers.discard(timer)
            self._go_on(task)

        backoff_ms = _BACKOFF_MS << (task.tries - 1)
        timer = self._context.clock.call_at(self._context.clock.now_ms() + backoff_ms, again)
        self._timers.add(timer)

    def _leave_out(self, task: _Task, reason: str) -> None:
        about = (task.group_id, task.hosted.name)
        if self._context.events.fine:
            self._context.events.emit(DeadLettersLeftOut(*about, task.next_offset, task.letter.last, reason))
        self._not_written.emit(lambda left_out: DeadLettersNotWritten(*about, reason, left_out))
        task.then()


class _Creation:
    """A letter that waits for its topic."""

    def __init__(self, letters: DeadLetters, task: _Task) -> None:
        self._letters = letters
        self._task = task

    def __call__(self) -> None:
        """The topic is there, or could not be made now: look again."""
        self._letters.answered(self._task, ErrorCode.LEADER_NOT_AVAILABLE)

    def fail(self, error: Exception) -> None:
        self()


def _new_topic(name: str) -> CreatableTopic:
    settings = {_ALLOWED: "true", "message.timestamp.type": "CreateTime"}
    configs = tuple(CreatableTopicConfig(name=key, value=value) for key, value in settings.items())
    return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, configs=configs)


def _headers(task: _Task, offset: int) -> tuple[tuple[str, bytes], ...]:
    named = {
        "topic": task.hosted.topic,
        "partition": task.hosted.index,
        "offset": offset,
        "group": task.group_id,
        "delivery.count": task.letter.delivery_count,
        "message": REJECTED if task.letter.rejected else TOO_OFTEN,
    }
    return tuple((f"__dlq.errors.{name}", str(value).encode()) for name, value in named.items())


def _size_of(record: NewRecord) -> int:
    """In a batch, at most."""
    parts = [record.key or b"", record.value or b""]
    parts += [part for name, value in record.headers for part in (name.encode(), value or b"", b"          ")]
    return _RECORD_BYTES + sum(map(len, parts))

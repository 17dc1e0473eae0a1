"""Answers of brokers about what there is (S27): none denies what was committed before the broker started.

Owns what was committed at the beginning of each broker's life: topics with their partitions, and registered brokers. An
answer must name those that are still there; of what has come since it may know nothing yet. Groups and transactional
ids are their coordinator's: what it lists without an error has to have all that its own committed log has.

A broker may refuse an answer, for as long as it likes: that is no denial.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn
from uuid import UUID

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.sim.checkers.replicas import ReplicaChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.oracle import batch_bytes
from tanist.sim.world.world import Host, Watcher, World
from tanist.wire.batch import decode_batch, iterate_batches
from tanist.wire.consumer_group_records import ConsumerGroupKey
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.errors import ErrorCode
from tanist.wire.group_records import GroupMetadataKey, OffsetCommitKey, decode_group_record
from tanist.wire.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse
from tanist.wire.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse
from tanist.wire.messages.list_groups_response import ListGroupsResponse
from tanist.wire.messages.list_transactions_response import ListTransactionsResponse
from tanist.wire.messages.metadata_response import MetadataResponse
from tanist.wire.primitives import Buffer
from tanist.wire.transaction_records import TransactionKey, decode_transaction_record

Decode = Callable[[Buffer, Buffer | None], "tuple[CoordinatorKey, CoordinatorValue | None] | None"]


@dataclass(frozen=True, slots=True)
class Life:
    """What was committed when a life of a broker began."""

    number: int
    topics: Mapping[UUID, tuple[str, int]]
    """The name, and the number of partitions."""
    brokers: Mapping[int, int]
    """Registered ones, and how often each had been unregistered by then."""


@dataclass(slots=True)
class Entries:
    """The groups, or transactional ids, that the log of a coordinator has, up to some offset."""

    at: int
    keys: dict[str, set[bytes]] = field(default_factory=dict)
    """By group or id, the keys of the records that say that it is there."""
    since: dict[str, int] = field(default_factory=dict)
    """The offset of the record with which it came."""


Led = tuple[str, int, int]
"""Topic, partition, and the leader epoch in which the broker leads it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was known when a broker was asked."""

    life: int
    entries: Mapping[Led, Mapping[str, int]]
    """Of the coordinators that it leads: what their committed logs had, and since which offset."""


class AnswerChecks(Watcher):
    """The `Witness` of a run's inquirers, and a `Watcher` of its world. It reads the checkers' image, so it runs after
    them."""

    def __init__(self, world: World, replicas: ReplicaChecks) -> None:
        self._world = world
        self._replicas = replicas
        self._lives: dict[int, Life] = {}
        self._unregistered: dict[int, int] = {}
        self._registered: frozenset[int] = frozenset()
        self._entries: dict[tuple[int, int, Led], Entries] = {}
        """By broker and life."""
        world.watchers.append(self)

    # -- world.Watcher

    def turn_ended(self, host: Host) -> None:
        image = self._replicas.metadata.image
        registered = image.brokers.keys()
        if registered != self._registered:
            for broker_id in self._registered - registered:
                self._unregistered[broker_id] = self._unregistered.get(broker_id, 0) + 1
            self._registered = frozenset(registered)
        known = self._lives.get(host.node_id)
        if known is None or known.number != host.lives:
            self._lives[host.node_id] = Life(
                host.lives,
                {topic_id: (topic.name, len(topic.partitions)) for topic_id, topic in image.topics.items()},
                {broker_id: self._unregistered.get(broker_id, 0) for broker_id in registered},
            )

    # -- inquirer.Witness

    def asks(self, broker_id: int) -> object:
        host = self._world.hosts[broker_id]
        return Asked(host.lives, {led: dict(entries.since) for led, entries in self._led(host).items()})

    def check_answer(self, broker_id: int, asked: object, answer: Any) -> None:
        host = self._world.hosts[broker_id]
        life = self._lives.get(broker_id)
        if not isinstance(asked, Asked) or life is None or not asked.life == life.number == host.lives:
            return  # the last words of a life that has ended meanwhile
        self._world.counts["answers judged"] += 1
        if isinstance(answer, MetadataResponse):
            self._check_topics(host, life, {each.name or "": len(each.partitions) for each in answer.topics})
        elif isinstance(answer, DescribeTopicPartitionsResponse):
            if answer.next_cursor is None:
                self._check_topics(host, life, {each.name or "": len(each.partitions) for each in answer.topics})
        elif isinstance(answer, DescribeClusterResponse):
            if answer.error_code == ErrorCode.NONE:
                self._check_brokers(host, life, {each.broker_id for each in answer.brokers})
        elif isinstance(answer, ListGroupsResponse):
            ids = {each.group_id for each in answer.groups}
            self._check_entries(host, asked, OFFSETS_TOPIC, answer.error_code, ids)
        elif isinstance(answer, ListTransactionsResponse):
            ids = {each.transactional_id for each in answer.transaction_states}
            self._check_entries(host, asked, TRANSACTIONS_TOPIC, answer.error_code, ids)

    def _check_topics(self, host: Host, life: Life, named: Mapping[str, int]) -> None:
        image = self._replicas.metadata.image
        for topic_id, (name, partitions) in life.topics.items():
            if topic_id in image.topics and named.get(name, 0) < partitions:
                self._fail(host, life, f"{name} has {named.get(name, 0)} partitions: it had {partitions}")

    def _check_brokers(self, host: Host, life: Life, named: Collection[int]) -> None:
        for broker_id, unregistered in life.brokers.items():
            if broker_id not in named and self._unregistered.get(broker_id, 0) == unregistered:
                self._fail(host, life, f"there is no broker {broker_id}: it was registered")

    def _check_entries(self, host: Host, asked: Asked, topic: str, error: int, named: Collection[str]) -> None:
        if error != ErrorCode.NONE:
            self._world.counts["answers that say that some are being loaded"] += 1
            return
        present = self._led(host)
        for led, entries in asked.entries.items():
            if led[0] != topic or led not in present:
                continue  # it may have lost the leadership before it answered
            for name, since in entries.items():
                if name not in named and present[led].since.get(name) == since:
                    place = f"offset {since} of {topic}-{led[1]}"
                    raise self._violation(host, f"there is no {name}: it is since {place}, which the broker leads")

    # -- coordinators

    def _led(self, host: Host) -> dict[Led, Entries]:
        """What the committed logs of the coordinators have that the broker leads, as far as they are its own."""
        node = host.node
        if node is None or not host.up:
            return {}
        found: dict[Led, Entries] = {}
        for topic, decode in ((OFFSETS_TOPIC, decode_group_record), (TRANSACTIONS_TOPIC, decode_transaction_record)):
            for hosted in (node.replicas.by_topic.get(topic) or {}).values():
                if hosted.leader is None or hosted.stale:
                    continue
                oracle = self._replicas.oracles.get((hosted.topic_id, hosted.index))
                if oracle is None or oracle.unclean:
                    continue
                led = topic, hosted.index, hosted.leader_epoch
                key = host.node_id, host.lives, led
                entries = self._entries.setdefault(key, Entries(hosted.log.log_start_offset))
                _read(hosted, entries, hosted.leader.high_watermark, decode)
                found[led] = entries
        return found

    def _fail(self, host: Host, life: Life, message: str) -> NoReturn:
        raise self._violation(host, f"{message} before its life {life.number} began")

    def _violation(self, host: Host, message: str) -> Violation:
        return Violation("S27", self._world.now_us, f"{host.name} says that {message}")


def _read(hosted: HostedPartition, entries: Entries, end: int, decode: Decode) -> None:
    """Go on to `end`. What is part of a transaction says nothing of its own: it may be aborted."""
    for view in batch_bytes(hosted.log, entries.at, end):
        for header, batch in iterate_batches(view):
            if header.is_control or header.is_transactional:
                continue
            for record in decode_batch(batch):
                if record.key is None or not entries.at <= record.offset < end:
                    continue
                decoded = decode(record.key, record.value)
                if decoded is not None:
                    _note(entries, record.offset, bytes(record.key), *decoded)
    entries.at = max(entries.at, end)


def _note(entries: Entries, offset: int, raw: bytes, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
    if isinstance(key, TransactionKey):
        name = key.transactional_id
    elif isinstance(key, GroupMetadataKey | ConsumerGroupKey | OffsetCommitKey):
        name = key.group
    else:
        return
    keys = entries.keys.setdefault(name, set())
    if value is not None:
        keys.add(raw)
        entries.since.setdefault(name, offset)
        return
    keys.discard(raw)
    if not keys:
        entries.since.pop(name, None)

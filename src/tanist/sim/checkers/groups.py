"""Consumer groups: clients' answers against the committed log of `__consumer_offsets` (C1-C4).

The ledger reads the committed records of `__consumer_offsets`: the one order of commits, generations and members. Each
answer to a client is checked against them when the client receives it:

    C1  an offset that a client receives, or an acknowledged commit, is in the committed log
    C2  it is not older than any offset that was returned before the client asked: returned offsets never go back
    C3  an assignment that a member receives is in the committed log; and no partition has two owners. A member owns it
        from its assignment until its next one, or until it revokes it, leaves, or its session ends in the log
    C4  the new owner of a partition commits no offset below the last commit of the former owner

After an unclean election has lost records of a partition, the groups of that partition are not judged any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from tanist.client.topic_partition import TopicPartition
from tanist.sim.checkers.replicas import ReplicaChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import MemberAssigned, MemberRevoked, Place
from tanist.sim.oracle import PartitionOracle, batch_bytes
from tanist.sim.workload.group_client import GroupPartition, Offsets, Witness
from tanist.sim.world.world import Host, Watcher, World
from tanist.wire.batch import decode_batch, iterate_batches
from tanist.wire.consumer_group_records import ConsumerGroupKey, ConsumerMemberKey, MemberCurrentKey, MemberCurrentValue
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_record,
)
from tanist.wire.ids import TopicIdPartition
from tanist.wire.internal_topics import OFFSETS_TOPIC, partition_of

_NOTHING: Final = -1
Member = tuple[str, str]
"""Group and member id."""


@dataclass(slots=True)
class Register:
    """The commits of one group for one partition, in the order of the log."""

    commits: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Tag -> position in the log, and the offset."""
    latest: str = ""
    reported: int = _NOTHING
    """Position of the newest commit that any client has received."""


@dataclass(slots=True)
class Tenure:
    """A client's ownership of a partition, as the client knows it."""

    client: str
    member_id: str
    epoch: int
    classic: bool


class Ledger(Watcher, Witness):
    """The `Witness` of a run's clients, and a `Watcher` of its world. It reads the checkers' oracle, so it runs after
    them. A process that ends takes nothing from it: committed records stay."""

    def __init__(self, world: World, replicas: ReplicaChecks) -> None:
        self._world = world
        self._replicas = replicas
        self._read: dict[TopicIdPartition, int] = {}
        """Offset up to which each partition of the log was read."""
        self._registers: dict[GroupPartition, Register] = {}
        self._tenures: dict[GroupPartition, Tenure] = {}
        """Ownerships that neither the log nor the client has ended."""
        self._stored: dict[Member, int] = {}
        """The newest epoch or generation of each member in the log."""
        self._ended: dict[Member, int] = {}
        """Assignments of this epoch and of earlier ones are over."""
        self._generations: dict[str, int] = {}
        """Group -> its newest generation of the classic protocol."""
        self._classic_members: dict[str, frozenset[str]] = {}
        self._converted: dict[str, frozenset[str]] = {}
        """Group -> members of its last classic generation, while the batch that converts it is read."""
        self._consumer_groups: set[str] = set()
        self._authors: dict[str, str] = {}
        """Tag -> the client that uses it."""
        world.watchers.append(self)

    # -- the log

    def turn_ended(self, host: Host) -> None:
        node = host.node
        if node is None:
            return
        for hosted in (node.replicas.by_topic.get(OFFSETS_TOPIC) or {}).values():
            key = (hosted.topic_id, hosted.index)
            oracle = self._replicas.oracles.get(key)
            if oracle is None:
                continue
            at = self._read.get(key, 0)
            if oracle.high_watermark <= at or oracle.unclean or hosted.leader is None:
                continue
            if hosted.leader.high_watermark < oracle.high_watermark:
                continue
            self._read[key] = oracle.high_watermark
            for view in batch_bytes(hosted.log, at, oracle.high_watermark):
                for _, batch in iterate_batches(view):
                    for record in decode_batch(batch):
                        decoded = None
                        if record.key is not None and at <= record.offset < oracle.high_watermark:
                            decoded = decode_group_record(record.key, record.value)
                        if decoded is not None:
                            self._replay(record.offset, *decoded)
                    self._batch_ended()

    def _replay(self, offset: int, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
        if isinstance(key, OffsetCommitKey):
            if isinstance(value, OffsetCommitValue):
                self._replay_commit(offset, (key.group, key.topic, key.partition), value)
            else:
                self._registers.pop((key.group, key.topic, key.partition), None)
        elif isinstance(key, GroupMetadataKey):
            self._replay_generation(key.group, value if isinstance(value, GroupMetadataValue) else None)
        elif isinstance(key, ConsumerGroupKey):
            self._replay_kind(key.group, is_consumer=value is not None)
        elif isinstance(key, MemberCurrentKey) and isinstance(value, MemberCurrentValue):
            member = (key.group, key.member_id)
            self._stored[member] = max(value.member_epoch, self._stored.get(member, 0))
        elif isinstance(key, MemberCurrentKey | ConsumerMemberKey) and value is None:
            self._end((key.group, key.member_id))
        elif isinstance(key, ConsumerMemberKey) and key.group in self._converted:
            self._converted[key.group] -= {key.member_id}

    def _replay_commit(self, at: int, group_partition: GroupPartition, value: OffsetCommitValue) -> None:
        register = self._registers.setdefault(group_partition, Register())
        tag = value.metadata
        before = register.commits.get(register.latest)
        register.commits[tag] = (at, value.offset)
        if before is not None and self._author(register.latest) != self._author(tag) and value.offset < before[1]:
            self._fail(
                "C4",
                _place(group_partition),
                f" of {group_partition[0]}: {tag} commits {value.offset} at {at}, {before[1]} by {register.latest}",
            )
        register.latest = tag

    def _replay_generation(self, group: str, value: GroupMetadataValue | None) -> None:
        """A generation of the classic protocol: the assignments of earlier ones are over."""
        if value is None:  # deleted, or converted to the consumer protocol by this batch
            self._converted[group] = self._classic_members.pop(group, frozenset())
            return
        members = frozenset(each.member_id for each in value.members)
        for member_id in self._classic_members.get(group, frozenset()) - members:
            self._end((group, member_id))
        self._classic_members[group] = members
        self._generations[group] = value.generation
        for member_id in members:
            member = (group, member_id)
            self._stored[member] = max(value.generation, self._stored.get(member, 0))
        self._drop(
            group_partition
            for group_partition, tenure in self._tenures.items()
            if group_partition[0] == group and tenure.classic and tenure.epoch < value.generation
        )

    def _batch_ended(self) -> None:
        """A member that a conversion leaves out was gone before: a classic session ends without a record."""
        for group, members in self._converted.items():
            for member_id in sorted(members):
                self._end((group, member_id))
        self._converted.clear()

    def _replay_kind(self, group: str, *, is_consumer: bool) -> None:
        if is_consumer and group not in self._consumer_groups:
            self._consumer_groups.add(group)
            self._world.counts["groups: upgraded"] += group in self._generations
        elif not is_consumer and group in self._consumer_groups:
            self._consumer_groups.remove(group)
            self._world.counts["groups: downgraded"] += 1

    def _end(self, member: Member) -> None:
        self._ended[member] = max(self._stored.get(member, 0), self._ended.get(member, 0))
        believed = [
            group_partition
            for group_partition, tenure in self._tenures.items()
            if (group_partition[0], tenure.member_id) == member
        ]
        # A member that leaves revokes its partitions first.
        self._world.counts["groups: sessions ended"] += bool(believed)
        self._drop(believed)

    def _drop(self, group_partitions: Iterable[GroupPartition]) -> None:
        for group_partition in list(group_partitions):
            del self._tenures[group_partition]

    # -- Witness: assignments

    def assigned(
        self,
        client: str,
        group: str,
        member_id: str,
        epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        classic: bool,
    ) -> None:
        partitions = tuple(partitions)
        self._world.emit(MemberAssigned(client, group, epoch, partitions))
        self._world.counts["groups: an assignment is received"] += 1
        if self._oracle_of(group).unclean:
            return
        member = (group, member_id)
        if self._stored.get(member, -1) < epoch:
            self._fail("C3", f"{client} got epoch {epoch} of {group}, which is not in the log")
        if epoch <= self._ended.get(member, -1) or (classic and epoch < self._generations.get(group, 0)):
            self._world.counts["groups: an ended assignment is received"] += 1
            return
        for partition in partitions:
            group_partition = (group, *partition)
            other = self._tenures.get(group_partition)
            if other is not None and other.client != client:
                self._fail(
                    "C3",
                    _place(group_partition),
                    f" of {group_partition[0]} is assigned to {client} in epoch {epoch}, and {other.client} "
                    f"owns it since epoch {other.epoch}",
                )
            self._tenures[group_partition] = Tenure(client, member_id, epoch, classic)

    def revoked(self, client: str, group: str, partitions: Iterable[TopicPartition]) -> None:
        partitions = tuple(partitions)
        self._world.emit(MemberRevoked(client, group, partitions))
        for partition in partitions:
            tenure = self._tenures.get((group, *partition))
            if tenure is not None and tenure.client == client:
                del self._tenures[(group, *partition)]

    # -- Witness: offsets

    def asks(self, group: str) -> Mapping[GroupPartition, int]:
        return {
            group_partition: register.reported
            for group_partition, register in self._registers.items()
            if group_partition[0] == group
        }

    def fetched(self, client: str, group: str, asked: Mapping[GroupPartition, int], offsets: Offsets) -> None:
        self._world.counts["groups: offsets returned"] += 1
        if self._oracle_of(group).unclean:
            return
        for partition, (offset, tag) in offsets.items():
            group_partition = (group, *partition)
            at = _NOTHING if offset < 0 else self._offset_of_commit(client, group_partition, offset, tag)
            least = asked.get(group_partition, _NOTHING)
            if at < least:
                self._fail(
                    "C2",
                    _place(group_partition),
                    f" of {group_partition[0]}: {client} got {offset} ({tag or 'nothing'}, at {at}) after {least}",
                )
            if at != _NOTHING:
                self._hears(group_partition, at)

    def commits(self, client: str, group_partition: GroupPartition, offset: int, tag: str) -> None:
        self._authors[tag] = client

    def committed(self, client: str, group_partition: GroupPartition, offset: int, tag: str) -> None:
        self._world.counts["groups: commits acknowledged"] += 1
        if not self._oracle_of(group_partition[0]).unclean:
            self._hears(group_partition, self._offset_of_commit(client, group_partition, offset, tag))

    def _offset_of_commit(self, client: str, group_partition: GroupPartition, offset: int, tag: str) -> int:
        register = self._registers.get(group_partition)
        found = None if register is None else register.commits.get(tag)
        if found is None or found[1] != offset:
            self._fail(
                "C1",
                _place(group_partition),
                f" of {group_partition[0]}: {client} got {offset} ({tag}), which is not in the log",
            )
        return found[0]

    def _hears(self, group_partition: GroupPartition, at: int) -> None:
        register = self._registers[group_partition]
        register.reported = max(register.reported, at)

    # -- bits

    def _author(self, tag: str) -> str:
        return self._authors.get(tag, "")

    def _oracle_of(self, group: str) -> PartitionOracle:
        image = self._replicas.metadata.image
        topic = image.topics[image.topic_ids[OFFSETS_TOPIC]]
        return self._replicas.oracle_of((topic.topic_id, partition_of(group, len(topic.partitions))))

    def _fail(self, property_id: str, *said: object) -> NoReturn:
        raise Violation(property_id, self._world.now_us, *said)


def _place(group_partition: GroupPartition) -> Place:
    _, topic, index = group_partition
    return Place(f"{topic}-{index}")

"""The metadata log and the nodes' images of it (S9, S10 of the quorum, S12, S16).

Owns a shadow image: each committed record is applied to it once, when the first node has applied it, and each change is
judged record by record. The batches that other nodes apply are compared with it, so a node's metadata must be a prefix
of the committed log. It must never trust a node's image.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from tanist.broker.node import Node
from tanist.controller.image.delta import ImageDelta
from tanist.controller.image.image import ELR_VERSION, MetadataImage
from tanist.controller.image.partition_state import RECOVERING, PartitionState
from tanist.controller.image.registration import BrokerRegistration
from tanist.quorum.storage.quorum_state_file import ElectionState
from tanist.quorum.storage.raft_log import MetadataBatch, RaftLog
from tanist.quorum.voters import ReplicaKey, SnapshotId
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import ElrSwitched, Place
from tanist.sim.world.world import Host, World
from tanist.wire.ids import TopicIdPartition
from tanist.wire.metadata import PartitionChangeRecord, decode_record
from tanist.wire.schema import MetadataRecord


class MetadataChecks:
    """The committed metadata, and each node's applied offset."""

    def __init__(
        self,
        world: World,
        partition_changed: Callable[[TopicIdPartition, PartitionState | None, PartitionState | None, bool], None],
        broker_changed: Callable[[int, BrokerRegistration | None], None],
        config_changed: Callable[[], None],
        batch_ended: Callable[[], None],
    ) -> None:
        self._world = world
        self._partition_changed = partition_changed
        self._broker_changed = broker_changed
        self._config_changed = config_changed
        self._batch_ended = batch_ended
        static = next(iter(world.hosts.values())).properties
        self.image = MetadataImage(static)
        """As of the newest record that any node has applied."""
        self.applied_offset = -1
        self._static = static
        self.on_record: Callable[[int, MetadataRecord], None] | None = None
        """Called with each committed record before it is applied here, and the offset of the last one of its batch."""
        self._batches: dict[int, MetadataBatch] = {}
        """Base offset -> committed batch."""
        self._leaders: dict[int, int] = {}
        """Epoch of the quorum -> its leader."""
        self._votes: dict[ReplicaKey, dict[int, int]] = {}
        """A voter's votes: epoch of the quorum -> candidate."""
        self._seen: dict[int, tuple[MetadataImage, int]] = {}
        """Node -> its image (another one after a snapshot or a restart), and the offset up to which it was compared."""
        self._before_elr: dict[TopicIdPartition, PartitionState] = {}
        """Partition -> its state when ELR was switched on. It may keep that state until it has a leader."""
        self.changes = 0

    def check_node(self, host: Host, node: Node) -> None:
        """After a turn of the node."""
        raft = node.quorum.raft
        if raft.is_leader and self._leaders.get(raft.epoch) != host.node_id:
            if self._leaders:
                self._world.counts["controllers elected"] += 1
            if self._leaders.setdefault(raft.epoch, host.node_id) != host.node_id:
                self._fail(
                    "S10", f"{host.name}: {self._leaders[raft.epoch]} leads the quorum in epoch {raft.epoch} as well"
                )
        self._check_vote(host, raft.stored)
        metadata = node.metadata
        applied_offset = metadata.applied_offset
        seen = self._seen.get(host.node_id)
        if seen is not None and seen[0] is metadata.image:
            if seen[1] == applied_offset:
                return
            start = seen[1] + 1
        else:
            start = raft.log.start_offset
        if start < raft.log.start_offset:
            # Applied, written to a snapshot and cut off in this very turn.
            start = raft.log.start_offset
            self._hear_from_others(host, start)
        if applied_offset >= start:
            self._compare(host, node, start, applied_offset + 1)
        replaced = seen is None or seen[0] is not metadata.image
        # After a start or a snapshot, the image did not come from the records that were just compared.
        if replaced and applied_offset >= 0 and metadata.image != self.image_at(applied_offset):
            self._fail("S16", f"{host.name}: its image at metadata offset {applied_offset} is another one")
        self._seen[host.node_id] = (metadata.image, applied_offset)

    def _check_vote(self, host: Host, stored: ElectionState) -> None:
        """S10, before two leaders come of it: a voter has one vote in an epoch, whatever becomes of its process."""
        if stored.voted is None:
            return
        votes = self._votes.setdefault(ReplicaKey(host.node_id, host.directory_id), {})
        voted = stored.voted.node_id
        if votes.setdefault(stored.epoch, voted) != voted:
            self._fail("S10", f"{host.name}: votes for {voted} in epoch {stored.epoch}, after {votes[stored.epoch]}")

    def all_applied(self) -> bool:
        """L2: every node has applied all committed records."""
        return all(node.metadata.applied_offset == self.applied_offset for node in self._world.nodes())

    def check_images(self) -> None:
        """S16, at the end: every node's image equals that of the committed log."""
        for node in self._world.nodes():
            if node.metadata.image != self.image_at(node.metadata.applied_offset):
                self._fail("S16", f"node {node.node_id}: its image at {node.metadata.applied_offset} is another one")

    def image_at(self, offset: int) -> MetadataImage:
        """The image after all committed records up to `offset`."""
        if offset == self.applied_offset:
            return self.image
        image = MetadataImage(self._static)
        for base, batch in sorted(self._batches.items()):
            if base <= offset:
                for value in batch.values:
                    image.replay(decode_record(value))
        return image

    # -- the log

    def _compare(self, host: Host, node: Node, start: int, end: int) -> None:
        for batch in node.quorum.raft.log.read_batches(start, end):
            known = self._batches.get(batch.offset)
            if known is None:
                if batch.offset <= self.applied_offset:
                    self._fail("S16", f"{host.name}: a batch at {batch.offset}, where the committed log has none")
                self._commit(batch)
            elif known != batch:
                self._fail("S16", f"{host.name}: applied {batch}, committed was {known}")
        self.applied_offset = max(self.applied_offset, end - 1)

    def _hear_from_others(self, host: Host, end: int) -> None:
        """A majority has each committed batch: another node has the batches that this node has truncated."""
        start = self.applied_offset + 1
        if start >= end or host.node is None:
            return
        snapshot = host.node.quorum.raft.log.earliest_snapshot_id
        if snapshot is None or snapshot.end_offset < end:
            self._fail("S16", f"{host.name}: its log begins at {end}, and its snapshot is {snapshot}")
        for other in self._world.hosts.values():
            if other is host or other.node is None:
                continue
            log = other.node.quorum.raft.log
            if log.start_offset <= start and _has_all_of(log, snapshot):
                self._compare(other, other.node, start, end)
                return
        self._fail("S16", f"{host.name}: has cut its log off below {end}, and nobody else has {start} to {end}")

    def _commit(self, batch: MetadataBatch) -> None:
        self._batches[batch.offset] = batch
        for value in batch.values:
            record = decode_record(value)
            delta = ImageDelta()
            if self.on_record is not None:
                self.on_record(batch.next_offset - 1, record)
            self.image.replay(record, delta)
            self.changes += 1
            for topic_id, deleted in delta.deleted_topics.items():
                for index, state in deleted.partitions.items():
                    self._partition_changed((topic_id, index), state, None, False)
            for topic_id, partitions in delta.partitions.items():
                name = self.image.topics[topic_id].name
                for index, before in partitions.items():
                    after = self.image.topics[topic_id].partitions[index]
                    key = (topic_id, index)
                    self._check_structure(f"{name}-{index}", key, after)
                    if before is not None:
                        single = isinstance(record, PartitionChangeRecord)
                        self._check_step(f"{name}-{index}", key, before, after, single=single)
                    unclean = isinstance(record, PartitionChangeRecord) and record.leader_recovery_state == RECOVERING
                    self._partition_changed(key, before, after, unclean)
            for broker_id, registration in delta.brokers.items():
                self._check_broker(broker_id)
                self._broker_changed(broker_id, registration)
            if ELR_VERSION in delta.features:
                self._elr_switched()
                self._config_changed()
            if delta.configs:
                self._check_all_structures()
                self._config_changed()
        self._batch_ended()

    def _elr_switched(self) -> None:
        """That changes no partition's state, only the states that it may get."""
        on = self.image.elr_enabled
        self._world.counts[f"ELR switched {'on' if on else 'off'}"] += bool(self.image.topics)
        self._world.emit(ElrSwitched(on))
        self._before_elr = {
            (topic.topic_id, index): state
            for topic in self.image.topics.values()
            for index, state in topic.partitions.items()
        }

    # -- the properties

    def _fail(self, property_id: str, *said: object) -> NoReturn:
        raise Violation(property_id, self._world.now_us, *said)

    def _check_structure(self, name: str, key: TopicIdPartition, state: PartitionState) -> None:
        """S12."""
        image = self.image
        isr, elr, replicas = set(state.isr), set(state.elr), set(state.replicas)
        if not isr <= replicas or not elr <= replicas or not set(state.last_known_elr) <= replicas or isr & elr:
            self._fail("S12", Place(name), ": ISR, ELR, LastKnownElr and replicas do not fit in ", state)
        if state.leader >= 0 and state.leader not in isr:
            self._fail("S12", Place(name), f": leader {state.leader} is not in its ISR {state.isr}")
        if not image.elr_enabled or self._is_from_before_elr(key, state):
            return
        if state.leader < 0 and isr:
            self._fail("S12", Place(name), f": no leader, but ISR {state.isr}")
        if len(isr) >= image.effective_min_isr(*key) and (elr or state.last_known_elr):
            self._fail(
                "S12",
                Place(name),
                f": ISR {state.isr} is large enough for ELR {state.elr}, last {state.last_known_elr}",
            )
        for broker_id in state.isr:
            broker = image.brokers.get(broker_id)
            if broker is None or broker.fenced:
                self._fail("S12", Place(name), f": fenced broker {broker_id} is in ISR {state.isr}")

    def _is_from_before_elr(self, key: TopicIdPartition, state: PartitionState) -> bool:
        """As Kafka left it before KIP-966: without a leader, and with the last member still in its ISR."""
        before = self._before_elr.get(key)
        if before is None:
            return False
        if before.partition_epoch == state.partition_epoch or (state.leader < 0 and set(before.isr) == set(state.isr)):
            return True
        del self._before_elr[key]
        return False

    def _check_all_structures(self) -> None:
        """S12 after a change of min.insync.replicas, which may require an empty ELR (A32)."""
        for topic in self.image.topics.values():
            for index, state in topic.partitions.items():
                self._check_structure(f"{topic.name}-{index}", (topic.topic_id, index), state)

    def _check_broker(self, broker_id: int) -> None:
        """S12, from the broker's side: a fenced broker is in no ISR."""
        broker = self.image.brokers.get(broker_id)
        if self.image.elr_enabled and (broker is None or broker.fenced):
            for topic_id, index in self.image.partitions_in_isr(broker_id):
                if self._is_from_before_elr((topic_id, index), self.image.topics[topic_id].partitions[index]):
                    continue
                self._fail(
                    "S12",
                    f"broker {broker_id} is fenced, but in the ISR of ",
                    Place(f"{self.image.topics[topic_id].name}-{index}"),
                )

    def _check_step(
        self, name: str, key: TopicIdPartition, before: PartitionState, after: PartitionState, *, single: bool
    ) -> None:
        """S9 of one change."""
        if after.partition_epoch <= before.partition_epoch or (
            single and after.partition_epoch != before.partition_epoch + 1
        ):
            self._fail("S9", Place(name), f": partition epoch from {before.partition_epoch} to {after.partition_epoch}")
        if after.leader_epoch < before.leader_epoch or after.leader_epoch > after.partition_epoch:
            self._fail(
                "S9", Place(name), f": leader epoch {after.leader_epoch} after {before.leader_epoch}, of ", after
            )
        if after.leader not in (before.leader, -1) and after.leader_epoch == before.leader_epoch:
            self._fail("S9", Place(name), f": leader {after.leader} without a new epoch")


def _has_all_of(log: RaftLog, snapshot: SnapshotId) -> bool:
    """Whether the log has the snapshot's records: the same epoch at its end, so the same records before it."""
    end = log.end_of_epoch(snapshot.epoch)
    return end.epoch == snapshot.epoch and end.offset >= snapshot.end_offset

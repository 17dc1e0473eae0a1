"""Safety, looked at after every turn of every node (the properties S1-S22 of the protocol's specification).

The checker is told nothing: it looks at the nodes' own objects and disks, and keeps what no node can know. For each
partition that is the *true high watermark* T, the highest that any leader ever reached, and the history H, the batches
below it, frozen when T first passed them. The protocol's promise is that H never changes and that every candidate for
leadership has all of it. A violation is raised from within the event that caused it.

What an operator has given up (an unclean election) is not a violation: `forgive` says so per partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from tanist.broker.hosted import HostedPartition
from tanist.broker.node import Node
from tanist.controller.partition_state import PartitionState
from tanist.log.log import Log
from tanist.sim.history import History
from tanist.sim.scheduler import Process
from tanist.sim.world import Host, World
from tanist.wire.batch import iterate_headers

_READ_BYTES = 1 << 20


class SafetyViolation(Exception):
    """A property does not hold. `property_id` is its name in the specification."""

    def __init__(self, property_id: str, message: str, now_us: int) -> None:
        super().__init__(f"{property_id} at {now_us / 1e6:.6f} s: {message}")
        self.property_id = property_id


class Batch(NamedTuple):
    """A batch as the history knows it. Two batches are the same if all of this is."""

    first: int
    end: int
    epoch: int
    crc: int


def batches(log: Log, start: int, end: int) -> Iterator[Batch]:
    """The batches of a log that begin in [start, end)."""
    while start < end:
        piece = log.read(start, _READ_BYTES, end)
        if piece is None:
            return
        chunk = piece.chunk
        view = memoryview(chunk.file.read(chunk.offset, chunk.length))
        for _, header in iterate_headers(view):
            if header.next_offset > start:
                yield Batch(header.base_offset, header.next_offset, header.partition_leader_epoch, header.crc)
                start = header.next_offset


class _Truth:
    """What holds of one partition, over all replicas and all time."""

    __slots__ = ("by_offset", "forgiven", "history", "leaders", "timeline", "true_high_watermark")

    def __init__(self) -> None:
        self.true_high_watermark = 0
        self.history: list[Batch] = []
        self.by_offset: dict[int, Batch] = {}
        """The history by first offset."""
        self.timeline: list[tuple[int, int]] = []
        """(time, T) at each advance."""
        self.leaders: dict[int, int] = {}
        """Leader epoch -> the broker that acted as its leader."""
        self.forgiven = False


class _Seen(NamedTuple):
    """What was last seen of a hosted partition."""

    leads: bool
    leader_epoch: int
    partition_epoch: int
    high_watermark: int
    log_end_offset: int


Key = tuple[UUID, int]


class SafetyChecker:
    """Watches a world from the moment it is attached."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._truths: dict[Key, _Truth] = {}
        self._seen: dict[tuple[int, int, Key], _Seen] = {}
        """By (node id, life, partition)."""
        self._mirrors: dict[tuple[int, int, Key], list[Batch]] = {}
        """What each replica's log held when it was last looked at."""
        self._hosts: dict[Process, Host] = {}
        self._controller_seen: dict[int, tuple[int, int]] = {}
        self._committed: dict[Key, tuple[PartitionState, int]] = {}
        """The newest committed state of each partition that any node has applied, and at which metadata offset."""
        self.checks = 0
        world.scheduler.after_event = self._after_event

    def truth(self, key: Key) -> _Truth:
        found = self._truths.get(key)
        if found is None:
            found = self._truths[key] = _Truth()
        return found

    def forgive(self, key: Key) -> None:
        """Records of this partition may have been given up on purpose."""
        self.truth(key).forgiven = True

    # -- after every turn

    def _after_event(self, process: Process) -> None:
        host = self._hosts.get(process)
        if host is None:
            host = next((h for h in self._world.hosts.values() if h.process is process), None)
            if host is None:
                return  # a client's process
            self._hosts[process] = host
        node = host.node
        if node is None or not process.alive:
            return
        self._check_metadata(node)
        for hosted in node.replicas:
            self._check_replica(host, node, hosted)

    def _fail(self, property_id: str, message: str) -> None:
        raise SafetyViolation(property_id, message, self._world.scheduler.now_us)

    def _check_replica(self, host: Host, node: Node, hosted: HostedPartition) -> None:
        if hosted.stale:
            return
        key = (hosted.topic_id, hosted.index)
        leader = hosted.leader
        replica = hosted.replica
        seen = _Seen(
            leader is not None,
            replica.leader_epoch,
            replica.partition_epoch,
            replica.high_watermark,
            hosted.log.log_end_offset,
        )
        where = (host.node_id, host.lives, key)
        before = self._seen.get(where)
        if before == seen:
            return
        self.checks += 1
        self._seen[where] = seen
        truth = self.truth(key)
        name = f"{hosted.topic}-{hosted.index} on {node.node_id}"
        self._check_truncation(name, hosted, truth, where)
        if before is not None and (
            seen.leader_epoch < before.leader_epoch or seen.partition_epoch < before.partition_epoch
        ):
            self._fail("S9", f"{name}: epochs went back from {before} to {seen}")
        if leader is None:
            return
        other = truth.leaders.setdefault(seen.leader_epoch, node.node_id)
        if other != node.node_id:
            self._fail("S10", f"{name}: epoch {seen.leader_epoch} is led by {other} as well")
        if before is None or not before.leads or before.leader_epoch != seen.leader_epoch:
            self._check_new_leader(name, hosted, truth)
        if before is not None and before.leads and seen.high_watermark > before.high_watermark:
            self._check_advance(name, node, hosted, before.high_watermark)
        if seen.high_watermark > 0:
            self._freeze(name, hosted, truth)
        self._check_quorum_superset(name, hosted, key)

    # -- the properties

    def _check_truncation(self, name: str, hosted: HostedPartition, truth: _Truth, where: tuple[int, int, Key]) -> None:
        """S21: nothing that was ever committed is cut off. What only diverged from it, is cut everywhere."""
        log = hosted.log
        end = log.log_end_offset
        mirror = self._mirrors.setdefault(where, [])
        while mirror and mirror[-1].end > end:
            cut = mirror.pop()
            if not truth.forgiven and truth.by_offset.get(cut.first) == cut:
                self._fail(
                    "S21",
                    f"{name}: {cut} was cut off (log end {end}), though it was committed "
                    f"(true high watermark {truth.true_high_watermark})",
                )
        start = mirror[-1].end if mirror else log.log_start_offset
        if start < end:
            mirror.extend(batches(log, start, end))

    def _check_new_leader(self, name: str, hosted: HostedPartition, truth: _Truth) -> None:
        """S1: whoever leads the newest epoch has all that was ever committed."""
        if truth.forgiven or hosted.leader_epoch < max(truth.leaders):
            return
        true_high_watermark = truth.true_high_watermark
        if hosted.log.log_end_offset < true_high_watermark:
            self._fail(
                "S1",
                f"{name} leads epoch {hosted.leader_epoch} with log end {hosted.log.log_end_offset}, but "
                f"{true_high_watermark} was committed",
            )
        self._compare("S1", name, hosted.log, truth, hosted.log.log_start_offset, true_high_watermark)

    def _check_advance(self, name: str, node: Node, hosted: HostedPartition, before: int) -> None:
        """S4: enough members in the committed ISR, and all of the maximal ISR known to have it."""
        leader = hosted.leader
        if leader is None:
            return
        min_isr = min(node.min_insync_replicas(hosted.topic), len(leader.metadata.replicas))
        if len(leader.isr) < min_isr:
            self._fail(
                "S4",
                f"{name}: high watermark from {before} to {leader.high_watermark} with ISR {leader.isr}, "
                f"min.insync.replicas {min_isr}",
            )
        for broker_id in leader.maximal_isr:
            if broker_id != node.node_id and leader.remotes[broker_id].log_end_offset < leader.high_watermark:
                self._fail(
                    "S4",
                    f"{name}: high watermark {leader.high_watermark} beyond member {broker_id}, known to have "
                    f"{leader.remotes[broker_id].log_end_offset}",
                )

    def _freeze(self, name: str, hosted: HostedPartition, truth: _Truth) -> None:
        """S5, S6: the history grows and never changes; what a leader calls committed is in it."""
        high_watermark = hosted.replica.high_watermark
        if high_watermark <= truth.true_high_watermark:
            return
        leader = hosted.leader
        if leader is not None and hosted.leader_epoch < max(truth.leaders) and not truth.forgiven:
            self._fail("S5", f"{name}: a leader of the past epoch {hosted.leader_epoch} commits {high_watermark}")
        added = list(batches(hosted.log, truth.true_high_watermark, high_watermark))
        end = truth.true_high_watermark
        for batch in added:
            if batch.first != end and end >= hosted.log.log_start_offset:
                self._fail("S5", f"{name}: a hole in the log between {end} and {batch.first}")
            end = batch.end
        if end != high_watermark:
            self._fail("S5", f"{name}: high watermark {high_watermark} is not at a batch's end ({end})")
        truth.history.extend(added)
        truth.by_offset.update((batch.first, batch) for batch in added)
        truth.true_high_watermark = high_watermark
        truth.timeline.append((self._world.scheduler.now_us, high_watermark))

    def _compare(self, property_id: str, name: str, log: Log, truth: _Truth, start: int, end: int) -> None:
        """The log's batches in [start, end) are those of the history."""
        expected = [batch for batch in truth.history if start <= batch.first < end]
        found = list(batches(log, start, end))
        if found != expected:
            for mine, theirs in zip(found, expected):
                if mine != theirs:
                    self._fail(property_id, f"{name}: has {mine}, committed was {theirs}")
            self._fail(property_id, f"{name}: {len(found)} batches in [{start}, {end}), committed were {len(expected)}")

    def _check_quorum_superset(self, name: str, hosted: HostedPartition, key: Key) -> None:
        """S3: the leader of the newest epoch counts with everybody the controller might elect."""
        leader = hosted.leader
        known = self._committed.get(key)
        if leader is None or known is None:
            return
        state = known[0]
        if state.leader != hosted.replica.broker_id or state.leader_epoch != hosted.leader_epoch:
            return
        if len(leader.isr) < leader.effective_min_isr:
            return
        electable = set(state.isr) | set(state.elr)
        if not electable <= leader.maximal_isr:
            self._fail(
                "S3", f"{name}: counts with {sorted(leader.maximal_isr)}, but {sorted(electable)} can be elected"
            )

    def _check_metadata(self, node: Node) -> None:
        """S9, S12, S16: on each node's committed image, whenever it has moved."""
        offset = node.metadata.applied_offset
        seen = self._controller_seen.get(id(node.metadata))
        if seen is not None and seen[0] == offset:
            return
        self._controller_seen[id(node.metadata)] = (offset, 0)
        image = node.metadata.image
        for topic_id, topic in image.topics.items():
            for index, state in topic.partitions.items():
                key = (topic_id, index)
                known = self._committed.get(key)
                if known is not None and known[1] >= offset:
                    continue
                if known is not None and known[0] is state:
                    self._committed[key] = (state, offset)
                    continue
                self._check_structure(f"{topic.name}-{index}", node, topic_id, index, state, known)
                self._committed[key] = (state, offset)

    def _check_structure(
        self,
        name: str,
        node: Node,
        topic_id: UUID,
        index: int,
        state: PartitionState,
        known: tuple[PartitionState, int] | None,
    ) -> None:
        image = node.metadata.image
        isr, elr, replicas = set(state.isr), set(state.elr), set(state.replicas)
        if not isr <= replicas or not elr <= replicas or isr & elr:
            self._fail("S12", f"{name}: ISR {state.isr}, ELR {state.elr} and replicas {state.replicas} do not fit")
        if state.leader >= 0 and state.leader not in isr:
            self._fail("S12", f"{name}: leader {state.leader} is not in its ISR {state.isr}")
        if state.leader < 0 and isr and image.elr_enabled:
            self._fail("S12", f"{name}: no leader, but ISR {state.isr}")
        if len(isr) >= image.effective_min_isr(topic_id, index) and (elr or state.last_known_elr):
            self._fail("S12", f"{name}: ISR {state.isr} is large enough, but ELR is {state.elr}")
        if known is not None:
            before = known[0]
            if state.leader_epoch < before.leader_epoch or state.partition_epoch < before.partition_epoch:
                self._fail("S9", f"{name}: epochs went back from {before} to {state}")
            if state.leader not in (before.leader, -1) and state.leader_epoch <= before.leader_epoch:
                self._fail("S9", f"{name}: leader {state.leader} without a new epoch")
        for broker_id in isr:
            broker = image.brokers.get(broker_id)
            if broker is not None and broker.fenced and broker_id != state.leader and image.elr_enabled:
                # Within a burst of records a fence may stand before its shrink; at the burst's end it may not.
                self._fail("S12", f"{name}: fenced broker {broker_id} is in ISR {state.isr}")

    # -- at the end

    def check_history(self, history: History) -> None:
        """S7, S17, S18, S20: what clients were told holds, of what is committed now."""
        values = self._committed_values()
        for send in history.sends:
            if send.outcome != "ok" or send.offset < 0:
                continue
            key = self._key(send.topic, send.partition)
            if self.truth(key).forgiven:
                continue
            found = values[key].get(send.offset)
            if found != send.value:
                self._fail(
                    "S7", f"{send.topic}-{send.partition}@{send.offset}: acknowledged {send.value!r}, is {found!r}"
                )
            if self._true_at(key, send.completed_us) <= send.offset:
                self._fail(
                    "S17", f"{send.topic}-{send.partition}@{send.offset} was acknowledged before it was committed"
                )
        for read in history.reads:
            key = self._key(read.topic, read.partition)
            if self.truth(key).forgiven:
                continue
            found = values[key].get(read.offset)
            if found is not None and found != read.value:
                self._fail("S18", f"{read.topic}-{read.partition}@{read.offset}: read {read.value!r}, is {found!r}")
            if self._true_at(key, read.at_us) <= read.offset:
                self._fail("S18", f"{read.topic}-{read.partition}@{read.offset} was read before it was committed")
        for key, by_offset in values.items():
            seen: dict[bytes, int] = {}
            for offset, value in sorted(by_offset.items()):
                if value in seen:
                    self._fail("S20", f"{value!r} stands at {seen[value]} and {offset} of {key[1]}")
                seen[value] = offset

    def check_converged(self) -> None:
        """L7: all replicas hold the same, and all of it is committed."""
        ends: dict[Key, list[tuple[int, int, int, list[Batch]]]] = {}
        for node in self._world.nodes():
            for hosted in node.replicas:
                log = hosted.log
                content = list(batches(log, log.log_start_offset, log.log_end_offset))
                ends.setdefault((hosted.topic_id, hosted.index), []).append(
                    (node.node_id, hosted.replica.high_watermark, log.log_end_offset, content)
                )
        for key, replicas in ends.items():
            first = replicas[0]
            for other in replicas[1:]:
                if other[3] != first[3]:
                    self._fail("L7", f"partition {key[1]}: nodes {first[0]} and {other[0]} differ")
            for node_id, high_watermark, end, _ in replicas:
                if high_watermark != end:
                    self._fail("L7", f"partition {key[1]} on {node_id}: high watermark {high_watermark}, log end {end}")

    def _key(self, topic: str, partition: int) -> Key:
        for node in self._world.nodes():
            topic_id = node.metadata.image.topic_ids.get(topic)
            if topic_id is not None:
                return topic_id, partition
        raise KeyError(topic)

    def _true_at(self, key: Key, when_us: int) -> int:
        value = 0
        for at_us, true_high_watermark in self.truth(key).timeline:
            if at_us > when_us:
                break
            value = true_high_watermark
        return value

    def _committed_values(self) -> dict[Key, dict[int, bytes]]:
        """Committed records of the newest leader of each partition."""
        from tanist.wire.batch import decode_batch

        values: dict[Key, dict[int, bytes]] = {}
        newest: dict[Key, HostedPartition] = {}
        for node in self._world.nodes():
            for hosted in node.replicas:
                key = (hosted.topic_id, hosted.index)
                if hosted.leader is not None and (key not in newest or newest[key].leader_epoch < hosted.leader_epoch):
                    newest[key] = hosted
        for key, hosted in newest.items():
            found = values.setdefault(key, {})
            log = hosted.log
            start, end = log.log_start_offset, hosted.replica.high_watermark
            while start < end:
                piece = log.read(start, _READ_BYTES, end)
                if piece is None:
                    break
                view = memoryview(piece.chunk.file.read(piece.chunk.offset, piece.chunk.length))
                for position, header in iterate_headers(view):
                    if not header.is_control:
                        for record in decode_batch(view[position : position + header.size_bytes]):
                            found[record.offset] = bytes(record.value or b"")
                    start = header.next_offset
        return values

"""Replicas, their logs and what their leaders count on (S1-S7, S10, S11, S21, S22).

Looks at every hosted partition after each turn of its node, does nothing where nothing has changed, and where a log has
grown reads only what is new. A copy of every log is kept (`truth.py`), also of those whose process is down: it is what
the candidates for leadership really have, whatever anybody believes.

A machine that lost its power may lack committed records while the controller does not know; that is what the ELR is
for. It is excused until it is registered anew (S8 from there on), and only if the run has not given up more than the
protocol promises to survive (`chaos.Nemesis` sees to that).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from tanist.broker.hosted import HostedPartition
from tanist.broker.node import Node
from tanist.controller.partition_state import PartitionState
from tanist.log.log import Log
from tanist.log.log import Truncated as CutOff
from tanist.replica.leader import LeaderState
from tanist.sim.metadata_checks import MetadataChecks
from tanist.sim.truth import Batch, Copy, Key, Truth, batches, pieces
from tanist.sim.violation import Violation
from tanist.sim.world import Host, World
from tanist.wire.batch import decode_batch, iterate_headers
from tanist.wire.errors import WireError

_LOG_SUFFIX = ".log"


class _Seen:
    """What was last seen of a hosted partition."""

    __slots__ = ("copy", "high_watermark", "hosted", "leader", "leader_epoch", "maximal_isr", "partition_epoch")

    def __init__(self, hosted: HostedPartition, copy: Copy) -> None:
        self.hosted = hosted
        self.copy = copy
        self.leader: LeaderState | None = None
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.high_watermark = -1
        self.maximal_isr: frozenset[int] = frozenset()


class ReplicaChecks:
    """All replicas of the world's topics."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.metadata = MetadataChecks(world, self._partition_changed, self._broker_changed)
        self.truths: dict[Key, Truth] = {}
        self.states: dict[Key, PartitionState] = {}
        """Each partition as the committed metadata has it."""
        self._lives: dict[int, int] = {}
        self._changed: dict[Key, PartitionState] = {}
        """Those that the present turn has changed."""
        self._seen: dict[tuple[int, Key], _Seen] = {}
        self.on_committed: Callable[[Truth, int, bytes], None] = _nobody
        """Called with the offset and the value of each record that is committed, in order."""
        self.may_lose = False
        """More replicas may be suspected of a loss at one time than the protocol promises to survive."""
        self.changes = 0

    def truth(self, key: Key) -> Truth:
        found = self.truths.get(key)
        if found is None:
            topic = self.metadata.image.topics.get(key[0])
            found = self.truths[key] = Truth(key, f"{'?' if topic is None else topic.name}-{key[1]}")
        return found

    def is_lossy(self) -> bool:
        """Somebody lost its power, and is not yet known to have everything again."""
        return any(
            copy.lossy_since_epoch is not None for truth in self.truths.values() for copy in truth.copies.values()
        )

    def is_whole(self) -> bool:
        """Every replica is in its ISR, up to date, and known to be."""
        for key, state in self.states.items():
            truth = self.truth(key)
            if len(state.isr) < len(state.replicas):
                return False
            for broker_id in state.replicas:
                copy = truth.copies.get(broker_id)
                if not truth.is_complete(copy) or (copy is not None and copy.lossy_since_epoch is not None):
                    return False
        return True

    # -- what happens

    def look(self, host: Host, node: Node) -> None:
        """After a turn of the node."""
        self.metadata.look(host, node)
        if self._lives.get(host.node_id) != host.lives:
            self._lives[host.node_id] = host.lives
            self._meet_all(host, node)
        for hosted in node.replicas:
            if not hosted.stale and hosted.log.failed is None:
                self._look(host, node, hosted)
        # Only now: of several changes of one partition in one turn, its leader has seen all.
        for key, state in self._changed.items():
            leader = self._acting_leader(key, state)
            if leader is not None:
                self._check_quorum_superset(self.truth(key), leader, state)
        self._changed.clear()

    def went_down(self, host: Host, *, lost_power: bool, mid_turn: bool) -> None:
        broker = self.metadata.image.brokers.get(host.node_id)
        for truth in self.truths.values():
            copy = truth.copies.get(host.node_id)
            if copy is None:
                continue
            copy.mid_turn = mid_turn or (copy.mid_turn and copy.life != host.lives)
            # (In its last life the log may not have been seen at all: then an older doubt stands.)
            if lost_power:
                copy.durable_end = min(_durable_end(host, copy), copy.durable_end or 1 << 62)
                if copy.lossy_since_epoch is None:
                    copy.lossy_since_epoch = -1 if broker is None else broker.epoch

    def _partition_changed(self, key: Key, before: PartitionState | None, after: PartitionState | None) -> None:
        if after is None:
            self.states.pop(key, None)
            self.truths.pop(key, None)
            return
        self.states[key] = after
        truth = self.truth(key)
        if after.recovering and (before is None or before.leader_epoch != after.leader_epoch):
            self._elected_unclean(truth, after)
        self._check_candidates(truth)
        for broker_id in after.isr:
            copy = truth.copies.get(broker_id)
            if copy is not None and copy.lossy_since_epoch is not None and not self._is_excused(copy):
                copy.lossy_since_epoch = None  # in sync again, of its own or not: S2 has just been checked
        self._changed[key] = after

    def _broker_changed(self, broker_id: int) -> None:
        """A new registration ends the excuse for what was lost: who is incomplete can't be elected any more (S8)."""
        image = self.metadata.image
        for key in (*image.partitions_in_isr(broker_id), *image.partitions_in_elr(broker_id)):
            self._check_candidates(self.truth(key))

    def _look(self, host: Host, node: Node, hosted: HostedPartition) -> None:
        key = (hosted.topic_id, hosted.index)
        seen = self._seen.get((host.node_id, key))
        replica, log, leader = hosted.replica, hosted.log, hosted.leader
        if seen is None or seen.hosted is not hosted:
            copy = self.truth(key).copies.get(host.node_id)
            if copy is None or copy.log is not log:
                copy = self._meet(host, log, self.truth(key))
            seen = self._seen[(host.node_id, key)] = _Seen(hosted, copy)
        high_watermark, log_end, copy = replica.high_watermark, log.log_end_offset, seen.copy
        maximal_isr = seen.maximal_isr if leader is None else leader.maximal_isr
        if (
            copy.end == log_end
            and seen.high_watermark == high_watermark
            and seen.leader is leader
            and seen.partition_epoch == replica.partition_epoch
            and seen.maximal_isr is maximal_isr
            and not copy.was_cut
        ):
            return
        self.changes += 1
        truth = self.truth(key)
        name = f"{truth.name} on node {host.node_id}"
        self._follow_log(name, hosted, truth, copy)
        self._check_epochs(name, seen, hosted, key)
        if leader is not None:
            self._check_leader(name, node, hosted, leader, seen, truth, copy)
        if high_watermark > log_end:
            self._fail("S6", f"{name}: high watermark {high_watermark} is beyond the log's end {log_end}")
        if high_watermark > copy.agreed_end and not truth.is_excused(copy):
            self._fail(
                "S6",
                f"{name}: its log agrees with what is committed up to {copy.agreed_end}, its high watermark is "
                f"{high_watermark} (log end {log_end}, true high watermark {truth.high_watermark})",
            )
        seen.leader, seen.leader_epoch, seen.partition_epoch = leader, replica.leader_epoch, replica.partition_epoch
        seen.high_watermark, seen.maximal_isr = high_watermark, maximal_isr

    # -- logs

    def _meet_all(self, host: Host, node: Node) -> None:
        """A process has just started: its logs are as it found or mended them, and nothing was done with them yet."""
        for directory in node.replicas.directories:
            for (_, index), log in directory.logs.items():
                if (log.topic_id, index) in self.truths:
                    self._meet(host, log, self.truth((log.topic_id, index)))

    def _meet(self, host: Host, log: Log, truth: Truth) -> Copy:
        """A log that was opened."""
        name = f"{truth.name} on node {host.node_id}"
        known = truth.copies.get(host.node_id)
        copy = Copy(host.node_id, host.lives, log)
        copy.log_start = log.log_start_offset
        copy.batches = list(batches(log, log.log_start_offset, log.log_end_offset))
        if known is not None:
            self._check_restart(name, truth, known, copy)
            copy.cut = known.cut
            copy.lossy_since_epoch = known.lossy_since_epoch
        for number, batch in enumerate(copy.batches):
            self._check_written(name, truth, batch, copy.batches[number - 1] if number else None)
        self._check_epoch_cache(name, log, copy.batches)
        truth.copies[host.node_id] = copy
        truth.agree(copy)
        before = log.on_truncate

        def cut(what: CutOff) -> None:
            self._cut_off(name, truth, copy, what.from_offset)
            if before is not None:
                before(what)

        log.on_truncate = cut
        return copy

    def _follow_log(self, name: str, hosted: HostedPartition, truth: Truth, copy: Copy) -> None:
        """Bring the copy up to the log's end."""
        log = hosted.log
        end = log.log_end_offset
        if copy.end > end:
            self._cut_off(name, truth, copy, end)  # not by a truncation that was handed out
        if not copy.batches:
            copy.log_start = log.log_start_offset
        leader = self._acting_leader_copy(truth, hosted)
        for batch in batches(log, copy.end, end):
            before = copy.batches[-1] if copy.batches else None
            if before is not None and batch.first != before.end:
                self._fail("S6", f"{name}: {batch} was appended behind {before}")
            self._check_written(name, truth, batch, before)
            if leader is not None and leader.last_before(batch.end) != batch:
                self._fail("S21", f"{name}: has {batch}, its leader {leader.last_before(batch.end)}")
            copy.batches.append(batch)
        truth.agree(copy)
        if copy.was_cut:
            copy.was_cut = False
            self._check_epoch_cache(name, log, copy.batches)
        elif copy.batches and log.latest_epoch < copy.batches[-1].epoch:
            self._fail("S22", f"{name}: ends with {copy.batches[-1]}, its latest leader epoch is {log.latest_epoch}")

    def _check_written(self, name: str, truth: Truth, batch: Batch, before: Batch | None) -> None:
        """S6 in its strongest form: the same offset and epoch are the same batch, behind the same batch, everywhere."""
        known = truth.written.setdefault((batch.first, batch.epoch), (batch, before))
        if known[0] != batch:
            self._fail("S6", f"{name}: has {batch}, another replica {known[0]}")
        if before is not None and known[1] is not None and known[1] != before:
            self._fail("S6", f"{name}: has {batch} behind {before}, another replica behind {known[1]}")

    def _cut_off(self, name: str, truth: Truth, copy: Copy, offset: int) -> None:
        """S21: nothing that was ever committed is cut off. What only diverged from it, is cut everywhere."""
        copy.was_cut = True
        while copy.batches and copy.batches[-1].end > offset:
            gone = copy.batches.pop()
            copy.cut.add(gone)
            copy.agreeing = min(copy.agreeing, len(copy.batches))
            position = truth.position.get(gone.first)
            if position is not None and truth.history[position] == gone:
                self._fail(
                    "S21",
                    f"{name}: {gone} was cut off (at {offset}), though it was committed "
                    f"(true high watermark {truth.high_watermark})",
                )

    def _check_restart(self, name: str, truth: Truth, known: Copy, now: Copy) -> None:
        """S22: a crash takes nothing, a loss of power only what was not synced, and neither makes anything up."""
        before = [batch for batch in known.batches if batch.end > now.log_start]
        same = 0
        for mine, theirs in zip(before, now.batches):
            if mine != theirs:
                break
            same += 1
        if known.durable_end is None:
            if not known.mid_turn and before != now.batches:
                self._fail("S22", f"{name}: had {known.end} before the crash, has {now.end}, {same} batches the same")
            return
        kept = now.batches[same - 1].end if same else now.log_start
        lost = before[same].end if same < len(before) else None
        if lost is not None and lost <= known.durable_end:
            self._fail("S22", f"{name}: was synced up to {known.durable_end}, has {now.end} of which {kept} as it was")
        for batch in now.batches[same:]:
            if batch not in known.cut and not known.mid_turn:
                self._fail("S22", f"{name}: has {batch} after the loss of power, which it never had")

    def _check_epoch_cache(self, name: str, log: Log, content: list[Batch]) -> None:
        """S22: the leader-epoch cache says of this log what the log says."""
        found: list[tuple[int, int]] = []
        for batch in content:
            if not found or batch.epoch != found[-1][0]:
                found.append((batch.epoch, max(batch.first, log.log_start_offset)))
        entries = [(entry.epoch, entry.start_offset) for entry in log.epochs.entries]
        end = log.log_end_offset
        if [entry for entry in entries if entry[1] < end] != found:
            self._fail(
                "S22", f"{name}: its leader epochs are {entries}, those of its batches {found}, its end is {end}"
            )

    # -- leaders

    def _check_leader(
        self,
        name: str,
        node: Node,
        hosted: HostedPartition,
        leader: LeaderState,
        seen: _Seen,
        truth: Truth,
        copy: Copy,
    ) -> None:
        epoch = leader.leader_epoch
        other = truth.leaders.setdefault(epoch, node.node_id)
        if other != node.node_id:
            self._fail("S10", f"{name}: epoch {epoch} is led by {other} as well")
        truth.newest_epoch = max(truth.newest_epoch, epoch)
        if epoch < truth.unclean_epoch:
            return  # it has yet to hear that what it counts with was given up
        if epoch == truth.newest_epoch and not truth.is_complete(copy):
            self._fail(
                "S1",
                f"{name} leads epoch {epoch} with log end {copy.end}, which agrees up to {copy.agreed_end}, but "
                f"{truth.high_watermark} was committed",
            )
        if leader.high_watermark > seen.high_watermark >= 0:
            self._check_advance(name, node, hosted, leader, seen.high_watermark, truth)
        if leader.high_watermark > truth.high_watermark:
            self._freeze(name, hosted, leader, truth, copy)
        state = self.states.get(truth.key)
        if state is not None and state.leader == node.node_id and state.leader_epoch == epoch:
            self._check_quorum_superset(truth, leader, state)

    def _check_advance(
        self, name: str, node: Node, hosted: HostedPartition, leader: LeaderState, before: int, truth: Truth
    ) -> None:
        """S4: enough members in the committed ISR, all of the maximal ISR known to have it, and right to be so."""
        high_watermark = leader.high_watermark
        min_isr = min(node.min_insync_replicas(hosted.topic), len(leader.metadata.replicas))
        if len(leader.isr) < min_isr:
            self._fail(
                "S4",
                f"{name}: high watermark from {before} to {high_watermark} with ISR {leader.isr}, "
                f"min.insync.replicas {min_isr}",
            )
        own = truth.copies[node.node_id].last_before(high_watermark)
        for broker_id in sorted(leader.maximal_isr):
            if broker_id == node.node_id:
                continue
            known = leader.remotes[broker_id].log_end_offset
            if known < high_watermark:
                self._fail(
                    "S4", f"{name}: high watermark {high_watermark}, member {broker_id} is known to have {known}"
                )
            member = truth.copies.get(broker_id)
            if member is not None and member.lossy_since_epoch is not None:
                continue
            if own is not None and (member is None or member.last_before(high_watermark) != own):
                has = None if member is None else member.end
                self._fail("S4", f"{name}: high watermark {high_watermark}, member {broker_id} has {has} in truth")

    def _freeze(self, name: str, hosted: HostedPartition, leader: LeaderState, truth: Truth, copy: Copy) -> None:
        """S5, S7: the history grows and never changes, and enough replicas hold it."""
        high_watermark = leader.high_watermark
        if not truth.is_complete(copy):
            self._fail(
                "S5", f"{name}: commits {high_watermark}, but lacks some of the {truth.high_watermark} committed before"
            )
        if copy.last_before(high_watermark) is None:
            self._fail("S5", f"{name}: high watermark {high_watermark} is not at a batch's end")
        added = [batch for batch in copy.batches[copy.agreeing :] if batch.end <= high_watermark]
        self._read_values(hosted.log, truth, added)
        truth.extend(added)
        self._check_candidates(truth)
        self._check_holders(truth)

    def _read_values(self, log: Log, truth: Truth, added: list[Batch]) -> None:
        for view in pieces(log, added[0].first, added[-1].end):
            for position, header in iterate_headers(view):
                if header.is_control:
                    continue
                for record in decode_batch(view[position : position + header.size_bytes]):
                    value = bytes(record.value or b"")
                    self.on_committed(truth, record.offset, value)
                    truth.values[record.offset] = value
                    truth.offsets[value] = record.offset

    def _check_candidates(self, truth: Truth) -> None:
        """S2: everybody whom the controller may elect, up or not, has all that was ever committed."""
        state = self.states.get(truth.key)
        if state is None or truth.high_watermark == 0:
            return
        for broker_id in (*state.isr, *state.elr):
            copy = truth.copies.get(broker_id)
            if truth.is_complete(copy) or (copy is not None and self._is_excused(copy)):
                continue
            has = "nothing" if copy is None else f"{copy.end}, which agrees up to {copy.agreed_end}"
            self._fail(
                "S2",
                f"{truth.name}: {broker_id} can be elected (ISR {state.isr}, ELR {state.elr}) and has {has}, but "
                f"{truth.high_watermark} was committed",
            )

    def _check_holders(self, truth: Truth) -> None:
        """S7: min.insync.replicas disks have it, less those that lost their power."""
        copies = truth.copies.values()
        holders = sum(truth.is_complete(copy) for copy in copies)
        lossy = sum(copy.lossy_since_epoch is not None for copy in copies)
        needed = self.metadata.image.effective_min_isr(*truth.key)
        if holders < needed - lossy:
            self._fail("S7", f"{truth.name}: {truth.high_watermark} is committed, and {holders} replicas have it")

    def _check_quorum_superset(self, truth: Truth, leader: LeaderState, state: PartitionState) -> None:
        """S3: the leader counts with everybody the controller might elect."""
        if len(leader.isr) < leader.effective_min_isr:
            return
        electable = {*state.isr, *state.elr}
        if not electable <= leader.maximal_isr:
            self._fail(
                "S3",
                f"{truth.name}: leader {leader.broker_id} counts with {sorted(leader.maximal_isr)}, "
                f"but {sorted(electable)} can be elected",
            )

    def _check_epochs(self, name: str, seen: _Seen, hosted: HostedPartition, key: Key) -> None:
        """S9, S16: a replica's epochs never go back, nor before those that are committed."""
        replica = hosted.replica
        if replica.leader_epoch < seen.leader_epoch or replica.partition_epoch < seen.partition_epoch:
            self._fail("S9", f"{name}: epochs went back to {replica.leader_epoch}, {replica.partition_epoch}")
        state = self.states.get(key)
        if state is not None and (
            replica.leader_epoch > state.leader_epoch or replica.partition_epoch > state.partition_epoch
        ):
            self._fail("S16", f"{name}: knows epochs {replica.leader_epoch}, {replica.partition_epoch} of {state}")

    # -- unclean elections

    def _elected_unclean(self, truth: Truth, state: PartitionState) -> None:
        """Somebody was elected who may lack records. Only a loss of power explains that it does lack some."""
        leader = state.leader
        copy = truth.copies.get(leader)
        if copy is None or truth.is_complete(copy):
            return
        committed = truth.high_watermark
        if copy.lossy_since_epoch is None or not self.may_lose:
            self._fail("U1", f"{truth.name}: {leader} was elected with {copy.agreed_end} of the {committed} committed")
        lost = truth.forget_beyond(copy, state.leader_epoch)
        self._world.note("checker", "LOSS", f"{truth.name}: {lost} of {committed} given up for {leader} to lead")

    # -- at the end

    def check_converged(self) -> None:
        """L7, S22: all replicas hold the same bytes, and all of it is committed."""
        for key, truth in self.truths.items():
            content: dict[int, bytes] = {}
            for node in self._world.nodes():
                hosted = node.replicas.get(*key)
                if hosted is None:
                    continue
                log = hosted.log
                name = f"{truth.name} on node {node.node_id}"
                if hosted.replica.high_watermark != log.log_end_offset:
                    self._fail(
                        "L7", f"{name}: high watermark {hosted.replica.high_watermark}, end {log.log_end_offset}"
                    )
                copy = truth.copies[node.node_id]
                if copy.batches != list(batches(log, log.log_start_offset, log.log_end_offset)):
                    self._fail("S22", f"{name}: its log is not what it was seen to become")
                self._check_epoch_cache(name, log, copy.batches)
                content[node.node_id] = b"".join(pieces(log, log.log_start_offset, log.log_end_offset))
            first = next(iter(content.values()), b"")
            for node_id, found in content.items():
                if found != first:
                    self._fail("L7", f"{truth.name}: node {node_id} has other bytes than node {next(iter(content))}")

    # -- bits

    def _fail(self, property_id: str, message: str) -> NoReturn:
        raise Violation(property_id, message, self._world.now_us)

    def _is_excused(self, copy: Copy) -> bool:
        """It lost its power, and the controller still counts with the life before that."""
        broker = self.metadata.image.brokers.get(copy.node_id)
        return copy.lossy_since_epoch is not None and (broker is None or broker.epoch == copy.lossy_since_epoch)

    def _acting_leader(self, key: Key, state: PartitionState) -> LeaderState | None:
        """The leader that the controller means, if it acts as one in that epoch."""
        host = self._world.hosts.get(state.leader)
        if host is None or not host.up or host.node is None:
            return None
        hosted = host.node.replicas.get(*key)
        leader = None if hosted is None else hosted.leader
        return leader if leader is not None and leader.leader_epoch == state.leader_epoch else None

    def _acting_leader_copy(self, truth: Truth, hosted: HostedPartition) -> Copy | None:
        """The log of the leader that a follower follows, if it still leads that epoch."""
        follower = hosted.follower
        if follower is None:
            return None
        host = self._world.hosts.get(follower.leader)
        if host is None or not host.up or host.node is None:
            return None
        theirs = host.node.replicas.get(*truth.key)
        if theirs is None or theirs.leader is None or theirs.leader.leader_epoch != follower.leader_epoch:
            return None
        return truth.copies.get(host.node_id)


def _nobody(truth: Truth, offset: int, value: bytes) -> None:
    pass


def _durable_end(host: Host, copy: Copy) -> int:
    """Up to where the log is synced, by what the disk says of its segments."""
    end = copy.log_start
    paths = [
        path for path in host.disk.paths() if path.startswith(copy.log.directory + "/") and path.endswith(_LOG_SUFFIX)
    ]
    for path in paths:
        inode = host.disk.inode(path)
        with suppress(WireError):  # not recovered since the last loss
            for _, header in iterate_headers(memoryview(bytes(inode.data[: inode.synced_bytes]))):
                end = max(end, header.next_offset)
        if inode.synced_bytes < len(inode.data):
            break
    return end

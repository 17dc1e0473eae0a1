"""Replicas and what their leaders count on (S1-S7, S10, S11), over the copies of their logs (`checkers.logs`).

Looks at every hosted partition after each turn of its node, and does nothing where nothing has changed.

A machine that lost its power may lack committed records while the controller does not know; that is what the ELR is
for. It is excused until it is registered anew (S8 from there on). What an unclean election gives up is judged by
`checkers.elections`; from there on the history is that of the new leader (U6), and what was given up is remembered, so
that a client who once was promised it is told apart from one who was lied to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NoReturn

from tanist.broker.node import Node
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.controller.partition_state import PartitionState
from tanist.controller.registration import BrokerRegistration
from tanist.log.log import Log
from tanist.replica.leader import LeaderState
from tanist.replica.metadata import PartitionMetadata
from tanist.sim.checkers.compaction import POLICY, Thinnings
from tanist.sim.checkers.elections import ElectionChecks
from tanist.sim.checkers.logs import LogChecks, logs_of
from tanist.sim.checkers.metadata import MetadataChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import BitRotted, DirectoryFailed, Event, LogRemoved, LogRestored, TopicIdPartition
from tanist.sim.oracle import Batch, Copy, Oracle, Truth, pieces
from tanist.sim.world.world import Host, World
from tanist.wire.batch import decode_batch, iterate_headers


class _Seen:
    """What was last seen of a hosted partition."""

    __slots__ = (
        "copy",
        "high_watermark",
        "leader",
        "leader_epoch",
        "log_end",
        "maximal_isr",
        "metadata",
        "partition_epoch",
        "truth",
    )

    def __init__(self, truth: Truth, copy: Copy) -> None:
        self.truth = truth
        self.copy = copy
        self.leader: LeaderState | None = None
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.metadata: PartitionMetadata | None = None
        self.log_end = -1
        self.high_watermark = -1
        self.maximal_isr: frozenset[int] = frozenset()

    def is_outdated(self, hosted: HostedPartition) -> bool:
        """Whether there is anything new to see. Asked of every partition after every turn, so it makes no detours."""
        leader, replica = hosted.leader, hosted.replica
        role = replica.role
        return (
            self.log_end != hosted.log.log_end_offset
            or self.high_watermark != (replica.high_watermark if role is None else role.high_watermark)
            or self.leader is not leader
            or self.metadata is not replica.metadata
            or (leader is not None and self.maximal_isr is not leader.maximal_isr)
            or self.copy.was_cut
        )


class ReplicaChecks:
    """All replicas of the world's topics."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.metadata = MetadataChecks(
            world, self._partition_changed, self._broker_changed, self._config_changed, self._batch_ended
        )
        self.oracle = Oracle(self.metadata.image)
        self.truths = self.oracle.partitions
        self.states = self.oracle.states
        self.logs = LogChecks(world, self.oracle.rotten)
        self.elections = ElectionChecks(world, self.oracle, self.truth, self.acting_leader)
        self._lives: dict[int, int] = {}
        self._changed: dict[TopicIdPartition, PartitionState] = {}
        """Those that the present turn has changed."""
        self._seen: dict[HostedPartition, _Seen] = {}
        self.on_committed: Callable[[Truth, int, bytes], None] = _nobody
        """Called with the offset and the value of each record that is committed, in order."""
        self.changes = 0

    def truth(self, key: TopicIdPartition) -> Truth:
        found = self.truths.get(key)
        if found is None:
            topic = self.metadata.image.topics.get(key[0])
            found = self.truths[key] = Truth(key, f"{'?' if topic is None else topic.name}-{key[1]}")
            if topic is not None and self.metadata.image.configs.get((2, topic.name), {}).get(POLICY) == "compact":
                found.thinnings = Thinnings(found)
        return found

    # -- what happens

    def look(self, host: Host, node: Node) -> None:
        """After a turn of the node."""
        if self._lives.get(host.node_id) != host.lives:
            self._lives[host.node_id] = host.lives
            self.elections.began(host, node)
            found = logs_of(node)
            places = Counter((log.topic_id, log.partition) for log in found)
            for log in found:
                key = (log.topic_id, log.partition)
                if key not in self.truths:
                    continue
                if places[key] == 1:
                    self.logs.meet(host, log, self.truths[key])
                else:
                    self._in_two_places(host, self.truths[key])
        self.metadata.look(host, node)
        for topic, partitions in node.replicas.by_topic.items():
            if topic.__class__ is not str:
                continue  # the same table under the topic's id
            for hosted in partitions.values():
                seen = self._seen.get(hosted)
                if (seen is None or seen.is_outdated(hosted)) and not hosted.stale and hosted.log.failed is None:
                    self._look(host, node, hosted, seen)
        # Only now: of several changes of one partition in one turn, its leader has seen all.
        if self._changed:
            for key, state in self._changed.items():
                leader = self.acting_leader(key, state)
                if leader is not None:
                    self._check_quorum_superset(self.truth(key), leader, state)
            self._changed.clear()

    def _in_two_places(self, host: Host, truth: Truth) -> None:
        """A directory had failed, and the replica was made anew elsewhere: which log counts is yet to be seen."""
        self._world.counts["logs in two directories"] += 1
        copy = truth.copies.get(host.node_id)
        if copy is not None:
            copy.mid_turn = True

    def went_down(self, host: Host, *, lost_power: bool, mid_turn: bool) -> None:
        broker = self.metadata.image.brokers.get(host.node_id)
        epoch = -1 if broker is None else broker.epoch
        for truth in self.truths.values():
            self.logs.went_down(host, truth, lost_power=lost_power, mid_turn=mid_turn, broker_epoch=epoch)

    def happened(self, event: Event) -> None:
        """Faults and operators."""
        match event:
            case DirectoryFailed(node_id, path):
                self._directory_failed(node_id, path)
            case BitRotted(node_id, key):
                self._bit_rotted(node_id, key)
            case LogRemoved(node_id, key):
                self._log_removed(node_id, key)
            case LogRestored(node_id, key):
                self.oracle.rotten.discard((key, node_id))
        self.elections.happened(event)

    def _directory_failed(self, node_id: int, path: str) -> None:
        """From here on nothing is known of how the logs in that directory end, until they are read again."""
        for truth in self.truths.values():
            copy = truth.copies.get(node_id)
            if copy is not None and copy.log is not None and copy.log.directory.startswith(path + "/"):
                copy.mid_turn = True

    def _bit_rotted(self, node_id: int, key: TopicIdPartition) -> None:
        """Its disk is not what it was: recovery may cut the log off there, after this life of its node or any later."""
        self.oracle.rotten.add((key, node_id))
        self._is_lossy(self.truths[key].copies[node_id])

    def _log_removed(self, node_id: int, key: TopicIdPartition) -> None:
        """An operator has removed a log while its broker was down: for the protocol, a loss of all that was synced.

        With it goes the mark of a clean end, so the controller will doubt all that the broker has.
        """
        for truth in self.truths.values():
            other = truth.copies.get(node_id)
            if other is not None:
                other.doubtful = True
        copy = self.truths[key].copies[node_id]
        copy.cut.update(copy.batches)
        copy.batches.clear()
        copy.agreeing = 0
        self._is_lossy(copy)
        self.oracle.rotten.discard((key, node_id))

    def _is_lossy(self, copy: Copy) -> None:
        broker = self.metadata.image.brokers.get(copy.node_id)
        copy.doubtful = True
        copy.lossy_since_epoch = -1 if broker is None else broker.epoch

    def _partition_changed(
        self, key: TopicIdPartition, before: PartitionState | None, after: PartitionState | None, unclean: bool
    ) -> None:
        if after is None:
            self.states.pop(key, None)
            self.truths.pop(key, None)
            return
        self.states[key] = after
        truth = self.truth(key)
        self._world.note("metadata", "STATE", f"{truth.name}: {_told(after)}")
        for node_id, copy in truth.copies.items():
            if node_id not in after.replicas:
                copy.released_epoch = after.partition_epoch  # the newest: the node may be several changes behind
        self.elections.partition_changed(truth, before, after, marked_unclean=unclean)
        truth.began.setdefault(after.leader_epoch, truth.high_watermark)
        self._check_candidates(truth)
        for broker_id in after.isr:
            member = truth.copies.get(broker_id)
            if member is not None and member.doubtful and self._is_itself(broker_id) and not self._is_excused(member):
                # In sync again, of its own or not: S2 has just been checked.
                member.lossy_since_epoch = None
                member.doubtful = False
        self._changed[key] = after

    def _is_itself(self, broker_id: int) -> bool:
        """The broker runs, and its registration is that of the life it lives."""
        host, broker = self._world.hosts[broker_id], self.metadata.image.brokers.get(broker_id)
        return host.up and broker is not None and self.elections.life_of(broker.incarnation_id) == host.lives

    def _broker_changed(self, broker_id: int, before: BrokerRegistration | None) -> None:
        """A new registration ends the excuse for what was lost: who is incomplete can't be elected any more (S8)."""
        self.elections.broker_changed(broker_id, before)
        image = self.metadata.image
        for key in (*image.partitions_in_isr(broker_id), *image.partitions_in_elr(broker_id)):
            self._check_candidates(self.truth(key))

    def _config_changed(self) -> None:
        for key, state in self.states.items():
            self.elections.min_isr_may_have_changed(self.truth(key), state)

    def _batch_ended(self) -> None:
        self.elections.batch_ended()

    def _look(self, host: Host, node: Node, hosted: HostedPartition, seen: _Seen | None) -> None:
        replica, log, leader = hosted.replica, hosted.log, hosted.leader
        if seen is None:
            if hosted.topic_id not in self.metadata.image.topics:
                return  # deleted, and the node has yet to hear
            truth = self.truth((hosted.topic_id, hosted.index))
            known = truth.copies.get(host.node_id)
            if known is None or known.log is not log:
                known = self.logs.meet(host, log, truth)
            seen = self._seen[hosted] = _Seen(truth, known)
        high_watermark, log_end, copy = replica.high_watermark, log.log_end_offset, seen.copy
        maximal_isr = seen.maximal_isr if leader is None else leader.maximal_isr
        self.changes += 1
        truth = seen.truth
        if truth.key not in self.truths:
            return
        name = f"{truth.name} on node {host.node_id}"
        if copy.released_epoch is not None and replica.partition_epoch > copy.released_epoch:
            copy.released_epoch = None  # a replica again, and it has kept its log
        self.logs.follow(name, hosted, truth, copy, self._acting_leader_copy(truth, hosted))
        self._check_epochs(name, seen, hosted)
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
        seen.metadata = replica.metadata
        seen.log_end, seen.high_watermark, seen.maximal_isr = log_end, high_watermark, maximal_isr

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
        if epoch < truth.newest_epoch:
            self._world.counts["two leaders"] += 1
        truth.newest_epoch = max(truth.newest_epoch, epoch)
        if epoch < truth.unclean_epoch:
            # It has yet to hear that what it counts with was given up. What it still promises is given up as well.
            self._read_values(hosted.log, truth, copy.batches, seen.high_watermark, leader.high_watermark, epoch)
            return
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
        elif leader.under_min_isr and leader.high_watermark < min(
            [copy.end, *(leader.remotes[each].log_end_offset for each in leader.maximal_isr if each != node.node_id)]
        ):
            self._world.counts["high watermark held"] += 1
        state = self.states.get(truth.key)
        if state is not None and state.leader == node.node_id and state.leader_epoch == epoch:
            self._check_quorum_superset(truth, leader, state)

    def _check_advance(
        self, name: str, node: Node, hosted: HostedPartition, leader: LeaderState, before: int, truth: Truth
    ) -> None:
        """S4: enough members in the committed ISR, all of the maximal ISR known to have it, and right to be so."""
        high_watermark = leader.high_watermark
        min_isr = min(node.metadata.image.min_insync_replicas(hosted.topic), len(leader.metadata.replicas))
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
            if member is not None and (
                member.lossy_since_epoch is not None
                or member.released_epoch is not None
                or member.member_since > leader.partition_epoch
            ):
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
        self._read_values(hosted.log, truth, added, added[0].first, high_watermark, None)
        truth.extend(added)
        self._check_candidates(truth)
        self._check_holders(truth, leader)

    def _read_values(
        self, log: Log, truth: Truth, content: list[Batch], start: int, end: int, given_up_in_epoch: int | None
    ) -> None:
        """The records of the batches that end in (start, end]: committed, or promised by one who has been overtaken."""
        wanted = [batch for batch in content if start < batch.end <= end]
        if not wanted:
            return
        for view in pieces(log, wanted[0].first, wanted[-1].end):
            for position, header in iterate_headers(view):
                if header.is_control:
                    continue
                for record in decode_batch(view[position : position + header.size_bytes]):
                    value = bytes(record.value or b"")
                    if given_up_in_epoch is not None:
                        if truth.values.get(record.offset) != value:
                            truth.given_up[(record.offset, value)] = given_up_in_epoch
                        continue
                    self.on_committed(truth, record.offset, value)
                    truth.values[record.offset] = value
                    truth.offsets[value] = record.offset
                    if truth.thinnings is not None:
                        truth.thinnings.committed(record.offset, value)

    def _check_candidates(self, truth: Truth) -> None:
        """S2: everybody whom the controller may elect, up or not, has all that was ever committed."""
        state = self.states.get(truth.key)
        if state is None or truth.high_watermark == 0:
            return
        for broker_id in self._electable(state):
            copy = truth.copies.get(broker_id)
            if truth.is_complete(copy) or (copy is not None and self._is_excused(copy)):
                continue
            has = "nothing" if copy is None else f"{copy.end}, which agrees up to {copy.agreed_end}"
            self._fail(
                "S2",
                f"{truth.name}: {broker_id} can be elected (ISR {state.isr}, ELR {state.elr}) and has {has}, but "
                f"{truth.high_watermark} was committed",
            )

    def _electable(self, state: PartitionState) -> tuple[int, ...]:
        """Whom the controller may elect. With ELR off, one that is left over counts only while nobody is in sync."""
        return state.isr if state.isr and not self.metadata.image.elr_enabled else (*state.isr, *state.elr)

    def _check_holders(self, truth: Truth, leader: LeaderState) -> None:
        """S7: min.insync.replicas disks have it, less those that lost their power."""
        state = self.states.get(truth.key)
        if state is None or state.leader_epoch != leader.leader_epoch:
            return  # a leader that is none any more: those it counts with may delete their logs, it has yet to hear
        copies = [copy for copy in truth.copies.values() if copy.released_epoch is None]
        holders = sum(truth.is_complete(copy) for copy in copies)
        lossy = sum(copy.lossy_since_epoch is not None for copy in copies)
        needed = leader.effective_min_isr
        if truth.unclean:
            # Its own high watermark, of a history that was given up before, may be all that such a leader begins with.
            needed = min(needed, max(truth.needed, 1))
        if holders < needed - lossy:
            self._fail("S7", f"{truth.name}: {truth.high_watermark} is committed, and {holders} replicas have it")

    def _check_quorum_superset(self, truth: Truth, leader: LeaderState, state: PartitionState) -> None:
        """S3: the leader counts with everybody the controller might elect."""
        if len(leader.isr) < leader.effective_min_isr:
            return
        electable = set(self._electable(state))
        if not electable <= leader.maximal_isr:
            self._fail(
                "S3",
                f"{truth.name}: leader {leader.broker_id} counts with {sorted(leader.maximal_isr)}, "
                f"but {sorted(electable)} can be elected",
            )

    def _check_epochs(self, name: str, seen: _Seen, hosted: HostedPartition) -> None:
        """S9, S16: a replica's epochs never go back, nor before those that are committed."""
        replica = hosted.replica
        if replica.leader_epoch < seen.leader_epoch or replica.partition_epoch < seen.partition_epoch:
            self._fail("S9", f"{name}: epochs went back to {replica.leader_epoch}, {replica.partition_epoch}")
        state = self.states.get(seen.truth.key)
        if state is not None and (
            replica.leader_epoch > state.leader_epoch or replica.partition_epoch > state.partition_epoch
        ):
            self._fail("S16", f"{name}: knows epochs {replica.leader_epoch}, {replica.partition_epoch} of {state}")

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
                now_us = self._world.now_us
                if copy.batches != truth.content(name, log, log.log_start_offset, log.log_end_offset, now_us):
                    self._fail("S22", f"{name}: its log is not what it was seen to become")
                self.logs.check_epoch_cache(name, log, copy.batches)
                if truth.thinnings is None:  # else each replica has cleaned for itself
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

    def acting_leader(self, key: TopicIdPartition, state: PartitionState) -> LeaderState | None:
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


def _told(state: PartitionState) -> str:
    """For people."""
    parts = [
        f"leader {state.leader} in epoch {state.leader_epoch}.{state.partition_epoch}",
        f"replicas {list(state.replicas)}",
        f"ISR {list(state.isr)}",
    ]
    for name, members in (
        ("ELR", state.elr),
        ("last known", state.last_known_elr),
        ("adding", state.adding),
        ("removing", state.removing),
    ):
        if members:
            parts.append(f"{name} {list(members)}")
    if state.recovering:
        parts.append("recovering")
    return ", ".join(parts)

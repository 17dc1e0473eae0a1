"""Replicas after each turn of their node (S6, S9, S16, L7), over the mirrors of their logs (`checkers.logs`).

Looks at every hosted partition after each turn of its node, and does nothing if nothing has changed. Applies faults and
committed metadata to the oracle; `checkers.leaders` judges leaders, and `checkers.elections` unclean elections.
"""

from __future__ import annotations

from collections import Counter
from typing import NoReturn

from tanist.broker.node import Node
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.controller.image.partition_state import PartitionState
from tanist.controller.image.registration import BrokerRegistration
from tanist.events.storage import RecordsCut
from tanist.replica.leader import LeaderState
from tanist.replica.metadata import PartitionMetadata
from tanist.sim.checkers.compaction import POLICY, CompactionAllowance
from tanist.sim.checkers.elections import ElectionChecks
from tanist.sim.checkers.leaders import LeaderChecks
from tanist.sim.checkers.logs import LogChecks, batches_of_copy, logs_of
from tanist.sim.checkers.metadata import MetadataChecks
from tanist.sim.checkers.trimming import TrimChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import (
    BitRotted,
    DirectoryFailed,
    DiskFilled,
    Event,
    LogRemoved,
    LogRestored,
    PartitionStateCommitted,
    Place,
)
from tanist.sim.oracle import Oracle, PartitionOracle, ReplicaMirror, batch_bytes
from tanist.sim.world.world import Host, World
from tanist.wire.ids import TopicIdPartition


class _Seen:
    """The last seen state of a hosted partition."""

    __slots__ = (
        "high_watermark",
        "leader",
        "leader_epoch",
        "log_end",
        "log_start",
        "maximal_isr",
        "metadata",
        "mirror",
        "oracle",
        "partition_epoch",
    )

    def __init__(self, oracle: PartitionOracle, mirror: ReplicaMirror) -> None:
        self.oracle = oracle
        self.mirror = mirror
        self.leader: LeaderState | None = None
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.metadata: PartitionMetadata | None = None
        self.log_end = -1
        self.log_start = -1
        self.high_watermark = -1
        self.maximal_isr: frozenset[int] = frozenset()

    def is_outdated(self, hosted: HostedPartition) -> bool:
        """Whether anything has changed. Called for every partition after every turn, so it is fast."""
        leader, replica = hosted.leader, hosted.replica
        role = replica.role
        return (
            self.log_end != hosted.log.log_end_offset
            or self.log_start != hosted.log.log_start_offset
            or self.high_watermark != (replica.high_watermark if role is None else role.high_watermark)
            or self.leader is not leader
            or self.metadata is not replica.metadata
            or (leader is not None and self.maximal_isr is not leader.maximal_isr)
            or self.mirror.was_cut
            or self.mirror.log is not hosted.log
        )


class ReplicaChecks:
    """All replicas of the world's topics."""

    def __init__(self, world: World, *, trims: bool = False) -> None:
        """`trims`: records go, by retention or DeleteRecords."""
        self._world = world
        self.metadata = MetadataChecks(
            world, self._partition_changed, self._broker_changed, self._config_changed, self._batch_ended
        )
        self.oracle = Oracle(self.metadata.image)
        self.oracles = self.oracle.partitions
        self.states = self.oracle.states
        self.logs = LogChecks(world, self.oracle.rotten)
        self.leaders = LeaderChecks(world, self.oracle)
        self.trims = TrimChecks(world, self.oracle) if trims else None
        self.elections = ElectionChecks(world, self.oracle, self.oracle_of, self.acting_leader)
        self._lives: dict[int, int] = {}
        self._loading: set[int] = set()
        """Nodes whose logs have not been looked at in this life: they may be open in part."""
        self._changed: dict[TopicIdPartition, PartitionState] = {}
        """Partitions that the present turn has changed."""
        self._seen: dict[HostedPartition, _Seen] = {}
        self._failing: list[tuple[HostedPartition, LeaderState]] = []
        """Leaders whose high watermark has moved in the present turn, before their directory failed in it."""
        self.changes = 0

    def oracle_of(self, key: TopicIdPartition) -> PartitionOracle:
        found = self.oracles.get(key)
        if found is None:
            topic = self.metadata.image.topics.get(key[0])
            found = self.oracles[key] = PartitionOracle(key, f"{'?' if topic is None else topic.name}-{key[1]}")
            if topic is not None and self.metadata.image.configs.get((2, topic.name), {}).get(POLICY) == "compact":
                found.compaction = CompactionAllowance(found)
            elif self.trims is not None:
                self.trims.begin(found)
        return found

    # -- turns, faults and metadata

    def check_node(self, host: Host, node: Node) -> None:
        """After a turn of the node."""
        if self._lives.get(host.node_id) != host.lives:
            self._lives[host.node_id] = host.lives
            self.elections.began(host, node)
            self._loading.add(host.node_id)
        if host.node_id in self._loading and node.components.log_loading.complete:
            self._loading.discard(host.node_id)
            found = logs_of(node)
            places = Counter((log.topic_id, log.partition) for log in found)
            for log in found:
                key = (log.topic_id, log.partition)
                if key not in self.oracles:
                    continue
                if places[key] == 1:
                    self.logs.meet(host, log, self.oracles[key], self.states.get(key))
                else:
                    self._in_two_places(host, self.oracles[key])
        self.metadata.check_node(host, node)
        failing, self._failing = self._failing, []
        for hosted, deposed in failing:
            self._check_replica(host, node, hosted, deposed, self._seen[hosted])
        for topic, partitions in node.replicas.by_topic.items():
            if topic.__class__ is not str:
                continue  # the same table under the topic's id
            for hosted in partitions.values():
                seen = self._seen.get(hosted)
                if (seen is None or seen.is_outdated(hosted)) and not hosted.stale and hosted.log.failed is None:
                    self._check_replica(host, node, hosted, hosted.leader, seen)
        # Only now, because the leader has seen all changes of its partition in this turn.
        if self._changed:
            for key, state in self._changed.items():
                leader = self.acting_leader(key, state)
                if leader is not None:
                    self.leaders.check_quorum_superset(self.oracle_of(key), leader, state)
            self._changed.clear()

    def _in_two_places(self, host: Host, oracle: PartitionOracle) -> None:
        """A directory had failed, and the replica was created again in another: the node has yet to choose its log."""
        self._world.counts["logs in two directories"] += 1
        mirror = oracle.mirrors.get(host.node_id)
        if mirror is not None:
            mirror.mid_turn = True

    def went_down(self, host: Host, *, lost_power: bool, mid_turn: bool) -> None:
        self._failing.clear()
        broker = self.metadata.image.brokers.get(host.node_id)
        epoch = -1 if broker is None else broker.epoch
        for oracle in self.oracles.values():
            self.logs.went_down(host, oracle, lost_power=lost_power, mid_turn=mid_turn, broker_epoch=epoch)

    def directory_fails(self, host: Host, path: str) -> None:
        """Its replicas go offline in this turn. What their leaders have committed in it was answered, and counts."""
        self._directories_failed(host.node_id, (path,))  # also of logs that were opened after the fault had begun
        for hosted in () if host.node is None else host.node.replicas:
            seen, leader = self._seen.get(hosted), hosted.leader
            if seen is None or leader is None or hosted.directory.path != path or hosted.log.failed is not None:
                continue
            if hosted.shown_high_watermark > seen.high_watermark:
                self._failing.append((hosted, leader))

    def records_cut(self, host: Host, event: RecordsCut) -> None:
        """A log of the node was truncated."""
        node = host.node
        for key, oracle in self.oracles.items():
            mirror = oracle.mirrors.get(host.node_id)
            hosted = None if node is None or oracle.name != event.partition else node.replicas.get(*key)
            if mirror is not None and hosted is not None and hosted.log is mirror.log:
                self.logs.cut_off(Place(oracle.name, host.node_id), oracle, mirror, event.offset)

    def happened(self, event: Event) -> None:
        """Faults and operators."""
        match event:
            case DirectoryFailed(node_id, path):
                self._directories_failed(node_id, (path,))
            case DiskFilled(node_id, paths):
                self._directories_failed(node_id, paths)
            case BitRotted(node_id, key):
                self._bit_rotted(node_id, key)
            case LogRemoved(node_id, key):
                self._log_removed(node_id, key)
            case LogRestored(node_id, key):
                self.oracle.rotten.discard((key, node_id))
        self.elections.happened(event)
        if self.trims is not None:
            self.trims.happened(event)

    def _directories_failed(self, node_id: int, paths: tuple[str, ...]) -> None:
        """The ends of the logs in these directories are unknown until they are read again."""
        folders = tuple(f"{path}/" for path in paths)
        for oracle in self.oracles.values():
            mirror = oracle.mirrors.get(node_id)
            if mirror is not None and mirror.log is not None and mirror.log.directory.startswith(folders):
                mirror.mid_turn = True

    def _bit_rotted(self, node_id: int, key: TopicIdPartition) -> None:
        """A batch on its disk is damaged: recovery may truncate the log there, after this life of its node or a later
        one."""
        self.oracle.rotten.add((key, node_id))
        self._is_lossy(self.oracles[key].mirrors[node_id])

    def _log_removed(self, node_id: int, key: TopicIdPartition) -> None:
        """A log is gone while its broker was down: for the protocol, all that was synced is lost.

        The broker has to see it, and its next start to count as unclean, so that the controller doubts all of its logs.
        """
        for oracle in self.oracles.values():
            other = oracle.mirrors.get(node_id)
            if other is not None:
                other.doubtful = True
        mirror = self.oracles[key].mirrors[node_id]
        mirror.cut.update(mirror.batches)
        mirror.batches.clear()
        mirror.start = mirror.most_start = mirror.durable_start = 0
        copied = None if mirror.log is None else batches_of_copy(self._world.hosts[node_id], mirror.log)
        if copied is not None:
            mirror.cut.update(copied)  # recovery may have lost them before, and it may come back with them
            mirror.durable_end = 0
        mirror.agreeing = 0
        self._is_lossy(mirror)
        self.oracle.rotten.discard((key, node_id))

    def _is_lossy(self, mirror: ReplicaMirror) -> None:
        broker = self.metadata.image.brokers.get(mirror.node_id)
        mirror.doubtful = True
        mirror.may_have_lost(-1 if broker is None else broker.epoch, self._world.hosts[mirror.node_id].lives)

    def _partition_changed(
        self, key: TopicIdPartition, before: PartitionState | None, after: PartitionState | None, unclean: bool
    ) -> None:
        if after is None:
            self.states.pop(key, None)
            self.oracles.pop(key, None)
            return
        self.states[key] = after
        oracle = self.oracle_of(key)
        self._world.emit(PartitionStateCommitted(key, oracle.name, before, after))
        for node_id, mirror in oracle.mirrors.items():
            if node_id not in after.replicas:
                mirror.released_epoch = after.partition_epoch  # the newest: the node may be several changes behind
        self.elections.partition_changed(oracle, before, after, marked_unclean=unclean)
        oracle.began.setdefault(after.leader_epoch, oracle.high_watermark)
        self.leaders.check_candidates(oracle)
        for broker_id in after.isr:
            member = oracle.mirrors.get(broker_id)
            if (
                member is not None
                and member.doubtful
                and self.elections.is_present(broker_id)
                and not self.leaders.is_excused(member)
            ):
                # In sync again: S2 has just been checked.
                member.lossy_since_epoch = None
                member.doubtful = False
        self._changed[key] = after

    def _broker_changed(self, broker_id: int, before: BrokerRegistration | None) -> None:
        """A registration after a loss ends its excuse: an incomplete replica cannot be elected any more (S8).

        One that a quorum has committed late, of a process that the loss has ended, says nothing of the loss: the next
        one will. Until then the broker stays fenced.
        """
        now = self.metadata.image.brokers.get(broker_id)
        life = None if now is None else self.elections.life_of(now.incarnation_id)
        if now is not None and life is not None and before is not None and now.epoch != before.epoch:
            for oracle in self.oracles.values():
                mirror = oracle.mirrors.get(broker_id)
                if mirror is not None and mirror.lossy_since_epoch == before.epoch and life <= mirror.lossy_life:
                    mirror.lossy_since_epoch = now.epoch
        self.elections.broker_changed(broker_id, before)
        image = self.metadata.image
        for key in (*image.partitions_in_isr(broker_id), *image.partitions_in_elr(broker_id)):
            self.leaders.check_candidates(self.oracle_of(key))

    def _config_changed(self) -> None:
        for key, state in self.states.items():
            self.elections.min_isr_may_have_changed(self.oracle_of(key), state)

    def _batch_ended(self) -> None:
        self.elections.batch_ended()

    def _check_replica(
        self, host: Host, node: Node, hosted: HostedPartition, leader: LeaderState | None, seen: _Seen | None
    ) -> None:
        replica, log = hosted.replica, hosted.log
        if seen is None:
            if hosted.topic_id not in self.metadata.image.topics:
                return  # deleted, and the node does not know it yet
            oracle = self.oracle_of((hosted.topic_id, hosted.index))
            known = oracle.mirrors.get(host.node_id)
            if known is None or known.log is not log:
                known = self.logs.meet(host, log, oracle, self.states.get(oracle.key))
            seen = self._seen[hosted] = _Seen(oracle, known)
        elif seen.mirror.log is not log:
            self.logs.moved(Place(seen.oracle.name, host.node_id), seen.oracle, seen.mirror, log)
        high_watermark, log_end, mirror = replica.high_watermark, log.written_end_offset, seen.mirror
        queues = leader is None and log_end < log.log_end_offset
        maximal_isr = seen.maximal_isr if leader is None else leader.maximal_isr
        self.changes += 1
        oracle = seen.oracle
        if oracle.key not in self.oracles:
            return
        place = Place(oracle.name, host.node_id)
        if mirror.released_epoch is not None and replica.partition_epoch > mirror.released_epoch:
            mirror.released_epoch = None  # a replica again, with its old log
        self.logs.follow(place, hosted, oracle, mirror, self._acting_leader_mirror(oracle, hosted))
        self._check_epochs(place, seen, hosted)
        if leader is not None:
            self.leaders.check(place, node, hosted, leader, seen.high_watermark, oracle, mirror)
        if high_watermark > log_end and not queues:
            self._fail("S6", place, f": high watermark {high_watermark} is beyond the log's end {log_end}")
        if high_watermark > max(mirror.agreed_end, mirror.start) and not (queues or oracle.is_excused(mirror)):
            self._fail(
                "S6",
                place,
                f": its log agrees with what is committed up to {mirror.agreed_end}, its high watermark "
                f"is {high_watermark} (log end {log_end}, true high watermark {oracle.high_watermark})",
            )
        if oracle.trimming is not None and self.trims is not None:
            self.trims.check(place, host, hosted, oracle, mirror)
        seen.log_start = log.log_start_offset
        seen.leader, seen.leader_epoch, seen.partition_epoch = leader, replica.leader_epoch, replica.partition_epoch
        seen.metadata = replica.metadata
        seen.log_end, seen.high_watermark, seen.maximal_isr = log_end, high_watermark, maximal_isr

    # -- epochs

    def _check_epochs(self, place: Place, seen: _Seen, hosted: HostedPartition) -> None:
        """S9, S16: a replica's epochs never go back, and are never newer than the committed ones."""
        replica = hosted.replica
        if replica.leader_epoch < seen.leader_epoch or replica.partition_epoch < seen.partition_epoch:
            self._fail("S9", place, f": epochs went back to {replica.leader_epoch}, {replica.partition_epoch}")
        state = self.states.get(seen.oracle.key)
        if state is not None and (
            replica.leader_epoch > state.leader_epoch or replica.partition_epoch > state.partition_epoch
        ):
            self._fail("S16", place, f": knows epochs {replica.leader_epoch}, {replica.partition_epoch} of {state}")

    # -- at the end

    def check_converged(self) -> None:
        """L7, S22: all replicas hold the same bytes from the highest log start on, and all of them are committed."""
        for key, oracle in self.oracles.items():
            content: dict[int, bytes] = {}
            hosts = [node.replicas.get(*key) for node in self._world.nodes()]
            begin = max((each.log.log_start_offset for each in hosts if each is not None), default=0)
            for node in self._world.nodes():
                hosted = node.replicas.get(*key)
                if hosted is None:
                    continue
                log = hosted.log
                place = Place(oracle.name, node.node_id)
                if hosted.replica.high_watermark != log.log_end_offset:
                    self._fail(
                        "L7", place, f": high watermark {hosted.replica.high_watermark}, end {log.log_end_offset}"
                    )
                mirror = oracle.mirrors[node.node_id]
                now_us = self._world.now_us
                mirrored_from = 0 if oracle.trimming is not None else log.log_start_offset
                if mirror.batches != oracle.content(place, log, mirrored_from, log.log_end_offset, now_us):
                    self._fail("S22", place, ": its log is not what it was seen to become")
                self.logs.check_epoch_cache(place, log, mirror)
                if oracle.compaction is None:  # else each replica compacts on its own
                    content[node.node_id] = b"".join(batch_bytes(log, begin, log.log_end_offset))
            first = next(iter(content.values()), b"")
            for node_id, found in content.items():
                if found != first:
                    self._fail("L7", oracle.place, f": node {node_id} has other bytes than node {next(iter(content))}")

    # -- bits

    def _fail(self, property_id: str, *said: object) -> NoReturn:
        raise Violation(property_id, self._world.now_us, *said)

    def acting_leader(self, key: TopicIdPartition, state: PartitionState) -> LeaderState | None:
        """The leader that the controller has elected, if it acts as leader in that epoch."""
        host = self._world.hosts.get(state.leader)
        if host is None or not host.up or host.node is None:
            return None
        hosted = host.node.replicas.get(*key)
        leader = None if hosted is None else hosted.leader
        return leader if leader is not None and leader.leader_epoch == state.leader_epoch else None

    def _acting_leader_mirror(self, oracle: PartitionOracle, hosted: HostedPartition) -> ReplicaMirror | None:
        """The mirror of the leader that a follower follows, if it still leads that epoch."""
        follower = hosted.follower
        if follower is None:
            return None
        host = self._world.hosts.get(follower.leader)
        if host is None or not host.up or host.node is None:
            return None
        theirs = host.node.replicas.get(*oracle.key)
        if theirs is None or theirs.leader is None or theirs.leader.leader_epoch != follower.leader_epoch:
            return None
        return oracle.mirrors.get(host.node_id)

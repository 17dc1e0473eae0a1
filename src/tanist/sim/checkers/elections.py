"""Elections: eligible replicas, the ELR, and the records that an unclean election loses (S8, S13-S15, U1-U6).

Judges each committed change of a partition with facts that no controller has: how each process ended, and the content
of each log. Owns the moment when an unclean election changes the history of a partition (U6): the records that the new
leader lacks are lost there, named and counted. That is allowed only if the configuration in force, an operator, or more
losses than the protocol promises to survive (`promise.py`) explain it. Must never ask the product's own code whether an
election was right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn
from uuid import UUID

from tanist.broker.node import Node
from tanist.controller.image.partition_state import PartitionState
from tanist.controller.image.registration import BrokerRegistration
from tanist.events.metadata import UncleanElection
from tanist.replica.leader import LeaderState
from tanist.sim.checkers.violation import CannotJudge, Violation
from tanist.sim.events import (
    ElrVersionRequested,
    Event,
    Place,
    RecordsLost,
    UncleanElectionRequested,
    UnregistrationRequested,
)
from tanist.sim.oracle import Oracle, PartitionOracle, ReplicaMirror
from tanist.sim.promise import AGGRESSIVE, BALANCED, FIRST_PHASE, NONE, Promise
from tanist.sim.world.world import Host, World
from tanist.wire.ids import TopicIdPartition

_BY_AN_OPERATOR = -2
"""In place of a broker epoch."""
_QUESTION_US = 15_000_000
"""No question to a replica about its log, with all its repetitions, takes longer."""


@dataclass(frozen=True, slots=True)
class _Suspicion:
    """An eligible replica was not elected. A later record of the same decision must explain it."""

    broker_id: int
    state: PartitionState
    """The partition before the election."""
    violation: Violation


class ElectionChecks:
    """The elections of all partitions."""

    def __init__(
        self,
        world: World,
        oracle: Oracle,
        oracle_of: Callable[[TopicIdPartition], PartitionOracle],
        acting_leader: Callable[[TopicIdPartition, PartitionState], LeaderState | None],
    ) -> None:
        self._world = world
        self._oracle = oracle
        self._image = oracle.image
        self.promise = Promise(oracle)
        self._oracle_of = oracle_of
        self._acting_leader = acting_leader
        self._lives: dict[UUID, tuple[int, int]] = {}
        """Incarnation -> its node, and the number of its life."""
        self._broker_epochs: dict[int, int] = {}
        self._suspicions: list[_Suspicion] = []
        self._left: list[tuple[PartitionOracle, PartitionState, PartitionState]] = []
        self.asked_for: set[TopicIdPartition] = set()
        """Partitions for which an operator has asked for an unclean election."""
        self.unregistered: set[int] = set()
        """Brokers whose unregistration was asked for."""
        self.on_given_up: Callable[[PartitionOracle], None] = _nobody
        self._unclean: dict[tuple[str, int], None] = {}
        """(partition, leader epoch) of each committed unclean election: each must be reported once."""
        self._reported: set[tuple[str, int]] = set()

    # -- processes and registrations

    def began(self, host: Host, node: Node) -> None:
        """A new life of a node."""
        self._lives[node.lifecycle.incarnation_id] = (host.node_id, host.lives)

    def life_of(self, incarnation_id: UUID) -> int | None:
        """The number of an incarnation among the lives of its node."""
        found = self._lives.get(incarnation_id)
        return None if found is None else found[1]

    def is_present(self, broker_id: int) -> bool:
        """The broker runs, and its registration is that of its present life."""
        host, broker = self._world.hosts[broker_id], self._image.brokers.get(broker_id)
        return host.up and broker is not None and self.life_of(broker.incarnation_id) == host.lives

    def broker_changed(self, broker_id: int, before: BrokerRegistration | None) -> None:
        """S8: a broker that ended uncleanly is eligible nowhere. S9: no broker epoch is given twice (A6)."""
        self._judge_suspicions(broker_id, before)
        now = self._image.brokers.get(broker_id)
        if now is None or (before is not None and before.incarnation_id == now.incarnation_id):
            return
        if now.epoch <= self._broker_epochs.get(broker_id, -1):
            self._fail("S9", f"broker {broker_id} is registered with epoch {now.epoch} again")
        self._broker_epochs[broker_id] = now.epoch
        if self._ended_well(broker_id, before, now):
            self._world.counts["registered after a clean end"] += 1
            return
        self._world.counts["registered after an unclean end"] += before is not None
        for key in (*self._image.partitions_in_isr(broker_id), *self._image.partitions_in_elr(broker_id)):
            state = self._image.partition(*key)
            if not self._image.elr_enabled and state is not None and state.leader < 0 and broker_id in state.isr:
                self._world.counts["last of an ISR without ELR is taken back"] += 1
                continue
            said = f": {broker_id} is registered after an unclean end and still eligible, in "
            self._fail("S8", self._oracle_of(key).place, said, state)

    def _ended_well(self, broker_id: int, before: BrokerRegistration | None, now: BrokerRegistration) -> bool:
        """Whether every life since the registered one ended cleanly."""
        last = None if before is None else self.life_of(before.incarnation_id)
        present = self.life_of(now.incarnation_id)
        if last is None or present is None:
            return False
        return all(life in self._world.hosts[broker_id].clean_ends for life in range(last, present))

    # -- min.insync.replicas

    def min_isr_may_have_changed(self, oracle: PartitionOracle, state: PartitionState) -> None:
        """The promise is the smallest min ISR in force since the ISR last had that many members."""
        min_isr = self._image.effective_min_isr(*oracle.key)
        oracle.needed = min_isr if len(state.isr) >= min_isr else min(oracle.needed, min_isr)
        if not self._image.elr_enabled:
            # A member that leaves is forgotten. None may be left if ELR went off while no replica was in sync
            # (GAPS.md).
            oracle.needed = min(oracle.needed, len({*state.isr, *state.elr, *state.last_known_elr}))

    # -- a partition changes

    def partition_changed(
        self, oracle: PartitionOracle, before: PartitionState | None, after: PartitionState, *, marked_unclean: bool
    ) -> None:
        if before is None:
            oracle.needed = self._image.effective_min_isr(*oracle.key)
            return
        counts = self._world.counts
        min_isr = self._image.effective_min_isr(*oracle.key)
        entered = set(after.elr) - set(before.elr)
        if entered:
            counts["into the ELR"] += 1
            if not entered <= set(before.isr) or len(after.isr) >= min_isr:
                self._fail("S15", oracle.place, f": {sorted(entered)} came into the ELR, of ", before, " made ", after)
        counts["into LastKnownElr"] += not set(after.last_known_elr) <= set(before.last_known_elr)
        counts["ISR empty"] += bool(before.isr and not after.isr)
        counts["ISR shrunk"] += bool(set(before.isr) - set(after.isr))
        counts["reassignments begun"] += bool(
            (after.adding or after.removing) and not (before.adding or before.removing)
        )
        if before.reassigning and not after.reassigning:
            done = set(before.replicas) - set(before.removing) == set(after.replicas)
            counts["reassignments completed" if done else "reassignments cancelled"] += 1
        elected = after.leader >= 0 and after.leader_epoch != before.leader_epoch and after.leader != before.leader
        # (The end of a reassignment may elect a replica that joined the ISR in the same change.)
        ends = before.reassigning and not after.reassigning
        unclean = marked_unclean or (elected and not ends and after.leader not in (*before.isr, *before.elr))
        if elected:
            counts["elections"] += 1
            counts["elections from the ELR"] += after.leader in before.elr and not unclean
            broker = self._image.brokers.get(after.leader)
            if broker is None or not broker.active:
                self._fail("S12", oracle.place, f": {after.leader} was elected, and is ", broker)
        if unclean:
            self._elected_unclean(oracle, before, after)
            oracle.needed = min(oracle.needed, 1)
        else:
            self._left.append((oracle, before, after))
        for broker_id in set(after.isr) - set(before.isr):
            if broker_id != after.leader or not elected:
                counts["ISR expanded"] += 1
                self._check_joined(oracle, before, after, broker_id)
        self.min_isr_may_have_changed(oracle, after)

    def _check_joined(
        self, oracle: PartitionOracle, before: PartitionState, after: PartitionState, broker_id: int
    ) -> None:
        """S14: it is alive, and the leader has seen a fetch of this life in this epoch. (S2 checks its log.)"""
        broker = self._image.brokers.get(broker_id)
        if broker is None or not broker.active:
            self._fail("S14", oracle.place, f": {broker_id} joined the ISR, and is ", broker)
        leader = self._acting_leader(oracle.key, before)  # the change itself may end its leadership
        remote = None if leader is None else leader.remotes.get(broker_id)
        if remote is None:
            return
        if remote.broker_epoch is None or remote.log_end_offset < 0:
            said = f": {broker_id} joined the ISR without a fetch from its leader, "
            self._fail("S14", oracle.place, said, before, " made ", after)
        if 0 <= remote.broker_epoch < broker.epoch:
            self._fail(
                "S14",
                oracle.place,
                f": {broker_id} joined the ISR with broker epoch {remote.broker_epoch}, it is registered "
                f"with {broker.epoch}",
            )

    def _check_leavers(self, oracle: PartitionOracle, before: PartitionState, after: PartitionState) -> None:
        """S13: while the ISR is below min ISR, no replica ceases to be eligible without a cause, nor is forgotten."""
        if not oracle.high_watermark or not self._image.elr_enabled:
            return
        if len(after.isr) >= self._image.effective_min_isr(*oracle.key):
            return
        for broker_id in {*before.isr, *before.elr} - {*after.isr, *after.elr}:
            mirror = oracle.mirrors.get(broker_id)
            if broker_id not in after.replicas and self.promise.anybody_will_do(oracle):
                continue
            if (mirror is None or not mirror.doubtful) and broker_id not in self.unregistered:
                self._fail("S13", oracle.place, f": {broker_id} is not eligible any more, of ", before, " made ", after)
        if self.promise.strategy(oracle) == FIRST_PHASE:
            return
        known = {*after.isr, *after.elr, *after.last_known_elr}
        known |= self.unregistered.intersection(after.replicas)
        if len(known) < min(oracle.needed, len(after.replicas)):
            self._fail("S13", oracle.place, f": fewer than {oracle.needed} are known to have had everything: ", after)

    # -- unclean elections

    def _elected_unclean(self, oracle: PartitionOracle, before: PartitionState, after: PartitionState) -> None:
        counts = self._world.counts
        counts["unclean elections"] += 1
        self._unclean[(oracle.name, after.leader_epoch)] = None
        leader = after.leader
        if (
            after.isr != (leader,)
            or after.elr
            or after.last_known_elr
            or not after.recovering
            or after.leader_epoch <= before.leader_epoch
        ):
            self._fail("U5", oracle.place, ": an unclean election made ", after, " of ", before)
        strategy = self.promise.strategy(oracle)
        risky = self._check_allowed(oracle, before, after, strategy)
        mirror = oracle.mirrors.get(leader)
        if mirror is None or mirror.released_epoch is not None:
            mirror = ReplicaMirror(leader, 0, None)  # it was released since it was last seen, and begins anew
        if (oracle.key, leader) in self._oracle.rotten and self.is_present(leader):
            raise CannotJudge("a replica with a damaged batch was elected uncleanly")
        excused = (
            mirror.lossy_since_epoch is not None
            and mirror.lossy_since_epoch == self._image.brokers[leader].epoch
            and not self.is_present(leader)
        )
        if not excused:
            self._check_choice(oracle, before, mirror, strategy)
        lossy = self._lossy(oracle, strategy)
        if excused:
            # It is down or has restarted: its next registration ends its leadership before it has led.
            oracle.unclean_epoch = after.leader_epoch
            return
        committed = oracle.high_watermark
        if mirror.agreed_end < committed and not risky and len(lossy) < oracle.needed:
            self._fail(
                "U4",
                oracle.place,
                f": {leader} was elected ({strategy}) with {mirror.agreed_end} of {committed} committed, "
                f"and only {sorted(lossy)} may have lost any",
            )
        lost = oracle.forget_beyond(mirror, after.leader_epoch)
        if oracle.trimming is not None and any(each.start > mirror.agreed_end for each in oracle.mirrors.values()):
            # Another replica has deleted some of the records that are lost, and may lead: nobody knows them.
            raise CannotJudge("trimming: records were lost below a log start")
        counts["losses" if lost else "lossless recoveries"] += 1
        if lost:
            self._world.emit(RecordsLost(oracle.name, lost, committed, leader))
            self.on_given_up(oracle)

    def _check_allowed(
        self, oracle: PartitionOracle, before: PartitionState, after: PartitionState, strategy: str
    ) -> bool:
        """U1: whether configuration or an operator allows this election to lose committed records."""
        counts = self._world.counts
        eligible = {*before.isr, *before.elr}
        if oracle.key in self.asked_for:
            counts["operators' elections"] += 1
            return True
        if strategy == NONE:
            self._fail("U1", oracle.place, f": {after.leader} was elected uncleanly, the strategy is None")
        if strategy == AGGRESSIVE or (strategy == FIRST_PHASE and self.promise.anybody_will_do(oracle)):
            counts["Aggressive recoveries" if strategy == AGGRESSIVE else "last known leaders"] += 1
            # Rule 31: while a member of the ISR is left, though it is down, nobody of the ELR can be elected cleanly.
            # Nor can one that a cancelled reassignment takes out of the replicas.
            eligible = {
                broker_id
                for broker_id in before.isr or before.elr
                if broker_id in after.replicas and self._is_live(before, broker_id)
            }
        else:
            counts["Balanced recoveries" if strategy == BALANCED else "last known leaders"] += 1
        for broker_id in eligible:
            said = f": {after.leader} was elected ({strategy}) though {broker_id} was eligible: "
            violation = Violation("U1", self._world.now_us, oracle.place, said, before)
            self._suspicions.append(_Suspicion(broker_id, before, violation))
        if (
            strategy == FIRST_PHASE
            and not self.promise.anybody_will_do(oracle)
            and before.last_known_elr not in ((), (after.leader,))
        ):
            self._fail("U2", oracle.place, f": {after.leader} is not the last known leader of ", before)
        return strategy == AGGRESSIVE or (strategy == FIRST_PHASE and self.promise.anybody_will_do(oracle))

    def _is_live(self, state: PartitionState, broker_id: int) -> bool:
        broker = self._image.brokers.get(broker_id)
        if broker is None or not broker.active or broker_id not in state.replicas:
            return False
        return broker.has_online_directory(state.directory_of(broker_id))

    def _judge_suspicions(self, broker_id: int, before: BrokerRegistration | None) -> None:
        """A record about a broker: it may explain the changes before it in the same decision."""
        now = self._image.brokers.get(broker_id)
        is_another = now is None or before is None or before.incarnation_id != now.incarnation_id
        suspicions, self._suspicions = self._suspicions, []
        for suspicion in suspicions:
            went = is_another or not self._is_live(suspicion.state, broker_id)  # a failed directory is enough
            if not went or suspicion.broker_id != broker_id:
                raise suspicion.violation

    def batch_ended(self) -> None:
        """The records of a decision are one batch, so the explanation of a change must have come by now."""
        for suspicion in self._suspicions:
            raise suspicion.violation
        left, self._left = self._left, []
        for oracle, before, after in left:
            self._check_leavers(oracle, before, after)

    def _check_choice(
        self, oracle: PartitionOracle, before: PartitionState, chosen: ReplicaMirror, strategy: str
    ) -> None:
        """U2: none of the replicas that were asked had a longer log by (last epoch, end).

        Where Balanced waits for members of LastKnownElr, only logs count that begin with the longest of theirs.
        No replica appends while there is no leader, so each has at least the log that it had when it was asked; only a
        loss of power since then may have shortened it. An unreachable replica has not answered, nor has a process that
        waits until the session of the one before it has ended, and its broker epoch with it (rule 81). Balanced waits
        for the members of LastKnownElr, and for no others.
        """
        if strategy not in (BALANCED, AGGRESSIVE) or oracle.key in self.asked_for:
            return
        asked = {
            broker_id
            for broker_id in before.replicas
            if self._is_live(before, broker_id) and not self._was_cut_off(broker_id)
        }
        if strategy == BALANCED:
            asked |= {broker_id for broker_id in before.last_known_elr if broker_id in self._image.brokers}
        least = self._longest_last_known(oracle, before) if strategy == BALANCED else None
        if least is not None and not chosen.contains(least):
            self._fail(
                "U2",
                oracle.place,
                f": {chosen.node_id} was elected ({strategy}) with its log at {chosen.position}, and "
                f"lacks records of {least.node_id}, which is in LastKnownElr",
            )
        for broker_id in asked:
            mirror = oracle.mirrors.get(broker_id)
            if mirror is None or (least is not None and not self._is_known_to_contain(mirror, least)):
                continue
            if mirror.position > chosen.position:
                self._fail(
                    "U2",
                    oracle.place,
                    f": {chosen.node_id} was elected ({strategy}) with its log at {chosen.position}, "
                    f"{broker_id} has {mirror.position}",
                )

    def _longest_last_known(self, oracle: PartitionOracle, before: PartitionState) -> ReplicaMirror | None:
        mirrors = [
            mirror
            for broker_id in before.replicas
            if broker_id in before.last_known_elr and broker_id in self._image.brokers
            if (mirror := oracle.mirrors.get(broker_id)) is not None and mirror.released_epoch is None
        ]
        return max(mirrors, key=lambda mirror: mirror.position, default=None)

    def _is_known_to_contain(self, mirror: ReplicaMirror, least: ReplicaMirror) -> bool:
        """Without GetReplicaLogInfo a broker tells nothing of earlier epochs than its last."""
        silent = not self._world.hosts[mirror.node_id].private_requests
        return mirror.contains(least) and not (silent and mirror.position[0] > least.position[0] and least.end)

    def _was_cut_off(self, broker_id: int) -> bool:
        """Down, not registered again yet, or recently cut off from a controller: its answer may not have arrived."""
        if not self.is_present(broker_id):
            return True  # the controller may not know it yet
        network, host = self._world.network, self._world.hosts[broker_id]
        since_us = self._world.now_us - _QUESTION_US
        return any(
            network.was_troubled(host.name, other.name, since_us)
            for other in self._world.hosts.values()
            if other is not host and other.node is not None and other.node.is_controller
        )

    def _lossy(self, oracle: PartitionOracle, strategy: str) -> set[int]:
        """The replicas whose logs may lack committed records."""
        mirrors = [mirror for mirror in oracle.mirrors.values() if mirror.released_epoch is None]
        lossy = {mirror.node_id for mirror in mirrors if self.promise.may_lack(oracle, mirror)}
        if strategy == FIRST_PHASE and lossy:
            lossy |= {mirror.node_id for mirror in mirrors if mirror.doubtful}
        return lossy

    def happened(self, event: Event) -> None:
        """Operators' requests that concern elections."""
        if isinstance(event, UncleanElectionRequested):
            self.asked_for.add(event.partition)
        elif isinstance(event, ElrVersionRequested):
            self.promise.elr_may_be_off |= not event.level
        elif isinstance(event, UnregistrationRequested):
            self._unregistering(event.broker_id)

    def _unregistering(self, broker_id: int) -> None:
        """A broker's registration will be removed: for the promise, that is a loss."""
        self.unregistered.add(broker_id)
        for oracle in self._oracle.partitions.values():
            mirror = oracle.mirrors.get(broker_id)
            if mirror is not None:
                mirror.doubtful = True
                if mirror.lossy_since_epoch is None:
                    mirror.lossy_since_epoch = _BY_AN_OPERATOR

    # -- reports

    def reported(self, node_id: int, event: UncleanElection) -> None:
        """U5: an unclean election is reported to the operator at most once."""
        report = (event.partition, event.leader_epoch)
        if report in self._reported:
            self._fail("U5", f"node{node_id} reports the election of {report} again")
        self._reported.add(report)

    def check_reports(self) -> None:
        """U5, at the end: and at least once, unless the controller that should report it died."""
        if self._world.counts["controllers elected"]:
            return
        for partition, epoch in self._unclean:
            if (partition, epoch) in self._reported:
                continue
            self._fail("U5", Place(partition), f": the unclean election in epoch {epoch} was not reported")

    def _fail(self, property_id: str, *said: object) -> NoReturn:
        raise Violation(property_id, self._world.now_us, *said)


def _nobody(oracle: PartitionOracle) -> None:
    pass

"""Leaders, their ISR and high watermark (S1-S5, S7, S10, L3), over the mirrors of the replicas' logs.

Owns the growth of a partition's history: records join it when a leader's high watermark passes them. A machine that
lost its power may lack committed records while the controller does not know; the ELR exists for that. It is excused
until it registers again (S8 from there on). After an unclean election the history is that of the new leader (U6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from tanist.broker.node import Node
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.controller.image.partition_state import PartitionState
from tanist.log.log import Log
from tanist.replica.leader import LeaderState
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import Place
from tanist.sim.oracle import Batch, Oracle, PartitionOracle, ReplicaMirror, batch_bytes
from tanist.sim.world.world import World
from tanist.wire.batch import BatchHeader, decode_batch, iterate_batches


class LeaderChecks:
    """All leaders of the world's topics."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self.on_committed: Callable[[PartitionOracle, int, bytes], None] = _ignore
        """Called with the offset and the value of each record that is committed, in order."""
        self.on_batch: Callable[[PartitionOracle, BatchHeader, memoryview], None] = _ignore
        """Called with each batch that is committed, in order, markers too."""

    def check(
        self,
        place: Place,
        node: Node,
        hosted: HostedPartition,
        leader: LeaderState,
        high_watermark_before: int,
        oracle: PartitionOracle,
        mirror: ReplicaMirror,
    ) -> None:
        if leader.high_watermark > high_watermark_before:
            self._check_waiters(place, hosted, leader)
        epoch = leader.leader_epoch
        other = oracle.leaders.setdefault(epoch, node.node_id)
        if other != node.node_id:
            self._fail("S10", place, f": epoch {epoch} is led by {other} as well")
        if epoch < oracle.newest_epoch:
            self._world.counts["two leaders"] += 1
        oracle.newest_epoch = max(oracle.newest_epoch, epoch)
        if epoch < oracle.unclean_epoch:
            # It does not know the unclean election yet. The records that it still acknowledges are lost as well.
            self._read_values(hosted.log, oracle, mirror.batches, high_watermark_before, leader.high_watermark, epoch)
            return
        if epoch == oracle.newest_epoch and not oracle.is_complete(mirror):
            self._fail(
                "S1",
                place,
                f" leads epoch {epoch} with log end {mirror.end}, which agrees up to {mirror.agreed_end}, "
                f"but {oracle.high_watermark} was committed",
            )
        if leader.high_watermark > high_watermark_before >= 0:
            self._check_advance(place, node, hosted, leader, high_watermark_before, oracle)
        if leader.high_watermark > oracle.high_watermark:
            self._freeze(place, hosted, leader, oracle, mirror)
        elif leader.under_min_isr and leader.high_watermark < min(
            [mirror.end, *(leader.remotes[each].log_end_offset for each in leader.maximal_isr if each != node.node_id)]
        ):
            self._world.counts["high watermark held"] += 1
        state = self._oracle.states.get(oracle.key)
        if state is not None and state.leader == node.node_id and state.leader_epoch == epoch:
            self.check_quorum_superset(oracle, leader, state)

    def _check_waiters(self, place: Place, hosted: HostedPartition, leader: LeaderState) -> None:
        """L3: nobody waits for a high watermark that has been reached, whatever else waits beside it."""
        for required_offset, waiter, _ in hosted.ack_waiters:
            if required_offset <= leader.high_watermark and not waiter.done:
                self._fail(
                    "L3",
                    place,
                    f": a request waits for offset {required_offset}, and {leader.high_watermark} is committed",
                )

    def _check_advance(
        self,
        place: Place,
        node: Node,
        hosted: HostedPartition,
        leader: LeaderState,
        before: int,
        oracle: PartitionOracle,
    ) -> None:
        """S4: the committed ISR meets min ISR, and all of the maximal ISR have it, as the leader knows and in fact."""
        high_watermark = leader.high_watermark
        min_isr = min(node.metadata.image.min_insync_replicas(hosted.topic), len(leader.metadata.replicas))
        if len(leader.isr) < min_isr:
            self._fail(
                "S4",
                place,
                f": high watermark from {before} to {high_watermark} with ISR {leader.isr}, "
                f"min.insync.replicas {min_isr}",
            )
        own = oracle.mirrors[node.node_id].last_before(high_watermark)
        for broker_id in sorted(leader.maximal_isr):
            if broker_id == node.node_id:
                continue
            known = leader.remotes[broker_id].log_end_offset
            if known < high_watermark:
                self._fail(
                    "S4", place, f": high watermark {high_watermark}, member {broker_id} is known to have {known}"
                )
            member = oracle.mirrors.get(broker_id)
            if member is not None and (
                member.lossy_since_epoch is not None
                or member.released_epoch is not None
                or member.member_since > leader.partition_epoch
            ):
                continue
            if own is not None and (member is None or member.last_before(high_watermark) != own):
                has = None if member is None else member.end
                self._fail("S4", place, f": high watermark {high_watermark}, member {broker_id} really has {has}")

    def _freeze(
        self, place: Place, hosted: HostedPartition, leader: LeaderState, oracle: PartitionOracle, mirror: ReplicaMirror
    ) -> None:
        """S5, S7: the history grows and never changes, and enough replicas hold it."""
        high_watermark = leader.high_watermark
        if not oracle.is_complete(mirror):
            self._fail(
                "S5",
                place,
                f": commits {high_watermark}, but lacks some of the {oracle.high_watermark} committed before",
            )
        if mirror.last_before(high_watermark) is None:
            self._fail("S5", place, f": high watermark {high_watermark} is not at a batch's end")
        added = [batch for batch in mirror.batches[mirror.agreeing :] if batch.end <= high_watermark]
        self._read_values(hosted.log, oracle, added, added[0].first, high_watermark, None)
        oracle.extend(added)
        self.check_candidates(oracle)
        self._check_holders(oracle, leader)

    def _read_values(
        self,
        log: Log,
        oracle: PartitionOracle,
        content: list[Batch],
        start: int,
        end: int,
        given_up_in_epoch: int | None,
    ) -> None:
        """The records of the batches that end in (start, end]: committed, or acknowledged by a deposed leader."""
        wanted = [batch for batch in content if start < batch.end <= end]
        if not wanted:
            return
        for view in batch_bytes(log, wanted[0].first, wanted[-1].end):
            for header, batch in iterate_batches(view):
                if given_up_in_epoch is None:
                    self.on_batch(oracle, header, batch)
                    if oracle.trimming is not None:
                        oracle.trimming.committed(header, batch)
                if header.is_control:
                    if oracle.compaction is not None and given_up_in_epoch is None:
                        oracle.compaction.ended(header, batch)
                    continue
                for record in decode_batch(batch):
                    value = bytes(record.value or b"")
                    if given_up_in_epoch is not None:
                        if oracle.values.get(record.offset) != value:
                            oracle.given_up[(record.offset, value)] = given_up_in_epoch
                        continue
                    self.on_committed(oracle, record.offset, value)
                    oracle.values[record.offset] = value
                    oracle.offsets[value] = record.offset
                    if oracle.compaction is not None:
                        oracle.compaction.committed(header, record)

    def check_candidates(self, oracle: PartitionOracle) -> None:
        """S2: every replica that the controller may elect, up or down, has all committed records."""
        state = self._oracle.states.get(oracle.key)
        if state is None or oracle.high_watermark == 0:
            return
        for broker_id in self._electable(state):
            mirror = oracle.mirrors.get(broker_id)
            if oracle.is_complete(mirror) or (mirror is not None and self.is_excused(mirror)):
                continue
            has = "nothing" if mirror is None else f"{mirror.end}, which agrees up to {mirror.agreed_end}"
            self._fail(
                "S2",
                oracle.place,
                f": {broker_id} can be elected (ISR {state.isr}, ELR {state.elr}) and has {has}, but "
                f"{oracle.high_watermark} was committed",
            )

    def _electable(self, state: PartitionState) -> tuple[int, ...]:
        """The replicas that the controller may elect. With ELR off, a leftover ELR counts only while the ISR is
        empty."""
        return state.isr if state.isr and not self._oracle.image.elr_enabled else (*state.isr, *state.elr)

    def _check_holders(self, oracle: PartitionOracle, leader: LeaderState) -> None:
        """S7: min.insync.replicas disks have it, less those that lost power."""
        state = self._oracle.states.get(oracle.key)
        if state is None or state.leader_epoch != leader.leader_epoch:
            return  # a deposed leader that does not know it yet: its followers may delete their logs
        mirrors = [mirror for mirror in oracle.mirrors.values() if mirror.released_epoch is None]
        holders = sum(oracle.is_complete(mirror) for mirror in mirrors)
        lossy = sum(mirror.lossy_since_epoch is not None for mirror in mirrors)
        needed = leader.effective_min_isr
        if oracle.unclean:
            # Such a leader may begin with only its own high watermark, of a history that was lost before.
            needed = min(needed, max(oracle.needed, 1))
        if holders < needed - lossy:
            self._fail("S7", oracle.place, f": {oracle.high_watermark} is committed, and {holders} replicas have it")

    def check_quorum_superset(self, oracle: PartitionOracle, leader: LeaderState, state: PartitionState) -> None:
        """S3: the leader's maximal ISR has every replica that the controller might elect."""
        if len(leader.isr) < leader.effective_min_isr:
            return
        electable = set(self._electable(state))
        if not electable <= leader.maximal_isr:
            self._fail(
                "S3",
                oracle.place,
                f": leader {leader.broker_id} counts with {sorted(leader.maximal_isr)}, but "
                f"{sorted(electable)} can be elected",
            )

    def is_excused(self, mirror: ReplicaMirror) -> bool:
        """It lost its power, and the controller has still the registration from before."""
        broker = self._oracle.image.brokers.get(mirror.node_id)
        return mirror.lossy_since_epoch is not None and (broker is None or broker.epoch == mirror.lossy_since_epoch)

    def _fail(self, property_id: str, *said: object) -> NoReturn:
        raise Violation(property_id, self._world.now_us, *said)


def _ignore(*what: object) -> None:
    pass

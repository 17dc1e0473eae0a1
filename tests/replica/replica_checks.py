"""The properties of safety that a stage of replicas is compared with: S1-S6, S10, S14, S17, S18, S21."""

from __future__ import annotations

from dataclasses import dataclass, field

from tanist.events.replication import LogTruncated
from tanist.lab.scenarios.replica import Brokers
from tanist.replica.effects import Effect
from tanist.replica.leader import LeaderState
from tanist.replica.memory import Entry, MemoryLog
from tanist.replica.partition import Partition
from tests.replica.replica_controller import AbstractController, Violation


@dataclass
class Broker:
    """A broker process: its replica, what it knows, and which life of it this is."""

    replica: Partition
    log: MemoryLog
    view: Brokers
    """The registrations, as old as the metadata that it has applied."""
    applied: int
    epoch: int
    life: int = 0
    waiting_acks: list[int] = field(default_factory=list)


class StageChecks:
    """Of a stage: what must hold, after each step and between two. `Violation` with the name of a broken property."""

    ids: tuple[int, ...]
    controller: AbstractController
    brokers: dict[int, Broker]
    lossy: bool
    committed: tuple[Entry, ...]
    """Ghost: what lies below T, the highest high watermark any leader has had, as it was when T passed it."""
    fetched_in_epoch: set[tuple[int, int, int]]
    """Ghost: (leader, leader epoch, follower) of each fetch that was let in."""

    def replica(self, broker: int) -> Partition:
        return self.brokers[broker].replica

    def log(self, broker: int) -> MemoryLog:
        return self.brokers[broker].log

    def leader_state(self, broker: int) -> LeaderState:
        leader = self.replica(broker).leader
        if leader is None:
            raise RuntimeError(f"broker {broker} does not lead")
        return leader

    def _check_truncations(self, broker: int, before: tuple[Entry, ...], effects: list[Effect]) -> None:
        """S21: what is cut off may lie below T, where a leader of old wrote what nobody committed; never part of H."""
        for effect in effects:
            if isinstance(effect, LogTruncated) and not self.lossy:
                for entry in before[effect.offset :]:
                    if entry.offset < len(self.committed) and self.committed[entry.offset] == entry:
                        raise Violation("S21", f"{broker} truncates to {effect.offset}, and {entry} was committed")

    def _high_watermark_advanced(self, broker: int, high_watermark: int) -> None:
        if self.lossy:
            return  # a story of loss: what was committed is no yardstick
        leader = self.leader_state(broker)
        log = self.log(broker)
        needed = min(self.controller.min_isr, len(leader.metadata.replicas))
        if len(leader.isr) < needed:
            raise Violation("S4", f"{broker} advances to {high_watermark} with ISR {leader.isr}, min {needed}")
        fresh = log.entries[:high_watermark]
        for member in sorted(leader.maximal_isr):
            if self.log(member).entries[: len(fresh)] != fresh:
                raise Violation("S4", f"{broker} advances to {high_watermark}, which {member} of its ISR does not have")
        if fresh[: len(self.committed)] != self.committed[: len(fresh)]:
            raise Violation("S5", f"{broker} commits another history: {fresh} is not {self.committed}")
        if len(fresh) > len(self.committed):
            self.committed = fresh

    def _joined(self, leader: int, broker: int) -> None:
        if self.lossy:
            return
        status = self.controller.brokers[broker]
        log = self.log(broker)
        epoch = self.controller.partition.leader_epoch
        if status.fenced or status.shutting_down:
            raise Violation("S14", f"{broker} joins the ISR while {status}")
        if log.entries[: len(self.committed)] != self.committed:
            raise Violation("S14", f"{broker} joins the ISR without all that is committed")
        if (leader, epoch, broker) not in self.fetched_in_epoch:
            raise Violation("S14", f"{broker} joins the ISR and has not fetched in epoch {epoch}")

    def check(self) -> None:
        """All that must hold between two steps. Only for runs in which nobody loses data."""
        oracle = self.committed
        now = self.controller.partition
        candidates = set(now.isr) | set(self.controller.elr)
        for broker in sorted(candidates):
            if self.log(broker).entries[: len(oracle)] != oracle:
                raise Violation("S2", f"{broker} is electable and lacks what is committed")
        leaders: dict[int, int] = {}
        for broker in self.ids:
            at = self.brokers[broker]
            leader = at.replica.leader
            high_watermark = at.replica.high_watermark
            if high_watermark > len(oracle) or at.log.entries[:high_watermark] != oracle[:high_watermark]:
                raise Violation("S18", f"{broker} shows its consumers {at.log.entries[:high_watermark]}")
            if leader is None:
                continue
            if leader.leader_epoch in leaders:
                raise Violation("S10", f"{broker} and {leaders[leader.leader_epoch]} lead in {leader.leader_epoch}")
            leaders[leader.leader_epoch] = broker
            self._check_acks(broker)
            if leader.leader_epoch == now.leader_epoch:
                if len(leader.isr) >= min(self.controller.min_isr, len(now.replicas)) and not (
                    candidates <= leader.maximal_isr
                ):
                    raise Violation("S3", f"{broker} counts with {set(leader.maximal_isr)}, electable: {candidates}")
                if leader.pending is None and leader.maximal_isr != frozenset(leader.isr):
                    raise Violation("S3", f"{broker} has nothing pending and counts with {set(leader.maximal_isr)}")
                if at.log.entries[: len(oracle)] != oracle:
                    raise Violation("S1", f"leader {broker} lacks what is committed")
        self._check_logs()

    def _check_acks(self, broker: int) -> None:
        at = self.brokers[broker]
        leader = self.leader_state(broker)
        for required in list(at.waiting_acks):
            status = leader.acks_status(required)
            if status.done:
                at.waiting_acks.remove(required)
                if not status.error and required > len(self.committed):
                    raise Violation("S17", f"{broker} acknowledges {required}, committed is {len(self.committed)}")

    def _check_logs(self) -> None:
        """S6: what both know to be committed is equal; the same epoch at the same offset means the same past."""
        for first in self.ids:
            for second in self.ids:
                if second <= first:
                    continue
                one, other = self.log(first).entries, self.log(second).entries
                both = min(self.replica(first).high_watermark, self.replica(second).high_watermark)
                if one[:both] != other[:both]:
                    raise Violation("S6", f"{first} and {second} differ below {both}")
                for at in range(min(len(one), len(other)) - 1, -1, -1):
                    if one[at].leader_epoch == other[at].leader_epoch:
                        if one[: at + 1] != other[: at + 1]:
                            raise Violation("S6", f"{first} and {second} have different pasts of offset {at}")
                        break

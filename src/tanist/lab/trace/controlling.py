"""Steps of the controller, and of the lives of brokers.

Owns which action has made a committed change of the partition: a proposal, a broker that is fenced, unfenced or
registered anew, or an operator. The model's broker ends when it starts again: until then the last messages of a dead
process may arrive.
"""

from __future__ import annotations

from typing import Any, Final

from tanist.events.metadata import (
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnfenced,
    ConfigChanged,
    PartitionChanged,
    PartitionCreated,
    UncleanElection,
)
from tanist.events.replication import (
    BecameLeader,
    DivergenceFound,
    FollowerFetched,
    HighWatermarkLearned,
    HighWatermarkMoved,
)
from tanist.lab.trace.ordering import Grown
from tanist.lab.trace.recording import ElectionRequested, LifeEnded
from tanist.lab.trace.replicas import Committed, Replica, Span
from tanist.lab.trace.steps import NO_LEADER
from tanist.lab.trace.writing import Untranslatable, Writer

_STRATEGIES: Final = ("unclean.recovery.strategy", "unclean.leader.election.enable")


class ControllerSteps(Writer):
    """Of the active controller's events, and of the ends of lives."""

    def _created(self, event: PartitionCreated) -> None:
        if set(event.isr) != set(event.replicas) or event.leader not in event.replicas:
            raise Untranslatable(f"{event.partition} begins with the ISR {event.isr}; the model's with all replicas")
        if self.ids:
            raise Untranslatable(f"{event.partition} is made a second time")
        ordered = [event.leader, *(each for each in event.replicas if each != event.leader)]
        self.ids = {each: n for n, each in enumerate(ordered, start=1)}
        self._first_leader_epoch = event.leader_epoch
        whole = frozenset(self.ids.values())
        self._committed[1] = Committed(1, 1, whole, frozenset(), frozenset() if self.recovers else None)
        self._replicas = {broker: Replica(whole) for broker in self.ids.values()}
        self._reigns[1, 1] = None
        for replica in self._replicas.values():
            replica.spans.append(Span(1, 1, 1))

    def _partition_changed(self, event: PartitionChanged) -> None:
        ids = self.ids
        if set(event.replicas) != set(ids) or event.reassigning:
            raise Untranslatable("a reassignment, which the model does otherwise")
        partition_epoch = self._partition_epoch(event.partition_epoch)
        leader = ids.get(event.leader, NO_LEADER)
        leader_epoch = self._epoch(event.leader_epoch)
        last_known = self._as_isr(event.last_known_elr) if self.recovers else None
        now = Committed(leader, leader_epoch, self._as_isr(event.isr), self._as_isr(event.elr), last_known)
        if self._committed.get(partition_epoch) == now:
            return  # emitted by the next leader of the quorum as well
        before = self._committed.get(partition_epoch - 1)
        if before is None:
            raise Untranslatable(
                f"partition epoch {event.partition_epoch} without the one before: no event tells of it"
            )
        self.min_isr = min(event.min_isr, len(ids))
        self._committed[partition_epoch] = now
        reported = now.reported(partition_epoch)
        gone = before.isr - now.isr
        if event.recovering and now.leader != NO_LEADER and now.leader not in before.isr | before.elr:
            self._elected_uncleanly(event, now, reported, before.reported(partition_epoch - 1))
        elif self._requests.get((before.leader, partition_epoch - 1)) == now.isr and before.leader == now.leader:
            self._step("ReceiveAlterPartitionRequest", before.leader, accepted=True, **reported)
        elif len(gone) == 1:
            (leaver,) = gone
            if self._returns_unnoticed(leaver, now):
                self._register(leaver, reported, before.reported(partition_epoch - 1), noticed=False)
            else:
                self._fence(leaver, reported)
        elif len(before.elr - now.elr) == 1 and now.isr == before.isr:
            self._register(next(iter(before.elr - now.elr)), reported, before.reported(partition_epoch - 1))
        elif before.leader == NO_LEADER and now.leader != NO_LEADER and now.isr == {now.leader}:
            self._unfence(now.leader, reported)
        elif now.leader != before.leader and now.isr == before.isr:
            self._step("ElectAnother", now.leader, **reported)
        elif now == before:
            self._step("ReorderReplicas", 1, **reported)
        else:
            self._step("NoAction", 1, **reported)

    def _elected_uncleanly(
        self, event: PartitionChanged, now: Committed, reported: dict[str, Any], reported_before: dict[str, Any]
    ) -> None:
        """By an unclean recovery, which has compared logs; or an operator, or a rule of the KIP's first part, have
        chosen."""
        why = next(
            (
                each.event
                for each in self._observed
                if isinstance(each.event, UncleanElection) and each.event.leader_epoch == event.leader_epoch
            ),
            None,
        )
        if why is None or not why.strategy:
            if self._replicas[now.leader].fenced:  # the last known leader: its unfencing elects it
                self._unfence(now.leader, reported_before)
            nobody_asked = self.strategy is not None
            self._step("NoAction" if nobody_asked else "Designate", now.leader, **reported)
            return
        for broker_id, last_epoch, end_offset in why.logs:
            broker = self.ids[broker_id]
            self._is_answered(broker, self._replicas[broker])
            last = self._epoch(last_epoch) if last_epoch >= 0 else 0
            self._step("AnswerLogInfo", broker, leo=end_offset + 1, last_epoch=last)
        self._step("Recover", now.leader, strategy=self.strategy or why.strategy, **reported)

    def _strategy_changes(self, event: ConfigChanged | ElectionRequested) -> None:
        """By an operator, and no event tells to which one: from now on it is the one that recoveries name."""
        if isinstance(event, ElectionRequested) or event.config in _STRATEGIES:
            self.strategy = None

    @property
    def _last(self) -> dict[str, Any]:
        partition_epoch = max(self._committed)
        return self._committed[partition_epoch].reported(partition_epoch)

    def _fenced(self, broker_id: int) -> None:
        broker = self.ids.get(broker_id)
        if broker is None or self._replicas[broker].fenced:
            return
        if broker in self._committed[max(self._committed)].isr and self._next_change_is_missing():
            raise Untranslatable(f"broker {broker_id} is fenced, and no event tells of the change that it makes")
        self._fence(broker, self._last)

    def _next_change_is_missing(self) -> bool:
        """The next change that is emitted comes after one that is not."""
        later = (each.event for each in self._observed[self._at :])
        change = next((event for event in later if isinstance(event, PartitionChanged)), None)
        return change is not None and self._partition_epoch(change.partition_epoch) > max(self._committed) + 1

    def _shutting_down(self, event: BrokerShuttingDown) -> None:
        """It leaves its ISRs, which the model takes for its fencing; but not where nobody else can lead."""
        if self.ids.get(event.broker_id) not in self._committed[max(self._committed)].isr:
            self._fenced(event.broker_id)

    def _fence(self, broker: int, reported: dict[str, Any]) -> None:
        self._step("FenceBroker", broker, **reported)
        self._replicas[broker].fenced = True

    def _life_ended(self, event: LifeEnded) -> None:
        mine = self._mine()
        if mine is not None:
            before = mine[1].ended  # without power, and again without
            lost_power = event.lost_power or (before is not None and before.lost_power)
            mine[1].ended = LifeEnded(event.clean, lost_power)

    def _returns_unnoticed(self, broker: int, now: Committed) -> bool:
        """It registers uncleanly before it was fenced, which would have put it into the ELR."""
        return self._replicas[broker].ended is not None and len(now.isr) < self.min_isr and broker not in now.elr

    def _end(self, broker: int, ended: LifeEnded, reported: dict[str, Any], *, noticed: bool) -> None:
        """The model's broker ends. It takes with it what it has sent, which in a run may arrive for a while."""
        replica = self._replicas[broker]
        left = self._next_end(broker) if ended.lost_power and not ended.clean else None
        if not noticed or (left is not None and left < replica.leo):
            left = replica.leo if left is None else min(left, replica.leo)
            del replica.epochs[left - 1 :]
            replica.hwm = min(replica.hwm, left)
            step = self._step("SuffixLossShutdown" if noticed else "CrashUnnoticed", broker, leo=left, **reported)
        else:
            step = self._step("NoDataLossShutdown", broker, clean=ended.clean, **reported)
        self._ends_reign(broker, step)
        self._ends_span(replica, step)
        replica.ended, replica.proposed, replica.starting = None, None, False
        replica.open.clear()
        for number, other in self._replicas.items():
            if broker in other.open:
                other.open.discard(broker)
                self._cut_off.add((number, step))

    def _registered(self, event: BrokerRegistered) -> None:
        broker = self.ids.get(event.broker_id)
        if broker is not None and not (self._replicas[broker].starting and self._replicas[broker].ended is None):
            self._register(broker, self._last, self._last)

    def _register(
        self, broker: int, reported: dict[str, Any], reported_before: dict[str, Any], *, noticed: bool = True
    ) -> None:
        replica = self._replicas[broker]
        if replica.ended is None:
            raise Untranslatable(f"broker {broker} registers a second time in one life")
        self._end(broker, replica.ended, reported_before, noticed=noticed)
        self._step("BrokerStart", broker)
        self._step("RegisterFenced", broker, **reported)
        replica.starting = replica.fenced = True
        replica.least_epoch = reported["partition_epoch"]
        node_id = next(each for each, number in self.ids.items() if number == broker)
        previous = self._next_high_watermark(node_id)
        if previous is not None and previous < replica.hwm:
            self._step("CheckpointRead", broker, high_watermark=previous)
            replica.hwm = previous

    def _next_end(self, broker: int) -> int | None:
        """Where the log of the new life ends, if it tells, or one after it; else as an unclean recovery has heard."""
        heard: int | None = None
        for each in self._observed[self._at + 1 :]:
            event = each.event
            if isinstance(event, FollowerFetched | DivergenceFound) and self.ids.get(event.broker_id) == broker:
                return event.fetch_offset + 1
            if isinstance(event, UncleanElection) and heard is None:
                heard = next((end + 1 for other, _, end in event.logs if self.ids[other] == broker), None)
            if self.ids.get(each.node_id) == broker:
                if isinstance(event, BecameLeader):
                    return event.leader_epoch_start_offset + 1
                if isinstance(event, LifeEnded) and heard is not None:
                    break
        return heard

    def _next_high_watermark(self, node_id: int) -> int | None:
        """With which a life has begun, if it tells."""
        for each in self._observed[self._at + 1 :]:
            if each.node_id != node_id:
                continue
            event = each.event.learned if isinstance(each.event, Grown) else each.event
            if isinstance(event, HighWatermarkLearned | HighWatermarkMoved):
                return event.previous + 1
            if isinstance(event, LifeEnded):
                return None
        return None

    def _unfenced(self, event: BrokerUnfenced) -> None:
        broker = self.ids.get(event.broker_id)
        if broker is not None and self._replicas[broker].fenced:
            self._unfence(broker, self._last)

    def _unfence(self, broker: int, reported: dict[str, Any]) -> None:
        replica = self._replicas[broker]
        self._is_answered(broker, replica)
        self._step("UnfenceBroker", broker, **reported)
        replica.fenced = False

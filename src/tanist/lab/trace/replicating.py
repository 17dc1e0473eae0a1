"""Steps of replicas: roles, the ISR as its leader has it, records and fetches.

Owns where a fetch and its answer stand: a fetch was sent while its follower was where the fetch says, and an answer was
read while its leader led. Both may be long before they arrive.
"""

from __future__ import annotations

from typing import Any

from tanist.events.replication import (
    BecameFollower,
    BecameLeader,
    DivergenceFound,
    FollowerFetched,
    HighWatermarkMoved,
    IsrChanged,
    IsrProposalEnded,
    IsrProposed,
    IsrUpdateFailed,
    LogTruncated,
)
from tanist.lab.trace.controlling import ControllerSteps
from tanist.lab.trace.ordering import Grown
from tanist.lab.trace.replicas import Replica, Span
from tanist.lab.trace.steps import NO_LEADER, Step
from tanist.lab.trace.writing import Untranslatable


class ReplicaSteps(ControllerSteps):
    """Of the events of replicas."""

    # -- metadata on a broker

    def _became_leader(self, event: BecameLeader) -> None:
        self._role(event.leader_epoch, leso=event.leader_epoch_start_offset + 1)

    def _became_follower(self, event: BecameFollower) -> None:
        self._role(event.leader_epoch)

    def _role(self, leader_epoch: int, **reported: Any) -> None:
        mine = self._mine()
        epoch = self._epoch(leader_epoch)
        if mine is None or mine[1].ended is not None:
            return  # from its own copy of the metadata, before it is registered: it does nothing with it
        broker, replica = mine
        self._is_answered(broker, replica)
        if replica.leader_epoch < epoch:
            began = [each for each, known in self._committed.items() if known.leader_epoch == epoch]
            if not began:
                raise Untranslatable(
                    f"broker {broker} knows leader epoch {leader_epoch}: no event tells that it is committed"
                )
            first = began[0]
            self._learns(broker, replica, first, **reported)

    def _learns(self, broker: int, replica: Replica, partition_epoch: int, **reported: Any) -> None:
        """A record of the metadata comes to a broker."""
        partition_epoch = max(partition_epoch, replica.least_epoch)
        known = self._committed.get(partition_epoch)
        if known is None:
            raise Untranslatable(f"broker {broker} knows partition epoch {partition_epoch - 1}: no event tells of it")
        leads = known.leader == broker
        if leads:
            reported |= {"isr": known.isr, "maximal_isr": known.isr, "hwm": replica.hwm}
        step = self._step(
            "ReceiveMetadataUpdate",
            broker,
            leader=known.leader,
            leader_epoch=known.leader_epoch,
            partition_epoch=partition_epoch,
            **reported,
        )
        if known.leader_epoch != replica.leader_epoch:
            self._ends_reign(broker, step)
            self._ends_span(replica, step)
            if leads:
                self._reigns[broker, known.leader_epoch] = None
            elif known.leader != NO_LEADER:
                replica.spans.append(Span(known.leader, known.leader_epoch, replica.leo))
        replica.proposed = None
        replica.leader, replica.leader_epoch, replica.isr = known.leader, known.leader_epoch, known.isr
        replica.partition_epoch = partition_epoch
        if leads:
            self._may_commit[broker] = step

    # -- the ISR

    def _isr_proposed(self, event: IsrProposed) -> None:
        mine = self._mine()
        if mine is None:
            return
        broker, replica = mine
        partition_epoch = self._partition_epoch(event.partition_epoch)
        if replica.partition_epoch < partition_epoch and partition_epoch in self._committed:
            self._learns(broker, replica, partition_epoch)
        proposed = self._as_isr(event.proposed)
        self._step(
            "SendAlterPartitionRequest",
            broker,
            request_epoch=partition_epoch,
            isr=proposed,
            maximal_isr=proposed | self._as_isr(event.isr),
        )
        replica.proposed = proposed
        self._requests[broker, partition_epoch] = proposed

    def _proposal_ended(self, event: IsrProposalEnded) -> None:
        mine = self._mine()
        partition_epoch = self._partition_epoch(event.partition_epoch)
        if mine is not None and mine[1].partition_epoch < partition_epoch:
            self._learns(*mine, partition_epoch)

    def _isr_update_failed(self, event: IsrUpdateFailed) -> None:
        mine = self._mine()
        if mine is None or not event.rolled_back:
            return  # the leader waits for the metadata; the model's counts with the committed ISR again
        broker, replica = mine
        self._step("ReceiveAlterPartitionRequest", broker, accepted=False, **self._last)
        self._may_commit[broker] = self._step(
            "ReceiveAlterPartitionResponse", broker, accepted=False, maximal_isr=replica.isr, hwm=replica.hwm
        )
        replica.proposed = None

    def _isr_changed(self, event: IsrChanged) -> None:
        mine = self._mine()
        if mine is None:
            return
        broker, replica = mine
        isr = self._as_isr(event.isr)
        if replica.isr == isr:
            return
        epochs = [
            each
            for each, known in self._committed.items()
            if each > replica.partition_epoch and known.isr == isr and known.leader_epoch == replica.leader_epoch
        ]
        if not epochs:
            raise Untranslatable(f"broker {broker} has the ISR {sorted(isr)}: no event tells that it is committed")
        if replica.proposed != isr or self._requests.get((broker, epochs[0] - 1)) != isr:
            self._learns(broker, replica, epochs[0])
            return
        self._may_commit[broker] = self._step(
            "ReceiveAlterPartitionResponse",
            broker,
            accepted=True,
            partition_epoch=epochs[0],
            isr=isr,
            maximal_isr=isr,
            hwm=replica.hwm,
        )
        replica.isr, replica.partition_epoch, replica.proposed = isr, epochs[0], None

    def _high_watermark_moved(self, event: HighWatermarkMoved) -> None:
        mine = self._mine()
        if mine is None:
            return
        broker, replica = mine
        step = self._may_commit.get(broker)
        if step is None or step.at_us != self._now.at_us or step not in self.steps[-8:]:
            step = self._step("WaitsNoMore", broker)
        elif self.steps[-1] is step:  # it has proposed nothing since
            step.reported["maximal_isr"] = self._as_isr({*event.isr, *event.proposed})
        step.reported["hwm"] = replica.hwm = event.high_watermark + 1

    # -- records

    def _grown(self, event: Grown) -> None:
        mine = self._mine()
        if mine is None:
            return
        broker, replica = mine
        if replica.leader == broker and event.learned is None:
            self._written(broker, replica, event)
        else:
            self._fetched(broker, replica, event)

    def _written(self, broker: int, replica: Replica, event: Grown) -> None:
        for run in event.runs:
            for _ in range(run.first_offset, run.end_offset):
                replica.epochs.append(self._epoch(run.leader_epoch))
                self._may_commit[broker] = self._step(
                    "WriteRecordToLeader",
                    broker,
                    first=replica.leo - 1,
                    leo=replica.leo,
                    record_epochs=(replica.epochs[-1],),
                    hwm=replica.hwm,
                )

    def _fetched(self, broker: int, replica: Replica, event: Grown) -> None:
        """A follower has used an answer."""
        if event.learned is not None:
            replica.hwm = event.learned.high_watermark + 1
        first, leader, epoch = replica.leo, replica.leader, replica.leader_epoch
        added = [self._epoch(run.leader_epoch) for run in event.runs for _ in range(run.first_offset, run.end_offset)]
        deposed = self._reigns.get((leader, epoch))
        # What a leader has sent outlives it: the model loses it, so the follower has used it before.
        dead = deposed if deposed is not None and deposed.action.endswith("Shutdown") else None
        if dead is not None and (broker, dead) in self._cut_off:
            self._cut_off.discard((broker, dead))
        elif leader not in replica.open:
            self._asks(broker, replica, leader, epoch, first)
        end = first + len(added)
        self._before(deposed, self._step("AnswerRead", leader, to=broker, end=end, high_watermark=replica.hwm))
        replica.epochs += added
        step = self._step(
            "ReceiveFetchResponse",
            broker,
            **{"from": leader},
            first=first,
            leo=replica.leo,
            record_epochs=tuple(added),
            hwm=replica.hwm,
        )
        self._before(dead, step)
        replica.open.discard(leader)
        self._now_asks(replica, step)

    def _now_asks(self, replica: Replica, step: Step) -> None:
        """The follower's log ends elsewhere since this step."""
        if replica.spans and replica.spans[-1].leo != replica.leo:
            self._ends_span(replica, step)
            replica.spans.append(Span(replica.leader, replica.leader_epoch, replica.leo))

    def _follower_fetched(self, event: FollowerFetched) -> None:
        mine, follower = self._mine(), self.ids.get(event.broker_id)
        if mine is None or follower is None:
            return
        self._asks(follower, self._replicas[follower], mine[0], self._epoch(event.leader_epoch), event.fetch_offset + 1)

    def _asks(self, follower: int, replica: Replica, leader: int, epoch: int, offset: int, **reported: Any) -> None:
        """A follower's fetch comes to a leader. It was sent while the follower was where the fetch says."""
        self._is_answered(follower, replica)
        span = next(
            (
                each
                for each in reversed(replica.spans)
                if (each.leader, each.leader_epoch, each.leo) == (leader, epoch, offset)
            ),
            None,
        )
        sent = []
        if leader in replica.open:
            sent.append(self._step("FetchLost", follower, to=leader))
        sent.append(self._step("SendFetchRequest", follower, to=leader, leader_epoch=epoch, offset=offset))
        deposed = self._reigns.get((leader, epoch))
        self._before(deposed if span is None or span.end is None else span.end, *sent)
        if deposed is None:
            reported["hwm"] = self._replicas[leader].hwm
        taken = self._step("ReceiveFetchRequest", leader, **{"from": follower}, **reported)
        self._before(deposed, taken)
        self._may_commit[leader] = taken
        replica.open.add(leader)

    def _divergence_found(self, event: DivergenceFound) -> None:
        mine, follower = self._mine(), self.ids.get(event.broker_id)
        if mine is None or follower is None:
            return
        replica = self._replicas[follower]
        last = replica.epochs[-1] if replica.epochs else 0
        if last == self._epoch(event.last_fetched_epoch):  # else of an epoch without records, which the model lacks
            epoch = self._replicas[mine[0]].leader_epoch
            self._asks(follower, replica, mine[0], epoch, event.fetch_offset + 1, diverges=True)

    def _log_truncated(self, event: LogTruncated) -> None:
        mine = self._mine()
        if mine is None:
            return
        broker, replica = mine
        del replica.epochs[event.offset :]
        replica.hwm = min(replica.hwm, replica.leo)
        leader = replica.leader
        step = self._step("ReceiveFetchResponse", broker, **{"from": leader}, leo=replica.leo)
        replica.open.discard(leader)
        self._now_asks(replica, step)

"""Observations of a run as steps of the public model.

Owns which action of the model each event is, and where it stands: the model does at one moment what nodes do in
several, and the other way round. It follows the model's state only as far as that needs, and judges nothing: a step
that is wrong is still a step, and TLC refuses it.

`docs/proof.md` has the mapping in words. One partition; its replicas are the model's brokers, the first leader as 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tanist.events.event import Event
from tanist.events.metadata import (
    BrokerFenced,
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnfenced,
    PartitionChanged,
    PartitionCreated,
)
from tanist.events.replication import (
    BecameFollower,
    BecameLeader,
    DivergenceFound,
    FollowerFetched,
    HighWatermarkLearned,
    HighWatermarkMoved,
    IsrChanged,
    IsrProposalEnded,
    IsrProposed,
    IsrUpdateFailed,
    LogTruncated,
)
from tanist.lab.trace.ordering import Grown, in_order
from tanist.lab.trace.recording import LifeEnded, Observed
from tanist.lab.trace.replicas import Committed, Isr, Replica, Span
from tanist.lab.trace.steps import NO_LEADER, Step


class Untranslatable(Exception):
    """The run goes on with something that neither the model nor our additions to it know: the trace ends before it."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps of one partition in a run."""

    partition: str
    steps: tuple[Step, ...]
    brokers: dict[int, int]
    """Broker -> its number in the model."""
    min_isr: int
    end: str = ""
    """Why it ends before the run does."""


def partitions(observed: Iterable[Observed]) -> list[str]:
    """The partitions that a run has made, in order."""
    return [each.event.partition for each in observed if isinstance(each.event, PartitionCreated)]


def trace_of(observed: Sequence[Observed], partition: str, *, min_isr: int = 2) -> Trace:
    """The trace of a partition. `Untranslatable` if the model cannot begin as the partition does."""
    mapper = _Mapper(in_order(observed, partition), min_isr)
    end = mapper.run()
    if not mapper.ids:
        raise Untranslatable(end or f"the run does not make {partition}")
    return Trace(partition, tuple(mapper.steps), mapper.ids, mapper.min_isr, end)


# -- the mapping


class _Mapper:
    def __init__(self, observed: list[Observed], min_isr: int) -> None:
        self.steps: list[Step] = []
        self.ids: dict[int, int] = {}
        self.min_isr = min_isr
        self._observed = observed
        self._at = 0
        self._now = Observed(0, 0, LifeEnded(False))
        self._first_leader_epoch = 0
        self._first_partition_epoch = 0
        self._committed: dict[int, Committed] = {}
        """By partition epoch."""
        self._replicas: dict[int, Replica] = {}
        self._requests: dict[tuple[int, int], Isr] = {}
        """(leader, partition epoch) -> the ISR that it has proposed."""
        self._reigns: dict[tuple[int, int], Step | None] = {}
        """(leader, leader epoch) -> the step that ended it, if it has ended."""
        self._may_commit: dict[int, Step] = {}
        """The last step of a leader in which its high watermark may move."""
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            PartitionChanged: self._partition_changed,
            BrokerFenced: lambda event: self._fenced(event.broker_id),
            BrokerShuttingDown: lambda event: self._fenced(event.broker_id),
            BrokerUnfenced: self._unfenced,
            BrokerRegistered: self._registered,
            LifeEnded: self._life_ended,
            BecameLeader: self._became_leader,
            BecameFollower: self._became_follower,
            IsrProposed: self._isr_proposed,
            IsrProposalEnded: self._proposal_ended,
            IsrUpdateFailed: self._isr_update_failed,
            IsrChanged: self._isr_changed,
            Grown: self._grown,
            HighWatermarkMoved: self._high_watermark_moved,
            FollowerFetched: self._follower_fetched,
            DivergenceFound: self._divergence_found,
            LogTruncated: self._log_truncated,
        }

    def run(self) -> str:
        """Make the steps. Why they end before the run does, if so."""
        for at, now in enumerate(self._observed):
            self._at, self._now, event = at, now, now.event
            try:
                if isinstance(event, PartitionCreated):
                    self._created(event)
                elif self.ids and (handler := self._handlers.get(type(event))) is not None:
                    handler(event)
            except Untranslatable as reason:
                return str(reason)
        return ""

    # -- steps

    def _step(self, action: str, broker: int, **told: Any) -> Step:
        now = self._now
        step = Step(action, broker, told, now.at_us, now.node_id, _name(now.event))
        self.steps.append(step)
        return step

    def _before(self, end: Step | None, *steps: Step) -> None:
        """Move the last steps to where another one stands."""
        if end is not None:
            del self.steps[len(self.steps) - len(steps) :]
            at = self.steps.index(end)
            self.steps[at:at] = steps

    def _mine(self) -> tuple[int, Replica] | None:
        """The replica whose node has emitted the event."""
        broker = self.ids.get(self._now.node_id)
        return None if broker is None else (broker, self._replicas[broker])

    def _as_isr(self, brokers: Iterable[int]) -> Isr:
        return frozenset(self.ids[each] for each in brokers)

    def _epoch(self, leader_epoch: int) -> int:
        return leader_epoch - self._first_leader_epoch + 1

    # -- the controller

    def _created(self, event: PartitionCreated) -> None:
        if set(event.isr) != set(event.replicas) or event.leader not in event.replicas:
            raise Untranslatable(f"{event.partition} begins with the ISR {event.isr}; the model's with all replicas")
        if self.ids:
            raise Untranslatable(f"{event.partition} is made a second time")
        ordered = [event.leader, *(each for each in event.replicas if each != event.leader)]
        self.ids = {each: n for n, each in enumerate(ordered, start=1)}
        self._first_leader_epoch = event.leader_epoch
        whole = frozenset(self.ids.values())
        self._committed[1] = Committed(1, 1, whole, frozenset())
        self._replicas = {broker: Replica(whole) for broker in self.ids.values()}
        self._reigns[1, 1] = None
        for replica in self._replicas.values():
            replica.spans.append(Span(1, 1, 1))

    def _partition_changed(self, event: PartitionChanged) -> None:
        ids = self.ids
        if event.recovering:
            raise Untranslatable("an unclean recovery, which the model does not have")
        if set(event.replicas) != set(ids) or event.reassigning:
            raise Untranslatable("a reassignment, which the model does otherwise")
        partition_epoch = event.partition_epoch - self._first_partition_epoch + 1
        leader = ids.get(event.leader, NO_LEADER)
        leader_epoch = self._epoch(event.leader_epoch)
        now = Committed(leader, leader_epoch, self._as_isr(event.isr), self._as_isr(event.elr))
        before = self._committed.get(partition_epoch - 1)
        if before is None:
            raise Untranslatable(
                f"partition epoch {event.partition_epoch} without the one before: no event tells of it"
            )
        self.min_isr = min(event.min_isr, len(ids))
        self._committed[partition_epoch] = now
        told = now.told(partition_epoch)
        gone = before.isr - now.isr
        if self._requests.get((before.leader, partition_epoch - 1)) == now.isr and before.leader == now.leader:
            self._step("ReceiveAlterPartitionRequest", before.leader, accepted=True, **told)
        elif len(gone) == 1:
            self._fence(next(iter(gone)), told)
        elif len(before.elr - now.elr) == 1 and now.isr == before.isr:
            self._register(next(iter(before.elr - now.elr)), told, before.told(partition_epoch - 1))
        elif before.leader == NO_LEADER and now.leader != NO_LEADER and now.isr == {now.leader}:
            self._unfence(now.leader, told)
        elif now.leader != before.leader and now.isr == before.isr:
            self._step("ElectAnother", now.leader, **told)
        elif now == before:
            self._step("ReorderReplicas", 1, **told)
        else:
            raise Untranslatable(f"from {before} to {now}: no action of the model does that")

    @property
    def _last(self) -> dict[str, Any]:
        partition_epoch = max(self._committed)
        return self._committed[partition_epoch].told(partition_epoch)

    def _fenced(self, broker_id: int) -> None:
        broker = self.ids.get(broker_id)
        if broker is not None and not self._replicas[broker].fenced:
            self._fence(broker, self._last)

    def _fence(self, broker: int, told: dict[str, Any]) -> None:
        self._step("FenceBroker", broker, **told)
        self._replicas[broker].fenced = True

    def _life_ended(self, event: LifeEnded) -> None:
        mine = self._mine()
        if mine is not None:
            mine[1].ended = event

    def _end(self, broker: int, ended: LifeEnded, told: dict[str, Any]) -> None:
        """The model's broker ends. It takes with it what it has sent, which in a run may arrive for a while."""
        replica = self._replicas[broker]
        step = self._step("NoDataLossShutdown", broker, clean=ended.clean, **told)
        self._ends_reign(broker, step)
        self._ends_span(replica, step)
        replica.ended, replica.proposed, replica.starting = None, None, False
        replica.open.clear()
        for other in self._replicas.values():
            other.open.discard(broker)

    def _registered(self, event: BrokerRegistered) -> None:
        broker = self.ids.get(event.broker_id)
        if broker is not None and not (self._replicas[broker].starting and self._replicas[broker].ended is None):
            self._register(broker, self._last, self._last)

    def _register(self, broker: int, told: dict[str, Any], told_before: dict[str, Any]) -> None:
        replica = self._replicas[broker]
        if replica.ended is None:
            raise Untranslatable(f"broker {broker} registers a second time in one life")
        self._end(broker, replica.ended, told_before)
        self._step("BrokerStart", broker)
        self._step("RegisterFenced", broker, **told)
        replica.starting = True
        replica.least_epoch = told["partition_epoch"]
        node_id = next(each for each, number in self.ids.items() if number == broker)
        previous = self._next_high_watermark(node_id)
        if previous is not None and previous < replica.hwm:
            self._step("CheckpointRead", broker, high_watermark=previous)
            replica.hwm = previous

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

    def _unfence(self, broker: int, told: dict[str, Any]) -> None:
        replica = self._replicas[broker]
        self._is_answered(broker, replica)
        self._step("UnfenceBroker", broker, **told)
        replica.fenced = False

    def _is_answered(self, broker: int, replica: Replica) -> None:
        """It has got the answer to its registration, before it does anything else."""
        if replica.starting:
            self._step("ReceiveBrokerRegResponse", broker)
            replica.starting = False
            replica.leader = replica.leader_epoch = replica.partition_epoch = 0

    # -- metadata on a broker

    def _became_leader(self, event: BecameLeader) -> None:
        self._role(event.leader_epoch, leso=event.leader_epoch_start_offset + 1)

    def _became_follower(self, event: BecameFollower) -> None:
        self._role(event.leader_epoch)

    def _role(self, leader_epoch: int, **told: Any) -> None:
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
            self._learns(broker, replica, first, **told)

    def _learns(self, broker: int, replica: Replica, partition_epoch: int, **told: Any) -> None:
        """A record of the metadata comes to a broker."""
        partition_epoch = max(partition_epoch, replica.least_epoch)
        known = self._committed[partition_epoch]
        leads = known.leader == broker
        if leads:
            told |= {"isr": known.isr, "maximal_isr": known.isr, "hwm": replica.hwm}
        step = self._step(
            "ReceiveMetadataUpdate",
            broker,
            leader=known.leader,
            leader_epoch=known.leader_epoch,
            partition_epoch=partition_epoch,
            **told,
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

    def _ends_reign(self, broker: int, step: Step) -> None:
        epoch = self._replicas[broker].leader_epoch
        if self._reigns.get((broker, epoch), step) is None:
            self._reigns[broker, epoch] = step

    def _ends_span(self, replica: Replica, step: Step) -> None:
        if replica.spans and replica.spans[-1].end is None:
            replica.spans[-1].end = step

    # -- the ISR

    def _isr_proposed(self, event: IsrProposed) -> None:
        mine = self._mine()
        if mine is None:
            return
        broker, replica = mine
        partition_epoch = event.partition_epoch - self._first_partition_epoch + 1
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
        partition_epoch = event.partition_epoch - self._first_partition_epoch + 1
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
            step.told["maximal_isr"] = self._as_isr({*event.isr, *event.proposed})
        step.told["hwm"] = replica.hwm = event.high_watermark + 1

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
        if leader not in replica.open:
            self._asks(broker, replica, leader, epoch, first)
        deposed = self._reigns.get((leader, epoch))
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

    def _asks(self, follower: int, replica: Replica, leader: int, epoch: int, offset: int, **told: Any) -> None:
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
        if span is not None:
            self._before(span.end, *sent)
        taken = self._step("ReceiveFetchRequest", leader, **{"from": follower}, hwm=self._replicas[leader].hwm, **told)
        self._before(self._reigns.get((leader, epoch)), taken)
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
        leader = replica.leader
        step = self._step("ReceiveFetchResponse", broker, **{"from": leader}, leo=replica.leo)
        replica.open.discard(leader)
        self._now_asks(replica, step)


def _name(event: object) -> str:
    return repr(event) if isinstance(event, Event) else type(event).__name__

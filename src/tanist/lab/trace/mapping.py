"""Observations of a run as steps of the public model.

Owns which event is whose: the steps of the controller and of brokers are in `controlling`, those of replicas in
`replicating`. Together they own which action of the model each event is, and where it stands: the model does at one
moment what nodes do in several, and the other way round. They follow the model's state only as far as that needs, and
judge nothing: a step that is wrong is still a step, and TLC refuses it.

`docs/proof.md` has the mapping in words. One partition; its replicas are the model's brokers, the first leader as 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tanist.events.metadata import (
    BrokerFenced,
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnfenced,
    ConfigChanged,
    PartitionChanged,
    PartitionCreated,
)
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
from tanist.lab.trace.ordering import Grown, in_order
from tanist.lab.trace.recording import ElectionRequested, LifeEnded, Observed
from tanist.lab.trace.replicating import ReplicaSteps
from tanist.lab.trace.steps import Step
from tanist.lab.trace.writing import Untranslatable


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


def trace_of(observed: Sequence[Observed], partition: str, *, min_isr: int = 2, strategy: str | None = None) -> Trace:
    """The trace of a partition. `Untranslatable` if the model cannot begin as the partition does.

    `strategy`: of unclean recoveries, as it is configured. None: they are off, or nothing is known of them.
    """
    mapper = _Mapper(in_order(observed, partition), min_isr, strategy)
    end = mapper.run()
    if not mapper.ids:
        raise Untranslatable(end or f"the run does not make {partition}")
    return Trace(partition, tuple(mapper.steps), mapper.ids, mapper.min_isr, end)


class _Mapper(ReplicaSteps):
    def __init__(self, observed: list[Observed], min_isr: int, strategy: str | None) -> None:
        super().__init__(observed, min_isr, strategy)
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            PartitionChanged: self._partition_changed,
            BrokerFenced: lambda event: self._fenced(event.broker_id),
            BrokerShuttingDown: self._shutting_down,
            BrokerUnfenced: self._unfenced,
            BrokerRegistered: self._registered,
            ConfigChanged: self._strategy_changes,
            ElectionRequested: self._strategy_changes,
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

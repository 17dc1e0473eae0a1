"""Where steps are written: at the end, or before another one; and what of the model's state all parts need.

`controlling` has the steps of the controller and of brokers' lives, `replicating` those of replicas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tanist.events.event import Event
from tanist.lab.trace.recording import LifeEnded, Observed
from tanist.lab.trace.replicas import Committed, Isr, Replica
from tanist.lab.trace.steps import Step


class Untranslatable(Exception):
    """The run goes on with something that neither the model nor our additions to it know: the trace ends before it."""


class Writer:
    """The steps of one partition, as far as they are written."""

    def __init__(self, observed: list[Observed], min_isr: int, strategy: str | None) -> None:
        self.steps: list[Step] = []
        self.ids: dict[int, int] = {}
        self.min_isr = min_isr
        self.recovers = strategy is not None
        """The recovery manager is on, and LastKnownElr what the whole KIP says."""
        self.strategy = strategy
        self._observed = observed
        self._at = 0
        self._now = Observed(0, 0, LifeEnded(False))
        self._first_leader_epoch = 0
        self._committed: dict[int, Committed] = {}
        """By partition epoch."""
        self._replicas: dict[int, Replica] = {}
        self._requests: dict[tuple[int, int], Isr] = {}
        """(leader, partition epoch) -> the ISR that it has proposed."""
        self._reigns: dict[tuple[int, int], Step | None] = {}
        """(leader, leader epoch) -> the step that ended it, if it has ended."""
        self._cut_off: set[tuple[int, Step]] = set()
        """(follower, end of its leader) -> it had a fetch under way."""
        self._may_commit: dict[int, Step] = {}
        """The last step of a leader in which its high watermark may move."""

    def _step(self, action: str, broker: int, **reported: Any) -> Step:
        now = self._now
        step = Step(action, broker, reported, now.at_us, now.node_id, _name(now.event))
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

    def _partition_epoch(self, partition_epoch: int) -> int:
        """A partition begins with epoch 0, and the model's with 1."""
        return partition_epoch + 1

    def _is_answered(self, broker: int, replica: Replica) -> None:
        """It has got the answer to its registration, before it does anything else."""
        if replica.starting:
            self._step("ReceiveBrokerRegResponse", broker)
            replica.starting = False
            replica.leader = replica.leader_epoch = replica.partition_epoch = 0

    def _ends_reign(self, broker: int, step: Step) -> None:
        epoch = self._replicas[broker].leader_epoch
        if self._reigns.get((broker, epoch), step) is None:
            self._reigns[broker, epoch] = step

    def _ends_span(self, replica: Replica, step: Step) -> None:
        if replica.spans and replica.spans[-1].end is None:
            replica.spans[-1].end = step


def _name(event: object) -> str:
    return repr(event) if isinstance(event, Event) else type(event).__name__

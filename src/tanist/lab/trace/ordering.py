"""The order of a partition's observations: causes first.

Nodes emit some events of a turn before those that they follow from, and one act of a replica as several events. Owns
the order within a turn, and what belongs together. Turns stay in their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
    HighWatermarkLearned,
    HighWatermarkMoved,
    IsrChanged,
    IsrProposalEnded,
    LogTruncated,
)
from tanist.events.storage import RecordsAppended
from tanist.lab.trace.recording import Observed


@dataclass(frozen=True, slots=True)
class Grown:
    """A log has grown in one turn, and for a follower its high watermark was learned with the same answer."""

    runs: tuple[RecordsAppended, ...]
    """Of one leader epoch each."""
    learned: HighWatermarkLearned | None

    def goes_on_with(self, other: Grown) -> bool:
        """Whether the other one is a part of the same."""
        if self.learned is not None:
            return False
        if not other.runs:
            return True
        last, following = self.runs[-1], other.runs[0]
        return last.leader_epoch != following.leader_epoch and last.end_offset == following.first_offset


def in_order(observed: Iterable[Observed], partition: str) -> list[Observed]:
    """What is about the partition."""
    found: list[Observed] = []
    for each in observed:
        if getattr(each.event, "partition", partition) != partition:
            continue
        event = _as_growth(each.event)
        if isinstance(event, Grown):
            before = next((n for n in range(len(found) - 1, -1, -1) if found[n].node_id == each.node_id), None)
            last = None if before is None or found[before].at_us != each.at_us else found[before].event
            if before is not None and isinstance(last, Grown) and last.goes_on_with(event):
                together = Grown((*last.runs, *event.runs), event.learned)
                found[before] = Observed(each.at_us, each.node_id, together)
                continue
        now = Observed(each.at_us, each.node_id, event)
        at = len(found)
        while at and found[at - 1].node_id == each.node_id and _goes_before(found[at - 1], now):
            at -= 1
        found.insert(at, now)
    return found


def _as_growth(event: object) -> object:
    if isinstance(event, RecordsAppended):
        return Grown((event,), None)
    return Grown((), event) if isinstance(event, HighWatermarkLearned) else event


_OF_BROKERS = (BrokerRegistered, BrokerFenced, BrokerUnfenced, BrokerShuttingDown)
_OF_ROLES = (BecameLeader, BecameFollower, IsrProposalEnded, IsrChanged, HighWatermarkMoved, LogTruncated)
"""What comes of committed metadata, on a node that is a controller as well."""


def _goes_before(earlier: Observed, later: Observed) -> bool:
    """Whether the second is the cause of the first."""
    if earlier.at_us != later.at_us:
        return False
    first, second = earlier.event, later.event
    if isinstance(second, PartitionChanged) and isinstance(first, _OF_BROKERS):
        return _is_about(second, first.broker_id)
    if isinstance(second, (PartitionCreated, PartitionChanged, *_OF_BROKERS)):
        return isinstance(first, _OF_ROLES)
    if isinstance(first, HighWatermarkMoved):
        return isinstance(second, BecameLeader) or (isinstance(second, IsrChanged) and second.isr == first.isr)
    return False


def _is_about(change: PartitionChanged, broker_id: int) -> bool:
    """Whether the change is what a broker's fencing, unfencing or registration has made of the partition."""
    left = {*change.isr_before, *change.elr_before} - {*change.isr, *change.elr}
    out_of_isr = broker_id in change.isr_before and broker_id not in change.isr
    return broker_id in left or out_of_isr or (change.leader == broker_id and change.leader_before < 0)

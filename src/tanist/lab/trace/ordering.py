"""The order of a partition's observations: causes first.

Nodes emit some events of a turn before those that they follow from, and one act of a replica as several events. Owns
the order within a turn, and what belongs together. Turns stay in their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

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
    FollowerFetched,
    HighWatermarkLearned,
    HighWatermarkMoved,
    IsrChanged,
    IsrProposalEnded,
    IsrProposed,
    LogTruncated,
)
from tanist.events.storage import RecordsAppended
from tanist.lab.trace.recording import LifeEnded, Observed

_LATE_US: Final = 50_000
"""How far the events of processes may be out of order: one may be kept from the CPU between an act and its event."""

_TURN_US: Final = 5_000
"""How long a controller may take to tell of one decision."""


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
            if (
                before is not None
                and isinstance(last, Grown)
                and last.goes_on_with(event)
                and not any(_is_fetch_of(later, each.node_id) for later in found[before + 1 :])
            ):
                together = Grown((*last.runs, *event.runs), event.learned)
                found[before] = Observed(each.at_us, each.node_id, together)
                continue
        now = Observed(each.at_us, each.node_id, event)
        at = len(found)
        while at and found[at - 1].node_id == each.node_id and _goes_before(found[at - 1], now):
            at -= 1
        found.insert(at, now)
    return found


def _is_fetch_of(observed: Observed, node_id: int) -> bool:
    return isinstance(observed.event, FollowerFetched) and observed.event.broker_id == node_id


def causal(observed: Iterable[Observed], partition: str) -> Iterator[Observed]:
    """Observations of processes, whose clock tells milliseconds: within a few of them, causes first.

    What happens on one node stays in its order. Where nothing is a cause of what waits, time decides.
    """
    known = _Known()
    waiting: dict[int, deque[Observed]] = {}
    of_brokers: dict[int, Observed] = {}
    now_us = -1
    for each in observed:
        if getattr(each.event, "partition", partition) != partition:
            continue
        if isinstance(each.event, _OF_BROKERS):
            of_brokers[each.node_id] = each
        made_by = of_brokers.get(each.node_id)
        if made_by is not None and _is_of_its_turn(each, made_by):
            each = replace(each, at_us=made_by.at_us)
        if each.at_us != now_us:  # else what is read next may be a cause of what waits
            now_us = each.at_us
            yield from _ready(waiting, known)
        while waiting and min(queue[0].at_us for queue in waiting.values()) + _LATE_US <= each.at_us:
            yield from _next(waiting, known, force=True)
            yield from _ready(waiting, known)
        waiting.setdefault(each.node_id, deque()).append(each)
    yield from _ready(waiting, known)
    while waiting:
        yield from _next(waiting, known, force=True)
        yield from _ready(waiting, known)


def _ready(waiting: dict[int, deque[Observed]], known: _Known) -> Iterator[Observed]:
    """All whose causes are known."""
    while found := list(_next(waiting, known, force=False)):
        yield from found


def _next(waiting: dict[int, deque[Observed]], known: _Known, *, force: bool) -> Iterator[Observed]:
    first = sorted((queue[0] for queue in waiting.values()), key=_by_time)
    chosen = next((each for each in first if known.follows(each)), first[0] if force and first else None)
    if chosen is not None:
        known.add(chosen)
        waiting[chosen.node_id].popleft()
        if not waiting[chosen.node_id]:
            del waiting[chosen.node_id]
        yield chosen


def _is_of_its_turn(change: Observed, cause: Observed) -> bool:
    """Whether a process has reported the two parts of one decision in two milliseconds."""
    event = change.event
    return isinstance(event, PartitionChanged) and change.at_us <= cause.at_us + _TURN_US and _makes(cause.event, event)


def _by_time(observed: Observed) -> tuple[int, bool]:
    """Of one time, fetches before what they may be answered with."""
    return observed.at_us, not isinstance(observed.event, FollowerFetched)


class _Known:
    """What has happened so far, as far as it is the cause of something on another node."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}
        self._asked: dict[int, list[tuple[int, int]]] = {}
        """Of each follower, (when, offset) of fetches whose answers it has not used: one, but for ties of the clock."""
        self._last: dict[int, Observed] = {}
        self._restarted: set[int] = set()
        """Where their logs end is known when they ask."""
        self._roles: dict[int, int] = {}
        """Of each node, the leader epoch of its role. Without one it has that of the new partition."""
        self._high_watermark = 0
        self._leads = self._leader_epoch = -1
        self._partition_epoch = 0
        self._isrs: list[frozenset[int]] = []
        self._proposed: set[tuple[int, frozenset[int]]] = set()

    def follows(self, observed: Observed) -> bool:
        """Whether the causes of this are known."""
        event = observed.event
        if isinstance(event, FollowerFetched):
            if self._roles.get(event.broker_id, event.leader_epoch) < event.leader_epoch:
                return False
            known = self._ends.get(event.broker_id, 0)
            return event.broker_id in self._restarted or known >= event.fetch_offset
        if isinstance(event, RecordsAppended):
            others = (end for node_id, end in self._ends.items() if node_id != observed.node_id)
            if self._leads == observed.node_id:
                return True
            asked = self._asked.get(observed.node_id)
            fetched = asked is None or any(offset == event.first_offset for _, offset in asked)
            return (fetched or self._goes_on(observed.node_id, event)) and max(others, default=0) >= event.end_offset
        if isinstance(event, HighWatermarkLearned):
            return self._high_watermark >= event.high_watermark
        if isinstance(event, BecameLeader | BecameFollower):
            return self._leader_epoch >= event.leader_epoch
        if isinstance(event, IsrProposed | IsrProposalEnded):
            return self._partition_epoch >= event.partition_epoch
        if isinstance(event, IsrChanged):
            return frozenset(event.isr) in self._isrs
        if isinstance(event, PartitionChanged) and set(event.isr) - set(event.isr_before):
            wanted = (event.partition_epoch - 1, frozenset(event.isr))
            return wanted in self._proposed or event.leader_before < 0
        return True

    def _goes_on(self, node_id: int, event: RecordsAppended) -> bool:
        """Whether it is a part of the answer that the last one came with."""
        last = self._last[node_id].event if node_id in self._last else None
        return isinstance(last, RecordsAppended) and Grown((last,), None).goes_on_with(Grown((event,), None))

    def add(self, observed: Observed) -> None:
        event = observed.event
        self._use_answer(observed)
        self._last[observed.node_id] = observed
        if isinstance(event, RecordsAppended):
            self._ends[observed.node_id] = event.end_offset
        elif isinstance(event, FollowerFetched):
            asked = self._asked.get(event.broker_id, [])
            recent = [each for each in asked if each[0] + _LATE_US > observed.at_us]
            self._asked[event.broker_id] = [*recent, (observed.at_us, event.fetch_offset)]
            if event.broker_id in self._restarted:
                self._restarted.discard(event.broker_id)
                self._ends[event.broker_id] = event.fetch_offset
        elif isinstance(event, LifeEnded):
            self._restarted.add(observed.node_id)
            self._asked[observed.node_id] = []
            self._roles[observed.node_id] = -1
        elif isinstance(event, LogTruncated):
            self._ends[observed.node_id] = event.offset
        elif isinstance(event, HighWatermarkMoved):
            self._high_watermark = max(self._high_watermark, event.high_watermark)
        elif isinstance(event, PartitionCreated | PartitionChanged):
            self._leader_epoch = event.leader_epoch
            self._isrs.append(frozenset(event.isr))
            if isinstance(event, PartitionChanged):
                self._partition_epoch = event.partition_epoch
        elif isinstance(event, BecameLeader | BecameFollower):
            self._roles[observed.node_id] = event.leader_epoch
            if isinstance(event, BecameLeader):
                self._leads = observed.node_id
        elif isinstance(event, IsrProposed):
            self._proposed.add((event.partition_epoch, frozenset(event.proposed)))

    def _use_answer(self, observed: Observed) -> None:
        """A follower that has used an answer has to ask again before the next one."""
        event, asked = observed.event, self._asked.get(observed.node_id, [])
        if isinstance(event, RecordsAppended):
            offsets = [offset for _, offset in asked]
            if event.first_offset in offsets:
                del asked[: offsets.index(event.first_offset) + 1]
        elif isinstance(event, HighWatermarkLearned) and asked and asked[0][0] <= observed.at_us:
            last = self._last.get(observed.node_id)
            if last is None or not self._came_with(last, observed.at_us, event):
                del asked[0]

    @staticmethod
    def _came_with(last: Observed, at_us: int, event: HighWatermarkLearned) -> bool:
        """Whether the records before it were in the same answer, which was read before they were acknowledged."""
        records = last.event
        return isinstance(records, RecordsAppended) and (
            last.at_us == at_us or event.high_watermark <= records.first_offset
        )


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
        return _makes(first, second)
    if isinstance(second, (PartitionCreated, PartitionChanged, *_OF_BROKERS)):
        return isinstance(first, _OF_ROLES)
    if isinstance(first, HighWatermarkMoved):
        return isinstance(second, BecameLeader) or (isinstance(second, IsrChanged) and second.isr == first.isr)
    return False


def _makes(cause: object, change: PartitionChanged) -> bool:
    """Whether the change is what a broker's fencing, unfencing or registration has made of the partition."""
    if isinstance(cause, BrokerUnfenced):
        return change.leader == cause.broker_id and change.leader_before < 0
    if isinstance(cause, BrokerRegistered):
        before = {*change.elr_before, *change.isr_before}
        return cause.broker_id in before and cause.broker_id not in {*change.elr, *change.isr}
    broker_id = getattr(cause, "broker_id", -1)
    return broker_id in change.isr_before and broker_id not in change.isr

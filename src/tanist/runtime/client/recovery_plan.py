"""What each choice of a leader would lose, of a partition that has none: from the positions of its replicas, purely.

Owns the comparison of logs by leader epochs and offsets: two logs with the same epoch at an offset have the same record
there. A choice loses what another replica has and it lacks, because the others truncate to its log. Records are counted
by their offsets, so the markers of transactions count too, and in a compacted topic records that are gone already.

It must not count what nobody was asked for: replicas of which nothing is known are named (`Plan.unknown`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tanist.runtime.client.replica_positions import ReplicaPositions

NO_EPOCH = -1


class Run(NamedTuple):
    """Records of one leader epoch behind each other: offsets `start` to `end`, which is not one of them."""

    epoch: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Choice:
    """One replica as the leader."""

    broker: int
    electable: bool
    """Its broker is live, and its log directory. Otherwise it has to start first."""
    last_epoch: int
    """The leader epoch of its last record; -1 in an empty log."""
    end: int
    lost: tuple[Run, ...]
    """What other replicas have from its log start on, and it does not: they truncate it."""
    committed: int
    """Of those, so many stand below the high watermark of a replica that has them: they were committed for certain."""
    in_salvage: int
    """Of those, so many are in the salvage already."""
    older: int
    """What other replicas have from before its log start."""
    salvage_only: tuple[Run, ...]
    """What the salvage has, and neither it nor any other replica."""

    @property
    def lost_count(self) -> int:
        return _length(self.lost)

    @property
    def salvage_only_count(self) -> int:
        return _length(self.salvage_only)


@dataclass(frozen=True, slots=True)
class Plan:
    """The choices for one partition."""

    choices: tuple[Choice, ...]
    """In the order of the replicas."""
    unknown: tuple[int, ...]
    """Replicas of which nothing is known: what only they have is not counted."""

    @property
    def best(self) -> Choice | None:
        """Of those that can lead now the one that loses least: what was committed first, then anything.

        Of equals, the longest log (KIP-966), and then the first replica.
        """
        now = [choice for choice in self.choices if choice.electable]
        return min(now, key=lambda each: (each.committed, each.lost_count, -each.last_epoch, -each.end), default=None)


def plan(replicas: Sequence[ReplicaPositions], electable: Iterable[int], salvage: Iterable[Run] = ()) -> Plan:
    """Compare the replicas' logs, and what was saved of the partition by salvage. `electable`: who can lead now."""
    known = [each for each in replicas if each.end is not None]
    can_lead = frozenset(electable)
    saved = united(salvage)
    logs = {each.broker: runs_of(each) for each in known}
    choices = []
    for each in known:
        own, start = logs[each.broker], each.start or 0
        others = united(run for broker, runs in logs.items() if broker != each.broker for run in runs)
        lacking = without(others, own)
        lost = _from(lacking, start)
        committed = united(
            run for other in known for run in _below(without(logs[other.broker], own), other.high_watermark or 0)
        )
        choices.append(
            Choice(
                each.broker,
                each.broker in can_lead,
                own[-1].epoch if own else NO_EPOCH,
                each.end or 0,
                lost,
                _length(_from(committed, start)),
                _length(lost) - _length(without(lost, saved)),
                _length(lacking) - _length(lost),
                without(without(saved, own), others),
            )
        )
    return Plan(tuple(choices), tuple(each.broker for each in replicas if each.end is None))


def holder_of(replicas: Iterable[ReplicaPositions], epoch: int, offset: int) -> ReplicaPositions | None:
    """A replica that has this record, one that answers if possible."""
    having = [
        each
        for each in replicas
        if each.end is not None and (each.start or 0) <= offset < each.end and each.epoch_at(offset) == epoch
    ]
    return max(having, key=lambda each: each.alive, default=None)


def runs_of(replica: ReplicaPositions) -> tuple[Run, ...]:
    """A replica's log, epoch by epoch."""
    start, end = replica.start or 0, replica.end or 0
    bounds = [(epoch, max(first, start)) for epoch, first in replica.epochs if first < end]
    if not bounds or bounds[0][1] > start:
        bounds.insert(0, (NO_EPOCH, start))  # records from before there were epochs
    ends = [first for _, first in bounds[1:]] + [end]
    return tuple(Run(epoch, first, last) for (epoch, first), last in zip(bounds, ends, strict=True) if first < last)


# -- sets of records --------------------------------------------------------------------------------------------------


def united(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The records of all of them, each once."""
    found: list[Run] = []
    for run in sorted(runs):
        last = found[-1] if found else None
        if last is not None and last.epoch == run.epoch and run.start <= last.end:
            found[-1] = Run(run.epoch, last.start, max(last.end, run.end))
        elif run.start < run.end:
            found.append(run)
    return tuple(found)


def without(runs: Iterable[Run], others: Iterable[Run]) -> tuple[Run, ...]:
    """The records of `runs` that are in none of `others`."""
    taken: dict[int, list[Run]] = defaultdict(list)
    for run in united(others):
        taken[run.epoch].append(run)
    found = []
    for run in united(runs):
        start = run.start
        for other in taken[run.epoch]:
            if other.end <= start or other.start >= run.end:
                continue
            if start < other.start:
                found.append(Run(run.epoch, start, other.start))
            start = other.end
        if start < run.end:
            found.append(Run(run.epoch, start, run.end))
    return tuple(found)


def _from(runs: Iterable[Run], offset: int) -> tuple[Run, ...]:
    return tuple(Run(run.epoch, max(run.start, offset), run.end) for run in runs if run.end > offset)


def _below(runs: Iterable[Run], offset: int) -> tuple[Run, ...]:
    return tuple(Run(run.epoch, run.start, min(run.end, offset)) for run in runs if run.start < offset)


def _length(runs: Iterable[Run]) -> int:
    return sum(run.end - run.start for run in runs)

"""Where acknowledged records stand, and what the death of one broker would cost: from replicas' positions, purely.

A replica has a record if its log covers the offset with the same leader epoch as the reference, which is the leader's
log, or the furthest one where there is no leader: two logs with the same epoch at an offset have the same record there.
Who would lead is not decided here; the caller gives the controller's own decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tanist.runtime.client.replica_positions import ReplicaPositions
from tanist.text import counted
from tanist.web.state import IfDies, PartitionPositions, Stretch


@dataclass(frozen=True, slots=True)
class Succession:
    """How the controller would leave a partition when a broker is fenced."""

    leader: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    why: str
    counted_as_fenced: tuple[int, ...] = ()
    """Brokers that do not run, and that the metadata does not show as fenced yet."""


def positions(
    topic: str,
    partition: int,
    leader: int,
    replicas: Sequence[ReplicaPositions],
    successions: Mapping[int, Succession],
) -> PartitionPositions:
    """A partition with what follows from the positions of its replicas."""
    reference = _reference(leader, replicas)
    acknowledged = _acknowledged(leader, replicas)
    if reference is None or acknowledged is None:
        return PartitionPositions(topic, partition, tuple(replicas))
    stretches = _stretches(reference, acknowledged, replicas)
    deaths = tuple(
        _if_dies(each, reference, acknowledged, replicas, successions[each.broker])
        for each in replicas
        if each.alive and each.broker in successions
    )
    return PartitionPositions(topic, partition, tuple(replicas), acknowledged, stretches, deaths)


def _reference(leader: int, replicas: Sequence[ReplicaPositions]) -> ReplicaPositions | None:
    known = [each for each in replicas if each.end is not None]
    for each in known:
        if each.broker == leader:
            return each
    return max(known, key=lambda each: (each.epochs[-1][0] if each.epochs else -1, each.end or 0), default=None)


def _acknowledged(leader: int, replicas: Sequence[ReplicaPositions]) -> int | None:
    for each in replicas:
        if each.broker == leader and each.high_watermark is not None:
            return each.high_watermark
    return max((each.high_watermark for each in replicas if each.high_watermark is not None), default=None)


def _has(replica: ReplicaPositions, reference: ReplicaPositions, offset: int) -> bool:
    return (
        replica.end is not None
        and (replica.start or 0) <= offset < replica.end
        and replica.epoch_at(offset) == reference.epoch_at(offset)
    )


def _cuts(reference: ReplicaPositions, acknowledged: int, replicas: Sequence[ReplicaPositions]) -> list[int]:
    """The offsets at which the number of copies may change: nothing changes between two of them."""
    first = reference.start or 0
    points = {first, acknowledged}
    for each in replicas:
        points.update(point for point in (each.start, each.end, each.synced) if point is not None)
        points.update(start for _, start in each.epochs)
    return sorted(point for point in points if first <= point <= acknowledged)


def _stretches(
    reference: ReplicaPositions, acknowledged: int, replicas: Sequence[ReplicaPositions]
) -> tuple[Stretch, ...]:
    cuts = _cuts(reference, acknowledged, replicas)
    found: list[Stretch] = []
    for start, end in pairwise(cuts):
        holders = [each for each in replicas if _has(each, reference, start)]
        synced = sum(each.synced is not None and each.synced >= end for each in holders)
        stretch = Stretch(start, end, len(holders), synced, sum(each.alive for each in holders))
        last = found[-1] if found else None
        if last is not None and (last.copies, last.synced, last.live) == (stretch.copies, stretch.synced, stretch.live):
            found[-1] = Stretch(last.start, end, last.copies, last.synced, last.live)
        else:
            found.append(stretch)
    return tuple(found)


def _if_dies(
    dying: ReplicaPositions,
    reference: ReplicaPositions,
    acknowledged: int,
    replicas: Sequence[ReplicaPositions],
    succession: Succession,
) -> IfDies:
    heir = next((each for each in replicas if each.broker == succession.leader), None)
    only_here = destroyed = only_dead = missing = 0
    cuts = _cuts(reference, acknowledged, replicas)
    for start, end in pairwise(cuts):
        others = [each for each in replicas if each is not dying and _has(each, reference, start)]
        if _has(dying, reference, start) and not others:
            only_here += end - start
            destroyed += 0 if dying.synced is not None and dying.synced >= end else end - start
        elif others and not any(each.alive for each in others):
            only_dead += end - start
        if heir is not None and not _has(heir, reference, start):
            missing += end - start
    return IfDies(
        dying.broker,
        succession.leader,
        succession.isr,
        succession.elr,
        only_here,
        destroyed,
        only_dead,
        missing,
        _text(dying.broker, succession, only_here, only_dead, missing),
    )


def _text(broker: int, succession: Succession, only_here: int, only_dead: int, missing: int) -> str:
    if succession.leader < 0:
        leads = succession.why
    else:
        leads = f"broker {succession.leader} leads"
    lost = []
    if missing:
        lost.append(f"it lacks {counted(missing, 'acknowledged record')}")
    elif only_here:
        lost.append(f"{counted(only_here, 'acknowledged record')} {_is(only_here)} only on broker {broker}")
    if only_dead:
        lost.append(f"{counted(only_dead, 'acknowledged record')} {_is(only_dead)} then on dead brokers only")
    return f"{leads}; {'; '.join(lost) or 'nothing is lost'}{_early(succession.counted_as_fenced)}"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _early(brokers: tuple[int, ...]) -> str:
    if not brokers:
        return ""
    names = ", ".join(map(str, brokers))
    one = len(brokers) == 1
    said = f"broker {names} does not run and is" if one else f"brokers {names} do not run and are"
    return f" ({said} not fenced yet: {'it counts' if one else 'they count'} as fenced here)"

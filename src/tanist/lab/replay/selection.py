"""Which of a run's moments are shown: those that tell what became of a partition, not all of its thousands.

Pure, and knows no player: it goes by what a moment is about and how much it weighs (`moments.Weight`). Long stretches
in which nothing turns are cut to their beginning and their end, and say how much was left out. Whoever is down stays
known through everything that is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tanist.lab.replay.moments import Moment, Weight

_FIRST, _LAST, _LAST_BEFORE_BROKEN = 2, 5, 24
"""Of a stretch without a turning point, so many moments are shown at its beginning, and at its end."""


_OUTSIDE = ("client", "operator")
"""Lanes that stand last."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What somebody wants to see."""

    least: Weight = Weight.PART
    partition: str | None = None
    """Only what is about this one, or about all."""
    lanes: frozenset[str] = frozenset()
    """Only what one of these does, says or is told; empty: all."""
    since_s: float | None = None
    until_s: float | None = None
    whole: bool = False
    """Leave nothing out of quiet stretches."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A moment to be drawn, and who is down then. Without a lane it is a remark between two moments."""

    moment: Moment
    down: frozenset[str]


def choose(moments: Sequence[Moment], choice: Choice) -> Iterator[Shown]:
    """What is to be drawn."""
    quiet: list[Shown] = []
    for shown in _wanted(moments, choice):
        moment = shown.moment
        if choice.whole or moment.weight >= Weight.TURN or moment.broken:
            yield from _shortened(quiet, _LAST_BEFORE_BROKEN if moment.broken else _LAST)
            quiet.clear()
            yield shown
        else:
            quiet.append(shown)
    yield from _shortened(quiet, _LAST)


def _wanted(moments: Sequence[Moment], choice: Choice) -> Iterator[Shown]:
    down: set[str] = set()
    broken_at = {moment.at for moment in moments if moment.broken}
    for moment in moments:
        if moment.alive is not None:
            (down.discard if moment.alive else down.add)(moment.lane)
        # What happened in the very instant in which a property broke has to do with it, however small it is.
        weight = Weight.TURN if moment.broken else max(moment.weight, Weight.PART * (moment.at in broken_at))
        if weight >= choice.least and _is_about(moment, choice):
            yield Shown(moment, frozenset(down))


def _is_about(moment: Moment, choice: Choice) -> bool:
    if choice.partition is not None and moment.about not in (None, choice.partition):
        return False
    if choice.lanes and not moment.broken and not choice.lanes.intersection((moment.lane, moment.to)):
        return False
    at = _seconds(moment.at)
    if at is None:
        return True
    return (choice.since_s is None or at >= choice.since_s) and (choice.until_s is None or at <= choice.until_s)


def _shortened(quiet: list[Shown], last: int) -> Iterator[Shown]:
    """A stretch in which nothing turns."""
    left_out = len(quiet) - _FIRST - last
    if left_out < 3:
        yield from quiet
        return
    yield from quiet[:_FIRST]
    first, final = quiet[_FIRST], quiet[-last - 1]
    span = first.moment.at if first.moment.at == final.moment.at else f"{first.moment.at} to {final.moment.at}"
    yield Shown(Moment(final.moment.at, "", f"… {left_out} more like these, {span} (--all shows them)"), final.down)
    yield from quiet[-last:]


def _seconds(at: str) -> float | None:
    try:
        return float(at)
    except ValueError:
        return None


def lanes_of(moments: Iterable[Moment]) -> tuple[str, ...]:
    """The lanes there are, in order of appearance, clients and operators last."""
    found: dict[str, None] = {}
    for moment in moments:
        for lane in (moment.lane, moment.to):
            if lane:
                found.setdefault(lane)
    return tuple(sorted(found, key=_place))


def _place(lane: str) -> tuple[int, str, int]:
    """Those with numbers first, by number; then others; then whoever stands outside of the cluster."""
    kind, _, number = lane.rpartition(" ")
    if number.isdigit():
        return 0, kind, int(number)
    return (2 if lane in _OUTSIDE else 1), lane, 0

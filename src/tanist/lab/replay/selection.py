"""The selection of a run's moments: the story of a partition, not all of its thousands of moments.

Pure, and knows no player: it uses a moment's partition and its weight (`moments.Weight`). Long stretches without a
turning point are cut to their beginning and end, and say how much was left out. The lanes that are down stay known
through everything that is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tanist.lab.replay.moments import Moment, Weight

_FIRST, _LAST, _LAST_BEFORE_BROKEN = 2, 5, 24
"""Number of moments that are shown at the beginning, and at the end, of a stretch without a turning point."""


_OUTSIDE = ("client", "operator")
"""The last lanes."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The reader's choice of moments."""

    least: Weight = Weight.PART
    partition: str | None = None
    """Only moments about this partition, or about all."""
    lanes: frozenset[str] = frozenset()
    """Only moments and messages of these lanes; empty: all."""
    since_s: float | None = None
    until_s: float | None = None
    whole: bool = False
    """Leave nothing out of quiet stretches."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A moment to be drawn, and the lanes that are down then. Without a lane it is a remark between two moments."""

    moment: Moment
    down: frozenset[str]


def choose(moments: Sequence[Moment], choice: Choice) -> Iterator[Shown]:
    """The moments to be drawn."""
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
        # All moments of the instant in which a property broke belong to it, however small they are.
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
    """A stretch without a turning point."""
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
    """All lanes, in order of appearance, clients and operators last."""
    found: dict[str, None] = {}
    for moment in moments:
        for lane in (moment.lane, moment.to):
            if lane:
                found.setdefault(lane)
    return tuple(sorted(found, key=_place))


def _place(lane: str) -> tuple[int, str, int]:
    """Lanes with numbers first, by number; then others; then those outside of the cluster."""
    kind, _, number = lane.rpartition(" ")
    if number.isdigit():
        return 0, kind, int(number)
    return (2 if lane in _OUTSIDE else 1), lane, 0

"""A sequence diagram in plain text: time runs down, each participant has a lane, events are described at the right.

    |  node 1    an event of node 1
    o  something it did; X where a property broke
    ├────>│      a message, when it arrives
    ┴  ┬         goes down; comes up (a lane of dots is down)

Owns the layout of a line. It knows nothing of Kafka, and the same moments give the same text everywhere: it uses no
colours and asks no terminal.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from tanist.lab.replay.selection import Shown

WIDTH = 100
WIDTH_MIN = 60
_TIME_WIDTH = 9
_LANE_MAX, _LANE_MIN = 7, 4
_TEXT_MIN = 32
_REPEATED_WITHIN = 40
"""A why-line is not repeated for the same lane within this many moments."""
_HEADING_EVERY = 60
"""Rows."""


class Diagram:
    """Draws moments, one after the other."""

    def __init__(self, lanes: Sequence[str], width: int = WIDTH, about: str | None = None) -> None:
        """`about` is the partition that is not named, because all moments are about it."""
        self._about = about
        self._lanes = {lane: number for number, lane in enumerate(lanes)}
        width = max(width, WIDTH_MIN) - _TIME_WIDTH - 1  # a blank comes before the text
        self._lane_width = max(_LANE_MIN, min(_LANE_MAX, (width - _TEXT_MIN) // max(1, len(lanes))))
        self._text_width = max(_TEXT_MIN, width - self._lane_width * len(lanes))
        self._last_at: str | None = None
        self._given: dict[tuple[str, str], int] = {}
        self._count = 0

    def heading(self) -> list[str]:
        """The names of the lanes, in one or two rows."""
        width = self._lane_width
        names = [_in_two(lane, width - 1) for lane in self._lanes]
        rows = [[first for first, _ in names], [second for _, second in names]]
        return [(" " * _TIME_WIDTH + "".join(name.center(width) for name in row)).rstrip() for row in rows if any(row)]

    def draw(self, shown: Shown) -> list[str]:
        """The rows of one moment."""
        moment = shown.moment
        self._count += 1
        at = "" if moment.at == self._last_at else moment.at
        self._last_at = moment.at
        rest = self._line(shown.down)
        text = moment.text if moment.about in (None, self._about) else f"{moment.about}: {moment.text}"
        texts = textwrap.wrap(text, self._text_width, subsequent_indent="  ", break_on_hyphens=False) or [""]
        if moment.why is not None and not self._was_given(moment.lane, moment.why):
            label = "  rule: " if moment.broken else "  why: "
            why = textwrap.wrap(
                moment.why,
                self._text_width,
                initial_indent=label,
                subsequent_indent=" " * len(label),
                break_on_hyphens=False,
            )
            texts += why
        rows = [(_fitting(at).rjust(_TIME_WIDTH - 1) + " ", self._marked(shown))]
        rows += [(" " * _TIME_WIDTH, rest)] * (len(texts) - 1)
        return [f"{time}{line} {text}".rstrip() for (time, line), text in zip(rows, texts, strict=True)]

    def _line(self, down: frozenset[str]) -> str:
        """All lanes, without an event."""
        width = self._lane_width
        return "".join(("·" if lane in down else "│").center(width) for lane in self._lanes)

    def _marked(self, shown: Shown) -> str:
        moment = shown.moment
        line = list(self._line(shown.down))
        here, there = self._lanes.get(moment.lane), self._lanes.get(moment.to or "")
        if here is None:
            return "".join(line)
        one = self._centre(here)
        if there is None or there == here:
            line[one] = "X" if moment.broken else {None: "o", True: "┬", False: "┴"}[moment.alive]
            return "".join(line)
        other = self._centre(there)
        low, high = min(one, other), max(one, other)
        line[low + 1 : high] = "─" * (high - low - 1)
        line[one] = "├" if one < other else "┤"
        line[other - 1 if one < other else other + 1] = ">" if one < other else "<"
        return "".join(line)

    def _centre(self, number: int) -> int:
        return number * self._lane_width + "│".center(self._lane_width).index("│")

    def _was_given(self, lane: str, why: str) -> bool:
        last = self._given.get((lane, why))
        if last is not None and self._count - last < _REPEATED_WITHIN:
            return True
        self._given[lane, why] = self._count
        return False


def _fitting(at: str) -> str:
    """A time that is longer than its column, after hours, has fewer decimals."""
    return at[: max(_TIME_WIDTH - 1, at.find("."))].rstrip(".") if "." in at else at


def _in_two(lane: str, width: int) -> tuple[str, str]:
    """A lane's name on two rows: its words, or the halves of its only word."""
    kind, _, number = lane.rpartition(" ")
    if kind:
        return (kind if len(kind) <= width else f"{kind[: width - 1]}."), number[:width]
    return (f"{lane[: width - 1]}-", lane[width - 1 :][:width]) if len(lane) > width else (lane, "")


def drawn(shown: Iterable[Shown], lanes: Sequence[str], width: int = WIDTH, about: str | None = None) -> Iterator[str]:
    """A whole diagram, row by row. Long ones repeat their heading."""
    diagram = Diagram(lanes, width, about)
    rows = _HEADING_EVERY
    for each in shown:
        if rows >= _HEADING_EVERY:
            yield from diagram.heading()
            rows = 0
        for row in diagram.draw(each):
            yield row
            rows += 1

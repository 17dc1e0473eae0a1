"""A stream of what nodes have said or seen: what there is, its last part, or on and on as it comes."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from tanist.cli.closed_output import end_if_closed

T = TypeVar("T")

COLOURS: Final = {"WARN": "yellow", "ERROR": "red"}
"""Of a line, by its level."""
_POLL_EVERY_S = 0.2
_LAST = 10


def show_stream(
    new: Callable[[], Iterable[T]], show: Callable[[Iterable[T]], None], *, most: int | None, follow: bool
) -> None:
    """Show what `new` gives: of the first look the last `most` (all, or ten with `follow`), then until Ctrl-C what has
    come since.
    """
    if most is None and follow:
        most = _LAST
    try:
        _flushed(show, deque(new(), maxlen=most))
        while follow:
            time.sleep(_POLL_EVERY_S)
            end_if_closed()
            _flushed(show, new())
    except KeyboardInterrupt:
        return


def _flushed(show: Callable[[Iterable[T]], None], found: Iterable[T]) -> None:
    show(found)
    sys.stdout.flush()

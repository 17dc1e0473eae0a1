"""`describe`: the operator's line of an event. One table, so that a message and its event cannot disagree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tanist.events.event import Event, Reported

Line = tuple[str, str]
"""(level, text): INFO, WARN or ERROR."""

_TABLE: dict[type[Event], Callable[[Any], Line]] = {
    Reported: lambda event: (event.level, event.text),
}


def describe(event: Event) -> Line | None:
    """The level and the text for the operator's log. None: the event is not for it."""
    told = _TABLE.get(type(event))
    return None if told is None else told(event)

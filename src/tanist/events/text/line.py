"""The type of an operator's line, and of a table of them; and how one line speaks for several events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tanist.events.event import Event

Line = tuple[str, str]
"""(level, text): INFO, WARN or ERROR."""

Lines = dict[type[Event], Callable[[Any], Line | None]]
"""By the kind of event. None: the operator does not read of this one."""


def and_more(left_out: int) -> str:
    """The end of a line that speaks for events that had none (`broker.throttled`)."""
    return f" (and {left_out} like it)" if left_out else ""

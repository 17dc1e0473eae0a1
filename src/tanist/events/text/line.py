"""The type of an operator's line, and of a table of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tanist.events.event import Event

Line = tuple[str, str]
"""(level, text): INFO, WARN or ERROR."""

Lines = dict[type[Event], Callable[[Any], Line | None]]
"""By the kind of event. None: the operator does not read of this one."""

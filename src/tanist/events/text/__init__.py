"""`describe`: the operator's line of an event. One table, so that a message and its event cannot disagree."""

from __future__ import annotations

from tanist.events.event import Event
from tanist.events.text import coordination, metadata, process, quorum, replication, storage
from tanist.events.text.line import Line, Lines

_TABLE: Lines = {
    **metadata.LINES,
    **quorum.LINES,
    **coordination.LINES,
    **process.LINES,
    **replication.LINES,
    **storage.LINES,
}


def describe(event: Event) -> Line | None:
    """The level and the text for the operator's log. None: the event is not for it."""
    rendered = _TABLE.get(type(event))
    return None if rendered is None else rendered(event)

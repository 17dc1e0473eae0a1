"""The events of a cluster's nodes, as tests look for them and wait for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tanist.events.event import Event
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.node_events import NodeEvent, by_time, events_of, merged
from tanist.testing.conditions import wait_for_true
from tanist.testing.errors import NotInTime


def find(folder: Path, kind: type[Event] | None, topic: str | None, fields: Mapping[str, object]) -> list[NodeEvent]:
    """The events so far, by time: of one kind, of one topic, with these fields."""
    with events_of(folder, load_existing(folder).nodes) as sources:
        return [each for each in merged(sources) if _is_wanted(each, kind, topic, fields)]


def wait_for_event(
    folder: Path,
    kind: type[Event],
    topic: str | None,
    fields: Mapping[str, object],
    after: NodeEvent | None,
    timeout_s: float,
) -> NodeEvent:
    """The first such event, or the first one after another. `NotInTime` after `timeout_s`."""
    known: list[NodeEvent] = []
    found: list[NodeEvent] = []

    def has_come() -> bool:
        known.extend(merged(sources))
        known.sort(key=by_time)
        begin = 0 if after is None else known.index(after) + 1
        found[:] = [each for each in known[begin:] if _is_wanted(each, kind, topic, fields)]
        return bool(found)

    try:
        with events_of(folder, load_existing(folder).nodes) as sources:
            wait_for_true(has_come, timeout_s)
    except NotInTime:
        said = ", ".join(f"{name}={value!r}" for name, value in fields.items())
        of_topic = "" if topic is None else f" of {topic}"
        raise NotInTime(f"not within {timeout_s:g} s: {kind.__name__}({said}){of_topic}") from None
    return found[0]


def _is_wanted(each: NodeEvent, kind: type[Event] | None, topic: str | None, fields: Mapping[str, object]) -> bool:
    if kind is not None and type(each.event) is not kind:
        return False
    return (topic is None or each.is_about(topic)) and each.has(fields)

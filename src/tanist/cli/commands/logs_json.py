"""`tanist logs --json`: entries of logs as JSON, each with the event that it was made from, if there is one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from tanist.events.text import describe
from tanist.runtime.cluster.cluster_file import NodeEntry
from tanist.runtime.cluster.node_events import NodeEvent, NodeEvents, events_of, merged
from tanist.runtime.cluster.node_logs import Entry
from tanist.runtime.event_log import log_time


@contextmanager
def shown_with_events(folder: Path, nodes: Sequence[NodeEntry]) -> Iterator[Callable[[Iterable[Entry]], None]]:
    """What prints entries of the logs of these nodes."""
    with events_of(folder, nodes) as sources:
        yield _Printer(sources).show


class _Printer:
    """A node writes the event first, then its line, with the same time."""

    def __init__(self, sources: Sequence[NodeEvents]) -> None:
        self._sources = sources
        self._by_line: dict[tuple[int, str, str], NodeEvent] = {}

    def show(self, entries: Iterable[Entry]) -> None:
        found = list(entries)
        if found:
            self._read_new()
        for entry in found:
            shown: dict[str, Any] = {
                "time": entry.time, "node": entry.node_id, "level": entry.level, "text": entry.text,
            }  # fmt: skip
            event = self._by_line.pop((entry.node_id, entry.time, entry.text), None)
            if event is not None:
                shown["event"] = {"kind": event.kind, **event.fields}
            click.echo(json.dumps(shown, ensure_ascii=False))

    def _read_new(self) -> None:
        """Read what is new."""
        for each in merged(self._sources):
            line = describe(each.event)
            if line is not None:
                self._by_line[each.node_id, log_time(each.wall_ms), line[1]] = each

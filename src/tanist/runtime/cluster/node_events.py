"""The events of a cluster's nodes as one stream: merged by time, and followed as they come.

It reads the files that nodes write (`runtime.event_log`), of nodes that run and of those that do not. A line
that is no event, or one of a kind that this version does not know, is left out.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tanist.events.event import Event, from_json, to_json
from tanist.runtime.cluster.cluster_file import ClusterError, NodeEntry
from tanist.runtime.cluster.growing_file import GrowingFile
from tanist.runtime.cluster.layout import log_directories
from tanist.runtime.event_log import FILE_NAME, PREVIOUS_NAME


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """An event, the node that emitted it, and when."""

    wall_ms: int
    """Milliseconds since 1970, by the clock of the node."""
    node_id: int
    event: Event

    @property
    def kind(self) -> str:
        return type(self.event).__name__

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the event, as in JSON."""
        return {name: value for name, value in to_json(self.event).items() if name != "event"}

    def is_about(self, topic: str) -> bool:
        """Whether it names the topic, or a partition of it."""
        fields = self.fields
        return topic in (fields.get("topic"), str(fields.get("partition", "")).rpartition("-")[0])

    def has(self, wanted: Mapping[str, Any]) -> bool:
        """Whether its fields have these values. `ValueError` if it has no such field."""
        for name, value in wanted.items():
            if not hasattr(self.event, name):
                raise ValueError(f"{self.kind} has no field {name}: it has {', '.join(self.fields) or 'none'}")
            if getattr(self.event, name) != value:
                return False
        return True


class NodeEvents:
    """One node's events, read on from where the last look ended."""

    def __init__(self, node_id: int, folder: Path) -> None:
        """`folder`: the node's first log directory."""
        self.node_id = node_id
        self._file = GrowingFile(folder / FILE_NAME, folder / PREVIOUS_NAME)

    def new(self) -> Iterator[NodeEvent]:
        """The events since the last look."""
        with suppress(OSError):
            for line in self._file.lines():
                try:
                    document = json.loads(line)
                    yield NodeEvent(int(document["ms"]), self.node_id, from_json(document))
                except (ValueError, KeyError, TypeError):
                    continue

    def close(self) -> None:
        self._file.close()


@contextmanager
def events_of(folder: Path, nodes: Sequence[NodeEntry]) -> Iterator[list[NodeEvents]]:
    """The files of these nodes of a cluster, open meanwhile. A node without a readable `server.properties` has none."""
    found = []
    for node in nodes:
        try:
            directories = log_directories(folder, node.node_id)
        except ClusterError:
            continue
        found.append(NodeEvents(node.node_id, Path(directories[0])))
    try:
        yield found
    finally:
        for each in found:
            each.close()


def merged(nodes: Sequence[NodeEvents]) -> Iterator[NodeEvent]:
    """The new events of all nodes, by time; of equals, by node."""
    return heapq.merge(*(node.new() for node in nodes), key=by_time)


def by_time(event: NodeEvent) -> tuple[int, int]:
    """The place of an event among those of all nodes."""
    return event.wall_ms, event.node_id

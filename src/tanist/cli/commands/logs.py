"""`tanist logs`: what the nodes have said, in one stream."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from tanist.cli.options import data_option
from tanist.events.text import describe
from tanist.runtime.cluster import layout
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.node_events import NodeEvent, NodeEvents, events_of
from tanist.runtime.cluster.node_events import merged as merged_events
from tanist.runtime.cluster.node_logs import LEVELS, Entry, NodeLog, log_time, merged

_LOOK_EVERY_S = 0.2
_COLOURS = {"WARN": "yellow", "ERROR": "red"}


@click.command("logs")
@click.argument("node_ids", metavar="[NODE]...", nargs=-1, type=int)
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    "most",
    type=click.IntRange(0),
    help="Show only this many lines, the last.  [default: all; with -f 10]",
)
@click.option("--level", type=click.Choice(LEVELS), default=LEVELS[0], help="Only from this level up.")
@data_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each line instead of text.")
def logs_command(
    node_ids: tuple[int, ...], follow: bool, most: int | None, level: str, folder: Path, as_json: bool
) -> None:
    """Show the logs of all nodes, or of some, merged by time.

    \b
    tanist logs -f
    tanist logs 2 3 --level WARN

    The nodes need not run. The files are DIR/node-ID/node.log. With --json a line that was made from an event has the
    event as well (`tanist events`).
    """
    cluster = load_existing(folder)
    nodes = [cluster.node(node_id) for node_id in dict.fromkeys(node_ids)] or cluster.nodes
    logs = [NodeLog(node.node_id, layout.log_path(folder, node.node_id)) for node in nodes]
    least = LEVELS.index(level)

    def wanted(entries: Iterable[Entry]) -> Iterable[Entry]:
        return (entry for entry in entries if entry.level not in LEVELS or LEVELS.index(entry.level) >= least)

    if most is None and follow:
        most = 10
    events = _Events(events_of(folder, nodes)) if as_json else None
    try:
        _show(deque(wanted(merged(logs, final=not follow)), maxlen=most), events)
        while follow:
            time.sleep(_LOOK_EVERY_S)
            _show(wanted(merged(logs, final=False)), events)
    except KeyboardInterrupt:
        return
    finally:
        for log in logs:
            log.close()
        if events is not None:
            events.close()


class _Events:
    """The events from which lines were made. A node writes the event first, then its line, with the same time."""

    def __init__(self, sources: Sequence[NodeEvents]) -> None:
        self._sources = sources
        self._by_line: dict[tuple[int, str, str], NodeEvent] = {}

    def look(self) -> None:
        """Read what is new."""
        for each in merged_events(self._sources):
            line = describe(each.event)
            if line is not None:
                self._by_line[each.node_id, log_time(each.wall_ms), line[1]] = each

    def of(self, entry: Entry) -> NodeEvent | None:
        return self._by_line.pop((entry.node_id, entry.time, entry.text), None)

    def close(self) -> None:
        for source in self._sources:
            source.close()


def _show(entries: Iterable[Entry], events: _Events | None) -> None:
    """`events`: print JSON, with the event of each line that was made from one."""
    found = list(entries)
    if events is not None and found:
        events.look()
    for entry in found:
        if events is not None:
            shown: dict[str, Any] = {
                "time": entry.time, "node": entry.node_id, "level": entry.level, "text": entry.text,
            }  # fmt: skip
            event = events.of(entry)
            if event is not None:
                shown["event"] = {"kind": event.kind, **event.fields}
            click.echo(json.dumps(shown, ensure_ascii=False))
            continue
        head = f"{entry.time[11:]:12} {entry.node_id:>4} {entry.level:5} "
        lines = entry.text.split("\n")
        click.secho(head + lines[0], fg=_COLOURS.get(entry.level))
        for line in lines[1:]:
            click.echo("    " + line)
    sys.stdout.flush()

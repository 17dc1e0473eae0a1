"""`tanist events`: what the nodes have decided and seen, in one stream."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from tanist.cli.options import data_option
from tanist.cli.output.following import COLOURS, show_stream
from tanist.events.event import Event
from tanist.events.text import describe
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.node_events import NodeEvent, events_of, merged


@click.command("events")
@click.argument("kinds", metavar="[KIND]...", nargs=-1)
@click.option("-f", "--follow", is_flag=True, help="Go on with new events until Ctrl-C.")
@click.option(
    "-n",
    "--last",
    "most",
    type=click.IntRange(0),
    help="Show only this many events, the last.  [default: all; with -f 10]",
)
@click.option("--node", "node_ids", metavar="NODE", type=int, multiple=True, help="Only of this node. Repeatable.")
@click.option("--topic", help="Only of this topic and its partitions.")
@click.option("--kinds", "list_kinds", is_flag=True, help="List the kinds of events, and end.")
@data_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each event instead of text.")
def events_command(
    kinds: tuple[str, ...],
    follow: bool,
    most: int | None,
    node_ids: tuple[int, ...],
    topic: str | None,
    list_kinds: bool,
    folder: Path,
    as_json: bool,
) -> None:
    """Show what the nodes have decided and seen, merged by time.

    \b
    tanist events -f
    tanist events LeaderElected UncleanElection --topic orders

    An event has a kind and fields; `tanist logs` has the sentences. The nodes need not run. Events of records and
    fetches are written where `tanist.events.fine` is true (`tanist up --config tanist.events.fine=true`).
    """
    if list_kinds:
        for kind in sorted(Event.kinds):
            click.echo(json.dumps({"event": kind}) if as_json else kind)
        return
    for kind in kinds:
        if kind not in Event.kinds:
            near = " or ".join(get_close_matches(kind, Event.kinds, n=2))
            raise click.BadParameter(
                f"{kind} is no kind of event; " + (f"did you mean {near}?" if near else "--kinds lists them")
            )
    cluster = load_existing(folder)
    nodes = [cluster.node(node_id) for node_id in dict.fromkeys(node_ids)] or cluster.nodes
    with events_of(folder, nodes) as sources:

        def new() -> Iterable[NodeEvent]:
            for each in merged(sources):
                if (not kinds or each.kind in kinds) and (topic is None or each.is_about(topic)):
                    yield each

        show_stream(new, _show_json if as_json else _show, most=most, follow=follow)


def _show_json(events: Iterable[NodeEvent]) -> None:
    for each in events:
        found = {"ms": each.wall_ms, "node": each.node_id, "event": each.kind, **each.fields}
        click.echo(json.dumps(found, ensure_ascii=False))


def _show(events: Iterable[NodeEvent]) -> None:
    for each in events:
        line = describe(each.event)
        clock = time.strftime("%H:%M:%S", time.localtime(each.wall_ms / 1000))
        fields = "  ".join(_changes(each.fields))
        colour = None if line is None else COLOURS.get(line[0])
        click.secho(f"{clock},{each.wall_ms % 1000:03d} {each.node_id:>4} {each.kind}  {fields}".rstrip(), fg=colour)


def _changes(fields: dict[str, Any]) -> Iterator[str]:
    """The fields. Of a pair such as `isr_before` and `isr` the change, if there is one."""
    for name, value in fields.items():
        before = f"{name}_before"
        if before not in fields:
            if not (name.endswith("_before") and name.removesuffix("_before") in fields):
                yield f"{name} {_value(value)}"
        elif fields[before] != value:
            yield f"{name} {_value(fields[before])} -> {_value(value)}"


def _value(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)

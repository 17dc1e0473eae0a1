"""`tanist logs`: what the nodes have said, in one stream."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from tanist.cli.options import data_option
from tanist.cli.output.following import COLOURS, show_stream
from tanist.runtime.cluster import layout
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.node_logs import LEVELS, Entry, NodeLog, merged


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

    def new() -> Iterable[Entry]:
        found = merged(logs, final=not follow)
        return (entry for entry in found if entry.level not in LEVELS or LEVELS.index(entry.level) >= least)

    try:
        if as_json:
            from tanist.cli.commands.logs_json import shown_with_events  # takes a while to import

            with shown_with_events(folder, nodes) as show:
                show_stream(new, show, most=most, follow=follow)
        else:
            show_stream(new, _show, most=most, follow=follow)
    finally:
        for log in logs:
            log.close()


def _show(entries: Iterable[Entry]) -> None:
    for entry in entries:
        head = f"{entry.time[11:]:12} {entry.node_id:>4} {entry.level:5} "
        lines = entry.text.split("\n")
        click.secho(head + lines[0], fg=COLOURS.get(entry.level))
        for line in lines[1:]:
            click.echo("    " + line)

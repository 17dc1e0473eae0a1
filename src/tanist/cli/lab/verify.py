"""`tanist lab verify`: what clients did and saw, held against what Kafka promises (docs/history.md)."""

from __future__ import annotations

from pathlib import Path

import click

from tanist.cli.options import json_option
from tanist.cli.output.lines import say_all
from tanist.cli.output.progress import Progress, announce
from tanist.cli.output.tables import print_json

EXIT_ANOMALIES = 1
EXIT_MALFORMED = 2
_BYTES_PER_S = 16_000_000
"""Of JSON lines, on one core."""
_ANOMALIES = [
    "lost-write",
    "inconsistent-offsets",
    "duplicate",
    "torn",
    "G1a",
    "precommitted-read",
    "G1c",
    "phantom",
    "realtime-order",
    "stale-end",
    "nonmonotonic-send",
    "int-nonmonotonic-send",
    "nonmonotonic-poll",
    "int-nonmonotonic-poll",
    "poll-skip",
    "int-poll-skip",
    "unseen",
    "G0",
    "int-send-skip",
]
"""`tanist.lab.history.Anomaly`, which is imported when the command is called."""


class Malformed(click.ClickException):
    """The file is no history, or one that says nothing."""

    exit_code = EXIT_MALFORMED


@click.command("verify")
@click.argument("history", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(_ANOMALIES),
    metavar="ANOMALY",
    help="Report this anomaly, but do not fail for it. Repeatable.",
)
@json_option
@click.pass_context
def verify_command(ctx: click.Context, history: Path, allow: tuple[str, ...], as_json: bool) -> None:
    """Find Jepsen's Kafka anomalies in a history of any Kafka.

    HISTORY lists the clients' operations and transactions, with their results, as JSON Lines or Parquet
    (docs/history.md). The command counts each anomaly and prints the fewest operations that prove it, with their line
    numbers. The exit code is 0 when nothing is wrong, 1 when something is, 2 when the file is malformed or has nothing
    to judge.

    \b
    lost-write            acknowledged, but missing in later polls
    inconsistent-offsets  one offset, several values
    duplicate             one value, several offsets
    torn                  a transaction whose records were not all visible
    G1a                   the send or transaction failed, but it was polled
    precommitted-read     polled as committed before the commit
    G1c                   transactions that read each other's records
    phantom               polled, but never sent
    realtime-order        sent after another was acknowledged, but stored first
    stale-end             an end offset before an acknowledged record
    nonmonotonic-send     a producer's records are not in the order it sent them
    nonmonotonic-poll     a consumer went back
    poll-skip             a consumer skipped records
    int-...               the last three, within one transaction
    unseen                acknowledged, never polled, though all was read
    G0, int-send-skip     transactions that wrote between each other's records

    Reported, but no failure, because Kafka allows it: G0, int-send-skip, G1c inferred from offsets, and under subscribe
    a poll-skip or nonmonotonic-poll from one operation to the next.
    """
    from tanist.lab.history import Anomaly, HistoryError, open_history, report, verify

    allowed = tuple(Anomaly(name) for name in allow)
    try:
        file = open_history(history)
        size_bytes = history.stat().st_size
        announce(f"reading {size_bytes / 1e6:,.0f} MB", size_bytes / _BYTES_PER_S)
        read = 0
        with Progress() as show:

            def tell(size: int) -> None:
                nonlocal read
                read += size
                show(f"{100 * read // max(file.size, 1)} % is read")

            verdict, operations = verify(file, tell)
    except HistoryError as error:
        raise Malformed(f"{history}: {error}") from error
    nothing = report.nothing_to_judge(verdict)
    if nothing is not None:
        raise Malformed(f"{history}: {nothing}")
    if as_json:
        print_json(report.as_json(verdict, operations, allowed))
    else:
        say_all(report.lines(verdict, operations, allowed))
    if report.failures(verdict, allowed):
        ctx.exit(EXIT_ANOMALIES)

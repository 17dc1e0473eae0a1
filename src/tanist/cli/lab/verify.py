"""`tanist lab verify`: what clients did and saw, held against what Kafka promises (docs/history.md)."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

import click

from tanist.cli.options import json_option
from tanist.cli.output.lines import say_all
from tanist.cli.output.progress import Progress, announce
from tanist.cli.output.tables import print_json
from tanist.lab.anomalies import OF_HISTORIES, Anomaly

EXIT_ANOMALIES = 1
EXIT_MALFORMED = 2
_BYTES_PER_S = 16_000_000
"""Of JSON lines, on one core."""
_ANOMALIES = [anomaly.value for anomaly in OF_HISTORIES]
_NAME = 23
"""The column of the texts in the help."""
_HELP = """Find Jepsen's Kafka anomalies in a history of any Kafka.

HISTORY lists the clients' operations and transactions, with their results, as JSON Lines or Parquet
(docs/history.md). The command counts each anomaly and prints the fewest operations that prove it, with their line
numbers. The exit code is 0 when nothing is wrong, 1 when something is, 2 when the file is malformed or has nothing
to judge.

\b
{anomalies}

Reported, but no failure, because Kafka allows it: G0, int-send-skip, G1c inferred from offsets, and under subscribe
a poll-skip or nonmonotonic-poll from one operation to the next.
""".format(
    anomalies="\n".join(
        fill(each.meaning, 76, initial_indent=f"{each.value:<{_NAME}}", subsequent_indent=" " * _NAME)
        for each in OF_HISTORIES
    )
)


class Malformed(click.ClickException):
    """The file is no history, or one that says nothing."""

    exit_code = EXIT_MALFORMED


@click.command("verify", help=_HELP)
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
    from tanist.lab.history import HistoryError, open_history, report, verify

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

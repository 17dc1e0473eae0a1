"""`tanist top`: brokers and partitions at work, in 80 columns."""

from __future__ import annotations

import json
import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import click

from tanist.cli.options import client_given, client_options, json_option
from tanist.cli.output.lines import columns, wrapped
from tanist.cli.output.top_screen import broker_ids, refresh_json, screen
from tanist.runtime.client.activity import Sample, sample
from tanist.runtime.client.client import Address, Client, KafkaError, Unreachable

_ASK_S = 3.0
_ROWS_IN_A_PIPE = 20
_KEYS = "q: quit"
_HOME_AND_CLEAR = "\x1b[H\x1b[J"


@click.command("top")
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(0.1),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Refresh every SECONDS.",
)
@click.option("--count", type=click.IntRange(1), help="End after this many refreshes.  [default: until q; in a pipe 1]")
@click.option("--rows", type=click.IntRange(1), help="Show this many partitions.  [default: what fits; in a pipe 20]")
@click.option("--topic", "topics", multiple=True, help="Partitions of this topic only. Repeatable.")
@click.option("--internal", is_flag=True, help="Partitions of internal topics as well.")
@client_options
@json_option
def top_command(
    interval_s: float,
    count: int | None,
    rows: int | None,
    topics: tuple[str, ...],
    internal: bool,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Watch brokers and partitions at work: rates, ISR, lag.

    Partitions in trouble come first (no leader, or under-replicated), then the busiest. RECORDS/S counts the records
    committed since the last refresh. LAG is the largest lag of any group, with the group's name. On a terminal q ends
    it; in a pipe it prints once and ends.
    """
    live = sys.stdout.isatty() and not as_json
    looks = count if count is not None or live else 1

    def client() -> Client:
        return client_given(bootstrap, folder, timeout_s=_ASK_S)

    def show(samples: tuple[Sample, Sample] | str) -> None:
        if as_json and not isinstance(samples, str):
            click.echo(json.dumps(refresh_json(*samples, topics)))
            return
        now = time.strftime("%H:%M:%S")
        if isinstance(samples, str):
            lines = wrapped(f"{now}  {samples}", columns())
        else:
            most = rows or (_rows_that_fit(samples[1]) if live else _ROWS_IN_A_PIPE)
            lines = list(screen(*samples, topics, most, now))
        click.echo("\n".join([_HOME_AND_CLEAR + lines[0], *lines[1:], "", _KEYS] if live else lines))

    try:
        with _pauses(live) as pause:
            found = _samples(client, interval_s, pause, internal=internal, patient=live)
            for each in islice(found, looks):
                show(each)
    except KeyboardInterrupt:
        return


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


@contextmanager
def _pauses(live: bool) -> Iterator[Callable[[float], bool]]:
    """A pause of some seconds, which gives whether `q` was pressed."""
    if not live or not sys.stdin.isatty():
        yield _sleep
        return
    import termios
    import tty

    def pause(seconds: float) -> bool:
        end = time.monotonic() + seconds
        while select.select([sys.stdin], [], [], max(0.0, end - time.monotonic()))[0]:
            if os.read(sys.stdin.fileno(), 1) in (b"q", b"Q", b""):
                return True
        return False

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield pause
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _samples(
    client: Callable[[], Client], interval_s: float, pause: Callable[[float], bool], *, internal: bool, patient: bool
) -> Iterator[tuple[Sample, Sample] | str]:
    """Two samples each. With patience, a failure is a sample as well: what is wrong. Ends when a pause says so."""
    before: Sample | None = None
    while True:
        began = time.monotonic()
        try:
            with client() as asking:
                after = sample(asking, internal=internal)
        except (Unreachable, KafkaError) as error:
            if not patient:
                raise
            yield error.in_words if isinstance(error, Unreachable) else f"no broker answers ({error})"
        else:
            if before is not None:
                yield before, after
            before = after
        if pause(max(0.0, began + interval_s - time.monotonic())):
            return


def _rows_that_fit(after: Sample) -> int:
    return max(3, shutil.get_terminal_size().lines - len(broker_ids(after)) - 8)

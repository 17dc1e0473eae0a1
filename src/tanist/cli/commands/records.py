"""`tanist produce`: lines to records."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from tanist.cli.commands.topic_partitions import partitions_of
from tanist.cli.options import client_options, connect, json_option
from tanist.cli.output.record_lines import parse_line
from tanist.cli.output.tables import print_json
from tanist.runtime.client.acknowledged import ledger
from tanist.runtime.client.client import Address, KafkaError, Unreachable
from tanist.runtime.client.records import Producer, partition_for
from tanist.text import counted
from tanist.wire.batch import NewRecord

_LINES_PER_BATCH = 500
_LINES_IN_TURN = 50
"""Lines without a key that go to one partition before the next has its turn."""

_ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}


@click.command("produce")
@click.argument("topic")
@click.option(
    "--partition", type=click.IntRange(0), help="Send to this partition.  [default: by key, else all in turn]"
)
@click.option(
    "--acks",
    type=click.Choice(sorted(_ACKS)),
    default="all",
    show_default=True,
    help="What must have a record before it counts as sent: all in-sync replicas, the leader (1), or nothing (0).",
)
@click.option("--key-separator", metavar="TEXT", help="The text before it in a line is the record's key.")
@click.option("--headers", is_flag=True, help="Each line begins with headers: name:value,name:value and a TAB.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: each line is an object with key, value, headers and timestamp, as from `tanist consume --format json`.",
)
@click.option(
    "--ledger",
    "ledger_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Add each record to this file once it is acknowledged, for `tanist account`.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    default=30.0,
    show_default=True,
    help="Give up when a record is not acknowledged by then.",
)
@client_options
@json_option
def produce_command(
    topic: str,
    partition: int | None,
    acks: str,
    key_separator: str | None,
    headers: bool,
    form: str,
    ledger_path: Path | None,
    timeout_s: float,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Send each line of standard input as a record of TOPIC.

    \b
    echo hello | tanist produce greetings
    printf 'trace:7,from:shop\\t4711=paid\\n' |
        tanist produce orders --headers --key-separator =
    seq 1 1000 | tanist produce orders --ledger acked.jsonl
    """
    objects = form == "json"
    if objects and (headers or key_separator):
        raise click.UsageError(
            "--format json has key and headers in each line: leave out --key-separator and --headers"
        )
    if ledger_path is not None and _ACKS[acks] == 0:
        raise click.UsageError("--ledger needs acknowledgements, and --acks 0 has none")
    with connect(bootstrap, folder) as client, ledger(ledger_path) as note:
        partitions = partitions_of(client, topic, partition)
        producer = Producer(client, acks=_ACKS[acks], idempotent=_ACKS[acks] == -1)
        turn = itertools.cycle(partitions)
        here = partitions[0]
        sent = number = 0
        for lines in _batches(sys.stdin.buffer):
            now_ms = time.time_ns() // 1_000_000
            keyless = 0
            placed: dict[int, list[NewRecord]] = {}
            for line in lines:
                number += 1
                try:
                    record = parse_line(line, now_ms, json=objects, headers=headers, key_separator=key_separator)
                except ValueError as error:
                    raise click.ClickException(
                        f"line {number}: {error}. {counted(sent, 'record')} sent before it"
                    ) from None
                if record.key is not None:
                    to = partitions[partition_for(record.key, len(partitions))]
                else:
                    if keyless % _LINES_IN_TURN == 0:
                        here = next(turn)
                    to, keyless = here, keyless + 1
                placed.setdefault(to, []).append(record)
            for to, records in placed.items():
                try:
                    offset = producer.send(topic, to, records, timeout_s=timeout_s)
                except (KafkaError, Unreachable) as error:
                    raise click.ClickException(
                        f"{error}. {counted(sent, 'record')} sent; the next {len(records)} were not acknowledged"
                    ) from error
                sent += len(records)
                note(topic, to, offset, records)
    if as_json:
        print_json({"topic": topic, "sent": sent})
    else:
        click.echo(f"{counted(sent, 'record')} sent", err=True)


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Lines that arrive at once go together; at a terminal, each line goes on its own."""
    size = 1 if sys.stdin.isatty() else _LINES_PER_BATCH
    remaining = iter(lines)
    while batch := [line.rstrip(b"\r\n") for line in itertools.islice(remaining, size)]:
        yield batch

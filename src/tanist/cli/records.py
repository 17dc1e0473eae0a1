"""`tanist produce` and `tanist consume`: lines to records and back, to try a cluster out."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from tanist.cli.options import client_options, connect
from tanist.runtime.client import Address, Client, KafkaError, Unreachable
from tanist.runtime.records import EARLIEST, LATEST, Producer, fetch, list_offset, partition_for
from tanist.wire.batch import NewRecord
from tanist.wire.errors import ErrorCode

_LINES_PER_BATCH = 500
_CONSUME_WAIT_MS = 500

_ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}


@click.command("produce")
@click.argument("topic")
@click.option(
    "--partition", type=click.IntRange(0), help="Send to this partition.  [default: by the key, or all in turn]"
)
@click.option(
    "--acks",
    type=click.Choice(sorted(_ACKS)),
    default="all",
    show_default=True,
    help="Who must have a record before it counts as sent: all in-sync replicas, the leader, or nobody.",
)
@click.option("--key-separator", metavar="TEXT", help="What is before it in a line becomes the record's key.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    default=30.0,
    show_default=True,
    help="Give up when records are not acknowledged within so long.",
)
@client_options
def produce_command(
    topic: str,
    partition: int | None,
    acks: str,
    key_separator: str | None,
    timeout_s: float,
    bootstrap: list[Address] | None,
    folder: Path,
) -> None:
    """Send each line of standard input as a record of TOPIC.

    \b
    echo hello | tanist produce greetings
    """
    with connect(bootstrap, folder) as client:
        partitions = _partitions(client, topic, partition)
        producer = Producer(client, acks=_ACKS[acks], idempotent=_ACKS[acks] == -1)
        turn = itertools.cycle(partitions)
        sent = 0
        for lines in _batches(sys.stdin.buffer):
            now_ms = time.time_ns() // 1_000_000
            here = next(turn)
            placed: dict[int, list[NewRecord]] = {}
            for line in lines:
                record = _record(line, key_separator, now_ms)
                to = here if record.key is None else partitions[partition_for(record.key, len(partitions))]
                placed.setdefault(to, []).append(record)
            for to, records in placed.items():
                try:
                    producer.send(topic, to, records, timeout_s=timeout_s)
                except (KafkaError, Unreachable) as error:
                    raise click.ClickException(
                        f"{error}. {sent} records sent; the next {len(records)} were not acknowledged"
                    ) from error
                sent += len(records)
    click.echo(f"{sent} records sent", err=True)


@click.command("consume")
@click.argument("topic")
@click.option("--partition", type=click.IntRange(0), help="Read this partition.  [default: all]")
@click.option("--from-beginning", is_flag=True, help="Begin with the oldest record.  [default: with what comes next]")
@click.option("--max-messages", type=click.IntRange(1), help="Stop after so many.  [default: never]")
@click.option(
    "--timeout",
    "timeout_s",
    type=float,
    metavar="SECONDS",
    help="Stop when nothing came for so long.  [default: never]",
)
@click.option("--print-offsets", is_flag=True, help="Put partition, offset and key in front of each value.")
@client_options
def consume_command(
    topic: str,
    partition: int | None,
    from_beginning: bool,
    max_messages: int | None,
    timeout_s: float | None,
    print_offsets: bool,
    bootstrap: list[Address] | None,
    folder: Path,
) -> None:
    """Print the records of TOPIC, a line each.

    \b
    tanist consume greetings --from-beginning --max-messages 10
    """
    with connect(bootstrap, folder) as client:
        where = EARLIEST if from_beginning else LATEST
        positions = {
            number: list_offset(client, topic, number, where) for number in _partitions(client, topic, partition)
        }
        try:
            shown = _consume(client, topic, positions, max_messages, timeout_s, print_offsets)
        except KeyboardInterrupt:
            return
    click.echo(f"{shown} records read", err=True)


def _consume(
    client: Client,
    topic: str,
    positions: dict[int, int],
    most: int | None,
    timeout_s: float | None,
    print_offsets: bool,
) -> int:
    shown = 0
    last_news = time.monotonic()
    wait_ms = max(1, _CONSUME_WAIT_MS // len(positions))
    while timeout_s is None or time.monotonic() - last_news < timeout_s:
        for partition in positions:
            fetched = fetch(client, topic, partition, positions[partition], max_wait_ms=wait_ms)
            for record in fetched.records:
                prefix = f"{partition}\t{record.offset}\t{_text(record.key)}\t" if print_offsets else ""
                click.echo(prefix + _text(record.value))
                shown += 1
                if shown == most:
                    return shown
            if fetched.records:
                last_news = time.monotonic()
            positions[partition] = fetched.next_offset
    return shown


def _partitions(client: Client, topic: str, partition: int | None) -> list[int]:
    """The partitions to use: the one that was asked for, or all there are."""

    def attempt() -> list[int]:
        about = client.metadata([topic]).topics.get(topic)
        code = about.error_code if about is not None else int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if about is None or code:
            raise KafkaError(code, f"topic {topic}: `tanist topics create {topic}` makes it")
        return sorted(about.partitions)

    found = client.persist(attempt, timeout_s=2.0)
    if partition is None:
        return found
    if partition not in found:
        raise click.ClickException(f"{topic} has partitions 0 to {len(found) - 1}, not {partition}")
    return [partition]


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """What is there at once goes together; at a terminal, each line on its own."""
    size = 1 if sys.stdin.isatty() else _LINES_PER_BATCH
    remaining = iter(lines)
    while batch := [line.rstrip(b"\r\n") for line in itertools.islice(remaining, size)]:
        yield batch


def _record(line: bytes, key_separator: str | None, now_ms: int) -> NewRecord:
    if key_separator:
        key, found, value = line.partition(key_separator.encode())
        if found:
            return NewRecord(now_ms, key, value)
    return NewRecord(now_ms, None, line)


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode(errors="replace")

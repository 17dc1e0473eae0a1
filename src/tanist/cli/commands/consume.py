"""`tanist consume`: records to lines, by assignment or as a member of a group."""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import click

from tanist.cli.commands.topic_partitions import partitions_of
from tanist.cli.options import client_options, connect
from tanist.cli.output.record_lines import Form
from tanist.client.positions import EARLIEST, LATEST
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.client import Address, Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.group_member import PROTOCOLS, PolledGroupMember, new_member
from tanist.runtime.client.groups import committed_offsets
from tanist.runtime.client.records import fetch, list_offset
from tanist.text import counted
from tanist.wire.batch import Record
from tanist.wire.errors import ErrorCode

_WAIT_MS = 500
_UNCOMMITTED, _COMMITTED = "read_uncommitted", "read_committed"
_ASSIGNMENT_LOOK_S = 0.1
_FETCH_PATIENCE_S = 2.0
"""In a group. A partition without a leader must not keep the heartbeats."""


@click.command("consume")
@click.argument("topic")
@click.option("--partition", type=click.IntRange(0), help="Read this partition.  [default: all]")
@click.option("--group", metavar="NAME", help="Read as a member of this group, and commit what was printed.")
@click.option(
    "--group-protocol",
    "protocol",
    type=click.Choice(list(PROTOCOLS)),
    help="consumer: KIP-848's protocol; classic: the older one.  [default: consumer, where the cluster has it]",
)
@click.option(
    "--from-beginning",
    is_flag=True,
    help="Begin with the oldest record; in a group, only where nothing is committed.  [default: only new records]",
)
@click.option("--max-messages", type=click.IntRange(1), help="Stop after this many records.  [default: never]")
@click.option(
    "--timeout",
    "timeout_s",
    type=float,
    metavar="SECONDS",
    help="Stop after SECONDS without a record.  [default: never]",
)
@click.option(
    "--isolation-level",
    "isolation",
    type=click.Choice([_UNCOMMITTED, _COMMITTED]),
    default=_UNCOMMITTED,
    show_default=True,
    help="read_committed: leave out aborted transactions, and wait for the end of open ones.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: one object for each record: topic, partition, offset, timestamp, key, value, headers.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--headers", is_flag=True, help="Put the headers in front of each value: name:value,... and a TAB.")
@click.option("--print-offsets", is_flag=True, help="Put partition, offset and key in front of each value.")
@client_options
def consume_command(
    topic: str,
    partition: int | None,
    group: str | None,
    protocol: str | None,
    from_beginning: bool,
    max_messages: int | None,
    timeout_s: float | None,
    isolation: str,
    form: str,
    as_json: bool,
    headers: bool,
    print_offsets: bool,
    bootstrap: list[Address] | None,
    folder: Path,
) -> None:
    """Print the records of TOPIC, one on each line.

    \b
    tanist consume greetings --from-beginning --max-messages 10
    tanist consume orders --group billing --format json

    With --group the command shares the partitions with the group's other members, of any client library. It starts from
    the committed offsets, and commits the records that it has printed. Ctrl-C or SIGTERM leaves the group.
    """
    if group is not None and partition is not None:
        raise click.UsageError("the group assigns the partitions: leave out --partition or --group")
    if group == "":
        raise click.UsageError("--group needs a name")
    shape = Form(json=as_json or form == "json", headers=headers, places=print_offsets)
    shown = _Shown(shape, max_messages, timeout_s, isolation == _COMMITTED)
    with connect(bootstrap, folder) as client:
        where = EARLIEST if from_beginning else LATEST
        partitions = partitions_of(client, topic, partition)
        try:
            if group is None:
                positions = {
                    number: list_offset(client, topic, number, where, read_committed=shown.read_committed)
                    for number in partitions
                }
                _read(client, topic, positions, shown)
            else:
                try:
                    member = new_member(client, group, [topic], protocol)
                    _read_as_member(member, where, shown)
                except Unsupported as error:
                    if protocol is None:
                        raise
                    raise click.ClickException(
                        f"{error}: leave out --group-protocol, or use --group-protocol classic"
                    ) from error
        except KeyboardInterrupt:
            pass
        finally:
            shown.flush()
    click.echo(f"{counted(shown.count, 'record')} read", err=True)


@dataclass(slots=True)
class _Shown:
    """The number of printed records, and when to stop."""

    form: Form
    most: int | None
    timeout_s: float | None
    read_committed: bool = False
    count: int = 0
    last_news: float = 0.0

    def __post_init__(self) -> None:
        self.last_news = time.monotonic()

    @property
    def over(self) -> bool:
        late = self.timeout_s is not None and time.monotonic() - self.last_news >= self.timeout_s
        return late or self.full

    @property
    def full(self) -> bool:
        return self.most is not None and self.count >= self.most

    def show(self, topic: str, partition: int, records: tuple[Record, ...]) -> tuple[Record, ...]:
        """Print as many as are wanted; gives those."""
        wanted = records if self.most is None else records[: self.most - self.count]
        if wanted:
            sys.stdout.write("".join(self.form.line(topic, partition, record) for record in wanted))
            self.flush()
            self.count += len(wanted)
            self.last_news = time.monotonic()
        return wanted

    def flush(self) -> None:
        sys.stdout.flush()


def _read(client: Client, topic: str, positions: dict[int, int], shown: _Shown) -> None:
    wait_ms = max(1, _WAIT_MS // len(positions))
    while not shown.over:
        for partition in positions:
            fetched = fetch(
                client,
                topic,
                partition,
                positions[partition],
                max_wait_ms=wait_ms,
                read_committed=shown.read_committed,
            )
            shown.show(topic, partition, fetched.records)
            if shown.full:
                return
            positions[partition] = fetched.next_offset


def _read_as_member(member: PolledGroupMember, where: int, shown: _Shown) -> None:
    # A SIGTERM leaves the group as Ctrl-C does: the others would wait for the session's end otherwise.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        positions = _positions(member, {}, where, shown.read_committed)
        while not shown.over:
            if member.poll():
                positions = _positions(member, positions, where, shown.read_committed)
            if not positions:
                time.sleep(min(_ASSIGNMENT_LOOK_S, max(member.idle_s, 0.001)))
                continue
            handled: dict[TopicPartition, int] = {}
            try:
                _read_round(member.client, positions, handled, where, shown)
            finally:
                if handled and not member.commit(handled):
                    positions = {}
                    if not member.poll():  # it may be assigned the same again, and has to begin where the group is
                        positions = _positions(member, {}, where, shown.read_committed)
    finally:
        member.leave()
        signal.signal(signal.SIGTERM, before)


def _read_round(
    client: Client, positions: dict[TopicPartition, int], handled: dict[TopicPartition, int], where: int, shown: _Shown
) -> None:
    """A fetch of each partition. A partition without a leader at the moment is passed over."""
    wait_ms = max(1, _WAIT_MS // len(positions))
    for place in sorted(positions):
        try:
            fetched = fetch(
                client,
                *place,
                positions[place],
                max_wait_ms=wait_ms,
                timeout_s=0.0,
                answer_within_s=wait_ms / 1000 + _FETCH_PATIENCE_S,
                read_committed=shown.read_committed,
            )
        except KafkaError as error:
            if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                positions[place] = list_offset(client, *place, where, read_committed=shown.read_committed)
                click.echo(f"{place[0]}-{place[1]}: {error.name}; continuing at {positions[place]}", err=True)
            elif not error.retriable:
                raise
            continue
        except Unreachable:
            continue
        printed = shown.show(*place, fetched.records)
        if len(printed) < len(fetched.records):
            if printed:
                handled[place] = printed[-1].offset + 1
            return
        positions[place] = fetched.next_offset
        if fetched.records:
            handled[place] = fetched.next_offset


def _positions(
    member: PolledGroupMember, before: dict[TopicPartition, int], where: int, read_committed: bool
) -> dict[TopicPartition, int]:
    """Where to go on in what is assigned now: as before, or where the group is, or at the end that was asked for."""
    fresh = member.assigned - before.keys()
    committed = committed_offsets(member.client, member.group) if fresh else {}

    def start(place: TopicPartition) -> int:
        offset = committed.get(place)
        return list_offset(member.client, *place, where, read_committed=read_committed) if offset is None else offset

    return {place: before[place] if place in before else start(place) for place in sorted(member.assigned)}

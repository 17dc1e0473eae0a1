"""`tanist top`: brokers and partitions at work, in 80 columns."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from tanist.cli.options import client_options, json_option
from tanist.runtime.client.activity import Sample, rates, sample
from tanist.runtime.client.client import Address, Client, KafkaError, Unreachable
from tanist.runtime.client.topic_partition import TopicPartition
from tanist.runtime.cluster.addresses import addresses_of
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.text import counted

_WIDTH = 79
_ASK_S = 3.0
_ROWS_IN_A_PIPE = 20
_NAME_CHARS = 24
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
@click.option(
    "--count", type=click.IntRange(1), help="End after this many refreshes.  [default: until Ctrl-C; in a pipe 1]"
)
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
    committed since the last refresh. LAG is the largest lag of any group, with the group's name. In a pipe it prints
    once and ends.
    """
    live = sys.stdout.isatty() and not as_json
    looks = count if count is not None or live else 1

    def client() -> Client:
        return Client(bootstrap or addresses_of(load_existing(folder), folder), timeout_s=_ASK_S)

    try:
        for number, found in enumerate(_looks(client, interval_s, internal=internal, patient=live), start=1):
            if isinstance(found, str):
                click.echo(f"{_HOME_AND_CLEAR}{time.strftime('%H:%M:%S')}  {found}")
            elif as_json:
                click.echo(json.dumps(_as_json(*found, topics)))
            else:
                before, after = found
                most = rows or (_rows_that_fit(after) if live else _ROWS_IN_A_PIPE)
                text = "\n".join(screen(before, after, topics, most, time.strftime("%H:%M:%S")))
                click.echo((_HOME_AND_CLEAR if live else "") + text)
            if number == looks:
                return
    except KeyboardInterrupt:
        return


def _looks(
    client: Callable[[], Client], interval_s: float, *, internal: bool, patient: bool
) -> Iterator[tuple[Sample, Sample] | str]:
    """Two samples each. With patience, a failure is a look as well: what is wrong."""
    before: Sample | None = None
    while True:
        began = time.monotonic()
        try:
            with client() as asking:
                after = sample(asking, internal=internal)
        except (Unreachable, KafkaError) as error:
            if not patient:
                raise
            yield f"no broker answers ({error})"
        else:
            if before is not None:
                yield before, after
            before = after
        time.sleep(max(0.0, began + interval_s - time.monotonic()))


def _rows_that_fit(after: Sample) -> int:
    return max(3, shutil.get_terminal_size().lines - len(_broker_ids(after)) - 6)


def screen(before: Sample, after: Sample, topics: Sequence[str], most: int, now: str) -> Iterator[str]:
    """The lines of one look."""
    rate = rates(before, after)
    places = _ordered(after, rate, topics)
    down = sorted(_broker_ids(after) - after.brokers)
    missing = f" ({', '.join(map(str, down))} down)" if down else ""
    speed = sum(rate.get(place, 0.0) for place in places)
    controller = "none" if after.controller is None else after.controller
    yield (
        f"{now}  {counted(len(after.brokers), 'broker')}{missing}, controller {controller}, "
        f"{counted(len(places), 'partition')}, {_number(speed)} records/s"
    )[:_WIDTH]
    yield ""
    yield f"{'BROKER':8}{'STATE':8}{'LEADS':>7}{'REPLICAS':>10}{'IN SYNC':>9}{'RECORDS/S':>11}"
    for broker in sorted(_broker_ids(after)):
        leads = [place for place, each in after.partitions.items() if each.leader == broker]
        holds = sum(broker in each.replicas for each in after.partitions.values())
        in_sync = sum(broker in each.isr for each in after.partitions.values())
        written = _number(sum(rate.get(place, 0.0) for place in leads))
        state = "up" if broker in after.brokers else "down"
        yield f"{broker:<8}{state:8}{len(leads):>7}{holds:>10}{in_sync:>9}{written:>11}"
    yield ""
    yield f"{'PARTITION':{_NAME_CHARS}} {'LEADER':>6} {'ISR':8} {'END':>9} {'RECORDS/S':>9} {'LAG':>6}"
    for place in places[:most]:
        yield _partition_line(place, after, rate)
    if len(places) > most:
        yield f"and {counted(len(places) - most, 'more partition')}: --rows shows more, --topic fewer"


def _partition_line(place: TopicPartition, after: Sample, rate: Mapping[TopicPartition, float]) -> str:
    partition = after.partitions[place]
    name = f"{place[0]}-{place[1]}"
    name = name if len(name) <= _NAME_CHARS else f"{place[0][: _NAME_CHARS - len(str(place[1])) - 3]}..-{place[1]}"
    leader = "none" if partition.leader < 0 else str(partition.leader)
    isr = ",".join(map(str, partition.isr)) or "-"
    missing = len(partition.replicas) - len(partition.isr)
    isr = (isr if len(isr) <= 7 else f"{len(partition.isr)}/{len(partition.replicas)}") + ("!" if missing else "")
    end = after.ends.get(place)
    lag = after.lag(place)
    speed = _number(rate[place]) if place in rate else "-"
    shown = f"{name:{_NAME_CHARS}} {leader:>6} {isr:8} {'-' if end is None else end:>9} {speed:>9} "
    return (shown + (f"{'-':>6}" if lag is None else f"{lag[0]:>6} {lag[1]}"))[:_WIDTH]


def _ordered(after: Sample, rate: Mapping[TopicPartition, float], topics: Sequence[str]) -> list[TopicPartition]:
    def urgency(place: TopicPartition) -> tuple[bool, bool, float, TopicPartition]:
        partition = after.partitions[place]
        return (
            partition.leader >= 0,
            len(partition.isr) >= len(partition.replicas),
            -rate.get(place, 0.0),
            place,
        )

    return sorted((place for place in after.partitions if not topics or place[0] in topics), key=urgency)


def _broker_ids(after: Sample) -> set[int]:
    return set(after.brokers) | {broker for each in after.partitions.values() for broker in each.replicas}


def _number(value: float) -> str:
    return f"{value:.1f}" if 0 < value < 10 else f"{value:.0f}"


def _as_json(before: Sample, after: Sample, topics: Sequence[str]) -> dict[str, object]:
    rate = rates(before, after)
    places = _ordered(after, rate, topics)
    return {
        "interval_s": round(after.at_s - before.at_s, 3),
        "controller": after.controller,
        "brokers": [
            {
                "id": broker,
                "up": broker in after.brokers,
                "leads": sum(each.leader == broker for each in after.partitions.values()),
                "replicas": sum(broker in each.replicas for each in after.partitions.values()),
                "in_sync": sum(broker in each.isr for each in after.partitions.values()),
            }
            for broker in sorted(_broker_ids(after))
        ],
        "partitions": [
            {
                "topic": place[0],
                "partition": place[1],
                "leader": after.partitions[place].leader,
                "replicas": list(after.partitions[place].replicas),
                "isr": list(after.partitions[place].isr),
                "end": after.ends.get(place),
                "records_per_s": round(rate[place], 3) if place in rate else None,
                "lag": {
                    group: max(0, after.ends[place] - offsets[place])
                    for group, offsets in after.committed.items()
                    if place in offsets and place in after.ends
                },
            }
            for place in places
        ],
    }

"""`tanist transactions`: those of any Kafka cluster, as `kafka-transactions.sh` shows and ends them (KIP-664)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import click

from tanist.cli.options import client_options, connect, json_option
from tanist.cli.output.lines import say
from tanist.cli.output.tables import print_json, print_table
from tanist.cli.tree import Group
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client import transactions as of_transactions
from tanist.runtime.client.admin import describe_topics
from tanist.runtime.client.client import Address, Client
from tanist.runtime.client.transactions import HangingTransaction, ProducerDescription

_DEFAULT_MINUTES = 15
"""`transaction.max.timeout.ms` by default."""
_SLACK_MS = 5 * 60_000


@click.group("transactions", cls=Group)
def transactions_command() -> None:
    """List and describe transactions, and end those that hang."""


@transactions_command.command("list")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only ids in this state. Repeatable.")
@click.option("--producer-id", "producer_ids", multiple=True, type=int, metavar="ID", help="Only of this producer id.")
@click.option("--longer-than-ms", type=click.IntRange(0), metavar="MS", help="Only those that are open for longer.")
@click.option("--pattern", metavar="REGEX", help="Only ids that the whole expression (RE2) matches.")
@client_options
@json_option
def list_command(
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    longer_than_ms: int | None,
    pattern: str | None,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """List the transactional ids of the cluster.

    States are Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit and CompleteAbort.
    """
    with connect(bootstrap, folder) as client:
        found = of_transactions.list_transactions(
            client,
            states=states,
            producer_ids=producer_ids,
            longer_than_ms=-1 if longer_than_ms is None else longer_than_ms,
            pattern=pattern,
        )
    if as_json:
        print_json(
            [
                {
                    "transactional_id": each.transactional_id,
                    "coordinator": each.coordinator,
                    "producer_id": each.producer_id,
                    "state": each.state,
                }
                for each in found
            ]
        )
        return
    if not found:
        click.echo("no transactional ids")
        return
    rows = [(each.transactional_id, each.coordinator, each.producer_id, each.state) for each in found]
    print_table(("TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "STATE"), rows)


@transactions_command.command("describe")
@click.argument("transactional_id", metavar="ID")
@client_options
@json_option
def describe_command(transactional_id: str, bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """Show a transactional id and its transaction."""
    with connect(bootstrap, folder) as client:
        found = of_transactions.describe_transaction(client, transactional_id)
    if as_json:
        print_json(
            {
                "transactional_id": found.transactional_id,
                "coordinator": found.coordinator,
                "producer_id": found.producer_id,
                "producer_epoch": found.producer_epoch,
                "state": found.state,
                "timeout_ms": found.timeout_ms,
                "start_ms": found.start_ms,
                "partitions": [list(each) for each in found.partitions],
            }
        )
        return
    since = f" since {_time(found.start_ms)}" if found.start_ms >= 0 and found.partitions else ""
    say(
        f"{transactional_id}: {found.state}{since}, producer {found.producer_id} epoch {found.producer_epoch}, "
        f"timeout {found.timeout_ms} ms, coordinator {found.coordinator}"
    )
    for topic, partition in found.partitions:
        click.echo(f"  {topic}-{partition}")


@transactions_command.command("describe-producers")
@click.argument("topic")
@click.argument("partition", type=click.IntRange(0))
@client_options
@json_option
def producers_command(topic: str, partition: int, bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """Show the producers of a partition."""
    with connect(bootstrap, folder) as client:
        found = of_transactions.describe_producers(client, topic, partition)
    if as_json:
        print_json([_producer_json(each) for each in found])
        return
    if not found:
        click.echo(f"{topic}-{partition} remembers no producers")
        return
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            _time(each.last_timestamp_ms),
            "" if each.start_offset < 0 else each.start_offset,
        )
        for each in found
    ]
    print_table(("PRODUCER ID", "EPOCH", "LAST SEQUENCE", "LAST WRITE", "OPEN SINCE OFFSET"), rows)


@transactions_command.command("find-hanging")
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Only partitions of this topic. Repeatable.")
@click.option(
    "--max-transaction-timeout",
    "minutes",
    type=click.IntRange(0),
    default=_DEFAULT_MINUTES,
    show_default=True,
    metavar="MINUTES",
    help="The cluster's transaction.max.timeout.ms, in minutes.",
)
@client_options
@json_option
def hanging_command(
    topics: tuple[str, ...], minutes: int, bootstrap: list[Address] | None, folder: Path, as_json: bool
) -> None:
    """Find transactions that will never end.

    A partition has them open, and no coordinator knows them: readers of committed records wait for them for ever.
    `tanist transactions abort` ends one.
    """
    older_than_ms = minutes * 60_000 + (_SLACK_MS if minutes else 0)
    with connect(bootstrap, folder) as client:
        found = of_transactions.find_hanging(
            client, _partitions_of(client, topics), older_than_ms=older_than_ms, now_ms=time.time_ns() // 1_000_000
        )
    if as_json:
        print_json(
            [{"topic": each.topic, "partition": each.partition, **_producer_json(each.producer)} for each in found]
        )
        return
    if not found:
        click.echo("no transaction hangs")
        return
    print_table(
        ("TOPIC", "PARTITION", "PRODUCER ID", "EPOCH", "START OFFSET", "LAST WRITE"),
        [_hanging_row(each) for each in found],
    )


@transactions_command.command("abort")
@click.argument("topic")
@click.argument("partition", type=click.IntRange(0))
@click.option("--start-offset", type=click.IntRange(0), required=True, metavar="N", help="Where it begins.")
@client_options
@json_option
def abort_command(
    topic: str, partition: int, start_offset: int, bootstrap: list[Address] | None, folder: Path, as_json: bool
) -> None:
    """Abort a transaction in one partition.

    The offset is that of `find-hanging`. The marker is written whether or not a coordinator knows the transaction.
    """
    with connect(bootstrap, folder) as client:
        open_now = of_transactions.describe_producers(client, topic, partition)
        producer = next((each for each in open_now if each.start_offset == start_offset), None)
        if producer is None:
            known = ", ".join(str(each.start_offset) for each in open_now if each.start_offset >= 0)
            raise click.ClickException(
                f"no transaction of {topic}-{partition} begins at {start_offset}; open are: {known or 'none'}"
            )
        of_transactions.abort_transaction(client, topic, partition, producer)
    if as_json:
        print_json({"topic": topic, "partition": partition, "aborted": _producer_json(producer)})
        return
    say(f"aborted the transaction of producer {producer.producer_id} in {topic}-{partition}")


@transactions_command.command("force-terminate")
@click.argument("transactional_id", metavar="ID")
@client_options
@json_option
def terminate_command(transactional_id: str, bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """Fence the producer of an id.

    Its transaction is aborted. The next producer of the id gets a new epoch, as ever.
    """
    with connect(bootstrap, folder) as client:
        producer_id, epoch = of_transactions.force_terminate(client, transactional_id)
    if as_json:
        print_json({"transactional_id": transactional_id, "producer_id": producer_id, "producer_epoch": epoch})
        return
    say(f"terminated {transactional_id}; its next producer begins after epoch {epoch} of producer {producer_id}")


def _partitions_of(client: Client, topics: tuple[str, ...]) -> list[TopicPartition]:
    described = describe_topics(client, topics)
    return [(each.topic, partition.partition) for each in described for partition in each.partitions]


def _producer_json(producer: ProducerDescription) -> dict[str, object]:
    return {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "last_sequence": producer.last_sequence,
        "last_timestamp_ms": producer.last_timestamp_ms,
        "start_offset": producer.start_offset,
    }


def _hanging_row(each: HangingTransaction) -> tuple[object, ...]:
    producer = each.producer
    return (
        each.topic,
        each.partition,
        producer.producer_id,
        producer.producer_epoch,
        producer.start_offset,
        _time(producer.last_timestamp_ms),
    )


def _time(wall_ms: int) -> str:
    if wall_ms < 0:
        return "-"
    return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

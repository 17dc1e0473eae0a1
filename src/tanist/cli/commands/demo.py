"""`tanist demo`: a cluster, ten thousand records, a leader killed half-way, and the count; it ends by itself.

It is also a check: what was acknowledged is compared with what is read back, and exit code 1 means that something
was lost, doubled or out of order.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import click

from tanist.cli.output import lines
from tanist.cli.output.tables import print_json
from tanist.client.positions import EARLIEST, LATEST
from tanist.runtime.client import admin
from tanist.runtime.client.account import compare
from tanist.runtime.client.client import Client
from tanist.runtime.client.records import Producer, list_offset, read
from tanist.runtime.cluster.addresses import addresses_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.layout import next_free_port
from tanist.runtime.cluster.starting import Say
from tanist.wire.batch import NewRecord

TOPIC = "demo"
PARTITIONS = 4
_RECORDS_PER_BATCH = 25
_FIRST_PORT = 29092


@dataclass(slots=True)
class Findings:
    """The measurements of the demo."""

    acknowledged: dict[int, list[bytes]] = field(default_factory=lambda: {number: [] for number in range(PARTITIONS)})
    """Per partition, in the order in which they were acknowledged."""
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    gap_ms: float = 0.0
    """The longest that a batch took after the leader was killed: the time without a leader."""
    usual_ms: float = 0.0
    """The median before."""

    @property
    def good(self) -> bool:
        return self.lost == self.duplicated == self.out_of_order == 0


@click.command("demo")
@click.option(
    "--records",
    type=click.IntRange(100, 1_000_000),
    default=10_000,
    show_default=True,
    help="How many records to write.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only the result, as JSON.")
def demo_command(records: int, as_json: bool) -> None:
    """Kill a leader under load, and count lost records (about 5 s).

    Starts three brokers in a temporary folder, writes records with acks=all to a topic with three replicas, kills the
    leader of a partition half-way with SIGKILL, reads everything back, and compares. Exit code 0: every acknowledged
    record is there once and in order.
    """

    def say(line: str) -> None:
        if not as_json:
            lines.say(line)

    with tempfile.TemporaryDirectory(prefix="tanist-demo-") as name:
        cluster = LocalCluster(Path(name), say)
        try:
            findings = _demo(cluster, records, say)
            say("stopping the cluster")
        finally:
            if (Path(name) / "cluster.json").exists():
                cluster.down()
    count = sum(map(len, findings.acknowledged.values()))
    if as_json:
        print_json(
            {
                "acknowledged": count,
                "lost": findings.lost,
                "duplicated": findings.duplicated,
                "out_of_order": findings.out_of_order,
                "gap_ms": round(findings.gap_ms),
            }
        )
    else:
        click.echo()
        lines.say(
            f"{count} acknowledged, {findings.lost} lost, {findings.duplicated} duplicated, "
            f"{findings.out_of_order} out of order; the longest wait was {findings.gap_ms:.0f} ms "
            f"(usually {findings.usual_ms:.1f} ms a batch)"
        )
    if not findings.good:
        raise SystemExit(1)


def _demo(cluster: LocalCluster, records: int, say: Say) -> Findings:
    began = time.monotonic()
    entries = cluster.up(port=next_free_port("127.0.0.1", _FIRST_PORT), ends_with_us=True)
    say(f"three brokers are up after {time.monotonic() - began:.2f} s, each of them a controller too")
    findings = Findings()
    with Client(addresses_of(entries), timeout_s=60.0) as client:
        admin.create_topic(
            client, TOPIC, partitions=PARTITIONS, replication_factor=3, config={"min.insync.replicas": "2"}
        )
        say(f"topic {TOPIC}: {PARTITIONS} partitions, 3 replicas each, at least 2 in sync for a write to count")
        client.persist(lambda: [client.leader_of(TOPIC, partition) for partition in range(PARTITIONS)])
        _write(cluster, client, records, findings, say)
        say("reading everything back")
        _compare(client, findings)
        for line in _placement(client):
            say(line)
    return findings


def _write(cluster: LocalCluster, client: Client, records: int, findings: Findings, say: Say) -> None:
    say(f"writing {records} records with acks=all, {_RECORDS_PER_BATCH} at a time, to each partition in turn")
    producer = Producer(client)
    batches = -(-records // _RECORDS_PER_BATCH)
    took_ms: list[float] = []
    killed_at = batches // 2
    written = 0
    for number in range(batches):
        partition = number % PARTITIONS
        if number == killed_at:
            leader = client.leader_of(TOPIC, partition)
            say(f"{written} acknowledged; killing broker {leader}, which leads partition {partition}")
            cluster.crash(leader)
        values = [b"record %d" % index for index in range(written, min(written + _RECORDS_PER_BATCH, records))]
        began = time.monotonic()
        producer.send(TOPIC, partition, [NewRecord(time.time_ns() // 1_000_000, None, value) for value in values])
        took_ms.append((time.monotonic() - began) * 1000)
        findings.acknowledged[partition] += values
        written += len(values)
    findings.usual_ms = sorted(took_ms[:killed_at])[killed_at // 2]
    findings.gap_ms = max(took_ms[killed_at:])
    say(f"{written} acknowledged; the other brokers took over, the longest wait was {findings.gap_ms:.0f} ms")


def _compare(client: Client, findings: Findings) -> None:
    for partition, expected in findings.acknowledged.items():
        start = list_offset(client, TOPIC, partition, EARLIEST)
        end = list_offset(client, TOPIC, partition, LATEST)
        found = [record.value or b"" for record in read(client, TOPIC, partition, start, end)]
        account = compare(expected, found)
        findings.lost += len(account.lost)
        findings.duplicated += account.duplicated
        findings.out_of_order += account.disordered


def _placement(client: Client) -> list[str]:
    """The present leaders, and the state of the dead broker's replicas."""
    return [
        f"  partition {found.partition}: leader {found.leader} (epoch {found.leader_epoch}), "
        f"replicas {list(found.replicas)}, in sync {list(found.isr)}"
        for topic in admin.describe_topics(client, [TOPIC])
        for found in topic.partitions
    ]

"""From a broken cluster to a mended topic, in one go: `tanist spark story`.

Owns a cluster of processes of its own, a load whose clients write a history, and KIP-966's Last Replica Standing done
to it with ELR off: brokers leave one after the other, the last one loses power and with it what was not synced, comes
back, and leads. Then the audit has to find exactly the records that the history lost, the merge-back to restore them,
and a second audit nothing. Each is compared with what a reader of the topic gets, and the story fails if they differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TextIO

from pyspark.sql import SparkSession

from tanist.lab.history import HistoryWriter
from tanist.runtime.client import admin
from tanist.runtime.client.admin import PartitionDescription
from tanist.runtime.client.client import Address, Client, KafkaError, Unreachable
from tanist.runtime.client.records import EARLIEST, LATEST, Producer, list_offset, read
from tanist.runtime.cluster.addresses import addresses_of
from tanist.runtime.cluster.cluster import Cluster
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.processes import wait_until
from tanist.spark.jobs.audit.audit import Progress, audit_folder
from tanist.spark.jobs.audit.findings import Kind
from tanist.spark.jobs.audit.result import AuditResult
from tanist.spark.jobs.merge_back import MergeResult, merge_back
from tanist.wire.batch import NewRecord

TOPIC: Final = "orders"
PARTITIONS: Final = 2
SYNCED: Final = 500
"""Records in each partition that are on disk: `flush.messages`."""
UNSYNCED: Final = 120
"""Records in each partition that the last replica has in memory only when its power fails."""
_BATCH: Final = 20
_PATIENCE_S: Final = 60.0
_CONFIG: Final = {"broker.session.timeout.ms": "2500", "broker.heartbeat.interval.ms": "500"}


class StoryFailed(AssertionError):
    """The result is not the expected one."""


@dataclass(slots=True)
class Story:
    """The events of the story."""

    folder: Path
    history: Path
    acknowledged: int = 0
    lost: set[str] = field(default_factory=set)
    """Values that were acknowledged and that a reader did not get, by the history alone."""
    first: AuditResult | None = None
    dry_run: MergeResult | None = None
    merged: MergeResult | None = None
    again: MergeResult | None = None
    second: AuditResult | None = None


def tell(
    spark: SparkSession,
    folder: Path,
    *,
    port: int,
    say: Progress,
    on_audit: Callable[[str, AuditResult], None] = lambda _name, _result: None,
) -> Story:
    """Play it in an empty folder. Whatever happens, no process of it is left."""
    story = Story(folder, folder / "history.jsonl")
    data = folder / "data"
    cluster = Cluster(data)
    say("a cluster of three brokers, with ELR off, as Kafka was before KIP-966")
    cluster.up(
        brokers=3,
        controllers=3,
        port=port,
        config=_CONFIG,
        features={"eligible.leader.replicas.version": 0},
        ends_with_us=True,
    )
    try:
        with story.history.open("w", encoding="utf-8") as file:
            _play(spark, cluster, _Clients(data, file), story, say, on_audit)
    finally:
        cluster.down()
    return story


def _play(
    spark: SparkSession,
    cluster: Cluster,
    clients: _Clients,
    story: Story,
    say: Progress,
    on_audit: Callable[[str, AuditResult], None],
) -> None:
    data = cluster.folder
    _break(cluster, clients, say)
    got = clients.drain()
    story.acknowledged = len(clients.acknowledged)
    story.lost = clients.acknowledged - got
    _require(len(story.lost) == PARTITIONS * UNSYNCED, f"{len(story.lost)} records were lost")

    clients.flush()
    story.first = audit_folder(spark, data, [story.history], topics=[TOPIC], progress=say)
    on_audit("before", story.first)
    found = {each.value for each in story.first.findings_of(Kind.LOST)}
    _require(found == story.lost, f"the audit found {len(found)} lost records, the history {len(story.lost)}")

    mend = partial(merge_back, spark, data, clients.addresses, topics=[TOPIC], progress=say)
    story.dry_run = mend()
    _require(story.dry_run.count("lost") == len(story.lost), f"the salvage has {story.dry_run.count('lost')} of them")
    _require(clients.drain() == got, "the dry run changed the topic")
    story.merged = mend(apply=True)
    _require(story.merged.restored == len(story.lost), f"{story.merged.restored} were restored")
    story.again = mend(apply=True)
    _require(story.again.restored == 0, f"a second merge-back restored {story.again.restored}")
    _require(clients.acknowledged <= clients.drain(), "the topic still lacks records")

    clients.flush()
    story.second = audit_folder(spark, data, [story.history], topics=[TOPIC], progress=say)
    on_audit("after", story.second)
    _require(story.second.clean, f"the second audit found {story.second.counts}")


def _break(cluster: Cluster, clients: _Clients, say: Progress) -> None:
    with clients.client() as client:
        admin.create_topic(
            client, TOPIC, partitions=-1, replication_factor=-1, assignment=[(1, 2, 3)] * PARTITIONS,
            config={"min.insync.replicas": "2", "flush.messages": str(SYNCED)},
        )  # fmt: skip
    clients.await_isr((1, 2, 3))
    say(f"{PARTITIONS * SYNCED} records, acknowledged by all three replicas and synced to their disks")
    clients.send(SYNCED)
    say("T0: broker 1 is killed; two replicas are left, and acknowledge records that are not on disk yet")
    cluster.crash(1)
    clients.await_isr((2, 3))
    clients.send(UNSYNCED)
    say("T1: broker 2 is killed; broker 3 is the last replica standing")
    cluster.crash(2)
    clients.await_isr((3,))
    say("T2: broker 3 loses power, and what it had not synced")
    cluster.crash(3, lose_page_cache=True)
    say("T3: brokers 1 and 2 are back; broker 2 has every record, and may not lead, for it left the ISR")
    cluster.start(1)
    cluster.start(2)
    say("T4: broker 3 is back and leads; the others cut off what it does not have")
    cluster.start(3)
    clients.await_isr((1, 2, 3))


class _Clients:
    """One producer and one consumer for each partition, which note what they do."""

    def __init__(self, data: Path, file: TextIO) -> None:
        self.addresses: list[Address] = addresses_of(load_existing(data), data)
        self.acknowledged: set[str] = set()
        self._file = file
        self._writer = HistoryWriter(file)
        self._sent = dict.fromkeys(range(PARTITIONS), 0)

    def flush(self) -> None:
        """The notes so far are in the file."""
        self._file.flush()

    def client(self) -> Client:
        return Client(self.addresses, timeout_s=_PATIENCE_S)

    def send(self, count: int) -> None:
        """So many records to each partition; each batch is acknowledged before the next."""
        with self.client() as client:
            producer = Producer(client)
            for partition in range(PARTITIONS):
                for first in range(0, count, _BATCH):
                    self._send_batch(producer, partition, min(_BATCH, count - first))

    def _send_batch(self, producer: Producer, partition: int, count: int) -> None:
        first = self._sent[partition]
        self._sent[partition] += count
        values = [f"{TOPIC}-{partition}/{first + number}" for number in range(count)]
        # By the clock of the day, as controllers have it, so that the report can show both on one axis.
        began_ns = time.time_ns()
        stamp_ms = began_ns // 1_000_000
        offset = producer.send(TOPIC, partition, [NewRecord(stamp_ms, None, value.encode()) for value in values])
        ended_ns = time.time_ns()
        for number, value in enumerate(values):
            self._writer.write({
                "process": f"producer-{partition}", "type": "ok", "f": "send", "partition": f"{TOPIC}-{partition}",
                "value": value, "offset": offset + number, "invoked_ns": began_ns, "time_ns": ended_ns,
            })  # fmt: skip
        self.acknowledged.update(values)

    def drain(self) -> set[str]:
        """Everything that a consumer gets."""
        found: set[str] = set()
        with self.client() as client:
            for partition in range(PARTITIONS):
                start, end = (list_offset(client, TOPIC, partition, where) for where in (EARLIEST, LATEST))
                records = [
                    (record.offset, (record.value or b"").decode())
                    for record in read(client, TOPIC, partition, start, end)
                ]
                self._writer.poll("consumer", f"{TOPIC}-{partition}", records, time.time_ns())
                found.update(value for _, value in records)
        return found

    def await_isr(self, isr: Sequence[int]) -> None:
        """Until each of these brokers says that they are the ISR, and that one of them leads."""
        wanted = set(isr)

        def all_say_so() -> bool:
            return all(
                self._says(broker, lambda found: set(found.isr) == wanted and found.leader in wanted) for broker in isr
            )

        _require(wait_until(all_say_so, _PATIENCE_S), f"the ISR is not {wanted} after {_PATIENCE_S:.0f} s")

    def _says(self, broker: int, condition: Callable[[PartitionDescription], bool]) -> bool:
        try:
            with Client([self.addresses[broker - 1]], timeout_s=5.0) as client:
                (found,) = admin.describe_topics(client, [TOPIC])
        except (KafkaError, Unreachable):
            return False
        return all(condition(partition) for partition in found.partitions)


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise StoryFailed(otherwise)

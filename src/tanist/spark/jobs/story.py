"""From a broken cluster to a mended topic, in one go: `tanist spark story`.

Owns a cluster of processes of its own, a load whose clients write a history (`story_clients`), and KIP-966's Last
Replica Standing done to it with ELR off: brokers leave one after the other, the last one loses power and with it what
was not synced, comes back, and leads. Of what was synced, and of what was not, a part was written in transactions: one
is committed, one aborted, and one open when the power fails.

Then the audit has to find exactly the records that the history lost, the merge-back to restore them, and a second audit
nothing. The merge-back names the records of aborted transactions and of those that nobody has decided, and restores
none. Each is compared with what a reader of committed records gets, and the story fails if they differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from tanist.lab.anomalies import Anomaly
from tanist.runtime.client import admin
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.spark.jobs import Progress
from tanist.spark.jobs.audit.audit import audit_folder
from tanist.spark.jobs.audit.result import AuditResult
from tanist.spark.jobs.merge_back import MergeResult, merge_back
from tanist.spark.jobs.story_clients import PARTITIONS, TOPIC, TRANSACTION, StoryClients, StoryFailed, require

SYNCED: Final = 500
"""Records in each partition that are on disk, without those of transactions."""
UNSYNCED: Final = 120
"""The same of those that the last replica has in memory only when its power fails."""
IN_TRANSACTIONS: Final = 3 * TRANSACTION + 2
"""Offsets of both parts in each partition: three transactions, and the markers of two."""
_CONFIG: Final = {
    "broker.session.timeout.ms": "2500",
    "broker.heartbeat.interval.ms": "500",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}

__all__ = ["IN_TRANSACTIONS", "PARTITIONS", "SYNCED", "TRANSACTION", "UNSYNCED", "Story", "StoryFailed", "tell"]


@dataclass(slots=True)
class Story:
    """The events of the story."""

    folder: Path
    history: Path
    acknowledged: int = 0
    lost: set[str] = field(default_factory=set)
    """Values that were acknowledged and that a reader of committed records did not get, by the history alone."""
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
    cluster = LocalCluster(data)
    say("a cluster of three brokers, with ELR off: it elects as Kafka before KIP-966")
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
            _play(spark, cluster, StoryClients(data, file), story, say, on_audit)
    finally:
        cluster.down()
    return story


def _play(
    spark: SparkSession,
    cluster: LocalCluster,
    clients: StoryClients,
    story: Story,
    say: Progress,
    on_audit: Callable[[str, AuditResult], None],
) -> None:
    data = cluster.folder
    _break(cluster, clients, say)
    say("the transactions that were open are ended: aborted, for no coordinator knows them any more")
    clients.end_what_is_open()
    got = clients.drain()
    story.acknowledged = len(clients.acknowledged)
    story.lost = clients.acknowledged - set(got)
    require(len(story.lost) == PARTITIONS * (UNSYNCED + TRANSACTION), f"{len(story.lost)} records were lost")
    require(set(got) <= clients.acknowledged, "a reader of committed records gets others")

    clients.flush()
    story.first = audit_folder(spark, data, [story.history], topics=[TOPIC], progress=say)
    on_audit("before", story.first)
    found = {each.value for each in story.first.findings_of(Anomaly.LOST_WRITE)}
    require(found == story.lost, f"the audit found {len(found)} lost records, the history {len(story.lost)}")
    require(
        {kind for kind, _, _ in story.first.counts} == {Anomaly.LOST_WRITE}, f"the audit found {story.first.counts}"
    )

    mend = partial(merge_back, spark, data, clients.addresses, topics=[TOPIC], progress=say)
    story.dry_run = mend()
    require(story.dry_run.count("lost") == len(story.lost), f"the salvage has {story.dry_run.count('lost')} of them")
    for verdict in ("aborted", "undecided"):
        count = story.dry_run.count(verdict)
        require(count == PARTITIONS * TRANSACTION, f"the salvage has {count} {verdict} records")
    require(clients.drain() == got, "the dry run changed the topic")
    story.merged = mend(apply=True)
    require(story.merged.restored == len(story.lost), f"{story.merged.restored} were restored")
    story.again = mend(apply=True)
    require(story.again.restored == 0, f"a second merge-back restored {story.again.restored}")
    left_out = {verdict: story.again.count(verdict) for verdict in ("lost", "aborted", "undecided")}
    require(
        left_out == {"lost": 0, "aborted": PARTITIONS * TRANSACTION, "undecided": PARTITIONS * TRANSACTION},
        f"a second merge-back left out {left_out}",
    )
    require(sorted(clients.drain()) == sorted(clients.acknowledged), "a reader does not get each record once")

    clients.flush()
    story.second = audit_folder(spark, data, [story.history], topics=[TOPIC], progress=say)
    on_audit("after", story.second)
    require(story.second.clean, f"the second audit found {story.second.counts}")
    require(not story.second.open_transactions, f"open transactions: {story.second.open_transactions}")


def _break(cluster: LocalCluster, clients: StoryClients, say: Progress) -> None:
    with clients.client() as client:
        admin.create_topic(
            client, TOPIC, partitions=-1, replication_factor=-1, assignment=[(1, 2, 3)] * PARTITIONS,
            config={"min.insync.replicas": "2", "flush.messages": str(SYNCED + IN_TRANSACTIONS)},
        )  # fmt: skip
    clients.await_isr((1, 2, 3))
    say("a committed, an aborted and an open transaction in each partition")
    clients.transactions("synced")
    say(f"{PARTITIONS * SYNCED} records more, acknowledged by all three replicas; all is synced to their disks")
    clients.send(SYNCED)
    say("T0: broker 1 is killed; two replicas are left, and acknowledge records that are not on disk yet")
    cluster.crash(1)
    clients.await_isr((2, 3))
    clients.transactions("unsynced")
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

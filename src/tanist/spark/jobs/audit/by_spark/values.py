"""Stage: the clients' acknowledged and polled values against the log. Lost, duplicated, aborted, phantom.

Owns the way to the *suspects*: values that are not simply one send, acknowledged where the log has it. All values of
history and log in one aggregation, of hashes: no join, one shuffle, keys that are unique. It gives more suspects than
wrong values; `suspect_rows` puts together all that is known of them, and judges it.

The log is that of each partition's reference replica: the leader's. A record that a marker has aborted there is not in
it for a reader of committed records: nothing is duplicated by it. Acknowledged sends, and what readers of committed
records were given, are suspect where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tanist.client.topic_partition import TopicPartition
from tanist.spark.jobs.audit.by_spark import suspect_rows
from tanist.spark.jobs.audit.by_spark.history import POLL, SEND, History
from tanist.spark.jobs.audit.by_spark.logs import Logs
from tanist.spark.jobs.audit.facts import PartitionFacts
from tanist.spark.jobs.audit.log_files import Near
from tanist.spark.jobs.audit.rules import SUSPECT

_SMALL: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ComparedValues:
    findings: DataFrame | None
    suspects: DataFrame | None
    """Everything known of the suspects; None if there are none."""
    plan: str


def compare(
    logs: Logs,
    history: History,
    facts: Mapping[TopicPartition, PartitionFacts],
    aborted: DataFrame | None = None,
    *,
    keep: Callable[[DataFrame], DataFrame],
    progress: Callable[[str], None] = lambda _: None,
) -> ComparedValues:
    """The history against the log. `aborted`: place and offset of the records that the log has aborted."""
    log = reference(logs, facts)
    values = suspects(log, history)
    if aborted is not None:
        values = values.unionByName(_claimed_though(aborted, history)).distinct()
    values, count = _counted(keep(values))
    described = f"{count} values looked at one by one"
    if not count:
        return ComparedValues(None, None, described)
    progress(f"putting together what is known of {count} values")
    known = keep(suspect_rows.aggregate(log, history.events, values, aborted))
    known.count()
    return ComparedValues(suspect_rows.judged(values.sparkSession, known, facts), known, described)


def _counted(values: DataFrame) -> tuple[DataFrame, int]:
    """A table of its own, if it is small: a plan that has all that led to it would be in each plan above it."""
    count = values.count()
    if count > _SMALL:
        return values, count
    return values.sparkSession.createDataFrame(values.toArrow()), count


def reference(logs: Logs, facts: Mapping[TopicPartition, PartitionFacts], near: Near = None) -> DataFrame:
    """The records of the leaders' logs: place, offset, leader_epoch, hash of the value."""
    wanted = ("topic", "partition", "replica", "leader_epoch", "offset", "value_hash", "is_control", "damage")
    holders = {(topic, partition, each.reference) for (topic, partition), each in facts.items()}
    rows = logs.rows(wanted, holders=holders, near=near)
    return rows.where("damage is null and not is_control").select(
        F.concat("topic", F.lit("-"), "partition").alias("place"), "offset", "leader_epoch",
        F.col("value_hash").alias("hash"),
    )  # fmt: skip


def with_offsets(history: History) -> DataFrame:
    """The events by which a client knows the offset of a record: acknowledged sends, and polled records."""
    return history.events.where(f"offset is not null and (side = {POLL} or outcome = 'ok')")


def suspects(log: DataFrame, history: History) -> DataFrame:
    """place, hash."""
    sums = ("sent", "acknowledged", "failed", "unplaced", "polled", "held")
    together = suspect_rows.rows(log, history.events).groupBy("place", "hash").agg(
        *(F.sum(name).alias(name) for name in sums), F.min("offset").alias("least"), F.max("offset").alias("most")
    )  # fmt: skip
    return together.where(SUSPECT).select("place", "hash")


def _claimed_though(aborted: DataFrame, history: History) -> DataFrame:
    """The values that clients take for committed, where the log has aborted records."""
    claimed = with_offsets(history).where(f"side = {SEND} or committed")
    return claimed.join(aborted, ["place", "offset"], "left_semi").select("place", "hash")

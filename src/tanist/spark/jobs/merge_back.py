"""Salvaged records held against the live topic, and those that it lacks put back.

Owns the verdict on each salvaged record, by a join of the salvage with the leaders' logs, and the report of what was
done. `tanist.runtime.client.merge_back` decides what is written, and that writing twice is writing once: each
partition's is one task that reads the topic again before it sends anything, so a task that Spark repeats restores
nothing twice.

A record is *kept* if the log has it where it was; *re-sent* if the log has it elsewhere: the same producer's send under
the same sequence number, or the same timestamp, key, value and headers from somebody else, each record of the log
counting once; *expired* if it stood below the topic's present start; *superseded* if a compacted topic has a newer
record of its key; *aborted* if its transaction was; *undecided* if the salvage does not have the end of its
transaction, and the log does not have the record. The rest is *lost*. Records that a marker has aborted in the log are
not there. How a salvaged transaction ended is what `PartitionSalvage.outcomes` says, in one task a partition.
Nothing of payload is moved for this but keys: records are compared by fingerprint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.client import Address
from tanist.runtime.client.merge_back import describe_target
from tanist.runtime.client.merge_back import merge_back as restore_partition
from tanist.runtime.client.salvaged import find_entries
from tanist.runtime.client.transaction_outcomes import TransactionOutcome
from tanist.spark.jobs import Progress
from tanist.spark.jobs.audit.by_spark import transactions
from tanist.spark.jobs.audit.by_spark.logs import SegmentLogs
from tanist.spark.jobs.audit.rules import ABORTED
from tanist.spark.jobs.merge_plan import TIMEOUT_S, MergePlan, of_topics, planned
from tanist.spark.topic.options import Connecting, connecting_to

_COLUMNS: Final = (
    "topic", "partition", "replica", "leader_epoch", "offset", "timestamp", "key", "producer_id", "producer_epoch",
    "sequence", "is_control", "is_transactional", "fingerprint", "salvage_id", "damage",
    "batch_offset",
)  # fmt: skip
_OUTCOMES: Final = "array<struct<leader_epoch: int, batch_offset: bigint, outcome: string>>"
_RESTORED: Final = "found int, present int, restored int, expired int, problem string"


@dataclass(slots=True)
class MergedPartition:
    """The result of merging back one partition's salvage."""

    topic: str
    partition: int
    verdicts: dict[str, int] = field(default_factory=dict)
    """Salvaged records, each once, by verdict."""
    restored: int = 0
    expired: int = 0
    """From before the topic's present start: left out."""
    problem: str | None = None


@dataclass(slots=True)
class MergeResult:
    applied: bool
    """False: a dry run, which changed nothing."""
    places: list[MergedPartition] = field(default_factory=list)
    left_out: int = 0
    """Entries of whole logs that were dropped behind a leader that begins later: most will have expired there."""

    def count(self, verdict: str) -> int:
        return sum(each.verdicts.get(verdict, 0) for each in self.places)

    @property
    def restored(self) -> int:
        return sum(each.restored for each in self.places)

    @property
    def problems(self) -> list[str]:
        return [f"{each.topic}-{each.partition}: {each.problem}" for each in self.places if each.problem]


def merge_back(
    spark: SparkSession,
    folder: str | Path,
    bootstrap: Sequence[Address],
    *,
    topics: Sequence[str] = (),
    plan: MergePlan | None = None,
    apply: bool = False,
    mark: bool = False,
    output: str | Path | None = None,
    options: Mapping[str, str] | None = None,
    progress: Progress = lambda _: None,
) -> MergeResult:
    """Judge the salvage below a cluster's folder, and with `apply` put back what its topics lack.

    `options`: those of the source that begin with `kafka.`, such as kafka.security.protocol.
    `output`: a folder for the verdicts, one row a record, as Parquet. `plan`: that of `planned`, if it was made before.
    """
    progress("looking for salvage")
    cluster = connecting_to(bootstrap, options)
    plan = plan or planned(Path(folder), cluster, topics)
    result = MergeResult(apply, left_out=plan.left_out)
    progress(f"comparing the salvage of {len(plan.places)} partitions with their leaders' logs")
    judged = verdicts(spark, folder, plan)
    judged = judged.cache()
    try:
        if output is not None:
            judged.write.mode("overwrite").parquet(str(output))
        counted = judged.groupBy("topic", "partition", "verdict").count().collect()
    finally:
        judged.unpersist()
    places = {place: MergedPartition(*place) for place in sorted(plan.places)}
    for row in counted:
        places[row.topic, row.partition].verdicts[row.verdict] = row["count"]
    result.places = list(places.values())
    if apply:
        progress("putting back what is lost")
        _restore(spark, str(folder), cluster, places, mark=mark)
    return result


def verdicts(spark: SparkSession, folder: str | Path, plan: MergePlan) -> DataFrame:
    """One row for each salvaged record, with `verdict`."""
    logs = SegmentLogs(spark, folder, plan.topics)
    holders = {(topic, partition, leader) for (topic, partition), leader in plan.leaders.items()}
    saved = logs.salvaged(_COLUMNS, None).where(F.col("salvage_id").isin(sorted(plan.entries)))
    live = logs.rows(_COLUMNS, holders=holders).where("damage is null and not is_control")
    if transactions.has_transactions(logs, holders):
        live = without_aborted(live, transactions.outcomes(logs, holders))
    saved = saved.where("damage is null and not is_control")
    return judged(saved, live, plan.compacted, plan.starts, _outcomes(spark, str(folder), plan.places))


def without_aborted(live: DataFrame, found: DataFrame) -> DataFrame:
    """`live` without the records that a marker has aborted."""
    names = ["topic", "partition", "offset"]
    return live.join(found.where(F.col("outcome") == ABORTED).select(*names), names, "left_anti")


def _outcomes(spark: SparkSession, folder: str, places: Set[TopicPartition]) -> DataFrame:
    """The outcome of each salvaged batch of a transaction: one task a partition."""

    def outcomes(topic: str, partition: int) -> list[tuple[int, int, str]]:
        salvages, _ = of_topics(find_entries(Path(folder))[0], [topic])
        salvage = next(each for each in salvages if each.partition == partition)
        return [(*place, outcome.value) for place, outcome in salvage.outcomes.items()]

    table = spark.createDataFrame(sorted(places), "topic string, partition int").repartition(len(places))
    run = F.udf(outcomes, _OUTCOMES, useArrow=False)
    apart = table.select("topic", "partition", F.explode(run("topic", "partition")).alias("_one"))
    return apart.select("topic", "partition", "_one.*")


def judged(
    saved: DataFrame,
    live: DataFrame,
    compacted: frozenset[str],
    starts: Mapping[TopicPartition, int] | None = None,
    outcomes: DataFrame | None = None,
) -> DataFrame:
    """The verdicts, over rows of `tanist-segments`. Several replicas may have saved the same record: it is one.

    `starts`: the topics' first offsets, where they are above 0. `outcomes` of transactions: topic, partition,
    leader_epoch, batch_offset, outcome; a transaction without one is undecided. `live` has no aborted records.
    """
    place = ["topic", "partition"]
    once = saved.dropDuplicates([*place, "leader_epoch", "offset"])
    if outcomes is None:
        once = once.withColumn("outcome", F.lit(None).cast("string"))
    else:
        once = once.join(outcomes, [*place, "leader_epoch", "batch_offset"], "left")
    undecided = TransactionOutcome.UNDECIDED.value
    once = once.withColumn("outcome", F.when(F.col("is_transactional"), F.coalesce("outcome", F.lit(undecided))))
    known = live.select(
        *place, F.col("leader_epoch").alias("_epoch"), F.col("offset").alias("_offset"), "timestamp", "fingerprint",
        F.col("producer_id").alias("_producer"), F.col("producer_epoch").alias("_producer_epoch"),
        F.col("sequence").alias("_sequence"), F.xxhash64("key").alias("_key"), F.col("key").isNull().alias("_keyless"),
    )  # fmt: skip
    same_place = known.select(*place, "_epoch", "_offset", "fingerprint", F.lit(True).alias("kept"))
    once = once.join(
        same_place.withColumnsRenamed({"_epoch": "leader_epoch", "_offset": "offset"}),
        [*place, "leader_epoch", "offset", "fingerprint"],
        "left",
    )
    sends = known.where("_producer >= 0").select(
        *place, "fingerprint", F.col("_producer").alias("producer_id"),
        F.col("_producer_epoch").alias("producer_epoch"), F.col("_sequence").alias("sequence"),
        F.lit(True).alias("sent_again"),
    ).distinct()  # fmt: skip
    once = once.join(sends, [*place, "fingerprint", "producer_id", "producer_epoch", "sequence"], "left")
    # Records that are alike, by who sent them: what bears the sender's own name under another number is another send.
    alike = known.groupBy(*place, "timestamp", "fingerprint").agg(F.count("*").alias("_all"))
    own = known.where("_producer >= 0").groupBy(
        *place, "timestamp", "fingerprint", F.col("_producer").alias("producer_id"),
        F.col("_producer_epoch").alias("producer_epoch"),
    ).agg(F.count("*").alias("_own"))  # fmt: skip
    once = once.join(alike, [*place, "timestamp", "fingerprint"], "left")
    once = once.join(own, [*place, "timestamp", "fingerprint", "producer_id", "producer_epoch"], "left")
    settled = F.coalesce("kept", F.lit(False)) | F.coalesce("sent_again", F.lit(False))
    left_out = F.col("outcome").isin(TransactionOutcome.ABORTED.value, undecided)
    settled = settled | F.coalesce(left_out, F.lit(False))
    turn = Window.partitionBy(*place, "timestamp", "fingerprint", settled).orderBy("leader_epoch", "offset")
    others = F.coalesce("_all", F.lit(0)) - F.coalesce("_own", F.lit(0))
    once = once.withColumn("_settled", settled).withColumn("_alike", (F.row_number().over(turn) <= others) & ~settled)
    if compacted:
        newest = known.where(~F.col("_keyless") & F.col("topic").isin(sorted(compacted)))
        newest = newest.select(*place, "_key", F.lit(True).alias("newer")).distinct()
        once = once.withColumn("_key", F.when(F.col("key").isNotNull(), F.xxhash64("key"))).join(
            newest, [*place, "_key"], "left"
        )
    else:
        once = once.withColumn("newer", F.lit(None).cast("boolean"))
    above = [(topic, partition, start) for (topic, partition), start in (starts or {}).items() if start > 0]
    table = saved.sparkSession.createDataFrame(above, "topic string, partition int, _start bigint")
    once = once.join(F.broadcast(table), place, "left")
    verdict = (
        F.when(F.col("outcome") == TransactionOutcome.ABORTED.value, "aborted")
        .when(F.col("kept"), "kept")
        .when(F.col("sent_again"), "re-sent")
        .when(F.col("outcome") == undecided, "undecided")
        .when(F.col("_alike"), "re-sent")
        .when(F.col("offset") < F.col("_start"), "expired")
        .when(F.col("newer"), "superseded")
        .otherwise("lost")
    )
    return once.select(
        *place, "leader_epoch", "offset", "timestamp", "key", "fingerprint", "replica", "salvage_id",
        verdict.alias("verdict"),
    )  # fmt: skip


def _restore(
    spark: SparkSession,
    folder: str,
    cluster: Connecting,
    places: Mapping[TopicPartition, MergedPartition],
    *,
    mark: bool,
) -> None:
    """One task a partition."""

    def restore(topic: str, partition: int) -> tuple[int, int, int, int, str | None]:
        return _restored(folder, cluster, topic, partition, mark=mark)

    wanted = [place for place, each in places.items() if each.verdicts.get("lost")]
    if not wanted:
        return
    table = spark.createDataFrame(wanted, "topic string, partition int").repartition(len(wanted))
    run = F.udf(restore, _RESTORED, useArrow=False)
    # Collected as they are: a projection that is looked at twice would be run twice.
    for row in table.select(
        "topic", "partition", run.asNondeterministic()("topic", "partition").alias("did")
    ).collect():
        outcome = places[row.topic, row.partition]
        outcome.restored, outcome.expired, outcome.problem = row.did.restored, row.did.expired, row.did.problem


def _restored(
    folder: str, cluster: Connecting, topic: str, partition: int, *, mark: bool
) -> tuple[int, int, int, int, str | None]:
    from tanist.runtime.client.client import KafkaError, Unreachable
    from tanist.runtime.client.merge_back import MergeInterrupted

    salvages, _ = of_topics(find_entries(Path(folder))[0], [topic])
    salvage = next(each for each in salvages if each.partition == partition)
    try:
        with cluster.client(TIMEOUT_S) as client:
            target, _ = describe_target(client, topic)
            outcome = restore_partition(client, salvage, target, mark=mark)
    except (MergeInterrupted, KafkaError, Unreachable) as error:
        # Reported, not raised: the other partitions go on, and running it again is safe.
        return 0, 0, 0, 0, str(error)
    return outcome.found, outcome.present, outcome.restored, outcome.expired, None

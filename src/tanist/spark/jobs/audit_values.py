"""What clients were told, held against the log: lost, doubled, aborted, phantom.

Owns the judgement of values. First the *suspects*: values of which not simply one send was acknowledged where the log
has it. In two levels: buckets of 4096 offsets whose acknowledged sends, or whose polled records, do not come to the
same exclusive-or of hashes as the log's, and in those the values that differ. Flat, if most buckets differ: all values
in one aggregation. Either gives more than is wrong; then everything known of the suspects is put together, and judged.

The log is that of each partition's reference replica: the leader's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tanist.spark.jobs.audit_history import History, value_hash
from tanist.spark.jobs.audit_logs import Logs, Place, Stretch
from tanist.spark.jobs.audit_replicas import BUCKET, BUCKET_OFFSETS, FLAT_SHARE, PartitionFacts
from tanist.spark.jobs.findings import Kind, columns

OFFSETS_TOLD: Final = 20
"""Of one value: enough to see what happened; a value may have been polled a million times."""
_STRETCHES_MAX: Final = 20_000
_ZERO: Final = "cast(0 as bigint)"


@dataclass(frozen=True, slots=True)
class Suspects:
    """place, hash. `level` says how they were found."""

    values: DataFrame
    level: str


def reference(logs: Logs, facts: Mapping[Place, PartitionFacts], near: list[Stretch] | None = None) -> DataFrame:
    """The records of the leaders' logs: place, offset, leader_epoch, hash. Only the leaders' payload is read."""
    wanted = ("topic", "partition", "replica", "leader_epoch", "offset", "value", "is_control", "damage")
    holders = {(topic, partition, each.reference) for (topic, partition), each in facts.items()}
    rows = logs.rows(wanted, holders=holders, near=near)
    return rows.where("damage is null and not is_control").select(
        place_of().alias("place"), "offset", "leader_epoch", value_hash(F.col("value")).alias("hash")
    )


def place_of() -> F.Column:
    return F.concat("topic", F.lit("-"), "partition")


def suspects(logs: Logs, history: History, facts: Mapping[Place, PartitionFacts], *, plan: str = "auto") -> Suspects:
    """`plan`: two-level, flat, or auto."""
    if plan != "flat":
        found = _two_level(logs, history, facts, forced=plan == "two-level")
        if found is not None:
            return found
    return Suspects(_flat(reference(logs, facts), history), "flat")


def _summed(rows: DataFrame, *keys: str) -> DataFrame:
    return rows.groupBy(*keys, F.expr(BUCKET).alias("bucket")).agg(
        F.count("*").alias("records"), F.expr("bit_xor(xxhash64(offset, hash))").alias("sum")
    )


def _two_level(logs: Logs, history: History, facts: Mapping[Place, PartitionFacts], *, forced: bool) -> Suspects | None:
    acknowledged = history.sends.where("outcome = 'ok' and offset is not null")
    # Collected once: a row for each bucket, which is the data divided by 4096.
    log_sums = _summed(reference(logs, facts), "place").cache()
    send_sums = _summed(acknowledged, "place")
    poll_sums = _summed(history.polls, "place", "process")
    there = log_sums.select("place", "bucket", F.col("records").alias("log_records"), F.col("sum").alias("log_sum"))
    unlike = "not (records <=> log_records and sum <=> log_sum)"
    sends = send_sums.join(there, ["place", "bucket"], "full").where(unlike).select("place", "bucket").collect()
    polls = (
        poll_sums.join(there, ["place", "bucket"], "left").where(unlike).select("place", "bucket").distinct().collect()
    )
    total = max(log_sums.count(), 1)
    log_sums.unpersist()
    odd_sends, odd_polls = {(row.place, row.bucket) for row in sends}, {(row.place, row.bucket) for row in polls}
    most = max(len(odd_sends), len(odd_polls))
    if most > _STRETCHES_MAX or (not forced and most > FLAT_SHARE * total):
        return None
    spark = history.sends.sparkSession
    found = history.sends.where("outcome = 'ok' and offset is null").select("place", "hash")
    if odd_sends:
        table, stretches = _table(spark, odd_sends), _stretches(odd_sends)
        sent = _in_buckets(acknowledged, table).select("place", "offset", "hash", F.lit(1).alias("side"))
        held = _in_buckets(reference(logs, facts, stretches), table)
        sides = sent.unionByName(held.select("place", "offset", "hash", F.lit(2).alias("side")))
        odd = sides.groupBy("place", "offset", "hash").agg(
            F.count("*").alias("rows"), F.countDistinct("side").alias("sides")
        )
        found = found.unionByName(odd.where("rows <> 2 or sides <> 2").select("place", "hash"))
    if odd_polls:
        table, stretches = _table(spark, odd_polls), _stretches(odd_polls)
        seen = _in_buckets(history.polls, table).select("place", "offset", "hash").distinct()
        held = _in_buckets(reference(logs, facts, stretches), table).select("place", "offset", "hash")
        found = found.unionByName(seen.join(held, ["place", "offset", "hash"], "left_anti").select("place", "hash"))
    level = f"two-level: {len(odd_sends | odd_polls)} of {total} buckets differ"
    return Suspects(found.distinct(), level)


def _table(spark: SparkSession, buckets: set[tuple[str, int]]) -> DataFrame:
    return F.broadcast(spark.createDataFrame(sorted(buckets), "place string, bucket bigint"))


def _stretches(buckets: set[tuple[str, int]]) -> list[Stretch]:
    found = []
    for place, bucket in buckets:
        topic, _, partition = place.rpartition("-")
        if topic and partition.isdecimal():
            first = bucket * BUCKET_OFFSETS
            found.append(Stretch(topic, int(partition), first, first + BUCKET_OFFSETS - 1))
    return found


def _in_buckets(rows: DataFrame, table: DataFrame) -> DataFrame:
    return rows.withColumn("bucket", F.expr(BUCKET)).join(table, ["place", "bucket"], "left_semi")


def _flat(log: DataFrame, history: History) -> DataFrame:
    """All values in one aggregation: no join, one shuffle, keys that are unique."""
    together = _rows(log, history, slim=True)
    judged = together.groupBy("place", "hash").agg(
        F.sum("sent").alias("sent"), F.sum("acknowledged").alias("acknowledged"), F.sum("failed").alias("failed"),
        F.sum("polled").alias("polled"), F.sum("held").alias("held"),
        F.min("offset").alias("least"), F.max("offset").alias("most"),
    )  # fmt: skip
    return judged.where(
        "held > 1 or failed > 0 or sent > 1 or (held = 0 and (acknowledged > 0 or polled > 0))"
        " or (polled > 0 and sent = 0) or (held > 0 and least <> most)"
    ).select("place", "hash")


def _rows(log: DataFrame, history: History, *, slim: bool) -> DataFrame:
    """Sends, polls and records of the log as rows of one shape."""
    sends = history.sends.select(
        "place", "hash", F.lit(1).alias("sent"), F.expr("int(outcome = 'ok' and promised)").alias("acknowledged"),
        F.expr("int(outcome = 'fail')").alias("failed"), F.expr("0").alias("polled"), F.expr("0").alias("held"),
        F.expr("if(outcome = 'ok', offset, null)").alias("offset"),
        F.expr("int(aborted)").alias("aborted"), F.expr("int(not ordered)").alias("unordered"),
        F.expr("int(outcome = 'info')").alias("unknown"), "value", "process", F.lit(None).cast("int").alias("epoch"),
        F.lit(0).alias("committed"),
    )  # fmt: skip
    polls = history.polls.select(
        "place", "hash", *(F.lit(0).alias(name) for name in ("sent", "acknowledged", "failed")),
        F.lit(1).alias("polled"), F.lit(0).alias("held"), "offset",
        *(F.lit(0).alias(name) for name in ("aborted", "unordered", "unknown")), "value", "process",
        F.lit(None).cast("int").alias("epoch"), F.expr("int(committed)").alias("committed"),
    )  # fmt: skip
    held = log.select(
        "place", "hash", *(F.lit(0).alias(name) for name in ("sent", "acknowledged", "failed", "polled")),
        F.lit(1).alias("held"), "offset", *(F.lit(0).alias(name) for name in ("aborted", "unordered", "unknown")),
        F.lit(None).cast("string").alias("value"), F.lit(None).cast("string").alias("process"),
        F.col("leader_epoch").alias("epoch"), F.lit(0).alias("committed"),
    )  # fmt: skip
    together = sends.unionByName(polls).unionByName(held)
    return (
        together.select("place", "hash", "sent", "acknowledged", "failed", "polled", "held", "offset")
        if slim
        else together
    )


def evidence(log: DataFrame, history: History, found: DataFrame) -> DataFrame:
    """Everything known of the suspects, one row each."""
    rows = _rows(log, history, slim=False).join(F.broadcast(found), ["place", "hash"], "left_semi")
    offsets = "array_sort(collect_set(if({0} > 0, offset, null)))"
    return rows.groupBy("place", "hash").agg(
        *(F.sum(name).alias(name) for name in ("sent", "acknowledged", "failed", "polled", "held", "unknown")),
        F.max("aborted").alias("aborted"), F.max("unordered").alias("unordered"),
        F.sum(F.expr("polled * committed")).alias("polled_committed"),
        F.max("value").alias("value"), F.min(F.expr("if(sent > 0, process, null)")).alias("process"),
        F.min(F.expr("if(sent > 0, offset, null)")).alias("told"),
        F.expr(offsets.format("held")).alias("places"), F.expr(offsets.format("polled")).alias("seen"),
        F.array_sort(F.collect_set("epoch")).alias("epochs"),
        F.array_sort(F.collect_set(F.expr("if(polled > 0, process, null)"))).alias("readers"),
    )  # fmt: skip


def judged(spark: SparkSession, known: DataFrame, facts: Mapping[Place, PartitionFacts]) -> DataFrame:
    """The findings among the evidence. Records from before the log's start have expired, and are not lost."""
    rows = [
        (f"{topic}-{partition}", topic, partition, each.start, each.high_watermark)
        for (topic, partition), each in facts.items()
    ]
    table = spark.createDataFrame(
        rows, "place string, topic string, partition int, start bigint, high_watermark bigint"
    )
    full = known.join(F.broadcast(table), "place", "left")
    topic = F.coalesce("topic", F.expr("regexp_replace(place, '-[0-9]+$', '')"))
    partition = F.coalesce("partition", F.expr("try_cast(substring_index(place, '-', -1) as int)"))
    full = full.withColumn("topic", topic).withColumn("partition", partition)
    lost = "acknowledged > 0 and held = 0 and (told is null or start is null or told >= start)"
    gone = "array_except(seen, places)"
    kinds = [
        _found(full.where(lost), Kind.LOST, "told", "told", _lost_detail()),
        _found(
            full.where("held > 1 and sent > 0 and unordered = 0"), Kind.DUPLICATED, "get(places, 0)",
            "get(places, size(places) - 1)", f"concat('at offsets ', {_listed('places')})",
        ),
        _found(
            full.where(f"size({gone}) > 0 and exists({gone}, o -> start is null or o >= start)"), Kind.READ_LOST,
            f"get({gone}, 0)", f"get({gone}, 0)",
            f"concat('polled by ', {_listed('readers')}, if(held > 0, concat('; the log has it at ',"
            f" {_listed('places')}), '; the log does not have it'))",
        ),
        _found(
            full.where("sent = 0 and polled > 0"), Kind.PHANTOM_READ, "get(seen, 0)", "get(seen, size(seen) - 1)",
            f"concat('polled by ', {_listed('readers')}, ', sent by nobody')",
        ),
        _found(
            # What an aborted transaction wrote is in the log by right, and for read_uncommitted to see.
            full.where(
                "failed > 0 and acknowledged = 0 and unknown = 0"
                " and (polled_committed > 0 or (aborted = 0 and polled > 0))"
            ),
            Kind.ABORTED_READ,
            "get(seen, 0)", "get(seen, size(seen) - 1)", f"concat('polled by ', {_listed('readers')})",
        ),
        _found(
            full.where("failed > 0 and acknowledged = 0 and unknown = 0 and aborted = 0 and held > 0"),
            Kind.FAILED_IN_LOG, "get(places, 0)",
            "get(places, size(places) - 1)", "'the producer was told that it failed'",
        ),
    ]  # fmt: skip
    return reduce(DataFrame.unionByName, kinds)


def _found(rows: DataFrame, kind: Kind, first: str, last: str, detail: str) -> DataFrame:
    return rows.select(
        *columns(
            kind=F.lit(kind.value), topic=F.col("topic"), partition=F.col("partition"), first_offset=F.expr(first),
            last_offset=F.expr(last), records=F.lit(1), epochs=F.col("epochs"), value=F.col("value"),
            process=F.col("process"), detail=F.expr(detail),
        )
    )  # fmt: skip


def _lost_detail() -> str:
    return (
        "case when told is null then 'the client was not told an offset'"
        " when told < high_watermark then 'below the high watermark'"
        " else 'at or above the high watermark' end"
    )


def _listed(name: str) -> str:
    return f"array_join(slice({name}, 1, {OFFSETS_TOLD}), ', ')"

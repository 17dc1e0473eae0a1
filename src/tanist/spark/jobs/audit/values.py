"""Stage: the clients' acknowledged and polled values against the log. Lost, duplicated, aborted, phantom.

Owns the judgement of values. First the *suspects*: values that are not simply one send, acknowledged where the log has
it. In two levels: the buckets of offsets whose acknowledged sends, or whose records as some consumer polled them, do
not come to the same exclusive-or of hashes as the log's, and in those the values that differ. Flat, if most buckets
differ: all values in one aggregation. Both give more suspects than wrong values; then everything known of the suspects
is put together, and judged. Each of these passes reads the history once.

The log is that of each partition's reference replica: the leader's. A record that a marker has aborted there is not in
it for a reader of committed records: nothing is duplicated by it. Acknowledged sends, and what readers of committed
records were given, are suspect where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tanist.runtime.client.topic_partition import TopicPartition
from tanist.spark.jobs.audit.facts import PartitionFacts
from tanist.spark.jobs.audit.findings import Kind, columns
from tanist.spark.jobs.audit.history import POLL, SEND, History
from tanist.spark.jobs.audit.logs import Logs, Stretch, stretches_at
from tanist.spark.jobs.audit.replicas import FLAT_SHARE
from tanist.spark.jobs.audit.sums import BUCKET, BUCKET_OFFSETS

OFFSETS_SHOWN: Final = 20
"""Of one value: enough to understand the finding; a value may have been polled a million times."""
_STRETCHES_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class Suspects:
    """place, hash. `level` says how they were found."""

    values: DataFrame
    level: str


@dataclass(frozen=True, slots=True)
class ComparedValues:
    findings: DataFrame | None
    evidence: DataFrame | None
    """Everything known of the suspects; None if there are none."""
    plan: str
    """Which plan the comparison took, and why."""


def compare(
    logs: Logs,
    history: History,
    level_one: DataFrame,
    sums: DataFrame,
    facts: Mapping[TopicPartition, PartitionFacts],
    aborted: DataFrame | None = None,
    *,
    plan: str = "auto",
    keep: Callable[[DataFrame], DataFrame],
    progress: Callable[[str], None] = lambda _: None,
) -> ComparedValues:
    """The history against the log. `level_one` is the logs', with values, `sums` are those of `summed`.

    `aborted`: place and offset of the records that the log has aborted.
    """
    found = suspects(logs, history, level_one, sums, facts, plan=plan)
    values = found.values
    if aborted is not None:
        values = values.unionByName(_claimed_though(aborted, history)).distinct()
    values = keep(values)
    count = values.count()
    described = f"{found.level}; {count} values looked at one by one"
    if not count:
        return ComparedValues(None, None, described)
    progress(f"putting together what is known of {count} values")
    known = keep(evidence(reference(logs, facts), history, values, aborted))
    known.count()
    return ComparedValues(judged(values.sparkSession, known, facts), known, described)


def reference(
    logs: Logs, facts: Mapping[TopicPartition, PartitionFacts], near: list[Stretch] | None = None
) -> DataFrame:
    """The records of the leaders' logs: place, offset, leader_epoch, hash of the value."""
    wanted = ("topic", "partition", "replica", "leader_epoch", "offset", "value_hash", "is_control", "damage")
    holders = {(topic, partition, each.reference) for (topic, partition), each in facts.items()}
    rows = logs.rows(wanted, holders=holders, near=near)
    return rows.where("damage is null and not is_control").select(
        place_of().alias("place"), "offset", "leader_epoch", F.col("value_hash").alias("hash")
    )


def place_of() -> F.Column:
    return F.concat("topic", F.lit("-"), "partition")


def with_offsets(history: History) -> DataFrame:
    """The events by which a client knows the offset of a record: acknowledged sends, and polled records."""
    return history.events.where(f"offset is not null and (side = {POLL} or outcome = 'ok')")


def summed(history: History, starts: Mapping[TopicPartition, int]) -> DataFrame:
    """Level one of a history: by place, reader (null: the producers) and bucket. `starts`: where the logs begin."""
    reader = F.when(F.col("side") == POLL, F.col("process"))
    above = [(f"{topic}-{partition}", start) for (topic, partition), start in starts.items() if start > 0]
    known = with_offsets(history)
    begun = known.sparkSession.createDataFrame(above, "place string, start bigint")
    return (
        known.join(F.broadcast(begun), "place", "left")
        .groupBy("place", reader.alias("reader"), F.expr(BUCKET).alias("bucket"))
        .agg(
            F.count("*").alias("records"),
            F.expr("bit_xor(xxhash64(offset, hash))").alias("sum"),
            F.expr(f"count_if(side = {SEND} and promised)").alias("acknowledged"),
            F.expr(f"count_if(side = {SEND} and promised and offset < start)").alias("expired"),
            F.max("ended_ns").alias("at_ns"),
            F.max("offset").alias("offset"),
        )
    )


def suspects(
    logs: Logs,
    history: History,
    level_one: DataFrame,
    sums: DataFrame,
    facts: Mapping[TopicPartition, PartitionFacts],
    *,
    plan: str = "auto",
) -> Suspects:
    """`level_one` is the logs', with values, `sums` are those of `summed`; `plan` is two-level, flat, or auto."""
    if plan != "flat":
        found = _two_level(logs, history, _log_sums(level_one, facts), sums, facts, forced=plan == "two-level")
        if found is not None:
            return found
    return Suspects(_flat(reference(logs, facts), history), "flat")


def _log_sums(level_one: DataFrame, facts: Mapping[TopicPartition, PartitionFacts]) -> DataFrame:
    """Of the leaders' logs: place, bucket, log_records, log_sum."""
    holders = [(topic, partition, each.reference) for (topic, partition), each in facts.items()]
    leaders = level_one.sparkSession.createDataFrame(holders, "topic string, partition int, replica int")
    own = level_one.where("value_records > 0").join(F.broadcast(leaders), list(leaders.columns), "left_semi")
    return own.groupBy(place_of().alias("place"), "bucket").agg(
        F.sum("value_records").alias("log_records"), F.expr("bit_xor(value_hash)").alias("log_sum")
    )


def _two_level(
    logs: Logs,
    history: History,
    log_sums: DataFrame,
    sums: DataFrame,
    facts: Mapping[TopicPartition, PartitionFacts],
    *,
    forced: bool,
) -> Suspects | None:
    # Not only readers' buckets are looked for in the log, but also the log's among what was acknowledged: both joins in
    # one, by counting the producers' rows of each bucket.
    joined = log_sums.join(sums, ["place", "bucket"], "full").groupBy("place", "bucket").agg(
        F.count(F.when(F.expr("records is not null and reader is null"), 1)).alias("producers"),
        F.max(F.expr("records is not null and not (records <=> log_records and sum <=> log_sum)")).alias("unlike"),
    )  # fmt: skip
    judged = joined.withColumn("odd", F.expr("unlike or producers = 0"))
    total_row = judged.agg(F.count("*").alias("total"), F.expr("count_if(odd)").alias("odd")).first()
    total, count = max(total_row.total, 1), total_row.odd
    if count > _STRETCHES_MAX or (not forced and count > FLAT_SHARE * total):
        return None
    odd = (
        {(row.place, row.bucket) for row in judged.where("odd").select("place", "bucket").collect()} if count else set()
    )
    found = history.sends.where("outcome = 'ok' and offset is null").select("place", "hash")
    if odd:
        table, stretches = _table(history.events.sparkSession, odd), _stretches(odd)
        claimed = with_offsets(history).select(
            "place", "offset", "hash", F.expr(f"int(side = {SEND})").alias("sent"), F.lit(0).alias("held")
        )
        log = reference(logs, facts, stretches)
        held = log.select("place", "offset", "hash", F.lit(0).alias("sent"), F.lit(1).alias("held"))
        sides = _in_buckets(claimed, table).unionByName(_in_buckets(held, table))
        together = sides.groupBy("place", "offset", "hash").agg(
            F.sum("sent").alias("sent"), F.sum("held").alias("held")
        )
        found = found.unionByName(together.where("not (sent = 1 and held = 1)").select("place", "hash"))
    return Suspects(found.distinct(), f"two-level: {count} of {total} buckets differ")


def _claimed_though(aborted: DataFrame, history: History) -> DataFrame:
    """The values that clients take for committed, where the log has aborted records."""
    claimed = with_offsets(history).where(f"side = {SEND} or committed")
    return claimed.join(aborted, ["place", "offset"], "left_semi").select("place", "hash")


def _table(spark: SparkSession, buckets: set[tuple[str, int]]) -> DataFrame:
    return F.broadcast(spark.createDataFrame(sorted(buckets), "place string, bucket bigint"))


def _stretches(buckets: set[tuple[str, int]]) -> list[Stretch]:
    firsts = ((place, bucket * BUCKET_OFFSETS) for place, bucket in buckets)
    return stretches_at((place, first, first + BUCKET_OFFSETS - 1) for place, first in firsts)


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
    is_send, is_ok = f"side = {SEND}", f"(side = {SEND} and outcome = 'ok')"
    names = ["place", "hash", "sent", "acknowledged", "failed", "polled", "held", "offset"]
    clients = history.events.select(
        "place", "hash", F.expr(f"int({is_send})").alias("sent"),
        F.expr(f"int({is_ok} and promised)").alias("acknowledged"),
        F.expr(f"int({is_send} and outcome = 'fail')").alias("failed"), F.expr(f"int(side = {POLL})").alias("polled"),
        F.lit(0).alias("held"), F.expr(f"if({is_ok} or side = {POLL}, offset, null)").alias("offset"),
        F.expr(f"int({is_send} and aborted)").alias("aborted"),
        F.expr(f"int({is_send} and not ordered)").alias("unordered"),
        F.expr(f"int({is_send} and outcome = 'info')").alias("unknown"),
        F.expr("int(committed)").alias("committed"), "value", "process", F.lit(None).cast("int").alias("epoch"),
        F.expr(f"if({is_ok} and ordered, struct(process, offset, began_ns, ended_ns), null)").alias("send"),
    )  # fmt: skip
    none = (F.lit(0).alias(name) for name in ("sent", "acknowledged", "failed", "polled"))
    held = log.select(
        "place", "hash", *none, F.lit(1).alias("held"), "offset",
        *(F.lit(0).alias(name) for name in ("aborted", "unordered", "unknown", "committed")),
        *(F.lit(None).cast("string").alias(name) for name in ("value", "process")),
        F.col("leader_epoch").alias("epoch"),
        F.lit(None).cast("struct<process: string, offset: bigint, began_ns: bigint, ended_ns: bigint>").alias("send"),
    )  # fmt: skip
    if slim:
        return clients.select(*names).unionByName(held.select(*names))
    return clients.unionByName(held)


def evidence(log: DataFrame, history: History, found: DataFrame, aborted: DataFrame | None = None) -> DataFrame:
    """Everything known of the suspects, one row each. `held` and `places` are without aborted records."""
    rows = _rows(log, history, slim=False).join(F.broadcast(found), ["place", "hash"], "left_semi")
    if aborted is None:
        rows = rows.withColumn("held_aborted", F.lit(0))
    else:
        rows = rows.join(aborted.withColumn("_gone", F.lit(1)), ["place", "offset"], "left")
        rows = rows.withColumn("held_aborted", F.expr("held * coalesce(_gone, 0)"))
        rows = rows.withColumn("held", F.expr("held - held_aborted"))
    offsets = "array_sort(collect_set(if({0} > 0, offset, null)))"
    return rows.groupBy("place", "hash").agg(
        *(F.sum(name).alias(name) for name in ("sent", "acknowledged", "failed", "polled", "unknown")),
        *(F.sum(name).alias(name) for name in ("held", "held_aborted")),
        F.max("aborted").alias("aborted"), F.max("unordered").alias("unordered"),
        F.sum(F.expr("polled * committed")).alias("polled_committed"),
        F.max("value").alias("value"), F.min(F.expr("if(sent > 0, process, null)")).alias("process"),
        F.min(F.expr("if(sent > 0, offset, null)")).alias("acked_offset"),
        F.expr(offsets.format("held")).alias("places"), F.expr(offsets.format("polled")).alias("seen"),
        F.expr(offsets.format("held_aborted")).alias("aborted_places"),
        F.array_sort(F.collect_set("epoch")).alias("epochs"),
        F.array_sort(F.collect_set(F.expr("if(polled > 0, process, null)"))).alias("readers"),
        F.collect_list("send").alias("sends"),
    )  # fmt: skip


def judged(spark: SparkSession, known: DataFrame, facts: Mapping[TopicPartition, PartitionFacts]) -> DataFrame:
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
    absent = "acknowledged > 0 and held = 0 and (acked_offset is null or start is null or acked_offset >= start)"
    gone = "array_except(array_except(seen, places), aborted_places)"
    read_aborted = "polled_committed > 0 and held = 0 and size(array_intersect(seen, aborted_places)) > 0"
    kinds = [
        _found(
            full.where(f"{absent} and held_aborted = 0"), Kind.LOST, "acked_offset", "acked_offset", _lost_detail()
        ),
        _found(
            full.where(f"{absent} and held_aborted > 0"), Kind.ABORTED_IN_LOG, "get(aborted_places, 0)",
            "get(aborted_places, size(aborted_places) - 1)", "'lost to readers of committed records'",
        ),
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
            full.where("sent = 0 and polled > 0 and size(array_except(seen, aborted_places)) > 0"),
            Kind.PHANTOM_READ, "get(seen, 0)", "get(seen, size(seen) - 1)",
            f"concat('polled by ', {_listed('readers')}, ', sent by nobody')",
        ),
        _found(
            # The records of an aborted transaction are in the log by right, and for read_uncommitted to see.
            full.where(
                "failed > 0 and acknowledged = 0 and unknown = 0"
                " and (polled_committed > 0 or (aborted = 0 and polled > 0 and held_aborted = 0))"
                f" or ({read_aborted})"
            ),
            Kind.ABORTED_READ,
            "get(seen, 0)", "get(seen, size(seen) - 1)", f"concat('polled by ', {_listed('readers')})",
        ),
        _found(
            full.where("failed > 0 and acknowledged = 0 and unknown = 0 and aborted = 0 and held > 0"),
            Kind.FAILED_IN_LOG, "get(places, 0)",
            "get(places, size(places) - 1)", "'the producer got an error'",
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
        "case when start is null then 'no replica of the partition is here'"
        " when acked_offset is null then 'the client got no offset'"
        " when acked_offset < high_watermark then 'below the high watermark'"
        " else 'at or above the high watermark' end"
    )


def _listed(name: str) -> str:
    return f"array_join(slice({name}, 1, {OFFSETS_SHOWN}), ', ')"

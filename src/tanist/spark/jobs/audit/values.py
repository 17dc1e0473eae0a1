"""Stage: the clients' acknowledged and polled values against the log. Lost, duplicated, aborted, phantom.

Owns the way to the *suspects*: values that are not simply one send, acknowledged where the log has it. In two levels:
the buckets of offsets whose acknowledged sends, or whose records as some consumer polled them, do not come to the same
exclusive-or of hashes as the log's, and in those the values that differ. Flat, if most buckets differ: all values in
one aggregation. Both give more suspects than wrong values; `suspect_rows` puts together all that is known of them, and
judges it.

In two levels a history is read twice: `folded` sums it up, and finds the claims in buckets that differ by the way
(`first_pass`); the second pass picks the suspects' events. The log is read where buckets differ, and where suspects
were acknowledged: a bucket that comes to what producers claimed has each value where they claimed it, and nowhere else.

The log is that of each partition's reference replica: the leader's. A record that a marker has aborted there is not in
it for a reader of committed records: nothing is duplicated by it. Acknowledged sends, and what readers of committed
records were given, are suspect where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from tanist.client.topic_partition import TopicPartition
from tanist.spark.jobs.audit import suspect_rows
from tanist.spark.jobs.audit.events import POLL, SEND
from tanist.spark.jobs.audit.facts import PartitionFacts
from tanist.spark.jobs.audit.first_pass import BLOCK, CLAIM, GIVEN_UP, SUM, FirstPass, LogSums, Own, Shared
from tanist.spark.jobs.audit.first_pass import SCHEMA as FIRST_PASS
from tanist.spark.jobs.audit.history import History
from tanist.spark.jobs.audit.logs import Logs, Stretch, stretches_at
from tanist.spark.jobs.audit.parquet_lines import PICKED_MAX
from tanist.spark.jobs.audit.replicas import FLAT_SHARE
from tanist.spark.jobs.audit.sums import BUCKET, BUCKET_OFFSETS

_STRETCHES_MAX: Final = 20_000
_LOG_SUMS_MAX: Final = 1 << 23
"""200 MB in each worker, of 4 * 10^9 records; with more the plan is flat."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A history after its first pass."""

    sums: DataFrame
    """By place, reader (null: the producers) and bucket: records, sum, acknowledged, expired, at_ns, offset."""
    claims: DataFrame
    """place, reader, bucket, offset, hash: of all in buckets that differ from the log's, and others; also of
    acknowledged sends without an offset."""
    blocks: DataFrame
    """Of the producers, for `order_blocks`."""
    whole: bool
    """False: there would have been too many claims, and some are not there."""


@dataclass(frozen=True, slots=True)
class Suspects:
    """place, hash. `level` says how they were found."""

    values: DataFrame
    level: str
    odd: frozenset[tuple[str, int]] | None = None
    """In two levels: the buckets that differ."""


@dataclass(frozen=True, slots=True)
class ComparedValues:
    findings: DataFrame | None
    suspects: DataFrame | None
    """Everything known of the suspects; None if there are none."""
    plan: str
    """Which plan the comparison took, and why."""


def compare(
    logs: Logs,
    history: History,
    log_sums: DataFrame,
    folded: Folded,
    facts: Mapping[TopicPartition, PartitionFacts],
    aborted: DataFrame | None = None,
    *,
    plan: str = "auto",
    keep: Callable[[DataFrame], DataFrame],
    progress: Callable[[str], None] = lambda _: None,
) -> ComparedValues:
    """The history against the log. `log_sums` are those of `log_sums`, `folded` is that of `folded`.

    `aborted`: place and offset of the records that the log has aborted.
    """
    found = suspects(logs, history, log_sums, folded, facts, plan=plan, keep=keep)
    values = found.values
    if aborted is not None:
        values = values.unionByName(_claimed_though(aborted, history)).distinct()
    values, count = _counted(keep(values))
    described = f"{found.level}; {count} values looked at one by one"
    if not count:
        return ComparedValues(None, None, described)
    progress(f"putting together what is known of {count} values")
    events = history.with_values(values)
    if found.odd is not None:
        # Looked at twice: for where the values were claimed, and for all that is known of them.
        events = keep(suspect_rows.of_values(events, values))
        near = _stretches(found.odd, _claimed_places(events))
    else:
        near = None
    known = keep(suspect_rows.aggregate(reference(logs, facts, near), events, values, aborted))
    known.count()
    return ComparedValues(suspect_rows.judged(values.sparkSession, known, facts), known, described)


def _counted(values: DataFrame) -> tuple[DataFrame, int]:
    """A table of its own, if it is small."""
    count = values.count()
    if count > PICKED_MAX:
        return values, count
    return values.sparkSession.createDataFrame(values.select("place", "hash").toArrow()), count


def _claimed_places(events: DataFrame) -> list[tuple[str, int]] | None:
    """Where these were acknowledged; None if that are too many places."""
    claimed = events.where(f"side = {SEND} and outcome = 'ok' and offset is not null").select("place", "offset")
    rows = claimed.distinct().limit(_STRETCHES_MAX + 1).collect()
    return [(row.place, row.offset) for row in rows] if len(rows) <= _STRETCHES_MAX else None


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


def folded(
    history: History,
    starts: Mapping[TopicPartition, int],
    log: DataFrame | None,
    *,
    keep: Callable[[DataFrame], DataFrame],
    plan: str = "auto",
) -> Folded:
    """The first pass over a history. `starts`: where the logs begin; `log`: those of `log_sums`, None if the plan is
    flat."""
    above = {f"{topic}-{partition}": start for (topic, partition), start in starts.items() if start > 0}
    known = None if log is None else log.limit(_LOG_SUMS_MAX + 1).toArrow()
    whole = known is not None and known.num_rows <= _LOG_SUMS_MAX
    sums_of_log = None if known is None or not whole else _shared(history.events.sparkSession, LogSums.of(known))
    chosen = FirstPass(sums_of_log, above, plan != "two-level")
    rows = keep(history.mapped(chosen, FIRST_PASS))
    sums = rows.where(f"part = {SUM}").groupBy("place", F.col("process").alias("reader"), "bucket").agg(
        *(F.sum(name).alias(name) for name in ("records", "acknowledged", "expired")),
        F.expr("bit_xor(sum)").alias("sum"), F.max("at_ns").alias("at_ns"), F.max("offset").alias("offset"),
    )  # fmt: skip
    whole = whole and not rows.where(f"part = {GIVEN_UP}").limit(1).count()
    claims = rows.where(f"part = {CLAIM}").select("place", F.col("process").alias("reader"), "bucket", "offset", "hash")
    return Folded(keep(sums), claims, rows.where(f"part = {BLOCK}"), whole)


def _shared(spark: SparkSession, sums_of_log: LogSums) -> Shared:
    if is_remote():
        return Own(sums_of_log)
    found: Shared = spark.sparkContext.broadcast(sums_of_log)
    return found


def suspects(
    logs: Logs,
    history: History,
    log_sums: DataFrame,
    folded: Folded,
    facts: Mapping[TopicPartition, PartitionFacts],
    *,
    plan: str = "auto",
    keep: Callable[[DataFrame], DataFrame],
) -> Suspects:
    """`log_sums` and `folded` are those of the functions; `plan` is two-level, flat, or auto."""
    if plan != "flat" and folded.whole:
        found = _two_level(logs, log_sums, folded, facts, forced=plan == "two-level", keep=keep)
        if found is not None:
            return found
    return Suspects(_flat(reference(logs, facts), history), "flat")


def log_sums(level_one: DataFrame, facts: Mapping[TopicPartition, PartitionFacts]) -> DataFrame:
    """Of the leaders' logs: place, bucket, log_records, log_sum. `level_one` is the logs', with values."""
    holders = [(topic, partition, each.reference) for (topic, partition), each in facts.items()]
    leaders = level_one.sparkSession.createDataFrame(holders, "topic string, partition int, replica int")
    own = level_one.where("value_records > 0").join(F.broadcast(leaders), list(leaders.columns), "left_semi")
    return own.groupBy(place_of().alias("place"), "bucket").agg(
        F.sum("value_records").alias("log_records"), F.expr("bit_xor(value_hash)").alias("log_sum")
    )


def _two_level(
    logs: Logs,
    log_sums: DataFrame,
    folded: Folded,
    facts: Mapping[TopicPartition, PartitionFacts],
    *,
    forced: bool,
    keep: Callable[[DataFrame], DataFrame],
) -> Suspects | None:
    # Not only readers' buckets are looked for in the log, but also the log's among what was acknowledged: both joins in
    # one, by gathering the readers of each bucket that differ. The producers are the reader null.
    unlike = "records is not null and not (records <=> log_records and sum <=> log_sum)"
    joined = log_sums.join(folded.sums, ["place", "bucket"], "full").groupBy("place", "bucket").agg(
        F.count(F.when(F.expr("records is not null and reader is null"), 1)).alias("producers"),
        F.expr(f"count_if(({unlike}) and reader is null)").alias("unlike"),
        F.expr(f"collect_set(if({unlike}, reader, null))").alias("readers"),
    )  # fmt: skip
    judged = joined.select(
        "place", "bucket", "readers", F.expr("unlike > 0 or producers = 0").alias("producers")
    ).withColumn("odd", F.expr("producers or size(readers) > 0"))
    judged = keep(judged)
    total_row = judged.agg(F.count("*").alias("total"), F.expr("count_if(odd)").alias("odd")).first()
    total, count = max(total_row.total, 1), total_row.odd
    if count > _STRETCHES_MAX or (not forced and count > FLAT_SHARE * total):
        return None
    unplaced = folded.claims.where("bucket is null").select("place", "hash").distinct()
    level = f"two-level: {count} of {total} buckets differ"
    if not count:
        return Suspects(unplaced, level, frozenset())
    # A table of its own: a plan that has all that led to it would be written down again with each plan above it.
    rows = judged.where("odd").drop("odd").toArrow()
    table = F.broadcast(judged.sparkSession.createDataFrame(rows))
    odd = frozenset(zip(rows.column("place").to_pylist(), rows.column("bucket").to_pylist()))
    claims = folded.claims.where("bucket is not null").join(table, ["place", "bucket"])
    claims = claims.where("if(reader is null, producers, array_contains(readers, reader))").select(
        "place", "offset", "hash", "producers", F.expr("int(reader is null)").alias("sent"), F.lit(0).alias("held")
    )
    log = reference(logs, facts, _stretches(odd)).withColumn("bucket", F.expr(BUCKET)).join(table, ["place", "bucket"])
    held = log.select("place", "offset", "hash", "producers", F.lit(0).alias("sent"), F.lit(1).alias("held"))
    together = (
        claims.unionByName(held)
        .groupBy("place", "offset", "hash")
        .agg(F.sum("sent").alias("sent"), F.sum("held").alias("held"), F.first("producers").alias("producers"))
    )
    # Where all that producers claim is settled, what a reader claims is right if the log has it.
    wrong = together.where("not (held = 1 and (sent = 1 or (sent = 0 and not producers)))")
    return Suspects(unplaced.unionByName(wrong.select("place", "hash")).distinct(), level, odd)


def _claimed_though(aborted: DataFrame, history: History) -> DataFrame:
    """The values that clients take for committed, where the log has aborted records."""
    claimed = with_offsets(history).where(f"side = {SEND} or committed")
    return claimed.join(aborted, ["place", "offset"], "left_semi").select("place", "hash")


def _stretches(
    buckets: Iterable[tuple[str, int]], offsets: Iterable[tuple[str, int]] | None = ()
) -> list[Stretch] | None:
    """The offsets of these buckets, and these; None if that is nearly everywhere."""
    if offsets is None:
        return None
    firsts = ((place, bucket * BUCKET_OFFSETS) for place, bucket in buckets)
    return stretches_at(
        [*((place, first, first + BUCKET_OFFSETS - 1) for place, first in firsts),
         *((place, offset, offset) for place, offset in offsets)]
    )  # fmt: skip


def _flat(log: DataFrame, history: History) -> DataFrame:
    """All values in one aggregation: no join, one shuffle, keys that are unique."""
    together = suspect_rows.rows(log, history.events, slim=True)
    judged = together.groupBy("place", "hash").agg(
        F.sum("sent").alias("sent"), F.sum("acknowledged").alias("acknowledged"), F.sum("failed").alias("failed"),
        F.sum("polled").alias("polled"), F.sum("held").alias("held"),
        F.min("offset").alias("least"), F.max("offset").alias("most"),
    )  # fmt: skip
    return judged.where(
        "held > 1 or failed > 0 or sent > 1 or (held = 0 and (acknowledged > 0 or polled > 0))"
        " or (polled > 0 and sent = 0) or (held > 0 and least <> most)"
    ).select("place", "hash")

"""Stage by DuckDB: replicas against each other, and the transactions of a log.

Owns the tables `sums` (level one: `audit.sums`), `again` (what is read a second time), `aborted` and `open`, and what
goes into `findings` of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tanist.lab.anomalies import Anomaly
from tanist.spark.jobs import Progress
from tanist.spark.jobs.audit import sums as audit_sums
from tanist.spark.jobs.audit.by_duckdb.session import Database
from tanist.spark.jobs.audit.by_duckdb.tables import Logs, add_findings, facts_table
from tanist.spark.jobs.audit.facts import EpochRange, Facts, buckets_of
from tanist.spark.jobs.audit.log_files import Holder, Stretch
from tanist.spark.jobs.audit.result import OpenTransaction
from tanist.spark.jobs.audit.rules import ABORTED, COMMITTED, FLAT_SHARE, OPEN, OPEN_MAX, STRETCHES_MAX
from tanist.spark.jobs.audit.sums import BUCKET_OFFSETS
from tanist.wire.control import ControlKind


def sum_up(database: Database, logs: Logs) -> list[EpochRange]:
    database.load("runs", audit_sums.SCHEMA, logs.sums())
    database.run("""
        create temp table sums as
        select topic, "partition", replica, leader_epoch, bucket, cast(sum(records) as bigint) as records,
            bit_xor(hash) as hash, min(first_offset) as first_offset, max(last_offset) as last_offset,
            sum(damages) as damages, sum(transactional) as transactional
        from runs group by all""")
    database.run("drop table runs")
    rows = database.rows("""
        select topic, "partition", replica, leader_epoch, min(first_offset), max(last_offset),
            cast(sum(records) as bigint)
        from sums where records > 0 and replica is not null group by all order by all""")
    return [EpochRange(*row) for row in rows]


def holders(database: Database, what: str) -> list[Holder]:
    """The replicas that have damage (`damages`), or records of transactions (`transactional`)."""
    return database.rows(f'select distinct topic, "partition", replica from sums where {what} > 0 order by all')


def add_damage(database: Database, logs: Logs, where: Sequence[Holder]) -> None:
    names = ("topic", "partition", "replica", "leader_epoch", "offset", "batch_position", "segment", "damage")
    logs.load("damage", names, holders=where)
    add_findings(
        database, "from damage where damage is not null", kind=Anomaly.DAMAGED, first_offset='"offset"',
        last_offset='"offset"', records="1", epochs="if(leader_epoch is null, [], [leader_epoch])",
        replicas="[replica]", detail="concat(damage, ', at byte ', batch_position, ' of segment ', segment)",
    )  # fmt: skip


def compare(database: Database, logs: Logs, facts: Facts, progress: Progress) -> str:
    """Only buckets that do not agree are read again, record by record. Gives the plan."""
    facts_table(database, facts)
    database.run(f"create temp table suspects as {_DIFFERING}")
    found = database.rows("from suspects")
    total = max(buckets_of(facts), 1)
    flat = len(found) > min(STRETCHES_MAX, FLAT_SHARE * total)
    plan = f"{'flat' if flat else 'two-level'}: {len(found)} of {total} buckets differ"
    if found:
        progress(f"looking into {len(found)} of {total} stretches of {BUCKET_OFFSETS} offsets")
        near = [
            Stretch(topic, partition, bucket * BUCKET_OFFSETS, (bucket + 1) * BUCKET_OFFSETS - 1)
            for topic, partition, bucket in found
        ]
        names = ("topic", "partition", "replica", "leader_epoch", "offset", "fingerprint", "damage")
        logs.load("again", names, near=None if flat else near)
        database.run(f"create temp table held as {_HELD}")
        _add_runs(database, Anomaly.DIVERGENT, _DIVERGENT)
        _add_runs(database, Anomaly.MISSING, _MISSING)
    return plan


_DIFFERING = f"""
    with of_replica as (
        select topic, "partition", replica, bucket, sum(records) as records, bit_xor(hash) as hash
        from sums where records > 0 group by all),
    together as (
        select topic, "partition", bucket, count(*) as present, max(records) as most,
            min(hash) <> max(hash) or min(records) <> max(records) as unequal
        from of_replica group by all),
    wanted as (
        select *, unnest(range(start // {BUCKET_OFFSETS}, (high_watermark - 1) // {BUCKET_OFFSETS} + 1)) as bucket
        from facts where high_watermark > start)
    select topic, "partition", bucket from wanted full join together using (topic, "partition", bucket)
    where unequal or coalesce(present, 0) < replicas
        or (judged and coalesce(most, 0)
            < least(high_watermark, (bucket + 1) * {BUCKET_OFFSETS}) - greatest(start, bucket * {BUCKET_OFFSETS}))"""
_HELD = f"""
    select topic, "partition", "offset", list_sort(list(distinct replica)) as present,
        min(hash(leader_epoch, fingerprint)) <> max(hash(leader_epoch, fingerprint)) as unequal,
        list_sort(list(distinct leader_epoch)) as epochs,
        list_sort(list(distinct {{'replica': replica, 'leader_epoch': leader_epoch, 'fingerprint': fingerprint}}))
            as versions
    from (select *, "offset" // {BUCKET_OFFSETS} as bucket from again where damage is null)
        semi join suspects using (topic, "partition", bucket)
    group by topic, "partition", "offset" """
_DIVERGENT = """
    select topic, "partition", "offset", epochs, present as replicas,
        if(len(epochs) > 1, array_to_string(list_transform(versions,
            lambda each: concat('replica ', each.replica, ' has epoch ', each.leader_epoch)), ', '),
            'the same epoch, and other bytes') as note
    from held where unequal"""
# Not by epochs: what is missing is one run, whatever epochs it had.
_MISSING = f"""
    select topic, "partition", "offset", cast(null as integer[]) as epochs, list(replica order by replica) as replicas,
        if(any_value(present) is null, 'no replica has it',
            concat('held by ', array_to_string(any_value(present), ','))) as note
    from (
        select topic, "partition", unnest(range(greatest(start, bucket * {BUCKET_OFFSETS}),
            least(high_watermark, (bucket + 1) * {BUCKET_OFFSETS}))) as "offset"
        from suspects join facts using (topic, "partition") where judged) wanted
        join starts using (topic, "partition") left join held using (topic, "partition", "offset")
    where begins <= "offset" and not coalesce(list_contains(present, replica), false)
    group by topic, "partition", "offset" """


def _add_runs(database: Database, kind: Anomaly, offsets: str) -> None:
    """Neighbouring offsets as one finding. As Spark has them, a run ends with its bucket."""
    alike = f'topic, "partition", epochs, replicas, note, "offset" // {BUCKET_OFFSETS}'
    add_findings(
        database,
        f"""from (
            select topic, "partition", epochs, replicas, note, min("offset") as first, max("offset") as last,
                count(*) as count
            from (select *, "offset" - row_number() over (partition by {alike} order by "offset") as run
                from ({offsets}))
            group by {alike}, run)""",
        kind=kind, first_offset="first", last_offset="last", records="count", epochs="epochs", replicas="replicas",
        detail="note",
    )  # fmt: skip


def follow_transactions(database: Database, logs: Logs, where: Collection[Holder]) -> list[OpenTransaction]:
    """The first marker of the same producer behind a record ends its transaction. Makes `aborted`."""
    names = (
        "topic", "partition", "replica", "leader_epoch", "offset", "key", "producer_id", "producer_epoch",
        "is_control", "is_transactional", "damage",
    )  # fmt: skip
    logs.load("marked", names, holders=where, only="is_transactional")
    # The key of a control record is a version and a type, of two bytes each.
    kinds = f"case substr(hex(key), 5, 4) when '{ControlKind.COMMIT:04X}' then '{COMMITTED}'"
    kinds += f" when '{ControlKind.ABORT:04X}' then '{ABORTED}' else '{OPEN}' end"
    database.run(f"""
        create temp table outcomes as
        select topic, "partition", "offset", producer_id, producer_epoch, coalesce(outcome, '{OPEN}') as outcome
        from (select *, first_value(if(is_control, {kinds}, null) ignore nulls) over (
                partition by replica, topic, "partition", producer_id order by "offset"
                rows between current row and unbounded following) as outcome
            from marked where damage is null)
        where not is_control""")
    database.run(f"""
        create or replace temp table aborted as
        select distinct concat(topic, '-', "partition") as place, "offset" from outcomes
        where outcome = '{ABORTED}'""")
    rows = database.rows(f"""
        select topic, "partition", producer_id, max(producer_epoch), min("offset") as first, max("offset"), count(*)
        from outcomes where outcome = '{OPEN}' group by all order by topic, "partition", first limit {OPEN_MAX}""")
    return [OpenTransaction(*row) for row in rows]

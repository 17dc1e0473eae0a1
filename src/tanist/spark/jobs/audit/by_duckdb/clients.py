"""Stage by DuckDB: the clients' values against the log, and each producer's order.

Owns the tables `log` (the leaders' records), `known` (all that is known of values that are not simply one send,
acknowledged where the log has it) and `placed` (where acknowledged sends stand). The rules of values are those of
`audit.rules`. That of order: take two sends of one process to one partition, both acknowledged and idempotent; if the
second began after the first was acknowledged, the second stands behind the first. A record stands at its first place in
the log. Sends whose beginning is not known prove nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tanist.client.topic_partition import TopicPartition
from tanist.lab.anomalies import Anomaly
from tanist.spark.jobs import Progress
from tanist.spark.jobs.audit.by_duckdb.history import POLL, SEND
from tanist.spark.jobs.audit.by_duckdb.session import Database, text
from tanist.spark.jobs.audit.by_duckdb.tables import Logs, add_findings
from tanist.spark.jobs.audit.facts import Facts
from tanist.spark.jobs.audit.result import ClientCounts
from tanist.spark.jobs.audit.rules import OF_VALUES, SUSPECT

_TOPIC: Final = "regexp_replace(place, '-[0-9]+$', '')"
_PARTITION: Final = "try_cast(split_part(place, '-', -1) as integer)"
_IS_OK: Final = f"side = {SEND} and outcome = 'ok'"


def counted(database: Database, begun: Mapping[TopicPartition, int]) -> ClientCounts:
    """`begun`: where the logs begin that begin above offset 0."""
    starts = ", ".join(f"({text(f'{topic}-{partition}')}, {start})" for (topic, partition), start in begun.items())
    return ClientCounts.of(
        database.dicts(f"""
            with begun(place, start) as (values {starts or "(cast(null as varchar), cast(null as bigint))"})
            select place, "offset" is not null as placed, count(*) as claims,
                count(*) filter (outcome = 'ok' and promised) as sends,
                count(*) filter (outcome = 'ok' and promised and "offset" < start) as expired,
                count(*) filter (side = {POLL}) as polled, min(ended_ns) as first_ns, max(ended_ns) as last_ns
            from events left join begun using (place) where side = {POLL} or outcome = 'ok' group by all""")
    )


def compare(database: Database, logs: Logs, facts: Facts, progress: Progress) -> str:
    """Gives the plan. `facts` and `aborted` are there."""
    wanted = ("topic", "partition", "leader_epoch", "offset", "value", "is_control", "damage")
    logs.load("values", wanted, holders={(*place, each.reference) for place, each in facts.items()})
    database.run("""
        create temp table log as
        select concat(topic, '-', "partition") as place, "offset", leader_epoch, hash("value") as hash
        from "values" where damage is null and not is_control""")
    database.run('drop table "values"')
    database.run(f"create temp table suspect_values as {_SUSPECTS}")
    ((count,),) = database.rows("select count(*) from suspect_values")
    if count:
        progress(f"putting together what is known of {count} values")
    database.run(f"create temp table known as {_KNOWN}")
    full = f"""
        select * replace (coalesce(topic, {_TOPIC}) as topic, coalesce("partition", {_PARTITION}) as "partition")
        from known left join facts using (place)"""
    for rule in OF_VALUES:
        add_findings(
            database, f"from ({full}) where {rule.when}", kind=rule.kind, first_offset=rule.first,
            last_offset=rule.last, records="1", epochs="epochs", value='"value"', process="process",
            detail=rule.detail,
        )  # fmt: skip
    return f"{count} values looked at one by one"


def _counts(**conditions: str) -> str:
    return ", ".join(f"count(*) filter ({condition}) as {name}" for name, condition in conditions.items())


_OF_BOTH: Final = {
    "sent": f"side = {SEND}", "acknowledged": f"{_IS_OK} and promised", "failed": f"side = {SEND} and outcome = 'fail'",
    "polled": f"side = {POLL}",
}  # fmt: skip
"""What is counted of a value, to find the suspects and to judge them."""
_SUSPECTS = f"""
    select place, hash from (
        select place, hash,
            {_counts(**_OF_BOTH, unplaced=f'{_IS_OK} and "offset" is null', held="side is null")},
            min("offset") filter (side is null or side = {POLL} or outcome = 'ok') as least,
            max("offset") filter (side is null or side = {POLL} or outcome = 'ok') as most
        from (select place, hash, side, outcome, promised, "offset" from events
            union all select place, hash, null, null, null, "offset" from log)
        group by place, hash)
    where {SUSPECT}
    union
    select place, hash from events semi join aborted using (place, "offset")
    where (side = {POLL} and committed) or ({_IS_OK})"""


def _offsets(condition: str) -> str:
    return f'coalesce(list_sort(list(distinct "offset") filter ({condition})), [])'


# `held` and `places` are without aborted records.
_KNOWN = f"""
    with rows as (
        select place, hash, side, process, "offset", outcome, promised, ordered, aborted, committed, "value",
            null as epoch, false as gone
        from events semi join suspect_values using (place, hash)
        union all
        select place, hash, null, null, "offset", null, null, null, null, null, null, leader_epoch,
            aborted.place is not null
        from (from log semi join suspect_values using (place, hash)) held
            left join aborted using (place, "offset"))
    select place, hash,
        {
    _counts(
        **_OF_BOTH,
        unknown=f"side = {SEND} and outcome = 'info'",
        aborted=f"side = {SEND} and aborted",
        unordered=f"side = {SEND} and not ordered",
        polled_committed=f"side = {POLL} and committed",
        held="side is null and not gone",
        held_aborted="gone",
    )
},
        max("value") as "value",
        min(process) filter (side = {SEND}) as process, min("offset") filter ({_IS_OK}) as acked_offset,
        {_offsets("side is null and not gone")} as places, {_offsets("gone")} as aborted_places,
        {_offsets(f"side = {POLL}")} as seen,
        coalesce(list_sort(list(distinct epoch) filter (epoch is not null)), []) as epochs,
        coalesce(list_sort(list(distinct process) filter (side = {POLL})), []) as readers
    from rows group by place, hash"""


def check_order(database: Database) -> None:
    """A record that stands nowhere was lost, and has no order."""
    database.run(f"""
        create temp table placed as
        select process, place, hash, if(known.place is null, "offset", get(places, 0)) as "offset", began_ns, ended_ns
        from events left join (select place, hash, places from known) known using (place, hash)
        where {_IS_OK} and ordered and ended_ns is not null""")
    # The events of a producer, in time: acknowledgements, and beginnings of sends, which come after those of the same
    # moment.
    database.run("""
        create temp table reordered as
        select process, place, hash, "offset", at_ns as began_ns, behind
        from (select *, max(if(began, null, "offset")) over (partition by process, place order by at_ns, began
                rows between unbounded preceding and current row) as behind
            from (select process, place, hash, "offset", ended_ns as at_ns, false as began from placed
                union all
                select process, place, hash, "offset", began_ns, true from placed where began_ns is not null)
            where "offset" is not null)
        where began and behind > "offset" """)
    add_findings(
        database,
        f"""from (
            select distinct {_TOPIC} as topic, {_PARTITION} as "partition", reordered."offset" as "offset",
                "value", process, behind
            from reordered join events using (process, place, hash, began_ns) where side = {SEND})""",
        kind=Anomaly.REORDERED, first_offset='"offset"', last_offset='"offset"', records="1", value='"value"',
        process="process", detail="concat('a record that was acknowledged before it was sent stands at ', behind)",
    )  # fmt: skip


def moments(database: Database, step_ns: int) -> list[tuple[str, int, int]]:
    return [
        (place, at_ns, offset)
        for place, at_ns, offset in database.rows(f"""
            select place, ended_ns // {step_ns} * {step_ns} as at_ns, max("offset") from events
            where "offset" is not null and ended_ns is not null and (side = {POLL} or outcome = 'ok')
            group by all order by all""")
    ]

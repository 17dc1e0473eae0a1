"""Histories of clients in DuckDB: the table `events`, a row for each send and for each polled record.

Owns the way from the lines of docs/history.md, as JSON Lines or Parquet, to events with the columns of
`by_spark.history`. Nothing is judged. Values are compared with what the log holds as 64-bit hashes, which are the same
of text and of its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from tanist.lab.history.operation import NEMESIS
from tanist.spark.jobs.audit.by_duckdb.session import Database, text
from tanist.spark.jobs.history_files import NO_COLUMN, NO_TIME, HistoryUnfit, are_parquet, files_of
from tanist.spark.stores import path_of

SEND: Final = 0
POLL: Final = 1
_FIELDS: Final = {
    "process": "varchar", "type": "varchar", "f": "varchar", "id": "varchar", "time_ns": "bigint",
    "invoked_ns": "bigint", "partition": "varchar", "value": "varchar", "offset": "bigint", "acks": "varchar",
    "idempotent": "boolean", "aborted": "boolean", "isolation": "varchar",
}  # fmt: skip
_RECORDS: Final = "map(varchar, varchar[][])"
_JSON: Final = {
    **_FIELDS,
    "records": _RECORDS,
    "ops": f'struct(f varchar, "partition" varchar, "value" varchar, "offset" bigint, records {_RECORDS},'
    " invoked_ns bigint, time_ns bigint)[]",
}
_REST: Final = [name for name in _FIELDS if name not in ("partition", "offset", "value")]
_CARRIED: Final = ("partition", "value", "acks", "idempotent")


def read_history(database: Database, paths: Sequence[str | Path], topics: Sequence[str]) -> None:
    """Of files, or of folders of Parquet files; without topics, of all."""
    parquet = are_parquet(paths)
    files = [database.local(file) for path in paths for file in files_of(path_of(path))]
    source = _parquet(files) if parquet else _json(files)
    # Text is parsed once, and lines are put together once; Parquet is read again, by columns.
    kept = "view" if parquet else "table"
    database.run(f"create temp {kept} lines as {_lines(database.types(source), source)}")
    pairs, untimed, transactions = _kinds(database)
    if untimed:
        raise HistoryUnfit(NO_TIME)
    kinds = database.types("lines")
    if pairs:
        parts = [_events(_paired()), _events("(from lines where f = 'poll')")]
    else:
        parts = [_events("lines")]
    if "records" in kinds:
        parts.append(_events(_several("lines", kinds["records"])))
    if "ops" in kinds and transactions:
        fields = dict(kinds["ops"].children[0][1].children)
        parts.append(_events(_sends_of_transactions(fields)))
        parts.append(_events(_polls_of_transactions(fields)))
        if "records" in fields:
            parts.append(_events(_several(_polls_of_transactions(fields), fields["records"])))
    every = " union all ".join(parts)
    if topics:
        named = ", ".join(map(text, topics))
        every = f"from ({every}) where regexp_replace(place, '-[0-9]+$', '') in ({named})"
    if pairs or transactions:
        kept = "table"
    database.run(f"create temp {kept} events as {every}")
    if not parquet:
        database.run("drop table lines")


def _json(files: Sequence[str]) -> str:
    columns = ", ".join(f"{text(name)}: {text(kind)}" for name, kind in _JSON.items())
    # A line that is no JSON, such as a last one that is not whole, has nothing.
    return f"read_json({_names(files)}, format = 'newline_delimited', ignore_errors = true, columns = {{{columns}}})"


def _parquet(files: Sequence[str]) -> str:
    return f"read_parquet({_names(files)}, union_by_name = true, binary_as_string = true)"


def _names(files: Iterable[str]) -> str:
    return "[" + ", ".join(map(text, files)) + "]"


def _lines(kinds: dict[str, Any], source: str) -> str:
    for name in ("process", "type", "f"):
        if name not in kinds:
            raise HistoryUnfit(NO_COLUMN.format(name))
    fields = [
        f'cast({_quoted(name) if name in kinds else "null"} as {kind}) as "{name}"' for name, kind in _FIELDS.items()
    ]
    fields += [name for name in ("records", "ops") if name in kinds and kinds[name].id != "sqlnull"]
    return f"select {', '.join(fields)} from {source} where cast(process as varchar) <> {text(NEMESIS)}"


def _quoted(name: str) -> str:
    return f'"{name}"'


def _kinds(database: Database) -> tuple[bool, bool, bool]:
    """Whether sends have two lines; whether lines that have to be put together have no time; transactions."""
    ((pairs, invoked, sent, transactions),) = database.rows(
        "select bool_or(f = 'send' and type = 'invoke'), bool_or(type = 'invoke' and time_ns is null),"
        " bool_or(f = 'send' and time_ns is null), bool_or(f = 'txn')"
        " from lines where f = 'txn' or (f = 'send' and (type = 'invoke' or time_ns is null))"
    )
    return bool(pairs), bool(invoked) or bool(pairs and sent), bool(transactions)


def _events(lines: str) -> str:
    """Of operations that stand on one line each."""
    return f"""
        select if(f = 'send', {SEND}, {POLL}) as side, process, "partition" as place, "value",
            hash("value") as hash, "offset", invoked_ns as began_ns, time_ns as ended_ns,
            if(f = 'send', type, null) as outcome, coalesce(acks in ('all', '-1'), true) as promised,
            coalesce(acks in ('all', '-1'), true) and coalesce(idempotent, true) as ordered,
            coalesce(aborted, false) as aborted, coalesce(isolation = 'read_committed', false) as committed
        from {lines}
        where (f = 'send' or (f = 'poll' and type = 'ok' and "offset" is not null))
            and "value" is not null and "partition" is not null"""


def _paired() -> str:
    """Sends of two lines. An invocation that nothing follows is a send of unknown outcome."""
    done = _completed("send", ("process", "id"), _CARRIED)
    carried = ", ".join(f'coalesce("{name}", planned."{name}") as "{name}"' for name in _CARRIED)
    return f"(select * replace ({carried}) from {done})"


def _completed(function: str, keys: Sequence[str], carried: Sequence[str]) -> str:
    """Operations of two lines as one line each: the columns `carried` as its completion has them, and in `planned` as
    its invocation has. A completion that follows no invocation has no `planned`."""
    own = "{" + ", ".join(f"'{name}': \"{name}\"" for name in carried) + "}"
    cleared = "".join(f'if(type <> \'invoke\', "{name}", null) as "{name}", ' for name in carried)
    # A completion at the moment of its invocation stands behind it.
    return f"""(
        select * exclude (before, following) replace ({cleared}
                case when type = 'invoke' then time_ns when before.type = 'invoke' then before.time_ns
                    else invoked_ns end as invoked_ns,
                if(type <> 'invoke', time_ns, null) as time_ns, if(type = 'invoke', 'info', type) as type),
            case when type = 'invoke' then {own} when before.type = 'invoke' then before.own end as planned
        from (select *, lag({{'type': type, 'time_ns': time_ns, 'own': {own}}}) over behind as before,
                lead(type) over behind as following
            from lines where f = '{function}'
            window behind as (partition by {", ".join(keys)} order by time_ns, type <> 'invoke'))
        where type <> 'invoke' or following is null or following = 'invoke')"""


def _several(polls: str, kind: Any) -> str:
    """Records of polls that gave several."""
    rest = ", ".join(_REST)
    given = f"from {polls} where f = 'poll' and type = 'ok' and records is not null"
    if kind.id == "map":
        return f"""(select {rest}, place as "partition", cast(pair[1] as bigint) as "offset", pair[2] as "value"
            from (select {rest}, each.key as place, unnest(each.value) as pair
                from (select {rest}, unnest(map_entries(records)) as each {given})))"""
    return f"""(select {rest}, cast(one."partition" as varchar) as "partition",
            cast(one."offset" as bigint) as "offset", cast(one."value" as varchar) as "value"
        from (select {rest}, unnest(records) as one {given}))"""


def _sends_of_transactions(fields: dict[str, Any]) -> str:
    """A send has the outcome of its transaction."""
    own = _of_op(fields, "partition", "value", "offset")
    # The completion of a transaction that is not committed may leave out the last of its sends.
    sent = "if(type = 'ok', coalesce(ops, planned.ops), coalesce(planned.ops, ops))"
    done = _completed("txn", ("process",), ("ops",))
    return f"""(select process, type, 'send' as f, id, time_ns, invoked_ns, {own}, cast(null as varchar) as acks,
            cast(null as boolean) as idempotent, aborted, isolation
        from (select *, unnest({sent}) as op from {done}) where op.f = 'send')"""


def _polls_of_transactions(fields: dict[str, Any]) -> str:
    """A poll has happened whatever came of the transaction."""
    own = _of_op(fields, "partition", "value", "offset")
    times = ", ".join(
        f"coalesce(op.{name}, {name}) as {name}" if name in fields else name for name in ("time_ns", "invoked_ns")
    )
    records = ", op.records as records" if "records" in fields else ""
    done = _completed("txn", ("process",), ("ops",))
    return f"""(select process, 'ok' as type, 'poll' as f, id, {times}, {own}, acks, idempotent, aborted,
            isolation{records}
        from (select *, unnest(ops) as op from {done}) where op.f = 'poll')"""


def _of_op(fields: dict[str, Any], *names: str) -> str:
    return ", ".join(
        f'cast({f"op.{_quoted(name)}" if name in fields else "null"} as {_FIELDS[name]}) as "{name}"' for name in names
    )

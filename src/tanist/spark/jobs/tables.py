"""The table that ingest has put at a path, and whether ingest and egress can begin: checked without Java.

Owns the layout of a table (`data/batch=N/topic=T/partition=P/*.parquet`, a checkpoint beside it, Delta's log above it),
which of its files count, and the checks of both jobs: topics that are there, partitions enough, a table that this made.
Must never import pyspark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from tanist.client.positions import EARLIEST, LATEST
from tanist.runtime.client.client import parse_bootstrap
from tanist.spark.jobs.preconditions import (
    NothingToJudge,
    Unfit,
    cluster_topics,
    interval_s,
    listed,
    of_this_machine,
    writable_below,
)
from tanist.spark.topic.offsets import list_offsets
from tanist.spark.topic.options import TopicOptions, connecting_to
from tanist.spark.topic.plan import partitions_of
from tanist.text import counted

TableKind = Literal["delta", "parquet"]
PARTITIONED_BY: Final = ("topic", "partition")
DATA: Final = "data"
CHECKPOINT: Final = "_checkpoint"
"""Beside the data: Delta and Spark pass over names that begin so."""
_DELTA_LOG: Final = "_delta_log"
_TIMEOUT_S: Final = 10.0


class TableUnfit(Unfit):
    """The path has no table that this can write or read."""


def source_options(bootstrap: str, topics: Sequence[str], more: Mapping[str, str]) -> dict[str, str]:
    """Those of the query that fills a table. Aborted records do not belong there, unless they are asked for."""
    asked = {"kafka.bootstrap.servers": bootstrap, "subscribe": ",".join(topics), "startingOffsets": "earliest"}
    if not {"isolation.level", "kafka.isolation.level"} & {name.lower() for name in more}:
        asked["kafka.isolation.level"] = "read_committed"
    return asked | dict(more)


def fit_to_ingest(
    bootstrap: str, topics: Sequence[str], table: Path, kind: TableKind, every: str | None, more: Mapping[str, str]
) -> None:
    """`Unfit` if it cannot begin, or if it would end without a record."""
    if not topics:
        raise TableUnfit("no topic was named")
    if every is not None:
        interval_s(every)
    options = TopicOptions.parse(source_options(bootstrap, topics, more), streaming=True)
    _fit_path(table, kind)
    cluster_topics(options.connecting, topics)
    if every is None and not files_of(table):
        _some_records(options, topics)


def _fit_path(table: Path, kind: TableKind) -> None:
    of_this_machine(table)
    if table.exists() and not table.is_dir():
        raise TableUnfit(f"{table} is a file: a table is a folder")
    names = {each.name for each in table.iterdir()} if table.is_dir() else set()
    others = sorted(names - {DATA, CHECKPOINT, _DELTA_LOG})
    if others and not names & {DATA, CHECKPOINT}:
        raise TableUnfit(f"{table} is no table, and has other files ({listed(others)}): name a new folder")
    if (table / DATA).exists() and not (table / CHECKPOINT / "metadata").exists():
        raise TableUnfit(f"{table} has records, and its {CHECKPOINT} is gone: all would be written once more")
    if kind == "parquet" and _DELTA_LOG in names:
        raise TableUnfit(f"{table} is a Delta table: --kind parquet would leave its log behind its files")
    writable_below(table)


def _some_records(options: TopicOptions, topics: Sequence[str]) -> None:
    with options.connecting.client(_TIMEOUT_S) as client:
        partitions = partitions_of(client, options).partitions
        firsts = list_offsets(client, dict.fromkeys(partitions, EARLIEST))
        lasts = list_offsets(client, dict.fromkeys(partitions, LATEST), committed=options.read_committed)
    if any(firsts[each].offset < lasts[each].offset for each in partitions):
        return
    expired = {each: found.offset for each, found in firsts.items() if found.offset > 0}
    why = "nothing has been written"
    if expired:
        (topic, partition), start = max(expired.items(), key=lambda item: item[1])
        why = f"what {topic}-{partition} had below offset {start:,} has expired"
    raise NothingToJudge(f'{listed(sorted(topics))} has no record: {why}. --every "5 seconds" waits for records')


def files_of(table: Path) -> list[str]:
    """The files that count: of Delta's log if there is one, else of whole batches. Without a table there are none."""
    if (table / _DELTA_LOG).is_dir():
        from deltalake import DeltaTable

        if DeltaTable.is_deltatable(str(table)):
            return [uri.removeprefix("file://") for uri in DeltaTable(str(table)).file_uris()]
    batches = sorted(each for each in (table / DATA).glob("batch=*") if (each / "_SUCCESS").exists())
    return [str(file) for batch in batches for file in sorted(batch.rglob("*.parquet"))]


def records_of(table: str | Path) -> list[str]:
    """`files_of`, absolute, of a table that must have some."""
    of_this_machine(table)
    path = Path(table).absolute()
    found = files_of(path)
    if not found:
        raise TableUnfit(f"no table is at {path}, or it has no records yet")
    return found


def partition_of(file: str) -> dict[str, str]:
    """The values of `PARTITIONED_BY`, by the folders that a file of a table is in."""
    named = dict(part.split("=", 1) for part in Path(file).parts if "=" in part)
    return {name: named[name] for name in PARTITIONED_BY}


def fit_to_egress(
    bootstrap: str,
    table: str | Path,
    topic: str | None,
    *,
    keep_partitions: bool,
    options: Mapping[str, str] | None = None,
) -> None:
    """`Unfit` if a record of the table would have no topic, or no partition, to go to. `options` are the sink's."""
    wanted: dict[str, int] = {}
    for file in records_of(table):
        named = partition_of(file)
        target = topic or named["topic"]
        wanted[target] = max(wanted.get(target, 0), int(named["partition"]) + 1)
    cluster = connecting_to(parse_bootstrap(bootstrap), options)
    try:
        there = cluster_topics(cluster, wanted)
    except Unfit as error:
        if len(wanted) > 1:
            raise
        joint = " Or make" if str(error).endswith("?") else ". Make"
        ((name, count),) = wanted.items()
        raise Unfit(f"{error}{joint} it: `tanist topics create {name} --partitions {count}`") from error
    for target, count in wanted.items():
        if keep_partitions and there[target] < count:
            raise Unfit(
                f"the table has records of partition {count - 1}, and topic {target} has "
                f"{counted(there[target], 'partition')}: give it {count}, "
                "or let --by-key choose partitions"
            )

"""The table that ingest has put at a path, and whether ingest and egress can begin: checked without Java.

Owns the layout of a table (`topic=T/partition=P/*.parquet` with Delta's log beside it, or `data/batch=N/...` without; a
checkpoint in it, unless it is elsewhere), which of its files count, and the checks of both jobs: topics that are there,
partitions enough, a table that this made. Must never import pyspark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from tanist.client.positions import EARLIEST, LATEST
from tanist.runtime.client.client import parse_bootstrap
from tanist.spark.jobs.preconditions import (
    NothingToJudge,
    Unfit,
    cluster_topics,
    interval_s,
    listed,
    writable_below,
)
from tanist.spark.stores import failing, is_stored, path_of, require_writable, scheme_of
from tanist.spark.topic.offsets import list_offsets
from tanist.spark.topic.options import TopicOptions, connecting_to
from tanist.spark.topic.plan import partitions_of
from tanist.text import counted

TableKind = Literal["delta", "parquet"]
PARTITIONED_BY: Final = ("topic", "partition")
DATA: Final = "data"
CHECKPOINT: Final = "_checkpoint"
"""Beside the data: Delta and Spark pass over names that begin so."""
SUCCESS: Final = "_SUCCESS"
_DELTA_LOG: Final = "_delta_log"
_OF_TOPIC: Final = "topic="
_REASON_MAX: Final = 200
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
    bootstrap: str,
    topics: Sequence[str],
    table: str | Path,
    kind: TableKind,
    every: str | None,
    more: Mapping[str, str],
    *,
    checkpoint: str | Path | None = None,
) -> None:
    """`Unfit` if it cannot begin, or if it would end without a record."""
    if not topics:
        raise TableUnfit("no topic was named")
    if every is not None:
        interval_s(every)
    options = TopicOptions.parse(source_options(bootstrap, topics, more), streaming=True)
    _fit_path(table, kind, checkpoint)
    cluster_topics(options.connecting, topics)
    if every is None and not files_of(table):
        _some_records(options, topics)


def checkpoint_of(table: str | Path, checkpoint: str | Path | None) -> str:
    """Where Spark keeps how far the query has come; an address, for Java keeps the folder that was its first."""
    place = path_of(table) / CHECKPOINT if checkpoint is None else checkpoint
    return str(place) if scheme_of(place) is not None else path_of(place).absolute().as_uri()


def not_of(table: str | Path, checkpoint: str) -> str:
    return f"{table} has records, and not of the checkpoint {checkpoint}: all would be written once more"


def no_checkpoint(checkpoint: str, error: str) -> str:
    """Why Spark cannot read or write there, in a line."""
    reason = next((line.strip() for line in error.splitlines() if "xception" in line), error.strip())
    return (
        f"Spark cannot use the checkpoint {checkpoint}: {reason[:_REASON_MAX]}. Name a folder; an object store needs"
        " Hadoop's jar (s3a: --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION) and its settings"
    )


def _fit_path(name: str | Path, kind: TableKind, checkpoint: str | Path | None) -> None:
    table = path_of(name)
    if is_stored(name):
        if kind == "parquet":
            raise TableUnfit(f"{name} is an address, where no folder can be renamed: --kind delta makes a table there")
        if checkpoint is None:
            raise TableUnfit(f"{name} is in an object store: name a folder for the query's progress by --checkpoint")
    elif table.exists() and not table.is_dir():
        raise TableUnfit(f"{table} is a file: a table is a folder")
    elif kind == "parquet" and (table / _DELTA_LOG).is_dir():
        raise TableUnfit(f"{table} is a Delta table: --kind parquet would leave its log behind its files")
    if not _is_delta(name):
        _fit_folder(table)
    _fit_checkpoint(name, checkpoint)
    if is_stored(name):
        require_writable(str(name))
    else:
        writable_below(table)


def _fit_folder(table: Path) -> None:
    """A folder that is no Delta table: of plain batches, or empty. A killed first batch may have left files."""
    names = {each.name for each in table.iterdir()} if table.is_dir() else set()
    others = sorted(each for each in names - {DATA, CHECKPOINT, _DELTA_LOG} if not each.startswith(_OF_TOPIC))
    if others and not names & {DATA, CHECKPOINT}:
        raise TableUnfit(f"{table} is no table, and has other files ({listed(others)}): name a new folder")


def _fit_checkpoint(table: str | Path, checkpoint: str | Path | None) -> None:
    """A checkpoint that Java alone can read is looked at when it runs."""
    if checkpoint is not None:
        _require_outside(table, checkpoint)
        if is_stored(checkpoint):
            return
    path = path_of(table) / CHECKPOINT if checkpoint is None else path_of(checkpoint)
    if checkpoint is not None:
        writable_below(path)
    if files_of(table) and not (path / "metadata").exists():
        if checkpoint is None:
            raise TableUnfit(f"{table} has records, and its {CHECKPOINT} is gone: all would be written once more")
        raise TableUnfit(not_of(table, str(checkpoint)))


def _require_outside(table: str | Path, checkpoint: str | Path) -> None:
    """The sweep takes what is in a table and not of it, but for names that begin with an underscore."""
    inside, root = (f"{path_of(each).absolute()}/" for each in (checkpoint, table))
    if inside.startswith(root) and not inside.removeprefix(root).startswith("_"):
        raise TableUnfit(f"{checkpoint} is in the table, whose old files are swept: name another folder")


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


def _is_delta(table: str | Path) -> bool:
    if not is_stored(table) and not (path_of(table) / _DELTA_LOG).is_dir():
        return False
    from deltalake import DeltaTable

    with failing(str(table)):
        return bool(DeltaTable.is_deltatable(str(table)))


File: TypeAlias = tuple[str, int, Mapping[str, str]]
"""A path or an address, its bytes, and its partition."""


def files_of(table: str | Path) -> list[File]:
    """The files that count: of Delta's log if there is one, else of whole batches. Without a table there are none."""
    if _is_delta(table):
        from deltalake import DeltaTable

        with failing(str(table)):
            added = DeltaTable(str(table)).get_add_actions(flatten=True)
        found = zip(added.column("path").to_pylist(), added.column("size_bytes").to_pylist())
        return [(str(path_of(table) / path), size, partition_of(path)) for path, size in found]
    if is_stored(table):
        return []
    batches = sorted(each for each in (path_of(table) / DATA).glob("batch=*") if (each / SUCCESS).exists())
    paths = [path for batch in batches for path in sorted(batch.rglob("*.parquet"))]
    return [(str(path), path.stat().st_size, partition_of(str(path))) for path in paths]


def records_of(table: str | Path) -> list[File]:
    """`files_of`, absolute, of a table that must have some."""
    path = path_of(table).absolute()
    found = files_of(str(path))
    if not found:
        raise TableUnfit(f"no table is at {path}, or it has no records yet")
    return found


def schema_of(table: str | Path, files: Sequence[File]) -> Any:
    """Of a Delta table, or of the first file; `PARTITIONED_BY` included. Arrow's."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if _is_delta(table):
        from deltalake import DeltaTable

        with failing(str(table)):
            return pa.schema(DeltaTable(str(table)).schema().to_arrow())
    found = pq.read_schema(files[0][0]).remove_metadata()
    return found.append(pa.field("topic", pa.string())).append(pa.field("partition", pa.int32()))


def partition_of(file: str) -> dict[str, str]:
    """The values of `PARTITIONED_BY`, by the folders that a file of a table is in."""
    named = dict(part.split("=", 1) for part in file.split("/") if "=" in part)
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
    for _, _, named in records_of(table):
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

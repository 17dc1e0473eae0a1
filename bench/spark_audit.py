"""How long the audit takes: a history of N rows and three replicas of N/4 records, with faults planted in them.

    python -m bench.spark_audit --rows 100000000 --folder /tmp/audit
    python -m bench.spark_audit --rows 100000000 --folder /tmp/audit --engine spark --memory 6g
    python -m bench.spark_audit --rows 100000000 --folder /tmp/audit --engine spark --memory 3g --workers 2

The files are made once, and kept if a folder is named. A quarter of the rows are acknowledged sends, the rest polls by
three consumers. What is planted must be found, exactly; else it fails, whatever the time. JSON comes out. On a busy
machine the CPU time of all processes says more than the clock. With `--workers` a standalone master runs it,
with so many workers of one core, each with an executor of `--memory`; what is said of a JVM is the driver's then.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from crc32c import crc32c

from bench.spark_segments import cpu_of_descendants, memory_of_workers_mb
from tanist.log.checkpoints import META_PROPERTIES, MetaProperties
from tanist.log.config import LogConfig
from tanist.log.names import INDEX_SUFFIX
from tanist.log.scan import scan_headers
from tanist.runtime.client.salvaged import SavedFile
from tanist.wire.batch import NewRecord, encode_batch
from tests.interop.cluster import free_ports
from tests.spark.spark_standalone import Standalone

TOPIC = "orders"
ROWS_MIN = 10_000_000
PARTITIONS = 8
REPLICAS = (1, 2, 3)
CONSUMERS = 3
PRODUCERS = 4
BATCH_RECORDS = 512
BATCHES_AT_ONCE = 2048
DIGITS = 16
PLANTED = 200
"""Of each kind; but for those that say otherwise."""
PHANTOMS = 24
DIVERGENT = 2_000
MISSING_BATCHES = 2
_VALUE = b"#" * DIGITS
_START_NS = 1_700_000_000_000_000_000
_LOST, _DUPLICATED, _FAILED = 0, 1, 2


def digits(numbers: Any) -> Any:
    """Decimal digits of many numbers, as rows of bytes."""
    found = np.empty((len(numbers), DIGITS), np.uint8)
    left = numbers.copy()
    for place in range(DIGITS - 1, -1, -1):
        left, found[:, place] = np.divmod(left, 10)
    return found + np.uint8(ord("0"))


class Plan:
    """Which offsets of a partition have what planted in them; the same wherever it is asked."""

    def __init__(self, partition: int, records: int) -> None:
        rng = np.random.default_rng(partition)
        each = PLANTED // PARTITIONS
        # Far from each other, and away from the ends.
        places = np.sort(rng.choice(records // BATCH_RECORDS - 8, 4 * each, replace=False) + 4)
        offsets = places * BATCH_RECORDS + rng.integers(0, BATCH_RECORDS, len(places))
        self.kinds = rng.permutation(np.repeat(np.arange(4), each))
        self.offsets = offsets
        self.records = records
        self.partition = partition
        self.missing = int(places[len(places) // 2]) + 1
        """The first batch that replica 3 lacks."""
        run = DIVERGENT // PARTITIONS
        self.divergent = slice(records // 2, records // 2 + run)

    def of(self, kind: int) -> Any:
        return self.offsets[self.kinds == kind]

    def sent(self) -> Any:
        """The number that is sent at each offset."""
        return np.arange(self.records, dtype=np.int64)

    def stored(self) -> Any:
        """The number that the log has at each offset."""
        numbers = self.sent()
        numbers[self.of(_LOST)] += 10**14
        numbers[self.of(_DUPLICATED)] = np.maximum(self.of(_DUPLICATED) - BATCH_RECORDS, 0)
        return numbers


def batches(plan: Plan) -> Iterator[Any]:
    """The log, some thousand batches at a time: an array with a row for each, without CRCs."""
    template = bytes(encode_batch([NewRecord(1_700_000_000_000, None, _VALUE)] * BATCH_RECORDS, leader_epoch=3))
    places = np.array([at for at in range(len(template) - DIGITS + 1) if template.startswith(_VALUE, at)])
    if len(places) != BATCH_RECORDS:
        raise ValueError("the template does not show where its values are")
    columns = places[:, None] + np.arange(DIGITS)
    numbers = plan.stored()
    for first in range(0, plan.records // BATCH_RECORDS, BATCHES_AT_ONCE):
        last = min(first + BATCHES_AT_ONCE, plan.records // BATCH_RECORDS)
        rows = np.tile(np.frombuffer(template, np.uint8), (last - first, 1))
        bases = (np.arange(first, last, dtype=np.int64) * BATCH_RECORDS).astype(">i8")
        rows[:, :8] = bases.view(np.uint8).reshape(-1, 8)
        written = digits(numbers[first * BATCH_RECORDS : last * BATCH_RECORDS])
        rows[:, columns.ravel()] = written.reshape(last - first, -1)
        yield rows


def write_logs(folder: Path, plan: Plan) -> None:
    files = {}
    for replica in REPLICAS:
        home = folder / f"node-{replica}" / "log" / f"{TOPIC}-{plan.partition}"
        home.mkdir(parents=True, exist_ok=True)
        files[replica] = (home / f"{0:020d}.log").open("wb")
    first = 0
    value_at = None
    for rows in batches(plan):
        sealed(rows)
        files[1].write(rows)
        kept = np.ones(len(rows), bool)
        gone = np.arange(plan.missing, plan.missing + MISSING_BATCHES) - first
        kept[gone[(gone >= 0) & (gone < len(rows))]] = False
        files[3].write(np.ascontiguousarray(rows[kept]))
        wrong = np.arange(plan.divergent.start, plan.divergent.stop)
        wrong = wrong[(wrong // BATCH_RECORDS >= first) & (wrong // BATCH_RECORDS < first + len(rows))]
        if value_at is None:
            template = bytes(encode_batch([NewRecord(1_700_000_000_000, None, _VALUE)] * BATCH_RECORDS, leader_epoch=3))
            value_at = np.array([at for at in range(len(template) - DIGITS + 1) if template.startswith(_VALUE, at)])
        rows[wrong // BATCH_RECORDS - first, value_at[wrong % BATCH_RECORDS]] ^= 0x40
        sealed(rows)
        files[2].write(rows)
        first += len(rows)
    for file in files.values():
        file.close()
        write_index(Path(file.name))


def write_index(log: Path) -> None:
    """The offset index that a broker would have: the last offset of a batch, and where it begins, every 4 KB."""
    entries, interval_bytes = bytearray(), LogConfig().index_interval_bytes
    with closing(SavedFile(log)) as file:
        indexed = 0
        for batch in scan_headers(file, 0, file.size):
            if batch.position - indexed > interval_bytes:
                entries += struct.pack(">ii", batch.header.last_offset, batch.position)
                indexed = batch.position
    log.with_suffix(INDEX_SUFFIX).write_bytes(entries)


def sealed(rows: Any) -> None:
    """Put the CRCs in."""
    for row in rows:
        row[17:21] = np.frombuffer(crc32c(memoryview(row)[21:]).to_bytes(4, "big"), np.uint8)


def write_history(folder: Path, plan: Plan) -> int:
    """The clients of one partition; gives the number of rows."""
    place = f"{TOPIC}-{plan.partition}"
    numbers = plan.sent()
    moments = _START_NS + numbers * 1_000
    offsets = pa.array(numbers)
    types = np.zeros(plan.records, np.int8)
    types[plan.of(_FAILED)] = 1
    types[plan.of(_DUPLICATED)] = 2
    known = pa.array(numbers, mask=types > 0)
    producers = [f"p{plan.partition}-{each}" for each in range(PRODUCERS)]
    sends = pa.table({
        "process": coded((numbers // BATCH_RECORDS % PRODUCERS).astype(np.int8), producers),
        "type": coded(types, ["ok", "fail", "info"]), "f": coded(np.zeros(plan.records, np.int8), ["send"]),
        "partition": coded(np.zeros(plan.records, np.int8), [place]), "value": texts(numbers), "offset": known,
        "invoked_ns": pa.array(moments - 500), "time_ns": pa.array(moments),
    })  # fmt: skip
    stored = plan.stored()
    read = np.ones(plan.records, bool)
    read[plan.of(_LOST)] = False
    polls = pa.table({
        "process": coded(np.zeros(plan.records, np.int8), ["c"]),
        "type": coded(np.zeros(plan.records, np.int8), ["ok"]), "f": coded(np.zeros(plan.records, np.int8), ["poll"]),
        "partition": sends["partition"], "value": texts(stored), "offset": offsets,
        "invoked_ns": pa.nulls(plan.records, pa.int64()), "time_ns": pa.array(moments + 5_000),
    }).filter(pa.array(read))  # fmt: skip
    rows = len(sends)
    with pq.ParquetWriter(folder / f"{place}.parquet", sends.schema, compression="zstd", use_dictionary=CODED) as file:
        file.write_table(sends, row_group_size=1 << 20)
        for consumer in range(CONSUMERS):
            name = coded(np.zeros(len(polls), np.int8), [f"c{consumer}"])
            file.write_table(polls.set_column(0, "process", name), row_group_size=1 << 20)
            rows += len(polls)
        if plan.partition == 0:
            count = PHANTOMS
            phantom = polls.slice(0, count).set_column(4, "value", pa.array([f"nobody-{n}" for n in range(count)]))
            file.write_table(phantom)
            rows += count
    return rows


CODED = ["process", "type", "f", "partition"]


def coded(codes: Any, names: list[str]) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names))


def texts(numbers: Any) -> Any:
    data = digits(numbers)
    bounds = np.arange(len(numbers) + 1, dtype=np.int32) * DIGITS
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(bounds), pa.py_buffer(data))


def generate(folder: Path, rows: int) -> dict[str, int]:
    records = rows // (1 + CONSUMERS) // PARTITIONS // BATCH_RECORDS * BATCH_RECORDS
    (folder / "history").mkdir(parents=True)
    written = 0
    for replica in REPLICAS:
        home = folder / "data" / f"node-{replica}" / "log"
        home.mkdir(parents=True)
        (home / META_PROPERTIES).write_bytes(MetaProperties("bench", replica, UUID(int=replica)).encode())
    for partition in range(PARTITIONS):
        plan = Plan(partition, records)
        write_logs(folder / "data", plan)
        written += write_history(folder / "history", plan)
    made = {"history_rows": written, "records": records * PARTITIONS}
    (folder / "made.json").write_text(json.dumps(made))
    return made


def expected() -> dict[str, int]:
    each = PLANTED // PARTITIONS * PARTITIONS
    return {
        "lost-write": each, "missing": MISSING_BATCHES * BATCH_RECORDS * PARTITIONS,
        "divergent": DIVERGENT // PARTITIONS * PARTITIONS, "duplicate": each, "read-lost": PHANTOMS,
        "phantom": PHANTOMS, "G1a": each, "failed-in-log": each,
    }  # fmt: skip


@contextmanager
def master_of(chosen: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Spark's master, and what an executor is given there."""
    if not chosen.workers:
        yield chosen.master, {}
        return
    port = free_ports(1)
    with Standalone(scratch, port, chosen.workers, chosen.memory) as standalone:
        yield standalone.master, {"spark.executor.memory": chosen.memory, "spark.executor.cores": "1"}


def measured(folder: Path, chosen: argparse.Namespace, master: str, executors: dict[str, str]) -> dict[str, Any]:
    from tanist.spark.jobs.audit.audit import audit_folder
    from tanist.spark.jobs.audit.by_duckdb.session import DuckDB

    spark = chosen.engine == "spark"
    began_s = time.monotonic()
    used: Any = _session(folder, chosen, master, executors) if spark else DuckDB()
    started_s = time.monotonic()
    marks = [("", _cpu_s())]
    result = audit_folder(
        used, folder / "data", [folder / "history"], progress=lambda step: marks.append((step, _cpu_s()))
    )
    ended_s = time.monotonic()
    marks.append(("", _cpu_s()))
    found: dict[str, int] = {}
    for (kind, _, _), count in result.counts.items():
        found[kind.value] = found.get(kind.value, 0) + count
    of_java = _of_java(used) if spark else {}
    if found != expected():
        raise SystemExit(f"planted {expected()}, found {found}")
    return {
        "engine": chosen.engine, "session_s": round(started_s - began_s, 1), "audit_s": round(ended_s - started_s, 1),
        "cpu_s": round(marks[-1][1] - marks[0][1], 1), "plan": result.plan,
        "steps_s": result.seconds,
        "steps_cpu_s": {step: round(after - spent, 1) for (step, spent), (_, after) in pairwise(marks) if step},
        "python_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, **of_java,
    }  # fmt: skip


def _cpu_s() -> float:
    """Of this process, and of all below it."""
    return time.process_time() + sum(cpu_of_descendants())


def _session(folder: Path, chosen: argparse.Namespace, master: str, executors: dict[str, str]) -> Any:
    from tanist.spark import session

    spark = session(
        master=master,
        spark__driver__memory=chosen.memory,
        spark__local__dir=str(folder / "spark"),
        **executors,
        **dict(chosen.conf),
    )
    spark.range(1).count()
    return spark


def _of_java(spark: Any) -> dict[str, Any]:
    """What there is to say of the JVM and its workers. The session ends."""
    jvm = _jvm(spark)
    compiling_s = _compiling_s(jvm)
    worker_mb, workers_mb = memory_of_workers_mb()
    peak = [line for line in Path(f"/proc/{jvm}/status").read_text().splitlines() if line.startswith("VmHWM")]
    spark.stop()
    return {
        "compiling_cpu_s": round(compiling_s, 1), "jvm_peak_mb": int(peak[0].split()[1]) >> 10,
        "worker_peak_mb": worker_mb, "workers_peak_mb": workers_mb,
    }  # fmt: skip


def _jvm(spark: Any) -> int:
    return int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())


def _compiling_s(jvm: int) -> float:
    """Of the JVM's CPU, what went into making machine code: about the same for any number of rows."""
    ticks = 0
    for stat in Path(f"/proc/{jvm}/task").glob("*/stat"):
        name, _, rest = stat.read_text().rpartition(")")
        if "CompilerThre" in name:
            ticks += sum(map(int, rest.split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_audit", description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the history; 3/4 as many records in replicas")
    parser.add_argument("--folder", type=Path, help="where the files are, or are to be kept")
    parser.add_argument("--memory", default="4g", help="of the JVM")
    parser.add_argument("--engine", default="duckdb", choices=("duckdb", "spark"))
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--workers", type=int, help="of a standalone master that is started, instead of --master")
    parser.add_argument(
        "--conf", type=lambda text: tuple(text.split("=", 1)), action="append", default=[], metavar="KEY=VALUE"
    )
    chosen = parser.parse_args()
    if chosen.rows < ROWS_MIN:
        parser.error(f"--rows {chosen.rows}: at least {ROWS_MIN:,}, or what is planted lies too close together")
    with tempfile.TemporaryDirectory(prefix="tanist-audit-") as scratch:
        folder = chosen.folder or Path(scratch)
        began_s = time.monotonic()
        known = folder / "made.json"
        made: dict[str, Any] = json.loads(known.read_text()) if known.exists() else generate(folder, chosen.rows)
        made["made_s"] = round(time.monotonic() - began_s, 1)
        with master_of(chosen, Path(scratch)) as (master, executors):
            print(json.dumps(made | measured(folder, chosen, master, executors)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

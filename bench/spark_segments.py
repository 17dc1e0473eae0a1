"""How fast `tanist-segments` reads: segments of 1 KB and of 100 byte records, all columns and those of an audit.

    python -m bench.spark_segments [--mb 1024] [--rounds 6] [--json FILE] [--keep FOLDER] [--conf NAME=VALUE ...]

Three numbers for each: decoding alone in this process, by CPU time, which a busy machine hardly changes; the whole
Spark job into `noop` on `local[2]`, by the clock; and the same job over batches that lie ready, decoded before:
what the way from Python to the JVM and the JVM's rows cost, which no decoder makes faster. Beside each job stands
what the JVM and its Python workers used of the CPU, of which the start of a job (0.3 s) and what the JVM compiles
are a part: the first two rounds of each kind do not count, and there is a gigabyte to read. Records differ in
length, so that nothing is gained from their being alike; `--equal` makes them alike. The files are in the page
cache.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tanist.spark.segments.arrow_rows import TYPES, Origin
from tanist.spark.segments.reading import read_stretch
from tanist.spark.segments.source import DDL
from tanist.wire.batch import NewRecord, encode_batch

SIZES = (1000, 100)
BATCH_BYTES = 512 * 1024
WARM_UP = 2
READY_BYTES = 16 << 20
COLUMNS = {
    "all": list(TYPES),
    "payload": ["key", "value", "offset"],
    "audit": ["topic", "partition", "replica", "leader_epoch", "offset", "fingerprint", "crc_ok", "damage"],
}


def write_segments(folder: Path, size: int, total_bytes: int, equal: bool) -> int:
    """Four partitions; gives how many records. A few batches, again and again: the CRC does not cover offsets."""
    rng = random.Random(size)
    count = BATCH_BYTES // size
    kinds = []
    for _ in range(8):
        lengths = [size if equal else rng.randint(size * 3 // 4, size * 5 // 4) for _ in range(count)]
        records = [
            NewRecord(1_700_000_000_000 + n, b"%016d" % n, rng.randbytes(max(8, lengths[n] - 30))) for n in range(count)
        ]
        kinds.append(encode_batch(records, leader_epoch=3, producer_id=5, producer_epoch=0, base_sequence=0))
    found = 0
    for partition in range(4):
        home = folder / f"bench-{partition}"
        home.mkdir(parents=True)
        offset = written = 0
        with (home / f"{0:020d}.log").open("wb") as file:
            while written < total_bytes // 4:
                batch = kinds[offset // count % len(kinds)]
                batch[:8] = offset.to_bytes(8, "big")
                file.write(batch)
                offset += count
                written += len(batch)
        found += offset
    return found


def decoding(folder: Path, columns: list[str]) -> float:
    """Seconds of CPU to decode all files in this process."""
    started = time.process_time()
    for path in sorted(folder.glob("*/*.log")):
        for _ in read_stretch(str(path), 0, path.stat().st_size, Origin("bench", 0, 1, 0, None), columns):
            pass
    return time.process_time() - started


class ReadyMade(DataSource):
    """As many bytes as there are in the files, by decoding the beginning of each once and giving it again and again."""

    @classmethod
    def name(cls) -> str:
        return "ready-made"

    def schema(self) -> str:
        return DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        return ReadyMadeReader(self.options["path"], schema.names)


@dataclass
class ReadyMadeFile(InputPartition):
    path: str
    size: int


class ReadyMadeReader(DataSourceReader):
    def __init__(self, path: str, columns: list[str]) -> None:
        self._path = path
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        return [ReadyMadeFile(str(path), path.stat().st_size) for path in sorted(Path(self._path).glob("*/*.log"))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, ReadyMadeFile)
        origin = Origin("bench", 0, 1, 0, None)
        # The last batch is cut off, and reported as damage; it is one row.
        ready = list(read_stretch(partition.path, 0, READY_BYTES, origin, self._columns))
        for _ in range(max(1, partition.size // READY_BYTES)):
            yield from ready


def job(spark: Any, kind: str, folder: Path, columns: list[str]) -> tuple[float, float, float]:
    """Seconds by the clock, and of CPU in the JVM and in its workers, of a job that reads all and keeps nothing."""
    whole = spark.read.format("tanist-segments").load(str(folder)).schema
    schema = StructType([whole[name] for name in columns])
    reader = spark.read.format(kind).schema(schema).load(str(folder))
    started, (jvm, workers) = time.perf_counter(), cpu_of_descendants()
    reader.write.format("noop").mode("overwrite").save()
    seconds, (jvm_after, workers_after) = time.perf_counter() - started, cpu_of_descendants()
    return seconds, jvm_after - jvm, workers_after - workers


def cpu_of_descendants() -> tuple[float, float]:
    """Seconds of CPU of the JVM, and of the workers below it: Linux's /proc, zeros elsewhere."""
    below, machines, ticks = _descendants()
    a_second = os.sysconf("SC_CLK_TCK")
    jvm = sum(ticks[pid] for pid in below & machines)
    return jvm / a_second, sum(ticks[pid] for pid in below - machines) / a_second


def memory_of_workers_mb() -> tuple[int, int]:
    """The most that one of the workers below the JVM has had, and all of those that live together."""
    below, machines, _ = _descendants()
    peaks = [0]
    for pid in below - machines:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue  # it has ended
        peaks += [int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmHWM")]
    return max(peaks), sum(peaks)


def _descendants() -> tuple[set[int], set[int], dict[int, int]]:
    """The processes below this one, the JVMs among all processes, and the CPU of each in ticks."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    machines: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue  # it has ended
        pid, fields = int(stat.parent.name), rest.split()
        parents[pid] = int(fields[1])
        if name.endswith("(java"):
            machines.add(pid)
        # Its own; of a worker also that of its children that have ended.
        ticks[pid] = sum(map(int, fields[11 : 13 if pid in machines else 15]))
    below = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        if not more:
            break
        below |= more
    below.discard(os.getpid())
    return below, machines, ticks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=int, default=1024, help="of segments for each size of record")
    parser.add_argument("--rounds", type=int, default=6, help="of each job, after two that do not count; the best")
    parser.add_argument("--conf", action="append", default=[], help="a setting of the session, NAME=VALUE")
    parser.add_argument("--equal", action="store_true", help="records of one length")
    parser.add_argument("--no-spark", action="store_true", help="decoding alone")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="where the segments are written, and left")
    asked = parser.parse_args()
    home = asked.keep or Path(tempfile.mkdtemp(prefix="tanist-bench-"))
    spark = None
    if not asked.no_spark:
        from tanist.spark import session

        conf = dict(setting.split("=", 1) for setting in asked.conf)
        spark = session(**{"spark.master": "local[2]", "spark.driver.memory": "4g"} | conf)
        spark.dataSource.register(ReadyMade)
    results: list[dict[str, Any]] = []
    try:
        for size in SIZES:
            folder = home / f"records-{size}"
            if folder.exists():
                shutil.rmtree(folder)
            records = write_segments(folder, size, asked.mb << 20, asked.equal)
            total_mb = sum(path.stat().st_size for path in folder.glob("*/*.log")) / 1e6
            for name, columns in COLUMNS.items():
                took = {"decoding": (min(decoding(folder, columns) for _ in range(3)), 0.0, 0.0)}
                if spark is not None:
                    for what, kind in (("ready-made", "ready-made"), ("job", "tanist-segments")):
                        jobs = [job(spark, kind, folder, columns) for _ in range(WARM_UP + asked.rounds)]
                        took[what] = min(jobs[WARM_UP:])
                for what, (seconds, jvm, workers) in took.items():
                    results.append(
                        {
                            "record_bytes": size, "columns": name, "what": what, "mb_per_s": round(total_mb / seconds),
                            "records_per_s": round(records / seconds), "seconds": round(seconds, 2),
                            "jvm_cpu_s": round(jvm, 2), "workers_cpu_s": round(workers, 2),
                            "load": round(os.getloadavg()[0], 1),
                        }
                    )  # fmt: skip
                    print("{record_bytes:5} B  {columns:8} {what:10} {mb_per_s:6} MB/s  {records_per_s:>11,} records/s "
                          " {seconds:5.2f} s (CPU: JVM {jvm_cpu_s:.2f}, workers {workers_cpu_s:.2f}; load {load})"
                          .format(**results[-1]), flush=True)  # fmt: skip
    finally:
        if spark is not None:
            spark.stop()
        if asked.keep is None:
            shutil.rmtree(home, ignore_errors=True)
    if asked.json is not None:
        asked.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""How fast `tanist-segments` reads: segments of 1 KB and of 100 byte records, all columns and those of an audit.

    python -m bench.spark_segments [--mb 512] [--rounds 3] [--json FILE] [--keep FOLDER]

Three numbers for each: decoding alone in this process, by CPU time, which a busy machine hardly changes; the whole
Spark job into `noop` on `local[2]`, by the clock; and the same by the CPU time of the JVM and its workers, of which the
start of a job (0.3 s) and what the JVM compiles are a large part unless there is a gigabyte to read. Records differ in
length, so that nothing is gained from their being alike; `--equal` makes them alike. The files are in the page cache.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tanist.spark.arrow_rows import TYPES, Origin
from tanist.spark.segment_reading import read_stretch
from tanist.wire.batch import NewRecord, encode_batch

SIZES = (1000, 100)
BATCH_BYTES = 512 * 1024
COLUMNS = {
    "all": list(TYPES),
    "payload": ["key", "value", "offset"],
    "audit": ["topic", "partition", "replica", "leader_epoch", "offset", "fingerprint", "crc_ok", "damage"],
}


def write_segments(folder: Path, size: int, total_bytes: int, equal: bool) -> int:
    """Four partitions; gives how many records. A few batches, again and again: the CRC does not cover offsets."""
    chance = random.Random(size)
    count = BATCH_BYTES // size
    kinds = []
    for _ in range(8):
        lengths = [size if equal else chance.randint(size * 3 // 4, size * 5 // 4) for _ in range(count)]
        records = [
            NewRecord(1_700_000_000_000 + n, b"%016d" % n, chance.randbytes(max(8, lengths[n] - 30)))
            for n in range(count)
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


def job(spark: Any, folder: Path, columns: list[str]) -> tuple[float, float]:
    """Seconds by the clock, and of CPU, of a Spark job that reads all and keeps nothing."""
    from pyspark.sql.types import StructType

    whole = spark.read.format("tanist-segments").load(str(folder)).schema
    schema = StructType([whole[name] for name in columns])
    reader = spark.read.format("tanist-segments").schema(schema).load(str(folder))
    started, spent = time.perf_counter(), cpu_of_descendants()
    reader.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started, cpu_of_descendants() - spent


def cpu_of_descendants() -> float:
    """Seconds of CPU that the processes below this one have used: Linux's /proc, all zeros elsewhere."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        pid = int(stat.parent.name)
        parents[pid] = int(fields[1])
        # Its own, and that of its children that have ended.
        ticks[pid] = sum(map(int, fields[11:15]))
    below = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        if not more:
            break
        below |= more
    below.discard(os.getpid())
    return sum(ticks[pid] for pid in below) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=int, default=512, help="of segments for each size of record")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")
    parser.add_argument("--equal", action="store_true", help="records of one length")
    parser.add_argument("--no-spark", action="store_true", help="decoding alone")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="where the segments are written, and left")
    asked = parser.parse_args()
    home = asked.keep or Path(tempfile.mkdtemp(prefix="tanist-bench-"))
    spark = None
    if not asked.no_spark:
        from tanist.spark import session

        spark = session(master="local[2]", spark__driver__memory="4g")
    results = []
    try:
        for size in SIZES:
            folder = home / f"records-{size}"
            if folder.exists():
                shutil.rmtree(folder)
            records = write_segments(folder, size, asked.mb << 20, asked.equal)
            total_mb = sum(path.stat().st_size for path in folder.glob("*/*.log")) / 1e6
            for name, columns in COLUMNS.items():
                took = {"decoding": min(decoding(folder, columns) for _ in range(asked.rounds))}
                if spark is not None:
                    jobs = [job(spark, folder, columns) for _ in range(asked.rounds)]
                    took["job"] = min(seconds for seconds, _ in jobs)
                    took["job, CPU"] = max(min(seconds for _, seconds in jobs), 1e-6)
                for what, seconds in took.items():
                    results.append(
                        {
                            "record_bytes": size, "columns": name, "what": what, "mb_per_s": round(total_mb / seconds),
                            "records_per_s": round(records / seconds), "load": round(os.getloadavg()[0], 1),
                        }
                    )  # fmt: skip
                    print("{record_bytes:5} B  {columns:8} {what:9} {mb_per_s:6} MB/s  {records_per_s:>11,} records/s"
                          "  (load {load})".format(**results[-1]), flush=True)  # fmt: skip
    finally:
        if spark is not None:
            spark.stop()
        if asked.keep is None:
            shutil.rmtree(home, ignore_errors=True)
    if asked.json is not None:
        asked.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())

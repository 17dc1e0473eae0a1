"""How fast `format("tanist")` reads and writes topics, and how late a stream is, against a cluster of one process.

    python -m bench.spark_topics [--mb 1024] [--rounds 3] [--seconds 30] [--jars A.jar,B.jar] [--json FILE]

Records of 1 KB in four partitions, not compressed; the broker, the JVM and its workers share the machine's cores.
Reading goes into `noop`; writing comes from `range`; a stream's latency is from the moment a record is made to the
moment `foreachBatch` has it in Python, at 20 records a second. With `--jars`, which name Spark's own Kafka connector
and what it needs, the same is done with `format("kafka")` in the same session. Fetching and decoding alone, without
Spark, tell where the time goes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from tanist.client.positions import LATEST
from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import Producer, list_offset
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.spark.sink.options import SinkOptions
from tanist.spark.sink.sink import write_rows
from tanist.spark.topic.plan import OffsetRange
from tanist.spark.topic.reading import TYPES, read_range
from tanist.wire.batch import NewRecord

PARTITIONS = 4
RECORD_BYTES = 1000
PER_SECOND = 20
COLUMNS = [name for name in TYPES if name != "headers"]


def some_rows(total_bytes: int) -> Any:
    """Arrow batches of records of about 1 KB: a few, again and again."""
    rng = random.Random(7)
    kinds = []
    for kind in range(4):
        keys = [b"%08d-%07d" % (kind, number) for number in range(8192)]
        values = [rng.randbytes(rng.randint(700, 1200)) for _ in range(8192)]
        kinds.append(pa.record_batch({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}))
    for number in range(max(1, total_bytes // (8192 * RECORD_BYTES))):
        yield kinds[number % len(kinds)]


class Bench:
    def __init__(self, bootstrap: str, rounds: int) -> None:
        self.results: list[dict[str, Any]] = []
        self._bootstrap = bootstrap
        self._rounds = rounds
        self.place = {"kafka.bootstrap.servers": bootstrap}

    def fill(self, total_bytes: int) -> None:
        options = SinkOptions.parse(self.place | {"topic": "read"})
        started, spent = time.perf_counter(), time.process_time()
        write_rows(some_rows(total_bytes), options, None)
        cpu_s = time.process_time() - spent
        self._note("writing alone, one process", total_bytes, [time.perf_counter() - started], cpu_s)

    def fetching(self, total_bytes: int) -> None:
        """One process reads all partitions, one after another."""
        took, cpu_s = [], []
        with Client(parse_bootstrap(self._bootstrap)) as client:
            ends = [list_offset(client, "read", partition, LATEST) for partition in range(PARTITIONS)]
            for _ in range(self._rounds):
                started, spent = time.perf_counter(), time.process_time()
                for partition, end in enumerate(ends):
                    wanted = OffsetRange("read", partition, 0, end)
                    for _batch in read_range(
                        client, wanted, COLUMNS, fetch_bytes=8 << 20, fail_on_data_loss=True, read_committed=False
                    ):
                        pass
                took.append(time.perf_counter() - started)
                cpu_s.append(time.process_time() - spent)
        self._note("fetching and decoding alone, one process", total_bytes, took, min(cpu_s))

    def reading(self, spark: Any, sources: list[str], total_bytes: int) -> None:
        def read(source: str) -> None:
            frame = spark.read.format(source).options(**self.place, subscribe="read").load()
            frame.write.format("noop").mode("overwrite").save()

        self._in_turn("read", sources, total_bytes, read)

    def writing(self, spark: Any, sources: list[str], records: int) -> None:
        value = f"cast(repeat(cast(rand() as string), {RECORD_BYTES // 18}) as binary) value"
        rows = spark.range(0, records, 1, 2).selectExpr("cast(cast(id as string) as binary) key", value).cache()
        total = rows.selectExpr("sum(length(key) + length(value))").first()[0]

        def write(source: str) -> None:
            rows.write.format(source).options(**self.place, topic="write").mode("append").save()

        self._in_turn("write", sources, total, write)
        rows.unpersist()

    def latency(self, spark: Any, source: str, folder: Path, seconds: int, mark: str = "") -> None:
        late: list[float] = []

        def arrived(frame: Any, _batch: int) -> None:
            rows = frame.selectExpr("cast(value as string) value").collect()
            now = time.time()
            late.extend(now - float(row.value) for row in rows)

        topic = f"latency-{source}-{len(mark)}"
        with Client(parse_bootstrap(self._bootstrap)) as client:
            create_topic(client, topic, partitions=PARTITIONS)
        stream = spark.readStream.format(source).options(**self.place, subscribe=topic).load()
        writer = stream.writeStream.foreachBatch(arrived).option("checkpointLocation", str(folder / topic))
        query = writer.start()
        try:
            self._produce(topic, 40)
            query.processAllAvailable()
            late.clear()
            producing = threading.Thread(target=self._produce, args=(topic, seconds * PER_SECOND))
            producing.start()
            producing.join()
            query.processAllAvailable()
        finally:
            query.stop()
        late.sort()
        found = {
            "what": f"{mark}latency, {source}", "records": len(late), "p50_ms": round(1000 * statistics.median(late)),
            "p95_ms": round(1000 * late[len(late) * 95 // 100]), "load": round(os.getloadavg()[0], 1),
        }  # fmt: skip
        self.results.append(found)
        print(
            "{what:44} p50 {p50_ms} ms, p95 {p95_ms} ms of {records} records  (load {load})".format(**found), flush=True
        )

    def _produce(self, topic: str, count: int) -> None:
        with Client(parse_bootstrap(self._bootstrap)) as client:
            producer = Producer(client)
            begun = time.monotonic()
            for number in range(count):
                time.sleep(max(0.0, begun + number / PER_SECOND - time.monotonic()))
                producer.send(topic, number % PARTITIONS, [NewRecord(value=repr(time.time()).encode())])

    def _in_turn(self, what: str, sources: list[str], total_bytes: int, act: Callable[[str], None]) -> None:
        """The sources by turns, so that what else the machine does is the same for all."""
        took: dict[str, list[float]] = {source: [] for source in sources}
        for _ in range(self._rounds):
            for source in sources:
                started = time.perf_counter()
                act(source)
                took[source].append(time.perf_counter() - started)
        for source in sources:
            self._note(f"{what}, {source}", total_bytes, took[source])

    def _note(self, what: str, total_bytes: int, took: list[float], cpu_s: float | None = None) -> None:
        found = {
            "what": what, "mb": round(total_bytes / 1e6), "mb_per_s": round(total_bytes / 1e6 / min(took)),
            "seconds": [round(each, 2) for each in took], "cpu_s": None if cpu_s is None else round(cpu_s, 2),
            "load": round(os.getloadavg()[0], 1),
        }  # fmt: skip
        self.results.append(found)
        spent = "" if cpu_s is None else f"; {cpu_s:.2f} s of CPU"
        line = "{what:44} {mb_per_s:5} MB/s, of {seconds} s{spent}  (load {load})"
        print(line.format(**found, spent=spent), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=int, default=1024, help="of records to read")
    parser.add_argument("--write-records", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")
    parser.add_argument("--seconds", type=int, default=30, help="of records for the latency")
    parser.add_argument("--jars", help="Spark's Kafka connector and what it needs, to compare with")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    sources = ["tanist", *(["kafka"] if asked.jars else [])]
    total_bytes = asked.mb * 1_000_000
    with tempfile.TemporaryDirectory(prefix="tanist-bench-") as scratch:
        cluster = LocalCluster(Path(scratch) / "c")
        bootstrap = bootstrap_of(cluster.up(brokers=1, port=random.randint(20000, 50000)))
        try:
            with Client(parse_bootstrap(bootstrap)) as client:
                for topic in ("read", "write"):
                    create_topic(client, topic, partitions=PARTITIONS)
            bench = Bench(bootstrap, asked.rounds)
            bench.fill(total_bytes)
            bench.fetching(total_bytes)
            from tanist.spark import session

            more: dict[str, str | int | bool] = {"spark.jars": asked.jars} if asked.jars else {}
            spark = session(master="local[2]", spark__driver__memory="2g", **more)
            try:
                bench.reading(spark, sources, total_bytes)
                bench.writing(spark, sources, asked.write_records)
                # A session's first stream is slow while the JVM compiles, whichever source it has: it does not count.
                bench.latency(spark, sources[0], Path(scratch), 15, "not counted, ")
                for source in sources:
                    bench.latency(spark, source, Path(scratch), asked.seconds)
            finally:
                spark.stop()
        finally:
            cluster.down()
    if asked.json:
        asked.json.write_text(json.dumps(bench.results, indent=1) + "\n")


if __name__ == "__main__":
    main()

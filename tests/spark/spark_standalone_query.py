"""What tests of standalone clusters run in a process of its own: MASTER BOOTSTRAP FOLDER SCRATCH [KEY=VALUE ...]."""

from __future__ import annotations

import json
import sys

from tanist.spark import session


def main(master: str, bootstrap: str, folder: str, scratch: str, *conf: str) -> None:
    spark = session(
        **dict(each.split("=", 1) for each in conf),
        master=master,
        spark__driver__memory="512m",
        spark__executor__memory="500m",
        spark__executor__cores=1,
        spark__cores__max=2,
        spark__local__dir=scratch,
        spark__sql__warehouse__dir=f"{scratch}/warehouse",
    )
    place = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.range(0, 20_000, 1, 4).selectExpr("cast(id as string) key", "repeat(cast(id as string), 9) value")
    rows.write.format("tanist").options(**place, topic="written").mode("append").save()
    stream = spark.readStream.format("tanist").options(**place, subscribe="written", startingOffsets="earliest").load()
    sink = stream.select("key", "value").writeStream.format("tanist").options(**place, topic="streamed")
    sink.option("checkpointLocation", f"{scratch}/checkpoint").trigger(availableNow=True).start().awaitTermination()
    topic = spark.read.format("tanist").options(**place, subscribe="streamed", minPartitions="6").load()
    segments = spark.read.format("tanist-segments").load(folder).filter("topic = 'streamed' and not is_control")
    metadata = spark.read.format("tanist-metadata").load(folder)
    executors = {each["host"]: each["code"] for each in topic.rdd.mapPartitions(_where).collect()}
    found = {
        "topic": topic.selectExpr("count(*)", "count(distinct key)", "sum(cast(cast(key as string) as int))").first(),
        "segments": segments.selectExpr("count(*)", "count(distinct key)").first(),
        "metadata": metadata.filter("topic = 'streamed' and record = 'PartitionRecord'").count(),
        "executors": executors,
        "driver": spark.conf.get("spark.driver.host"),
        "shuffles": spark.conf.get("spark.sql.shuffle.partitions"),
    }
    print(json.dumps(found))
    spark.stop()


def _where(_rows: object) -> list[dict[str, str]]:
    """The working directory is that of the executor, which its worker has made for it."""
    import os

    import tanist

    return [{"host": os.getcwd(), "code": tanist.__file__}]


if __name__ == "__main__":
    main(*sys.argv[1:])

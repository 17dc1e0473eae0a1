"""What the test of Spark Connect runs in a process of its own: python ... ADDRESS BOOTSTRAP FOLDER SCRATCH."""

from __future__ import annotations

import json
import sys

from pyspark import SparkContext

from tanist.spark import session


def main(address: str, bootstrap: str, folder: str, scratch: str) -> None:
    spark = session(master=address)
    place = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.range(0, 5000, 1, 3).selectExpr("cast(id as string) key", "repeat(cast(id as string), 9) value")
    rows.write.format("tanist").options(**place, topic="written").mode("append").save()
    stream = spark.readStream.format("tanist").options(**place, subscribe="written", startingOffsets="earliest").load()
    sink = stream.select("key", "value").writeStream.format("tanist").options(**place, topic="streamed")
    query = sink.option("checkpointLocation", f"{scratch}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    topic = spark.read.format("tanist").options(**place, subscribe="streamed").load()
    segments = spark.read.format("tanist-segments").load(folder).filter("topic = 'streamed' and not is_control")
    found = {
        "client": type(spark).__module__,
        "topic": list(
            topic.selectExpr("count(*)", "count(distinct key)", "sum(cast(string(key) as int))").collect()[0]
        ),
        "segments": segments.count(),
        "metadata": spark.read.format("tanist-metadata").load(folder).filter("topic = 'streamed'").count() > 0,
        "java": SparkContext._gateway is not None,
    }
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

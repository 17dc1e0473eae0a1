"""A query from one topic to another, to be killed.

    python spark_sink_query.py BOOTSTRAP CHECKPOINT SCRATCH TRIGGER EXACTLY_ONCE

TRIGGER: so many records a micro-batch. EXACTLY_ONCE: the option of the sink.
"""

from __future__ import annotations

import sys

from tanist.spark import session


def main(bootstrap: str, checkpoint: str, scratch: str, trigger: str, exactly_once: str) -> None:
    spark = session(
        master="local[2]",
        spark__driver__memory="1g",
        spark__local__dir=scratch,
        spark__sql__warehouse__dir=f"{scratch}/warehouse",
        spark__driver__extraJavaOptions="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    )
    place = {"kafka.bootstrap.servers": bootstrap}
    read = spark.readStream.format("tanist").options(**place, subscribe="source", startingOffsets="earliest")
    rows = read.option("maxOffsetsPerTrigger", trigger).load().select("key", "value")
    writer = rows.writeStream.format("tanist").options(**place, topic="sink").option("kafka.batch.size", "8000")
    writer = writer.option("exactlyOnce", exactly_once)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

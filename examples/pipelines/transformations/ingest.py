"""The records of a topic, as a table that a stream appends to."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame

from tanist.spark.jobs.pipelines import attach

spark = attach()


@dp.table(comment="Every record of the topic, once.")
def orders() -> DataFrame:
    source = spark.readStream.format("tanist").option("kafka.bootstrap.servers", spark.conf.get("tanist.bootstrap"))
    return source.option("subscribe", spark.conf.get("tanist.topic")).option("startingOffsets", "earliest").load()

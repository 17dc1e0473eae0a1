"""What the cluster's replicas hold, held against each other and against what the stream was given."""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tanist.spark.jobs.pipelines import attach

COLUMNS = (
    "topic string, partition int, replica int, leader_epoch int, offset bigint, fingerprint bigint, value binary,"
    " is_control boolean, damage string"
)

spark = attach()
# The folder of the spec is the current one now, and no longer when Spark reads.
data = Path(spark.conf.get("tanist.data")).resolve()


@dp.temporary_view(comment="Every replica's records of the topic, from its segment files.")
def replicas() -> DataFrame:
    segments = spark.read.format("tanist-segments").schema(COLUMNS).load(str(data))
    return segments.where(F.col("topic") == spark.conf.get("tanist.topic"))


@dp.materialized_view(comment="Bytes in replicas' files that are no sound batch.")
def damaged() -> DataFrame:
    return spark.read.table("replicas").where("damage is not null").select("partition", "replica", "offset", "damage")


@dp.materialized_view(comment="Offsets at which replicas hold other epochs or other bytes.")
def divergent() -> DataFrame:
    sound = spark.read.table("replicas").where("damage is null")
    held = sound.groupBy("partition", "offset").agg(
        F.countDistinct("leader_epoch", "fingerprint").alias("versions"),
        F.array_sort(F.collect_list(F.struct("replica", "leader_epoch"))).alias("held"),
    )
    return held.where("versions > 1").select("partition", "offset", "held")


@dp.materialized_view(comment="Records that the stream was given, and that no replica has where they were.")
def read_lost() -> DataFrame:
    sound = spark.read.table("replicas").where("damage is null and not is_control")
    held = sound.select("partition", "offset", F.xxhash64("value").alias("hash"))
    given = spark.read.table("orders").select("*", F.xxhash64("value").alias("hash"))
    gone = given.join(held, ["partition", "offset", "hash"], "left_anti")
    return gone.select("partition", "offset", "timestamp", "key", "value")

"""A stream by pattern goes on while one broker after the other crashes and is started: each record once, none left out.

A broker that answered before it had caught up denied its topics, and the stream took that for a loss (SPARK-41375).
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import Producer
from tanist.runtime.cluster.cluster import LocalCluster
from tests.spark.spark_killed import BrokersInTurn
from tests.spark.spark_segments_samples import some_records
from tests.spark.test_spark_stream_source import PATIENCE_S, Stream

PARTITIONS = 4
RECORDS = 400
STEPS = 8
"""Three times a crash and a start, and two with all of them there."""


@pytest.mark.parametrize("fail_on_data_loss", ["true", pytest.param("false", marks=pytest.mark.slow)])
def test_each_record_once_while_brokers_crash_and_come_back(
    spark: Any, tmp_path: Path, three_brokers: tuple[LocalCluster, str], fail_on_data_loss: str
) -> None:
    nodes, bootstrap = three_brokers
    brokers = BrokersInTurn(nodes, 3)
    stream = Stream(spark, tmp_path, bootstrap, subscribePattern="ord.*", failOnDataLoss=fail_on_data_loss)
    with Client(parse_bootstrap(bootstrap), timeout_s=PATIENCE_S) as client:
        create_topic(client, "orders", partitions=PARTITIONS, replication_factor=3, config={"min.insync.replicas": "2"})
        producer = Producer(client)
        query = stream.start(processingTime="0 seconds")
        try:
            for step in range(STEPS):
                for partition in range(PARTITIONS):
                    producer.send("orders", partition, some_records(RECORDS // STEPS // PARTITIONS + (partition < 2)))
                if step:
                    brokers.next()
                query.processAllAvailable()
            assert query.isActive
        finally:
            query.stop()
            brokers.back()
    each = Counter(stream.rows())
    assert set(each.values()) == {1}
    assert sorted(each) == [(p, offset) for p in range(PARTITIONS) for offset in range(STEPS * (12 + (p < 2)))]
    assert len(each) == RECORDS

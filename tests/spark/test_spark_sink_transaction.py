"""A stream whose micro-batches are transactions: each is visible as a whole, once, or not at all."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tanist.client.positions import LATEST
from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, KafkaError, parse_bootstrap
from tanist.runtime.client.records import list_offset
from tanist.runtime.client.transactional import TransactionalProducer
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.spark.sink.encoding import Rows, Sealing, encode, seal, seal_again
from tanist.spark.sink.options import SinkOptions
from tanist.spark.sink.sink import stage_rows
from tanist.spark.sink.transaction import TaskStaged, write_transaction
from tanist.wire.batch import crc_matches, decode_batch, read_header

PARTITIONS = 3
PREFIX = "tanist-sink"
TIMEOUT_MS = 60_000


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    cluster = LocalCluster(tmp_path_factory.mktemp("brokers") / "c")
    config = {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"}
    address = bootstrap_of(cluster.up(brokers=1, port=random.randint(20000, 50000), config=config))
    with Client(parse_bootstrap(address)) as client:
        for name in ("plain", "once", "torn", "fenced", "streamed"):
            create_topic(client, name, partitions=PARTITIONS)
    yield address
    cluster.down()


@pytest.fixture
def client(bootstrap: str) -> Iterator[Client]:
    with Client(parse_bootstrap(bootstrap), timeout_s=30) as found:
        yield found


def staged(bootstrap: str, topic: str, *tasks: range, query: str = "") -> list[TaskStaged]:
    options = SinkOptions.parse(
        {"kafka.bootstrap.servers": bootstrap, "topic": topic, "exactlyOnce": "transaction", "kafka.batch.size": "200"}
    )
    return [stage_rows(rows(numbers), options, query or f"query-of-{topic}") for numbers in tasks]


def rows(numbers: range) -> Iterator[Any]:
    found = pa.array([b"%d" % number for number in numbers], pa.binary())
    yield pa.record_batch({"key": found, "value": found})


def visible(spark: Any, bootstrap: str, topic: str) -> Counter[int]:
    """What readers of committed records get."""
    reader = spark.read.format("tanist").option("kafka.bootstrap.servers", bootstrap)
    frame = reader.option("kafka.isolation.level", "read_committed").option("subscribe", topic).load()
    return Counter(int(row.key) for row in frame.select("key").collect())


def test_a_batch_is_sealed_again_for_another_producer() -> None:
    values = pa.array([b"a", b"bc"], pa.binary())
    records = encode(Rows(None, values, None), np.arange(2)).cut(0, 2)
    for compression in (0, 4):
        batch = seal(records, 2, Sealing(-1, -1, -1), timestamp_ms=5, compression=compression)
        again = seal_again(batch, Sealing(77, 3, 12), transactional=True).joined()
        header = read_header(again)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 12)
        assert header.is_transactional
        assert crc_matches(again, 0, len(again))
        assert [record.value for record in decode_batch(again)] == [b"a", b"bc"]


def test_a_micro_batch_of_several_tasks_is_written_once(spark: Any, bootstrap: str, client: Client) -> None:
    tasks = staged(bootstrap, "once", range(300), range(300, 500))
    assert write_transaction(client, tasks, 0, PREFIX, TIMEOUT_MS)
    assert not write_transaction(client, tasks, 0, PREFIX, TIMEOUT_MS), "a run that starts again finds it"
    assert visible(spark, bootstrap, "once") == Counter(range(500))
    assert write_transaction(client, staged(bootstrap, "once", range(500, 600)), 3, PREFIX, TIMEOUT_MS)
    assert visible(spark, bootstrap, "once") == Counter(range(600))
    # Another query writes the same rows and means others.
    assert write_transaction(client, staged(bootstrap, "once", range(10), query="other"), 0, PREFIX, TIMEOUT_MS)
    assert visible(spark, bootstrap, "once") == Counter(range(600)) + Counter(range(10))
    # A micro-batch without rows needs no transaction.
    assert not write_transaction(client, staged(bootstrap, "once", range(0)), 4, PREFIX, TIMEOUT_MS)


def test_nothing_is_seen_of_a_micro_batch_that_failed(
    spark: Any, bootstrap: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise KeyboardInterrupt

    tasks = staged(bootstrap, "torn", range(400))
    with monkeypatch.context() as patched:
        patched.setattr(TransactionalProducer, "commit_offsets", fails)
        with pytest.raises(KeyboardInterrupt):
            write_transaction(client, tasks, 0, PREFIX, TIMEOUT_MS)
    assert sum(list_offset(client, "torn", partition, LATEST) for partition in range(PARTITIONS)) >= 400
    assert visible(spark, bootstrap, "torn") == Counter()
    assert write_transaction(client, tasks, 0, PREFIX, TIMEOUT_MS)
    assert visible(spark, bootstrap, "torn") == Counter(range(400))


def test_a_run_that_was_overtaken_commits_nothing(
    spark: Any, bootstrap: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old run is about to commit when the new one begins, and does the same micro-batch."""
    tasks = staged(bootstrap, "fenced", range(200))
    end = TransactionalProducer.end

    def overtaken(transaction: TransactionalProducer, *, committed: bool) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(TransactionalProducer, "end", end)
            with Client(parse_bootstrap(bootstrap), timeout_s=30) as other:
                assert write_transaction(other, tasks, 0, PREFIX, TIMEOUT_MS)
        end(transaction, committed=committed)

    with monkeypatch.context() as patched:
        patched.setattr(TransactionalProducer, "end", overtaken)
        with pytest.raises(KafkaError, match=r"PRODUCER_FENCED|INVALID_PRODUCER_EPOCH"):
            write_transaction(client, tasks, 0, PREFIX, TIMEOUT_MS)
    assert visible(spark, bootstrap, "fenced") == Counter(range(200))


def test_a_stream_of_transactions(spark: Any, tmp_path: Path, bootstrap: str) -> None:
    place = {"kafka.bootstrap.servers": bootstrap}
    source = spark.range(0, 4000, 1, 2).selectExpr("cast(id as string) key", "cast(id as string) value")
    source.write.format("tanist").options(**place, topic="plain").mode("append").save()
    read = spark.readStream.format("tanist").options(**place, subscribe="plain", startingOffsets="earliest")
    stream = read.option("maxOffsetsPerTrigger", "1500").load().select("key", "value")
    for _ in range(2):
        writer = stream.writeStream.format("tanist").options(**place, topic="streamed", exactlyOnce="transaction")
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        assert query.awaitTermination(300)
    assert visible(spark, bootstrap, "streamed") == Counter(range(4000))


def test_the_option_is_one_of_three() -> None:
    with pytest.raises(ValueError, match="exactlyOnce is true, false or transaction, not 'maybe'"):
        SinkOptions.parse({"kafka.bootstrap.servers": "h:1", "topic": "t", "exactlyOnce": "maybe"})

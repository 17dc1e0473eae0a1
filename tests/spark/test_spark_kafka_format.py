"""`format("kafka")` and `format("tanist")`: each option and example of Spark's Kafka guide, run with both.

Spark's own source is that of the nearest version that Maven has (`spark_connector`). What the two must have alike: the
rows, the rows of each micro-batch, the records written, and what is refused. Options without an effect run together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tanist.client.positions import EARLIEST, LATEST
from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import Producer, list_offset
from tanist.runtime.client.records import read as read_records
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.spark import offsets_behind_latest
from tanist.wire.batch import NewRecord
from tanist.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tanist.wire.messages.delete_records_response import DeleteRecordsResponse
from tests.spark import spark_connector
from tests.spark.test_spark_kafka_guide import GUIDE, IDLE, Case

pytestmark = pytest.mark.interop

FORMATS = ("kafka", "tanist")
NOT_RUN = {"kafka.security.protocol"}
"""Spark's own source does not refuse it: it tries to connect until it gives up."""
REFUSED = "refused"
WAIT_S = 120
EARLIEST_FIRST = {"startingOffsets": "earliest"}
_numbers = count()


def some_records(number: int, first: int = 0) -> list[NewRecord]:
    """A record each 0.1 s from 1000 ms on, also without key, without value, and with headers."""
    return [
        NewRecord(
            1000 + 100 * each,
            None if each % 5 == 4 else b"key%d" % each,
            None if each % 7 == 6 else b"value%d" % each,
            (("h", b"x"), ("none", None)) if each % 3 == 0 else (),
        )
        for each in range(first, first + number)
    ]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`orders` has 60 and 30 records, `payments` 20; `expired` has those from offset 10 to 20."""
    cluster = LocalCluster(tmp_path_factory.mktemp("brokers") / "c")
    address = bootstrap_of(cluster.up(brokers=1, port=random.randint(20000, 50000)))
    try:
        with Client(parse_bootstrap(address)) as client:
            for name, partitions in (("orders", 2), ("payments", 1), ("expired", 1)):
                create_topic(client, name, partitions=partitions, config={"retention.ms": "-1"})
            producer = Producer(client)
            for topic, partition, batches in (
                ("orders", 0, 6),
                ("orders", 1, 3),
                ("payments", 0, 2),
                ("expired", 0, 2),
            ):
                for number in range(batches):
                    producer.send(topic, partition, some_records(10, 10 * number))
            part = DeleteRecordsTopic(name="expired", partitions=(DeleteRecordsPartition(offset=10),))
            leader = client.leader_of("expired", 0)
            client.ask(DeleteRecordsRequest(topics=(part,), timeout_ms=5000), DeleteRecordsResponse, node_id=leader)
        yield address
    finally:
        cluster.down()


class Runs:
    """One query, with the format of each name."""

    def __init__(self, spark: Any, bootstrap: str, folder: Path) -> None:
        self.spark = spark
        self.place = {"kafka.bootstrap.servers": bootstrap}
        self._folder = folder
        self._by_kind: dict[str, Callable[[str, Mapping[str, str]], Any]] = {
            "batch": self.batch, "stream": self.stream, "write": self.write,
        }  # fmt: skip

    def both(self, kind: str, options: Mapping[str, str]) -> tuple[Any, Any]:
        spark, own = (attempt(partial(self._by_kind[kind], each, options)) for each in FORMATS)
        return spark, own

    def batch(self, form: str, options: Mapping[str, str]) -> Any:
        return rows_of(self.spark.read.format(form).options(**self.place | dict(options)).load())

    def stream(self, form: str, options: Mapping[str, str], checkpoint: Path | None = None) -> Any:
        """The rows of each micro-batch, up to the end of the topics."""
        found: list[Any] = []
        read = self.spark.readStream.format(form).options(**self.place | EARLIEST_FIRST | dict(options)).load()
        writer = read.writeStream.foreachBatch(lambda batch, _: found.append(rows_of(batch)))
        query = self.started(writer, checkpoint)
        assert query.awaitTermination(WAIT_S)
        return [each for each in found if each]

    def write(self, form: str, options: Mapping[str, str]) -> Any:
        headers = "array(struct('h' key, cast('x' as binary) value)) headers"
        rows = self.spark.range(20).selectExpr("concat('key', id) key", "concat('value', id) value", headers)
        topic = self.new_topic()
        rows.write.format(form).options(**{**self.place, "topic": topic, **options}).mode("append").save()
        return self.content(topic)

    def started(self, writer: Any, checkpoint: Path | None = None) -> Any:
        folder = checkpoint or self._folder / f"checkpoint-{next(_numbers)}"
        return writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()

    def new_topic(self) -> str:
        name = f"written-{next(_numbers)}"
        with self.client() as client:
            create_topic(client, name, partitions=3)
        return name

    def client(self) -> Client:
        return Client(parse_bootstrap(self.place["kafka.bootstrap.servers"]))

    def content(self, topic: str) -> list[Any]:
        """Partition, key, value and headers."""
        found = []
        with self.client() as client:
            for partition in sorted(client.metadata([topic]).topics[topic].partitions):
                ends = (list_offset(client, topic, partition, each) for each in (EARLIEST, LATEST))
                for record in read_records(client, topic, partition, *ends):
                    found.append((partition, as_bytes(record.key), as_bytes(record.value), list(record.headers)))
        return sorted(found, key=str)


def as_bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def attempt(run: Callable[[], Any]) -> Any:
    """What it gives, or that it is refused."""
    try:
        return run()
    except AssertionError:
        raise
    except Exception:
        return REFUSED


def rows_of(frame: Any) -> list[Any]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


@pytest.fixture(scope="module")
def runs(spark: Any, bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    missing = spark_connector.missing()
    if missing is not None:
        pytest.skip(missing)
    spark_connector.add_to(spark)
    return Runs(spark, bootstrap, tmp_path_factory.mktemp("checkpoints"))


def options_of(case: Case, runs: Runs) -> dict[str, str]:
    if case.option == "kafka.bootstrap.servers":
        return {"subscribe": "orders", case.option: ",".join(2 * [runs.place[case.option]])}
    return {case.option: case.value} if case.alone else {"subscribe": "orders", case.option: case.value}


def cases_of(kind: str, *, refused: bool) -> list[Case]:
    run = [case for case in GUIDE if case.option not in NOT_RUN and case.option != "topic"]
    if refused:
        return [case for case in run if case.refused_by(kind)]
    return [case for case in run if kind in case.kinds.split() and case.says.startswith("the same")]


BOTH = [(kind, case) for kind in ("batch", "stream", "write") for case in cases_of(kind, refused=False)]
NEITHER = [(kind, case) for kind in ("batch", "stream", "write") for case in cases_of(kind, refused=True)]


def named(each: Any) -> str:
    return each.option if isinstance(each, Case) else str(each)


@pytest.mark.parametrize(("kind", "case"), BOTH, ids=named)
def test_an_option_does_the_same(runs: Runs, kind: str, case: Case) -> None:
    options = options_of(case, runs)
    spark, own = runs.both(kind, {case.option: options[case.option]} if kind == "write" else options)
    assert spark != REFUSED
    assert spark
    assert own == spark


@pytest.mark.parametrize(("kind", "case"), NEITHER, ids=named)
def test_an_option_is_refused_by_both(runs: Runs, kind: str, case: Case) -> None:
    assert runs.both(kind, options_of(case, runs)) == (REFUSED, REFUSED)


@pytest.mark.parametrize("kind", ["batch", "stream", "write"])
def test_options_without_an_effect_change_nothing(runs: Runs, kind: str) -> None:
    """Those of the guide, those of other kinds of queries, and those that nobody knows."""
    idle = [case for case in GUIDE if case.option not in NOT_RUN | {"topic"} and not case.refused_by(kind)]
    idle = [case for case in idle if case.says.startswith(IDLE) or kind not in case.kinds.split()]
    if kind != "write":
        idle = [case for case in idle if not case.alone]
    options = {case.option: case.value for case in idle} | {"startingOffset": "latest", "path": "x"}
    plain = {"subscribe": "orders"}
    spark, own = runs.both(kind, options if kind == "write" else plain | options)
    without = runs.both(kind, {} if kind == "write" else plain)[1]
    # The partitioner of the guide is obeyed there alone.
    spark, own, without = ([each[1:] for each in rows] if kind == "write" else rows for rows in (spark, own, without))
    assert sorted(own, key=str) == sorted(without, key=str) == sorted(spark, key=str) != []


@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_records_that_have_expired(runs: Runs, kind: str) -> None:
    options = {"subscribe": "expired", "startingOffsets": '{"expired": {"0": 5}}'}
    assert runs.both(kind, options) == (REFUSED, REFUSED)
    spark, own = runs.both(kind, options | {"failOnDataLoss": "false"})
    assert own == spark
    assert len(own if kind == "batch" else own[0]) == 10


def test_how_far_a_stream_is_behind(runs: Runs) -> None:
    """After each trigger: Spark's own source has it among its metrics."""
    found = []
    for form in FORMATS:
        options = {"subscribe": "orders", "maxOffsetsPerTrigger": "40"}
        read = runs.spark.readStream.format(form).options(**runs.place | EARLIEST_FIRST | options).load()
        query = runs.started(read.writeStream.format("noop"))
        assert query.awaitTermination(WAIT_S)
        sources = [each["sources"][0] for each in query.recentProgress if each["numInputRows"]]
        metrics = [each["metrics"] if form == "kafka" else offsets_behind_latest(each) for each in sources]
        found.append([{name: each[name] for name in each if name.endswith("BehindLatest")} for each in metrics])
    assert found[0] == found[1]
    assert [len(each) for each in found[1]] == [3, 3, 3]
    assert float(found[1][0]["avgOffsetsBehindLatest"]) > 0


EXAMPLES = {
    "one topic": {"subscribe": "orders"},
    "with headers": {"subscribe": "orders", "includeHeaders": "true"},
    "several topics": {"subscribe": "orders,payments"},
    "a pattern": {"subscribePattern": "(ord|pay).*"},
    "explicit offsets": {
        "subscribe": "orders,payments",
        "startingOffsets": '{"orders": {"0": 23, "1": -2}, "payments": {"0": -2}}',
    },
}


@pytest.mark.parametrize("kind", ["batch", "stream"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_reading(runs: Runs, example: str, kind: str) -> None:
    ending = {"endingOffsets": '{"orders": {"0": 50, "1": -1}, "payments": {"0": -1}}'}
    more = ending if (example, kind) == ("explicit offsets", "batch") else {}
    spark, own = runs.both(kind, EXAMPLES[example] | more)
    assert own == spark
    assert own


@pytest.mark.parametrize("by", ["option", "column"])
def test_an_example_of_writing_a_batch(runs: Runs, by: str) -> None:
    """With the mode: Spark does not let a source in Python take the default, which is that of its own."""
    written = []
    for form in FORMATS:
        topic = runs.new_topic()
        rows = runs.spark.read.format(form).options(**runs.place, subscribe="payments").load()
        rows = rows.selectExpr(f"'{topic}' topic", "cast(key as string)", "cast(value as string)")
        writer = (rows if by == "column" else rows.drop("topic")).write.format(form).options(**runs.place)
        (writer if by == "column" else writer.option("topic", topic)).mode("append").save()
        written.append(keyed(runs.content(topic)))
    assert written[0] == written[1] != []


def test_without_the_mode_spark_refuses_a_source_in_python(runs: Runs) -> None:
    rows = runs.spark.range(1).selectExpr("'x' value")
    topic = runs.new_topic()
    rows.write.format("kafka").options(**runs.place, topic=topic).save()
    with pytest.raises(Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        rows.write.format("tanist").options(**runs.place, topic=topic).save()
    assert len(runs.content(topic)) == 1


@pytest.mark.parametrize("by", ["option", "column"])
def test_an_example_of_writing_a_stream(runs: Runs, by: str) -> None:
    written = []
    for form in FORMATS:
        topic = runs.new_topic()
        read = runs.spark.readStream.format(form).options(**runs.place, **EARLIEST_FIRST, subscribe="payments").load()
        rows = read.selectExpr(f"'{topic}' topic", "cast(key as string)", "cast(value as string)")
        writer = (rows if by == "column" else rows.drop("topic")).writeStream.format(form).options(**runs.place)
        query = runs.started(writer if by == "column" else writer.option("topic", topic))
        assert query.awaitTermination(WAIT_S)
        written.append(keyed(runs.content(topic)))
    assert written[0] == written[1] != []


def keyed(records: list[Any]) -> list[Any]:
    """Rows without a key go to any partition."""
    return sorted(((each[0] if each[1] else None, *each[1:]) for each in records), key=str)


def test_a_checkpoint_of_sparks_own_source_is_continued(runs: Runs, tmp_path: Path) -> None:
    topic = runs.new_topic()
    with runs.client() as client:
        Producer(client).send(topic, 0, some_records(10))
        assert len(runs.stream("kafka", {"subscribe": topic}, tmp_path)[0]) == 10
        Producer(client).send(topic, 0, some_records(5, 10))
        Producer(client).send(topic, 1, some_records(3))
    (found,) = runs.stream("tanist", {"subscribe": topic}, tmp_path)
    assert [len(found), min(row[4] for row in found if row[3] == 0)] == [8, 10]
    # But not the other way: ours has leader epochs and topic ids beside the offsets.
    assert attempt(lambda: runs.stream("kafka", {"subscribe": topic}, tmp_path)) == REFUSED

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import LessThanOrEqual

from tanist.spark.segments.planning import SegmentsReader, narrowed
from tanist.spark.segments.ranges import Bounds
from tests.spark.spark_segments_samples import ALL, START_MS, SegmentBuilder, name_directory


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two replicas of orders-0, the second with a torn tail; and payments-1 on the first."""
    root = tmp_path_factory.mktemp("cluster")
    for node in (1, 2):
        directory = root / f"node-{node}" / "data"
        name_directory(directory, node)
        SegmentBuilder(0, epoch=1).batches(20, 50, compression=node).write(directory / "orders-0", indexes=True)
        last = SegmentBuilder(1000, epoch=2).batches(20, 50)
        if node == 2:
            del last.data[-5:]
        last.write(directory / "orders-0", indexes=True)
    SegmentBuilder().batches(1, 10).write(root / "node-1" / "data" / "payments-1")
    return root


@pytest.fixture
def segments(spark: Any, cluster: Path) -> Any:
    return spark.read.format("tanist-segments").load(str(cluster))


def test_every_record_of_every_replica(segments: Any) -> None:
    assert segments.columns == ALL
    counted = segments.groupBy("topic", "replica").count().collect()
    assert {(row.topic, row.replica): row["count"] for row in counted} == {
        ("orders", 1): 2000, ("orders", 2): 1951, ("payments", 1): 10,
    }  # fmt: skip
    (torn,) = segments.filter("damage is not null").collect()
    assert (torn.replica, torn.offset, torn.crc_ok, torn.segment) == (2, 1950, False, 1000)


OLDER = "#\nnode.id={}\nversion=1\ncluster.id=c\n"
"""As Kafka 3.5 and 3.6 write it: without a directory.id."""


@pytest.mark.parametrize("name", ["label=linux,python=3.11 #%41", "back\\slash,'é\""])
def test_brokers_of_an_older_kafka_below_a_folder_of_any_name(spark: Any, tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    for node in (1, 2, 3):
        SegmentBuilder(0).batches(1, 10).write(root / f"broker-{node}" / "orders-0")
        (root / f"broker-{node}" / "meta.properties").write_text(OLDER.format(node))
    found = spark.read.format("tanist-segments").load(str(root)).groupBy("replica").count().collect()
    assert {(row.replica, row["count"]) for row in found} == {(1, 10), (2, 10), (3, 10)}


def test_replicas_agree_by_fingerprint(spark: Any, cluster: Path) -> None:
    """Though one is compressed with gzip and the other with snappy; without reading payload."""
    few = spark.read.format("tanist-segments").schema("replica int, offset bigint, fingerprint bigint, topic string")
    pairs = few.load(str(cluster)).filter("topic = 'orders' and offset < 1950").groupBy("offset", "fingerprint").count()
    assert {
        (row["count"], row.n) for row in pairs.groupBy("count").agg({"*": "count"}).toDF("count", "n").collect()
    } == {(2, 1950)}


def test_values_come_through(segments: Any) -> None:
    (row,) = segments.filter("replica = 1 and topic = 'orders' and offset = 1009").collect()
    assert (bytes(row.key), bytes(row.value)) == (b"key-1009", b"v" * 24 + b"1009")
    assert row.timestamp.replace(tzinfo=None) == datetime(2023, 11, 14, 22, 13, 21, 9000)
    assert [(header.key, header.value) for header in row.headers] == []


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("topic = 'payments'", 10),
        ("topic in ('payments', 'none')", 10),
        ("topic = 'none'", 0),
        ("topic = 'orders' and partition = 1", 0),
        ("replica = 2 and offset < 100", 100),
        ("replica = 2 and offset >= 990 and offset <= 1010", 21),
        ("replica = 1 and offset > 1990 and topic = 'orders'", 9),
        ("replica = 1 and offset = 1234", 1),
        ("replica = 1 and topic = 'orders' and timestamp >= timestamp'2023-11-14 22:13:21.950'", 50),
        ("replica = 1 and topic = 'orders' and timestamp < timestamp'2023-11-14 22:13:20.010'", 10),
    ],
)
def test_filters_give_what_they_would_without_being_pushed(segments: Any, condition: str, count: int) -> None:
    assert segments.filter(condition).count() == count


def reader(path: Path, **options: str) -> SegmentsReader:
    from pyspark.sql.types import _parse_datatype_string

    schema = _parse_datatype_string(options.pop("schema", "offset bigint"))
    return SegmentsReader({"path": str(path), **options}, schema)


def test_a_bound_of_0_is_a_bound() -> None:
    bounds = narrowed(narrowed(Bounds(), LessThanOrEqual(("offset",), 5)), LessThanOrEqual(("offset",), 0))
    assert bounds == Bounds(most_offset=0)


def test_filters_leave_files_and_bytes_alone(spark: Any, cluster: Path) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In

    def planned(*filters: Any) -> tuple[int, int]:
        made = reader(cluster)
        list(made.pushFilters(list(filters)))
        found = [each for each in made.partitions() if each.path]
        return len(found), sum(each.end - each.start for each in found)

    files, size = planned()
    assert files == 5
    assert planned(EqualTo(("topic",), "payments"))[0] == 1
    assert planned(In(("replica",), (2, 9)))[0] == 2
    later_files, later_size = planned(GreaterThanOrEqual(("offset",), 1900))
    assert (later_files, later_size < size / 5) == (3, True)
    moment = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(milliseconds=1900)
    assert planned(GreaterThanOrEqual(("timestamp",), moment))[1] < size / 2


def test_a_segment_is_read_by_several_tasks(spark: Any, cluster: Path) -> None:
    read = spark.read.format("tanist-segments").schema("offset bigint").option("stretchBytes", "4000")
    found = read.load(str(cluster / "node-1" / "data" / "orders-0"))
    assert found.rdd.getNumPartitions() > 10
    assert found.distinct().count() == found.count() == 2000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stretchBytes": "0"}, "number of bytes"),
        ({"contents": "everything"}, "contents is one of"),
        ({"indexes": "perhaps"}, "true or false"),
        ({"starting": "1"}, "no option starting"),
        ({"schema": "lag bigint"}, "no column lag"),
        ({"schema": "offset string"}, "is int64, not string"),
    ],
)
def test_what_cannot_be_is_refused(spark: Any, cluster: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reader(cluster, **options)


def test_a_folder_without_replicas_is_an_error(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no replica's segments"):
        reader(tmp_path).partitions()


def test_a_session_is_ready_and_one(spark: Any) -> None:
    from tanist.spark import session
    from tanist.spark.local_session import setting_name

    assert session() is not None
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert [setting_name(name) for name in ("master", "spark__driver__memory", "spark.ui.enabled")] == [
        "spark.master", "spark.driver.memory", "spark.ui.enabled",
    ]  # fmt: skip

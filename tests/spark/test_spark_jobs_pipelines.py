"""The example of a declarative pipeline, as its README runs it: twice, with damage done in between."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import Producer
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.wire.batch import NewRecord

NEEDED = ("grpc", "grpc_status", "google.protobuf", "pandas", "yaml", "zstandard")
EXAMPLE = Path(__file__).parents[2] / "examples" / "pipelines"
BATCH = 50
PATIENCE_S = 500


def missing() -> list[str]:
    # A name with a dot raises where its parent is not there.
    return [name for name in NEEDED if find_spec(name.partition(".")[0]) is None]


pytestmark = pytest.mark.skipif(bool(missing()), reason=f"spark-pipelines needs pyspark[pipelines]: no {missing()}")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    nodes = LocalCluster(tmp_path / "tanist-data")
    bootstrap = bootstrap_of(nodes.up(brokers=3, port=random.randint(20000, 50000)))
    with Client(parse_bootstrap(bootstrap), timeout_s=60) as client:
        create_topic(client, "orders", partitions=1, replication_factor=3, config={"min.insync.replicas": "3"})
    yield bootstrap
    nodes.down()


def send(bootstrap: str, first: int, batches: int) -> None:
    """With acks=all and all replicas in the ISR: what is acknowledged is in each one's file."""
    with Client(parse_bootstrap(bootstrap), timeout_s=60) as client:
        producer = Producer(client)
        for number in range(first, first + batches * BATCH, BATCH):
            now_ms = time.time_ns() // 1_000_000
            producer.send(
                "orders", 0, [NewRecord(now_ms, None, b"%d" % each) for each in range(number, number + BATCH)]
            )


def run(folder: Path) -> None:
    from tests.spark import spark_short_lived

    environment = spark_short_lived.environment() | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SPARK_CONF_DIR": str(folder / "conf"),
    }
    done = subprocess.run(
        ["spark-pipelines", "run"], cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "Run is COMPLETED." in done.stdout + done.stderr


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    import pyarrow.dataset as dataset

    found = dataset.dataset(folder / "spark-warehouse" / table, format="parquet", exclude_invalid_files=True)
    listed: list[dict[str, Any]] = found.to_table().to_pylist()
    return listed


def spoil(data: Path, broker: int, number: int, *, sealed: bool = False) -> None:
    """Another byte in the last value of a batch in a broker's file; `sealed`: with a CRC that says it is right."""
    (log,) = data.glob(f"node-{broker}/**/orders-0/{0:020d}.log")
    content = bytearray(log.read_bytes())
    at = 0
    for _ in range(number):
        at += 12 + int.from_bytes(content[at + 8 : at + 12], "big")
    end = at + 12 + int.from_bytes(content[at + 8 : at + 12], "big")
    content[end - 2] ^= 0x01  # the last byte is the count of the record's headers
    if sealed:
        content[at + 17 : at + 21] = crc32c(content[at + 21 : end]).to_bytes(4, "big")
    with log.open("r+b") as file:
        file.write(content)


def test_the_stream_goes_on_and_the_views_find_what_happened(cluster: str, tmp_path: Path) -> None:
    folder = tmp_path / "pipelines"
    shutil.copytree(EXAMPLE, folder)
    spec = folder / "spark-pipeline.yml"
    text = spec.read_text().replace("file:///tmp/tanist-pipelines", f"file://{tmp_path}/storage")
    spec.write_text(text.replace("127.0.0.1:9092", cluster).replace("../../tanist-data", "../tanist-data"))

    send(cluster, 0, 6)
    run(folder)
    assert sorted(int(row["value"]) for row in rows(folder, "orders")) == list(range(300))
    assert [rows(folder, table) for table in ("damaged", "divergent", "read_lost")] == [[], [], []]

    data = tmp_path / "tanist-data"
    for broker in (1, 2, 3):
        spoil(data, broker, 1)
    spoil(data, 2, 3, sealed=True)
    send(cluster, 300, 2)
    run(folder)
    assert sorted(int(row["value"]) for row in rows(folder, "orders")) == list(range(400))
    assert {(row["replica"], row["offset"]) for row in rows(folder, "damaged")} == {(each, BATCH) for each in (1, 2, 3)}
    (other,) = rows(folder, "divergent")
    assert (other["partition"], other["offset"]) == (0, 4 * BATCH - 1)
    assert [each["replica"] for each in other["held"]] == [1, 2, 3]
    assert sorted(row["offset"] for row in rows(folder, "read_lost")) == list(range(BATCH, 2 * BATCH))

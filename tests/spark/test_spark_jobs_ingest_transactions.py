"""A topic with transactions into a table: aborted records do not come, and open ones wait for their end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import Producer
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.wire.batch import NewRecord
from tests.stories.transactional import TransactionalClient


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    cluster = LocalCluster(tmp_path / "brokers")
    config = {"transaction.state.log.num.partitions": "1"}
    yield bootstrap_of(cluster.up(brokers=1, port=random.randint(20000, 50000), config=config))
    cluster.down()


def test_a_table_has_what_is_committed(spark: Any, bootstrap: str, tmp_path: Path) -> None:
    from tanist.spark.jobs.ingest import ingest, read_table

    def values(table: Path, **options: str) -> list[str]:
        ingest(spark, bootstrap, ["t"], table, options={name.replace("_", "."): each for name, each in options.items()})
        return sorted(bytes(row.value).decode() for row in read_table(spark, table).select("value").collect())

    with Client(parse_bootstrap(bootstrap), timeout_s=60) as client:
        create_topic(client, "t", partitions=1)
        for number, end in enumerate(("commit", "abort", None)):
            sender = TransactionalClient(client, f"id-{number}", bumps=False)
            for verb in ("begin", f"write t 0 {end or 'open'}-1 {end or 'open'}-2", end):
                if verb:
                    assert "refused" not in sender.run(verb.split())
        Producer(client).send("t", 0, [NewRecord(1, None, b"plain")])
        assert values(tmp_path / "table") == ["commit-1", "commit-2"]
        everything = values(tmp_path / "all", isolation_level="read_uncommitted")
        assert everything == ["abort-1", "abort-2", "commit-1", "commit-2", "open-1", "open-2", "plain"]
        assert sender.run(["commit"]) == "committed"
    assert values(tmp_path / "table") == ["commit-1", "commit-2", "open-1", "open-2", "plain"]

"""A topic into a table in an object store, the query killed meanwhile, and the table back into a topic."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import Producer, read
from tanist.runtime.cluster.processes import wait_until
from tanist.spark.stores import files_below
from tanist.wire.batch import NewRecord
from tests.spark.spark_killed import Query
from tests.spark.spark_object_store import BUCKET, object_store
from tests.spark.test_spark_jobs_ingest import Crashed, batch

PATIENCE_S = 300
JOB = (sys.executable, "-m", "tanist.cli.main", "spark")


def written(bootstrap: str, topic: str, first: int, count: int) -> None:
    with Client(parse_bootstrap(bootstrap), timeout_s=60) as client:
        producer = Producer(client)
        for partition in range(2):
            mine = range(first + partition, first + count, 2)
            producer.send(topic, partition, [NewRecord(1, None, b"%d" % number) for number in mine])


def in_table(table: str) -> list[int]:
    """As another program reads it, without Spark."""
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(table):
        return []
    return sorted(int(each) for each in DeltaTable(table).to_pyarrow_table(columns=["value"])["value"].to_pylist())


@pytest.mark.slow  # two minutes; the next one crashes a query in each of its steps
def test_each_record_is_once_in_a_table_in_a_store(bootstrap: str, store: None, tmp_path: Path) -> None:
    with Client(parse_bootstrap(bootstrap), timeout_s=60) as client:
        for name in ("stored", "stored-again"):
            create_topic(client, name, partitions=2)
    written(bootstrap, "stored", 0, 2_000)
    table = f"s3a://{BUCKET}/tables/stored"
    command = [
        *(*JOB, "ingest", table, "--topic", "stored", "--bootstrap", bootstrap, "--master", "local[2]"),
        *("--checkpoint", str(tmp_path / "progress"), "--option", "maxOffsetsPerTrigger=200"),
    ]
    with Query(command, tmp_path / "log") as query:
        assert wait_until(lambda: query.has_ended or len(in_table(table)) >= 400, PATIENCE_S)
        query.kill()
    assert 0 < len(in_table(table)) < 2_000
    for count in (2_000, 2_500):
        with Query(command, tmp_path / "log") as query:
            query.ends_well(PATIENCE_S)
        assert in_table(table) == list(range(count))
        if count == 2_000:
            written(bootstrap, "stored", 2_000, 500)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log", "progress"]

    back = [*JOB, "egress", table, "--topic", "stored-again", "--bootstrap", bootstrap, "--master", "local[2]"]
    done = subprocess.run(back, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (0, "2,500 records written\n"), done.stderr[-3000:]
    with Client(parse_bootstrap(bootstrap), timeout_s=60) as client:
        for partition in range(2):
            found = [int(record.value or b"") for record in read(client, "stored-again", partition, 0, 1_250)]
            assert found == list(range(partition, 2_500, 2))

    (tmp_path / "progress").rename(tmp_path / "gone")
    assert "all would be written once more" in refusal(*command[4:])


@pytest.mark.usefixtures("at_workers")
def test_a_batch_is_in_a_stored_table_once_wherever_the_query_is_killed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tanist.spark.jobs import ingest
    from tanist.spark.jobs.tables import files_of

    (tmp_path / "metadata").write_text(json.dumps({"id": "query-1"}))
    table = f"s3://{BUCKET}/tables/killed"
    monkeypatch.setattr(ingest, "COMPACTED_EVERY", 3)

    def sink() -> ingest.TableSink:
        return ingest.TableSink(table, "delta", tmp_path)

    def offsets() -> list[int]:
        return sorted(row.offset for row in ingest.read_table(spark, table).select("offset").collect())

    sink().take(batch(spark, 0, 10), 0)
    with monkeypatch.context() as patched:
        patched.setattr(ingest.TableSink, "_commit", lambda *_: (_ for _ in ()).throw(Crashed()))
        with pytest.raises(Crashed):
            sink().take(batch(spark, 10, 5), 1)
    assert len(parquet_below(table)) > len(files_of(table))
    for known in (0, 1):
        again = sink()
        again.take(batch(spark, 10, 5), 1)
        assert again.result.known == known
    assert offsets() == list(range(15))
    # The third batch compacts. What is left of others goes after an hour.
    again.take(batch(spark, 15, 5), 2)
    assert offsets() == list(range(20))
    assert len(files_of(table)) == 2
    assert len(parquet_below(table)) > 2
    monkeypatch.setattr(ingest, "_KEPT_HOURS", 0)
    for number in (3, 4, 5):
        again.take(batch(spark, 5 * number + 5, 5), number)
    assert offsets() == list(range(35))
    assert sorted(parquet_below(table)) == sorted(path for path, _, _ in files_of(table))


def parquet_below(table: str) -> list[str]:
    """All, whether or not they count."""
    below = (path for path, _ in files_below(table) if path.endswith(".parquet"))
    return [path for path in below if "/_" not in path.removeprefix(table)]


def refusal(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["spark", *arguments])
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr.removeprefix("Error: ").rstrip()


def test_what_an_ingest_cannot_begin_with_is_said(
    bootstrap: str, store: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = ("--topic", "any", "--bootstrap", bootstrap)
    assert "by --checkpoint" in refusal("ingest", f"s3://{BUCKET}/new", *more)
    to = ("--checkpoint", str(tmp_path / "progress"), *more)
    assert "NoSuchBucket" in refusal("ingest", "s3://nowhere/new", *to)
    assert "the cluster has no topic any. " in refusal("ingest", f"s3://{BUCKET}/new", *to)
    assert "no table is at s3://" in refusal("egress", f"s3://{BUCKET}/new", "--bootstrap", bootstrap)
    with object_store(tmp_path / "log", asks_who=True) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert "AWS_SECRET_ACCESS_KEY" in refusal("ingest", f"s3://{BUCKET}/new", *to)

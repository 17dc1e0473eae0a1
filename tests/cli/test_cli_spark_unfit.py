"""What a job cannot begin with is said before it begins: no PySpark is needed here, no Java, and no DuckDB."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from tanist.cli.app import app
from tanist.cli.spark import audits
from tanist.cli.spark import group as spark
from tanist.cli.spark import session as spark_session
from tanist.log.checkpoints import META_PROPERTIES, MetaProperties
from tanist.runtime.client.client import KafkaError, Unsupported
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.cluster_file import ClusterError
from tanist.spark.java_home import find_java_home
from tanist.spark.jobs import merge_plan, preconditions
from tanist.wire.errors import ErrorCode
from tests.cli.cli_rig import free_port

NOBODY = "127.0.0.1:24999"


class Began(Exception):
    """Past the checks."""


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*_: Any) -> None:
        raise Began

    monkeypatch.setattr(spark, "find_spec", lambda _: True)
    monkeypatch.setattr(spark_session, "_started", begin)
    monkeypatch.setattr(audits, "_duckdb", begin)


def job(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["spark", *map(str, arguments)])


def refusal(*arguments: str | Path) -> str:
    """The one line of a job that cannot begin."""
    result = job(*arguments)
    assert result.exit_code == 2, (result.output, result.exception)
    assert "wrong" not in result.stdout
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr.removeprefix("Error: ").rstrip()


def began(*arguments: str | Path) -> bool:
    return isinstance(job(*arguments).exception, Began)


@dataclass
class Data:
    """A cluster's folder; of its logs only the names and lengths count here."""

    folder: Path

    def partition(self, name: str, *segments: int, size: int = 100, brokers: int = 3) -> Data:
        for broker in range(1, brokers + 1):
            home = self.folder / f"node-{broker}" / "data"
            home.mkdir(parents=True, exist_ok=True)
            (home / META_PROPERTIES).write_bytes(MetaProperties("c", broker, UUID(int=broker)).encode())
            (home / name).mkdir()
            for base in segments or (0,):
                (home / name / f"{base:020d}.log").write_bytes(bytes(size))
        return self


@pytest.fixture
def data(tmp_path: Path) -> Data:
    return Data(tmp_path / "data")


# -- audit


def test_a_topic_that_is_not_there_is_an_error_which_names_the_one_that_was_meant(data: Data) -> None:
    data.partition("orders-0").partition("payments-0").partition("__consumer_offsets-0")
    audit = ("audit", "--data", data.folder)
    assert refusal(*audit, "--topic", "ordres") == (
        f"no replica of topic ordres is below {data.folder}. Did you mean orders?"
    )
    assert refusal(*audit, "--topic", "orders", "--topic", "x").endswith("Existing topics: orders and payments")
    assert began(*audit, "--topic", "orders")
    assert began(*audit, "--topic", "__consumer_offsets")
    shown = json.loads(job(*audit, "--topic", "ordres", "--json").stderr)
    assert shown["error"]["exit_code"] == 2


def test_a_folder_without_logs_is_an_error(data: Data) -> None:
    assert refusal("audit", "--data", data.folder) == f"there is no folder {data.folder}"
    data.folder.mkdir()
    assert refusal("audit", "--data", data.folder).startswith(f"no broker's log is below {data.folder}: name ")
    data.partition("__cluster_metadata-0")
    assert refusal("audit", "--data", data.folder) == f"there is no topic below {data.folder}, only __cluster_metadata"


def test_expired_records_are_another_thing_than_none(data: Data, tmp_path: Path) -> None:
    data.partition("orders-0", 500, size=0).partition("empty-0", size=0)
    audit = ("audit", "--data", data.folder)
    expired = "the records of orders-0 below offset 500 have expired"
    assert refusal(*audit, "--topic", "orders").endswith(f"has a record of orders: {expired}")
    assert refusal(*audit).endswith(f"has a record of empty and orders: {expired}")
    assert "nothing was written, or all of it is gone" in refusal(*audit, "--topic", "empty")
    # With a history it can be judged: every acknowledged record is lost, or has expired.
    history = tmp_path / "history.jsonl"
    history.write_text("{}\n")
    assert began(*audit, "--topic", "empty", "--history", history)


def test_a_history_that_has_nothing_is_an_error(data: Data, tmp_path: Path) -> None:
    data.partition("orders-0")
    history = tmp_path / "history.jsonl"
    audit = ("audit", "--data", data.folder, "--history", history)
    assert "does not exist" in job(*audit).stderr
    history.write_text("\n \n")
    assert refusal(*audit) == f"{history} is empty: there is nothing to judge"
    history.unlink()
    history.mkdir()
    assert refusal(*audit) == f"no Parquet file is below {history}"


def test_what_a_job_writes_has_space_and_replaces_nothing_else(data: Data, tmp_path: Path) -> None:
    data.partition("orders-0")
    audit = ("audit", "--data", data.folder)
    assert refusal(*audit, "--html", tmp_path / "none" / "a.html") == f"there is no folder {tmp_path}/none for a.html"
    merge = ("merge-back", "--data", data.folder, "--bootstrap", NOBODY)
    assert "node-1, node-2 and node-3" in refusal(*merge, "--output", data.folder)
    file = tmp_path / "file"
    file.write_text("x")
    assert "is a file" in refusal(*merge, "--output", file)
    assert "is a file" in refusal(*merge, "--output", file / "below")
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    for name in ("_SUCCESS", "._SUCCESS.crc", "part-0.snappy.parquet", ".part-0.snappy.parquet.crc"):
        (earlier / name).touch()
    preconditions.output_folder(earlier)
    assert began(*audit, "--html", tmp_path / "a.html")


def test_findings_go_to_a_table_of_their_own(data: Data, tmp_path: Path) -> None:
    data.partition("orders-0")
    audit = ("audit", "--data", data.folder, "--findings")
    assert began(*audit, tmp_path / "new")
    assert began(*audit, tmp_path / "new", "--format", "parquet")
    assert "node-1, node-2 and node-3" in refusal(*audit, data.folder)
    file = tmp_path / "file"
    file.write_text("x")
    for each in (file, file / "below"):
        assert "is a file" in refusal(*audit, each)
    parquet = tmp_path / "parquet"
    for name in ("run_id=5b1e", "_unfinished-0c0d"):
        (parquet / name).mkdir(parents=True)
    assert began(*audit, parquet, "--format", "parquet")
    assert refusal(*audit, parquet) == f"{parquet} has findings as Parquet: --format parquet adds to them"
    (parquet / "_delta_log").mkdir()
    assert "is a Delta table: --format delta" in refusal(*audit, parquet, "--format", "parquet")
    assert "not of http" in refusal(*audit, "http://host/x")
    assert "is an address" in refusal(*audit, "s3://bucket/x", "--format", "parquet")


def test_a_service_that_cannot_be_is_refused(data: Data) -> None:
    audit = ("audit", "--data", data.partition("orders-0").folder)
    assert refusal(*audit, "--every", "ten minutes").startswith("an interval is a number and a unit")
    assert "--metrics needs --every" in job(*audit, "--metrics", "127.0.0.1:9400").stderr
    assert "'9400' is not host:port" in job(*audit, "--every", "1 hour", "--metrics", "9400").stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert "in use" in refusal(*audit, "--every", "1 hour", "--metrics", address)
    assert began(*audit, "--every", "1 hour 30 minutes", "--metrics", address)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder in which root, too, may make no file")
def test_a_folder_that_takes_no_file_is_said(data: Data) -> None:
    data.partition("orders-0")
    # Nobody may make files in /proc, root included.
    assert "nothing can be written to /proc" in refusal("audit", "--data", data.folder, "--findings", "/proc/none/out")


def test_an_address_is_not_taken_for_a_path_of_this_machine(data: Data, tmp_path: Path) -> None:
    """It would be a folder of the name `s3a:` where the command runs."""
    data.partition("orders-0")
    audit = ("audit", "--data", data.folder)
    for job in (
        (*audit, "--html", "s3a://bucket/a.html"),
        ("story", "--keep", "gs://bucket/x"),
        ("seeds", "--output", "s3://bucket/x"),
    ):
        assert "paths of this machine" in refusal(*job), job
    assert "an address of hdfs: name a folder, or an address of s3, " in refusal("audit", "--data", "hdfs://host/x")
    assert began("audit", "--data", data.folder.as_uri())
    ingest = ("ingest", "s3a://bucket/x", "--topic", "orders", "--bootstrap", NOBODY)
    assert refusal(*ingest).endswith("is in an object store: name a folder for the query's progress by --checkpoint")
    assert "--kind delta makes a table there" in refusal(*ingest, "--kind", "parquet")


def test_the_story_takes_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    assert refusal("story", "--keep", tmp_path) == f"{tmp_path} is not empty: name a new folder"


# -- jobs that ask brokers


def test_brokers_that_do_not_answer_are_said_before_java(tmp_path: Path) -> None:
    table(tmp_path / "t", "orders", 0)
    for arguments in (
        ("ingest", tmp_path / "new", "--topic", "orders"),
        ("egress", tmp_path / "t"),
    ):
        for more in ((), ("--verbose",)):
            result = job(*arguments, *more, "--bootstrap", NOBODY)
            assert (result.exit_code, result.stdout) == (2, "")
            assert "no broker answers" in result.stderr
            assert ("Traceback" in result.stderr) == bool(more)


def table(path: Path, topic: str, *partitions: int) -> Path:
    """As ingest leaves one; nothing of its files is read here."""
    for partition in partitions:
        folder = path / "data" / "batch=000000000000" / f"topic={topic}" / f"partition={partition}"
        folder.mkdir(parents=True)
        (folder / "part-0.parquet").touch()
        (path / "data" / "batch=000000000000" / "_SUCCESS").touch()
    return path


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """One broker with the topics `one` (a partition, a record) and `empty` (two partitions)."""
    folder = tmp_path_factory.mktemp("cluster")
    cluster = LocalCluster(folder / "c")
    bootstrap = bootstrap_of(
        cluster.up(brokers=1, port=free_port(), config={"offsets.topic.num.partitions": "1"}, ends_with_us=True)
    )
    try:
        for name, count in (("one", 1), ("empty", 2)):
            made = ["topics", "create", name, "--partitions", str(count), "--replication-factor", "1"]
            done = CliRunner().invoke(app, [*made, "--bootstrap", bootstrap])
            assert done.exit_code == 0, done.output
        done = CliRunner().invoke(app, ["produce", "one", "--bootstrap", bootstrap], input="a\n")
        assert done.exit_code == 0, done.output
        yield folder / "c", bootstrap
    finally:
        cluster.down()


def test_ingest_of_no_topic_or_of_no_record_is_an_error(broker: tuple[Path, str], tmp_path: Path) -> None:
    new, to = tmp_path / "new", ("--bootstrap", broker[1])
    assert refusal("ingest", new, "--topic", "onne", *to) == "the cluster has no topic onne. Did you mean one?"
    assert refusal("ingest", new, "--topic", "empty", *to) == (
        'empty has no record: nothing has been written. --every "5 seconds" waits for records'
    )
    assert began("ingest", new, "--topic", "empty", "--every", "5 seconds", *to)
    assert began("ingest", new, "--topic", "empty", "--topic", "one", *to)


def test_ingest_checks_its_options_and_its_table(broker: tuple[Path, str], tmp_path: Path) -> None:
    new, to = tmp_path / "new", ("--topic", "one", "--bootstrap", broker[1])
    assert "is a number and a unit" in refusal("ingest", new, "--every", "often", *to)
    assert "maxOffsets" in refusal("ingest", new, "--option", "maxOffsetsPerTrigger=few", *to)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").touch()
    assert "is no table, and has other files (letter.txt)" in refusal("ingest", tmp_path / "other", *to)
    inside = ("--checkpoint", new / "progress")
    assert "is in the table, whose old files are swept" in refusal("ingest", new, *inside, *to)
    assert began("ingest", new, "--checkpoint", new / "_progress", *to)
    assert "its _checkpoint is gone" in refusal("ingest", table(tmp_path / "t", "one", 0), *to)
    (tmp_path / "delta" / "_checkpoint").mkdir(parents=True)
    (tmp_path / "delta" / "_delta_log").mkdir()
    assert "is a Delta table" in refusal("ingest", tmp_path / "delta", "--kind", "parquet", *to)


def test_egress_into_no_topic_or_too_few_partitions_is_said_before_it_begins(
    broker: tuple[Path, str], tmp_path: Path
) -> None:
    made, to = table(tmp_path / "t", "archive", 0, 4), ("--bootstrap", broker[1])
    assert refusal("egress", made, *to) == (
        "the cluster has no topic archive. Existing topics: empty and one. Make it: `tanist topics create archive"
        " --partitions 5`"
    )
    assert "Did you mean one? Or make it: `tanist" in refusal("egress", made, "--topic", "onne", *to)
    assert refusal("egress", made, "--topic", "one", *to) == (
        "the table has records of partition 4, and topic one has 1 partition: give it 5, or let --by-key choose"
        " partitions"
    )
    assert began("egress", made, "--topic", "one", "--by-key", *to)
    assert began("egress", table(tmp_path / "small", "x", 0, 1), "--topic", "empty", *to)
    (tmp_path / "nothing").mkdir()
    assert "or it has no records yet" in refusal("egress", tmp_path / "nothing", *to)


def test_merge_back_of_no_salvage_is_an_error(broker: tuple[Path, str], tmp_path: Path) -> None:
    folder, bootstrap = broker
    to = ("--bootstrap", bootstrap)
    assert refusal("merge-back", "--data", tmp_path / "none", *to) == f"there is no folder {tmp_path}/none"
    assert refusal("merge-back", "--data", folder, "--topic", "one").startswith(
        f"no replica below {folder} has saved records of topic one: there is nothing to merge back. "
    )


def test_merge_back_tells_what_has_expired_from_what_was_never_saved(broker: tuple[Path, str], tmp_path: Path) -> None:
    from tanist.log.salvage.manifest import SalvageReason
    from tests.cli.salvage_rig import Broker, at

    saving = Broker(tmp_path, 2)
    saving.append(3, at(0, b"k", b"a"), at(1, b"k", b"b"))
    saving.salvage(1, SalvageReason.OUT_OF_RANGE)
    saving.close()
    to = ("--data", tmp_path, "--bootstrap", broker[1])
    assert "1 entry only that stood before the leader's first offset: expired" in refusal("merge-back", *to)
    assert refusal("merge-back", "--topic", "order", *to).endswith("Did you mean orders?")

    again = Broker(tmp_path, 3)
    again.append(3, at(0, b"k", b"a"), at(1, b"k", b"b"))
    again.salvage(1)
    again.close()
    assert refusal("merge-back", *to).startswith("the cluster has no topic orders. ")


def test_merge_back_needs_the_leaders_logs(data: Data) -> None:
    data.partition("orders-0", brokers=2)
    merge_plan._require_logs(data.folder, {("orders", 0): 2})
    with pytest.raises(merge_plan.MergeRefused, match="broker 3 leads orders-0, and its log is not below"):
        merge_plan._require_logs(data.folder, {("orders", 0): 3})


@pytest.mark.parametrize(
    "error",
    [
        KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "orders"),
        Unsupported("the broker has no ListOffsets"),
        ClusterError("there is no cluster"),
        OSError("no space"),
        type("Py4JError", (Exception,), {"__module__": "py4j.protocol"})("gone"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_stops_a_job_is_no_verdict(data: Data, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Exit code 1 is an audit that has found something."""

    def begin(*_: Any) -> None:
        raise error

    data.partition("orders-0")
    monkeypatch.setattr(spark_session, "_started", begin)
    monkeypatch.setattr(audits, "_duckdb", begin)
    refusal("audit", "--data", data.folder)
    assert job("audit", "--data", data.folder, "--verbose").exit_code == 2


# -- Java itself


def test_a_java_home_without_java_is_said_in_a_line(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*_: Any) -> None:
        find_java_home()

    data.partition("orders-0")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr(spark_session, "_started", begin)
    monkeypatch.setattr(audits, "_duckdb", begin)
    assert refusal("audit", "--data", data.folder) == (
        "JAVA_HOME is /nowhere, and has no bin/java: name a Java 17 or 21 there, or unset it"
    )


def test_what_java_says_goes_where_nobody_sees_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with (tmp_path / "noise").open("wb") as noise, spark_session.errors_into(noise.fileno()):
        child = subprocess.Popen(["sh", "-c", "echo begun >&2; read line; echo ended >&2"], stdin=subprocess.PIPE)
    # It goes on to say there what it says, after this process has its own standard error back.
    child.communicate(b"\n")
    print("ours", file=sys.stderr)
    assert (tmp_path / "noise").read_text() == "begun\nended\n"
    assert capfd.readouterr().err == "ours\n"


def test_of_sparks_pages_the_cause_is_shown() -> None:
    pages = (
        "An error occurred while calling o1.load.\n: java.lang.Foo: outer\n\tat a.b\nCaused by: x.Bar: inner.\n\tat c"
    )
    assert spark_session._cause(pages) == "x.Bar: inner"
    python = """Caused by: x.PythonException: Traceback (most recent call last):
  File "a.py", line 1, in read
    f()
{}
"""
    assert spark_session._cause(python.format("ZeroDivisionError: by zero")) == "ZeroDivisionError: by zero"
    assert spark_session._own_reason(python.format("ZeroDivisionError: by zero")) is None
    assert spark_session._own_reason(python.format("tanist.spark.stores.StoreFailed: s3://x: no")) == "s3://x: no"
    assert spark_session._cause("An error occurred while calling o1.load.\n: a.Foo: outer\n\tat a.b") == "a.Foo: outer"
    assert spark_session._cause("[CODE] It failed.") == "[CODE] It failed"

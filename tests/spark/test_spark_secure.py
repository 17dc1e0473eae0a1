"""`format("tanist")` on a cluster with TLS, users and ACLs: the security options of Kafka's clients."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.client.positions import LATEST
from tanist.log.properties import encode_properties
from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import BrokerConnection
from tanist.runtime.client.connection import AuthenticationFailed
from tanist.runtime.client.records import list_offset
from tanist.spark.sink.options import SinkOptions
from tanist.spark.sink.producer import TaskProducer
from tanist.spark.sink.sink import write_rows
from tanist.spark.topic.fetching import Fetching
from tanist.spark.topic.options import TopicOptions
from tanist.spark.topic.plan import OffsetRange
from tanist.spark.topic.tasks import Task, read_task
from tanist.testing import Cluster
from tests.clusters_with_tls import TlsCluster

LONG = {"kafka.request.timeout.ms": "3600000"}
"""Who tries again what is refused does not come back in this test's time."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1, secure=True, config={"connections.max.reauth.ms": "3600000"}) as found:
        for name in ("app-in", "app-out", "app-task"):
            found.create_topic(name, partitions=2)
        yield found


@pytest.fixture(scope="module")
def place(cluster: Cluster) -> dict[str, str]:
    """As the user `app`, with the authority as a value: tasks of another machine need no file."""
    settings = dict(cluster.security().client("java"))
    settings["ssl.truststore.certificates"] = Path(settings.pop("ssl.truststore.location")).read_text()
    return {f"kafka.{name}": value for name, value in settings.items()}


@pytest.fixture(scope="module")
def password(cluster: Cluster) -> str:
    return str(cluster.security().client("librdkafka")["sasl.password"])


def with_another_password(place: dict[str, str], password: str) -> dict[str, str]:
    name = "kafka.sasl.jaas.config"
    return place | LONG | {name: place[name].replace(password, "not-this-one")}


def test_options_show_no_secret(place: dict[str, str], password: str) -> None:
    source = TopicOptions.parse({**place, "subscribe": "app-in"})
    sink = SinkOptions.parse({**place, "topic": "app-in"})
    assert source.without_effect == sink.without_effect == ()
    for each in (source, sink, source.connecting.client()):
        assert password not in repr(each)
    # They go to the tasks, which make connections of their own of them.
    assert pickle.loads(pickle.dumps(sink)).connecting == sink.connecting


def test_tasks_write_and_read_by_tls_and_authenticate_again_meanwhile(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A broker takes no second authentication within a second; another question has to be as free of pending answers.
    monkeypatch.setattr(BrokerConnection, "must_authenticate", True)
    monkeypatch.setattr(BrokerConnection, "_authenticate_again", lambda self, _: self._negotiate())
    monkeypatch.setattr(TaskProducer, "_send_again", lambda _: pytest.fail("it had to send again"))
    answers: list[int] = []
    answer = Fetching._answer
    monkeypatch.setattr(Fetching, "_answer", lambda *these: answers.append(1) or answer(*these))
    options = SinkOptions.parse({**place, "topic": "app-task", "kafka.batch.size": "4096"})
    values = [b"%06d" % number * 50 for number in range(2_000)]
    rows = pa.record_batch({"value": pa.array(values), "partition": pa.array([1] * len(values), pa.int32())})
    assert write_rows(iter([rows]), options, None).records == len(values)
    with options.connecting.client() as client:
        assert list_offset(client, "app-task", 1, LATEST) == len(values)
    source = TopicOptions.parse({**place, "subscribe": "app-task", "kafka.max.partition.fetch.bytes": "65536"})
    task = Task((OffsetRange("app-task", 1, 0, len(values)),))
    found = [value for each in read_task(task, source, ["value"]) for value in each["value"].to_pylist()]
    assert found == values
    assert len(answers) > 5


def test_tasks_show_a_certificate(tmp_path: Path) -> None:
    node = TlsCluster(tmp_path, nodes=1, client_auth="required")
    try:
        node.start()
        place = {
            "kafka.bootstrap.servers": node.bootstrap,
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.certificates": Path(node.trusted).read_text(),
            "kafka.ssl.endpoint.identification.algorithm": "",
        }
        mine = {"kafka.ssl.keystore.type": "PEM", "kafka.ssl.keystore.location": str(node.client("job"))}
        options = SinkOptions.parse({**place, **mine, "topic": "t"})
        with options.connecting.client() as client:
            create_topic(client, "t", partitions=1)
        assert write_rows(iter([pa.record_batch({"value": pa.array([b"x"])})]), options, None).records == 1
        task = Task((OffsetRange("t", 0, 0, 1),))
        source = TopicOptions.parse({**place, **mine, "subscribe": "t"})
        assert [each["value"].to_pylist() for each in read_task(task, source, ["value"])] == [[b"x"]]
        stranger = TopicOptions.parse({**place, "subscribe": "t", **LONG})
        with pytest.raises(AuthenticationFailed, match="the broker does not accept this client"):
            next(iter(read_task(task, stranger, ["value"])))
    finally:
        node.stop()


def test_a_wrong_password_ends_a_task_at_once(place: dict[str, str], password: str) -> None:
    options = SinkOptions.parse({**with_another_password(place, password), "topic": "app-task"})
    rows = pa.record_batch({"value": pa.array([b"x"])})
    with pytest.raises(AuthenticationFailed, match=r"refuses SCRAM-SHA-512: .*invalid credentials"):
        write_rows(iter([rows]), options, None)


def test_batches_and_streams(spark: Any, place: dict[str, str], password: str, tmp_path: Path) -> None:
    rows = spark.range(500).selectExpr("cast(id as string) as value")
    rows.write.format("tanist").options(**place, topic="app-in").mode("append").save()
    read = spark.read.format("tanist").options(**place, subscribe="app-in").load()
    assert sorted(int(bytes(row.value)) for row in read.collect()) == list(range(500))

    stream = spark.readStream.format("tanist").options(**place, subscribe="app-in", startingOffsets="earliest").load()
    writer = stream.select("value").writeStream.format("tanist").options(**place, topic="app-out")
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination()
    copied = spark.read.format("tanist").options(**place, subscribe="app-out").load()
    assert sorted(int(bytes(row.value)) for row in copied.collect()) == list(range(500))

    shown = [read._jdf.queryExecution().toString(), query._jsq.explainInternal(True), query.lastProgress.json]
    executions = spark._jsparkSession.sharedState().statusStore().executionsList().iterator()
    while executions.hasNext():
        each = executions.next()
        shown.append(f"{each.description()} {each.details()} {each.physicalPlanDescription()}")
    assert len(shown) > 5
    kept = [path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in [*shown, *kept] if password in text]


def test_a_wrong_password_is_one_clear_error(spark: Any, place: dict[str, str], password: str, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    wrong = with_another_password(place, password)
    stream = spark.readStream.format("tanist").options(**wrong, subscribe="app-in").load()
    nowhere = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    tries: tuple[Callable[[], Any], ...] = (
        lambda: spark.read.format("tanist").options(**wrong, subscribe="app-in").load().collect(),
        lambda: spark.range(3).selectExpr("cast(id as string) as value").coalesce(1)
        .write.format("tanist").options(**wrong, topic="app-in").mode("append").save(),
        lambda: nowhere.start().awaitTermination(),
    )  # fmt: skip
    for attempt in tries:
        with pytest.raises(PySparkException) as raised:
            attempt()
        assert "refuses SCRAM-SHA-512: Authentication failed" in str(raised.value)
        assert "not-this-one" not in str(raised.value)


def test_the_jobs_commands_connect_as_the_client_config_says(
    spark: Any, cluster: Cluster, place: dict[str, str], password: str, tmp_path: Path
) -> None:
    del spark  # the commands take this session

    def run(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["spark", *words, "--client-config", str(tmp_path / "client.properties")])
        assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
        assert password not in done.output
        return done.output

    def configure(settings: dict[str, str]) -> None:
        text = encode_properties({name.removeprefix("kafka."): value for name, value in settings.items()})
        (tmp_path / "client.properties").write_text(text)

    options = SinkOptions.parse({**place, "topic": "app-task"})
    with options.connecting.client() as client:
        before = list_offset(client, "app-task", 0, LATEST)
    rows = pa.record_batch({"value": pa.array([b"a", b"b", b"c"]), "partition": pa.array([0] * 3, pa.int32())})
    write_rows(iter([rows]), options, None)
    configure(place)
    run("ingest", str(tmp_path / "table"), "--topic", "app-task", "--kind", "parquet")
    run("egress", str(tmp_path / "table"), "--topic", "app-out", "--by-key")
    with options.connecting.client() as client:
        assert list_offset(client, "app-task", 0, LATEST) == before + 3
        assert sum(list_offset(client, "app-out", number, LATEST) for number in range(2)) >= 3
    configure(with_another_password(place, password))
    for words in (("ingest", str(tmp_path / "other"), "--topic", "app-task"), ("egress", str(tmp_path / "table"))):
        assert "refuses SCRAM-SHA-512: Authentication failed" in run(*words, code=2)

"""Faults by request: each kind, each trigger, over all brokers, and an error in the response of every API."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator

import pytest

from tanist.cli.main import main
from tanist.client.positions import LATEST
from tanist.runtime.client import groups
from tanist.runtime.client.admin import create_topic, delete_topic, describe_topics
from tanist.runtime.client.client import Client, KafkaError, Unreachable, parse_bootstrap
from tanist.runtime.client.records import Producer, list_offset
from tanist.testing import Kafka, NotInTime
from tanist.testing.aio import AsyncKafka
from tanist.wire.apis import ApiKey
from tanist.wire.batch import NewRecord
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import correlation_id_of, decode_response, encode_request
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.messages.metadata_response import MetadataResponse

APP = "orders-app"


@pytest.fixture
def topic(kafka: Kafka) -> str:
    return kafka.create_topic(kafka.topic("orders"), assignment=[(1, 2, 3), (2, 3, 1), (3, 1, 2)])


@pytest.fixture
def app(kafka: Kafka) -> Iterator[Client]:
    with Client(parse_bootstrap(kafka.bootstrap), client_id=APP, timeout_s=20.0) as client:
        yield client


def produce(app: Client, topic: str, partition: int = 0, *, timeout_s: float = 0.0) -> int:
    """One attempt, unless there is more time."""
    return Producer(app, idempotent=False).send(topic, partition, [NewRecord(value=b"x")], timeout_s=timeout_s)


def outcome(app: Client, topic: str, partition: int = 0) -> str:
    try:
        produce(app, topic, partition)
    except KafkaError as error:
        return error.name
    except Unreachable:
        return "unreachable"
    return "ok"


def test_once_is_once_over_all_brokers(kafka: Kafka, topic: str, app: Client) -> None:
    fault = kafka.inject_error("PRODUCE", "NOT_ENOUGH_REPLICAS").once()
    assert [outcome(app, topic, partition) for partition in (0, 1, 2)] == ["NOT_ENOUGH_REPLICAS", "ok", "ok"]
    assert (fault.calls, fault.hits) == (3, 1)
    assert len(kafka.records(topic)) == 2, "Kafka appends nothing that it refuses with this error"


def test_an_error_that_kafka_gives_after_the_append_appends(kafka: Kafka, topic: str, app: Client) -> None:
    for error in ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "REQUEST_TIMED_OUT"):
        before = len(kafka.records(topic, 0))
        kafka.inject_error("PRODUCE", error).once()
        assert outcome(app, topic) == error
        assert len(kafka.records(topic, 0)) == before + 1


def test_a_test_says_otherwise(kafka: Kafka, topic: str, app: Client) -> None:
    kafka.inject_error("PRODUCE", "NOT_ENOUGH_REPLICAS", after=True).once()
    assert outcome(app, topic) == "NOT_ENOUGH_REPLICAS"
    assert len(kafka.records(topic, 0)) == 1
    kafka.inject_error("PRODUCE", "REQUEST_TIMED_OUT", after=False).once()
    assert outcome(app, topic) == "REQUEST_TIMED_OUT"
    assert len(kafka.records(topic, 0)) == 1


def test_what_is_refused_is_not_done(kafka: Kafka, topic: str, app: Client) -> None:
    """Commits, topics and transactions, as records."""
    group = kafka.group("readers")
    kafka.inject_error("OFFSET_COMMIT", "UNKNOWN_MEMBER_ID").once()
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        groups.commit_offsets(app, group, {(topic, 0): 5})
    assert groups.committed_offsets(app, group) == {}
    groups.commit_offsets(app, group, {(topic, 0): 6})
    other = kafka.topic("other")
    kafka.inject_error("CREATE_TOPICS", "POLICY_VIOLATION").of_client(APP).once()
    with pytest.raises(KafkaError, match="POLICY_VIOLATION"):
        create_topic(app, other)
    assert other not in kafka.topics()
    kafka.inject_error("DELETE_TOPICS", "TOPIC_DELETION_DISABLED").of_client(APP).once()
    with pytest.raises(KafkaError, match="TOPIC_DELETION_DISABLED"):
        delete_topic(app, topic)
    assert topic in kafka.topics()


def test_a_refusal_waits_for_the_answers_before_it(kafka: Kafka, topic: str, app: Client) -> None:
    """A connection's answers have the order of its requests: clients take each for the answer to the oldest."""
    produce(app, topic)
    host, port = kafka.bootstrap.split(",")[0].split(":")
    kafka.inject_error("CREATE_TOPICS", "POLICY_VIOLATION").once()
    wait = FetchRequest(
        max_wait_ms=500,
        min_bytes=1_000_000,
        max_bytes=1_000_000,
        topics=(FetchTopic(topic=topic, partitions=(FetchPartition(partition=0, partition_max_bytes=1000),)),),
    )
    refused = CreateTopicsRequest(topics=(CreatableTopic(name="other", num_partitions=1, replication_factor=1),))
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(encode_request(wait, 11, 1, APP) + encode_request(refused, 7, 2, APP))
        frames = [frame_of(connection) for _ in range(2)]
    assert [correlation_id_of(frame) for frame in frames] == [1, 2]
    answer = decode_response(ApiKey.CREATE_TOPICS, 7, frames[1])
    assert [(each.name, each.error_code) for each in answer.topics] == [("other", ErrorCode.POLICY_VIOLATION)]  # type: ignore[attr-defined]


def frame_of(connection: socket.socket) -> bytes:
    head = connection.recv(4, socket.MSG_WAITALL)
    return connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)


def test_on_call_times_every_time_and_removal(kafka: Kafka, topic: str, app: Client) -> None:
    wrong = "KAFKA_STORAGE_ERROR"
    with kafka.inject_error("Produce", wrong).on_call(2) as fault:
        assert [outcome(app, topic) for _ in range(3)] == ["ok", wrong, "ok"]
        assert (fault.calls, fault.hits) == (3, 1)
    with kafka.inject_error("produce", wrong).times(2) as fault:
        assert [outcome(app, topic, partition) for partition in (0, 1, 2)] == [wrong, wrong, "ok"]
        assert (fault.calls, fault.hits) == (3, 2)
    fault = kafka.inject_error("produce", wrong).every_time()
    assert [outcome(app, topic) for _ in range(3)] == [wrong] * 3
    fault.remove()
    assert outcome(app, topic) == "ok"
    assert (fault.calls, fault.hits) == (3, 3)
    with kafka.inject_error("produce", wrong).with_probability(0.5) as fault:
        seen = [outcome(app, topic) for _ in range(60)]
    assert fault.calls == 60
    assert 5 < fault.hits == seen.count(wrong) < 55


def test_a_delay_holds_the_answer_back(kafka: Kafka, topic: str, app: Client) -> None:
    produce(app, topic)
    fault = kafka.delay_on("PRODUCE", 0.4).once()
    began = time.monotonic()
    produce(app, topic)
    slow_s = time.monotonic() - began
    assert slow_s >= 0.4
    assert fault.hits == 1


def test_a_removed_delay_lets_go_of_what_it_holds(kafka: Kafka, topic: str, app: Client) -> None:
    fault = kafka.delay_on("LIST_OFFSETS", 60.0).every_time()

    async def story() -> int:
        asking = asyncio.create_task(asyncio.to_thread(list_offset, app, topic, 0, LATEST))
        await asyncio.to_thread(fault.wait_for_hits, 1)
        await asyncio.to_thread(fault.remove)
        return await asyncio.wait_for(asking, 120)

    assert asyncio.run(story()) == 0


def test_a_connection_ends_in_place_of_an_answer(kafka: Kafka, topic: str, app: Client) -> None:
    produce(app, topic)
    fault = kafka.disconnect_on("PRODUCE").times(2)  # the client tries once more by itself
    assert outcome(app, topic) == "unreachable"
    assert fault.hits == 2
    assert len(kafka.records(topic, 0)) == 3, "both were carried out"


def test_a_blackholed_client_hears_nothing_and_others_do(kafka: Kafka, topic: str, app: Client) -> None:
    produce(app, topic)
    fault = kafka.blackhole_client("orders-").every_time()
    app.timeout_s = 0.5
    with pytest.raises(Unreachable, match="does not answer"):
        app.ask(MetadataRequest(), MetadataResponse)
    with Client(parse_bootstrap(kafka.bootstrap), client_id="payments-app") as other:
        other.metadata()
    fault.wait_for_hits(1)
    fault.remove()
    app.timeout_s = 20.0
    assert outcome(app, topic) == "ok"
    assert len(kafka.records(topic, 0)) == 2, "the broker has not seen what was dropped"


def test_a_rule_may_be_about_one_client(kafka: Kafka, topic: str, app: Client) -> None:
    kafka.inject_error("PRODUCE", "KAFKA_STORAGE_ERROR").of_client("payments").every_time()
    assert outcome(app, topic) == "ok"


def test_nodes_are_left_out_unless_they_are_asked_for(kafka: Kafka, topic: str, app: Client) -> None:
    fetches = kafka.inject_error("FETCH", "UNKNOWN_SERVER_ERROR").every_time()
    produce(app, topic, timeout_s=20)  # acks=all: the followers fetch
    assert fetches.calls == 0
    fetches.remove()
    with kafka.delay_on("FETCH", 0.01).including_nodes().every_time() as fault:
        produce(app, topic, timeout_s=20)
        fault.wait_for_hits(1)


def test_an_error_of_a_fetch_is_its_partition_s(kafka: Kafka, topic: str, app: Client) -> None:
    from tanist.runtime.client.records import fetch

    produce(app, topic)
    kafka.inject_error("FETCH", "OFFSET_OUT_OF_RANGE").once()
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        fetch(app, topic, 0, 0)
    assert [record.value for record in fetch(app, topic, 0, 0).records] == [b"x"]


def test_errors_of_metadata(kafka: Kafka, topic: str, app: Client) -> None:
    kafka.inject_error("DESCRIBE_TOPIC_PARTITIONS", "TOPIC_AUTHORIZATION_FAILED").once()
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        describe_topics(app, [topic])
    kafka.inject_error("METADATA", "LEADER_NOT_AVAILABLE").once()
    assert app.metadata([topic]).topics[topic].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert app.metadata([topic]).topics[topic].error_code == 0


def test_faults_survive_a_restart_and_end_with_heal(kafka: Kafka, topic: str, app: Client) -> None:
    fault = kafka.inject_error("PRODUCE", "NOT_ENOUGH_REPLICAS").every_time()
    kafka.crash(1)
    kafka.start(1)
    kafka.wait_until(topic=topic, isr=3)
    assert [outcome(app, topic, partition) for partition in (0, 1, 2)] == ["NOT_ENOUGH_REPLICAS"] * 3
    assert kafka.faults() == [f"{fault} (3 hits of 3 calls)"]
    kafka.heal()
    assert kafka.faults() == []
    assert outcome(app, topic) == "ok"


def test_a_wait_for_hits_ends(kafka: Kafka) -> None:
    fault = kafka.disconnect_on("END_TXN").every_time()
    with pytest.raises(NotInTime, match="has 0 hits of 0 calls, not 1 hit"):
        fault.wait_for_hits(1, timeout=0.1)


def test_names_are_checked(kafka: Kafka) -> None:
    with pytest.raises(ValueError, match=r"there is no API 'PRODUCES'; did you mean PRODUCE"):
        kafka.inject_error("PRODUCES", "NOT_ENOUGH_REPLICAS")
    with pytest.raises(ValueError, match=r"there is no error 'NOT_ENOUGH_REPLICA'; did you mean NOT_ENOUGH_REPLICAS"):
        kafka.inject_error("PRODUCE", "NOT_ENOUGH_REPLICA")
    with pytest.raises(ValueError, match="there is no call 0"):
        kafka.disconnect_on("PRODUCE").on_call(0)
    with pytest.raises(ValueError, match=r"not 1\.5"):
        kafka.disconnect_on("PRODUCE").with_probability(1.5)


def test_awaited(kafka_async: AsyncKafka, topic: str, app: Client) -> None:
    async def story(after: bool | None) -> tuple[str, int, int, int]:
        fault = await kafka_async.inject_error("PRODUCE", "NOT_ENOUGH_REPLICAS", after=after).once()
        said = await asyncio.to_thread(outcome, app, topic)
        await fault.wait_for_hits(1)
        await fault.remove()
        return said, fault.calls, fault.hits, len(await kafka_async.records(topic))

    assert asyncio.run(story(None)) == ("NOT_ENOUGH_REPLICAS", 1, 1, 0)
    assert asyncio.run(story(True)) == ("NOT_ENOUGH_REPLICAS", 1, 1, 1)


# -- from the shell


def tanist(kafka: Kafka, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.setattr("sys.argv", ["tanist", *words])
    monkeypatch.setenv("TANIST_DATA", str(kafka.data))
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return f"{ended.value.code} {said.out}{said.err}"


def test_from_the_shell(
    kafka: Kafka, topic: str, app: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*words: str) -> str:
        return tanist(kafka, capsys, monkeypatch, *words)

    said = run("faults", "inject", "error", "PRODUCE", "NOT_ENOUGH_REPLICAS", "--once")
    assert "PRODUCE is refused with NOT_ENOUGH_REPLICAS, once. `tanist faults` counts its hits" in said
    assert "held back for 500 ms, 3 times" in run("faults", "inject", "delay", "FETCH", "500ms", "--times", "3")
    run("faults", "inject", "disconnect", "END_TXN", "--every-time")
    run("faults", "inject", "blackhole", "payments", "--on-call", "2")
    assert outcome(app, topic) == "NOT_ENOUGH_REPLICAS"
    assert kafka.records(topic) == []
    listed = run("faults", "list")
    assert listed.startswith("0 rule ")
    assert "(1 hit of 1 call)" in listed
    found = json.loads(run("faults", "--json").removeprefix("0 "))["faults"]
    assert [each["kind"] for each in found] == [
        "error",
        "delay",
        "disconnect",
        "blackhole",
    ]
    assert (found[0]["api"], found[0]["error"], found[0]["hits"]) == ("PRODUCE", "NOT_ENOUGH_REPLICAS", 1)
    assert found[0]["after"] is False
    said = run("faults", "inject", "error", "PRODUCE", "NOT_ENOUGH_REPLICAS", "--after", "--on-call", "9")
    assert "PRODUCE is carried out and answered with NOT_ENOUGH_REPLICAS, on call 9" in said
    assert "no faults are set now" in run("heal")
    assert run("faults") == "0 no faults are set\n"
    assert run("faults", "inject", "error", "PRODUC", "X", "--once").startswith("2 Error: ")
    assert "did you mean PRODUCE" in run("faults", "inject", "disconnect", "PRODUC", "--once")
    assert run("faults", "inject", "disconnect", "PRODUCE").startswith("2 Error: say when, with one of --once")

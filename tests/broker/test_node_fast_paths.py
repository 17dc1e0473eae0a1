"""Produce and Fetch have short ways for what nearly all requests are: they answer what the long ways do."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from tanist.broker.api import produce as produce_api
from tanist.broker.api.table import ApiTable
from tanist.broker.network.client_connection import ClientConnection
from tanist.ports import FileRange
from tanist.security.session import Session
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import encode_request
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.cluster_rig import Cluster

TOPIC = "t"
WALL_MS = 1_000


class Wire:
    """The connection under a `ClientConnection`: keeps what is sent, and whether it was closed."""

    peer = "client"
    peer_identity = None
    pending_bytes = 0

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.closed = False

    def send(self, chunks: Any) -> None:
        self.sent += chunks

    def set_max_frame_bytes(self, size: int) -> None:
        raise AssertionError("frames are no object")

    def pause(self) -> None:
        raise AssertionError("nobody sends too much here")

    def resume(self) -> None:
        raise AssertionError("nobody was held back")

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        """What was sent, records included."""
        sent, self.sent = self.sent, []
        return b"".join(
            each.file.read(each.offset, each.length) if isinstance(each, FileRange) else bytes(each) for each in sent
        )


class Bench:
    """One node with a topic of one partition, and connections to it that are only objects."""

    def __init__(self, **config: str) -> None:
        self.cluster = Cluster(nodes=1, config={"min.insync.replicas": "1"})
        self.cluster.create_topic(TOPIC, factor=1, config=config)
        self.node = self.cluster.node(1)
        self.log = self.cluster.hosted(TOPIC)[1].log

    def connect(self) -> tuple[ClientConnection, Wire]:
        wire = Wire()
        connections = self.node.components.connections
        apis = ApiTable(self.node.components).of_listener("PLAINTEXT")
        session = Session("PLAINTEXT", "PLAINTEXT", "client")
        return ClientConnection(connections, self.node.components.turn.touch, wire, session, apis), wire

    def ask(self, connection: ClientConnection, wire: Wire, frame: bytes) -> bytes:
        """The answer to a request, as bytes; empty if there is none."""
        ran = self.cluster.host(1).process

        def deliver() -> None:
            connection.on_frame(memoryview(bytearray(frame[4:])))

        self.cluster.world.scheduler.after(0, deliver, ran)
        self.cluster.run(1)
        return wire.take()

    def produce_frame(self, batch: bytes, acks: int = 1, version: int = 9, topic: str = TOPIC, index: int = 0) -> bytes:
        data = TopicProduceData(
            name=topic,
            topic_id=self.node.metadata.topic_id(topic) or TopicProduceData().topic_id,
            partition_data=(PartitionProduceData(index=index, records=batch),),
        )
        return encode_request(ProduceRequest(acks=acks, timeout_ms=500, topic_data=(data,)), version, 7, "client")

    def batch(self, **how: Any) -> bytes:
        wall_ms = self.node.context.clock.wall_ms()
        return bytes(encode_batch([NewRecord(wall_ms, None, b"v" * 50), NewRecord(wall_ms, None, b"w")], **how))


def fetch_frame(offset: int, *, version: int = 12, min_bytes: int = 1, wait_ms: int = 0, **fields: Any) -> bytes:
    partition = FetchPartition(
        fetch_offset=offset, current_leader_epoch=-1, last_fetched_epoch=-1, partition_max_bytes=1 << 20
    )
    for name, value in fields.items():
        setattr(partition, name, value)
    request = FetchRequest(
        replica_id=-1, max_wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=1 << 20, session_epoch=-1,
        topics=(FetchTopic(topic=TOPIC, partitions=(partition,)),),
    )  # fmt: skip
    return encode_request(request, version, 7, "client")


def broken(batch: bytes, at: int, by: int = 1) -> bytes:
    changed = bytearray(batch)
    changed[at] ^= by
    return bytes(changed)


PRODUCED: dict[str, Callable[[Bench], bytes]] = {
    "plain": lambda bench: bench.produce_frame(bench.batch()),
    "plain, v3": lambda bench: bench.produce_frame(bench.batch(), version=3),
    "plain, by topic id": lambda bench: bench.produce_frame(bench.batch(), version=13),
    "all replicas": lambda bench: bench.produce_frame(bench.batch(), acks=-1),
    "no acks": lambda bench: bench.produce_frame(bench.batch(), acks=0),
    "idempotent": lambda bench: bench.produce_frame(bench.batch(producer_id=5, producer_epoch=0, base_sequence=0)),
    "a gap": lambda bench: bench.produce_frame(bench.batch(producer_id=5, producer_epoch=0, base_sequence=9)),
    "broken": lambda bench: bench.produce_frame(broken(bench.batch(), 80)),
    "another magic": lambda bench: bench.produce_frame(broken(bench.batch(), 16)),
    "no batch": lambda bench: bench.produce_frame(b""),
    "two batches": lambda bench: bench.produce_frame(bench.batch() * 2),
    "control": lambda bench: bench.produce_frame(bench.batch(control=True)),
    "acks that are none": lambda bench: bench.produce_frame(bench.batch(), acks=2),
    "no such topic": lambda bench: bench.produce_frame(bench.batch(), topic="other"),
    "no such partition": lambda bench: bench.produce_frame(bench.batch(), index=1),
    "no such topic, no acks": lambda bench: bench.produce_frame(bench.batch(), acks=0, topic="other"),
}


@pytest.mark.parametrize("what", PRODUCED)
def test_produce_answers_alike_on_both_ways(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = []
    for long_way in (False, True):
        bench = Bench()
        if long_way:
            monkeypatch.setattr(produce_api, "parse_single_produce", lambda *_: None)
        connection, wire = bench.connect()
        answers = [bench.ask(connection, wire, PRODUCED[what](bench)) for _ in range(3)]
        log = bench.log
        metrics = bench.node.context.metrics
        content = log._segments.active.file.read(0, 1 << 20)
        leader = bench.cluster.hosted(TOPIC)[1].leader
        assert leader is not None
        outcomes.append(
            (answers, wire.closed, log.log_end_offset, leader.high_watermark, len(content),
             metrics.produce_requests, metrics.bytes_in, metrics.failed_produces)
        )  # fmt: skip
    assert outcomes[0] == outcomes[1]


def test_the_usual_produce_goes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the long way")

    bench = Bench()
    connection, wire = bench.connect()
    monkeypatch.setattr(produce_api.Produce, "_handle_any", never)
    for acks in (1, 0, -1):
        answer = bench.ask(connection, wire, bench.produce_frame(bench.batch(), acks=acks))
        assert bool(answer) == (acks != 0)
    assert bench.log.log_end_offset == 6
    hosted = bench.cluster.hosted(TOPIC)[1]
    assert hosted.leader is not None
    assert hosted.leader.high_watermark == 6, "a lone leader commits what it has written"


@pytest.mark.parametrize("version", [4, 11, 12])
def test_a_fetch_is_answered_alike_the_first_time_and_after(version: int) -> None:
    """The second request of a connection is read by the plan that the first has left."""
    bench = Bench()
    producer, wire = bench.connect()
    for _ in range(20):
        bench.ask(producer, wire, bench.produce_frame(bench.batch()))
    frames = [
        fetch_frame(offset, version=version, **fields)
        for offset in (0, 1, 2, 17, 39, 40, 41, -1)
        for fields in (
            {}, {"partition_max_bytes": 300}, {"partition_max_bytes": 1}, {"partition": 1}, {"min_bytes": 1 << 30},
            *([{"last_fetched_epoch": 0}, {"last_fetched_epoch": 9}] if version > 11 else []),
            *([{"current_leader_epoch": 0}, {"current_leader_epoch": 5}] if version > 8 else []),
        )
    ]  # fmt: skip
    again, seen = bench.connect()
    planned = 0
    for frame in frames:
        fresh, first = bench.connect()
        expected = bench.ask(fresh, first, frame)
        assert expected
        before = again.fetch_plan
        assert bench.ask(again, seen, frame) == expected
        planned += before is not None and before is again.fetch_plan
        assert bench.ask(again, seen, frame) == expected
    assert (planned > 0) == (version > 11)
    assert bench.node.context.metrics.fetch_requests == 3 * len(frames)


def test_a_planned_fetch_waits_for_data_as_any_other() -> None:
    bench = Bench()
    producer, wire = bench.connect()
    bench.ask(producer, wire, bench.produce_frame(bench.batch()))
    consumer, seen = bench.connect()
    assert bench.ask(consumer, seen, fetch_frame(0, wait_ms=5_000))
    assert consumer.fetch_plan is not None
    assert bench.ask(consumer, seen, fetch_frame(2, wait_ms=5_000)) == b""
    bench.ask(producer, wire, bench.produce_frame(bench.batch()))
    (error,) = struct.unpack_from(">h", answer := seen.take(), 26 + len(TOPIC))
    assert error == ErrorCode.NONE
    assert answer.endswith(bench.log._segments.active.file.read(0, 1 << 20)[-20:] + b"\0\0\0")

"""The producer and the reader against brokers that say what the test wants them to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tanist.client.metadata import ClusterView, PartitionView, TopicView
from tanist.client.positions import LATEST
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.runtime.client.records import Producer, fetch, list_offset, partition_for, read
from tanist.wire.batch import NewRecord, encode_batch, read_header
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import ZERO_UUID
from tanist.wire.messages import fetch_response, list_offsets_response, produce_response
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.produce_request import ProduceRequest

Answer = Callable[[Any], Any]


class Scripted(Client):
    """A client whose brokers answer from a list; partition 0 of topic t is led by broker 1."""

    def __init__(self, *answers: Answer | Any) -> None:
        super().__init__([("nowhere", 1)], timeout_s=5.0)
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.refreshed = 0
        self.producer_ids = 0

    def ask(self, request: Any, answer: Any, **_: Any) -> Any:
        if isinstance(request, InitProducerIdRequest):
            self.producer_ids += 1
            return InitProducerIdResponse(producer_id=self.producer_ids, producer_epoch=0)
        self.asked.append(request)
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, answer)
        return found

    def metadata(self, *_: Any, **__: Any) -> ClusterView:
        self.refreshed += 1
        partition = PartitionView(0, 1, 0, (1,), (1,), ())
        self.view = ClusterView({}, None, -1, {"t": TopicView("t", ZERO_UUID, 0, False, {0: partition})})
        return self.view

    def sequences(self) -> list[tuple[int, int]]:
        """(producer id, base sequence) of each batch that was sent."""
        found = []
        for request in self.asked:
            assert isinstance(request, ProduceRequest)
            header = read_header(request.topic_data[0].partition_data[0].records or b"")
            found.append((header.producer_id, header.base_sequence))
        return found


def produced(error: int = 0, offset: int = 0) -> Any:
    partition = produce_response.PartitionProduceResponse(error_code=error, base_offset=offset)
    return produce_response.ProduceResponse(
        responses=(produce_response.TopicProduceResponse(name="t", partition_responses=(partition,)),)
    )


def fetched(data: bytes = b"", error: int = 0, high_watermark: int = 100) -> Any:
    partition = fetch_response.PartitionData(error_code=error, records=data, high_watermark=high_watermark)
    return fetch_response.FetchResponse(responses=(fetch_response.FetchableTopicResponse(partitions=(partition,)),))


def batch(first: int, *values: bytes, control: bool = False) -> bytes:
    return bytes(encode_batch([NewRecord(5, None, value) for value in values], base_offset=first, control=control))


def records(count: int) -> list[NewRecord]:
    return [NewRecord(1, None, b"%d" % index) for index in range(count)]


def test_what_is_tried_again_keeps_its_sequence_and_the_next_batch_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tanist.runtime.client.client._BACKOFF_S", (0.0,))
    client = Scripted(
        produced(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        Unreachable("gone"),
        produced(ErrorCode.NOT_ENOUGH_REPLICAS),
        produced(offset=40),
        produced(offset=43),
    )
    producer = Producer(client)
    assert producer.send("t", 0, records(3)) == 40
    assert producer.send("t", 0, records(2)) == 43
    assert client.sequences() == [(1, 0)] * 4 + [(1, 3)]
    assert client.refreshed == 4  # at first, and after each failure


def test_a_batch_that_was_in_the_log_already_counts_as_sent() -> None:
    client = Scripted(produced(ErrorCode.DUPLICATE_SEQUENCE_NUMBER), produced(offset=9))
    producer = Producer(client)
    assert producer.send("t", 0, records(3)) == -1
    assert producer.send("t", 0, records(1)) == 9
    assert client.sequences() == [(1, 0), (1, 3)]


def test_after_giving_up_the_producer_takes_a_new_id() -> None:
    client = Scripted(produced(ErrorCode.MESSAGE_TOO_LARGE), produced(offset=1))
    producer = Producer(client)
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        producer.send("t", 0, records(3))
    producer.send("t", 0, records(1))
    assert client.sequences() == [(1, 0), (2, 0)]


def test_patience_ends() -> None:
    client = Scripted(*[produced(ErrorCode.NOT_ENOUGH_REPLICAS) for _ in range(50)])
    with pytest.raises(KafkaError, match="NOT_ENOUGH_REPLICAS"):
        Producer(client).send("t", 0, records(1), timeout_s=0.05)
    assert 1 < len(client.asked) < 20


def test_idempotence_needs_acks_all() -> None:
    with pytest.raises(ValueError, match="acks=all"):
        Producer(Scripted(), acks=1)


def test_without_idempotence_there_is_no_sequence() -> None:
    client = Scripted(produced(offset=5))
    assert Producer(client, acks=1, idempotent=False).send("t", 0, records(1)) == 5
    assert client.sequences() == [(-1, -1)]
    assert client.producer_ids == 0


def test_a_fetch_leaves_out_what_is_before_its_offset_and_control_batches() -> None:
    data = batch(10, b"a", b"b", b"c") + batch(13, b"\0\0\0\0", control=True) + batch(14, b"d") + batch(15, b"cut")[:70]
    found = fetch(Scripted(fetched(data, high_watermark=15)), "t", 0, 11)
    assert [(record.offset, record.value) for record in found.records] == [(11, b"b"), (12, b"c"), (14, b"d")]
    assert (found.next_offset, found.high_watermark) == (15, 15)


def test_a_fetch_of_nothing_stays_where_it_is() -> None:
    assert fetch(Scripted(fetched()), "t", 0, 11).next_offset == 11


def test_a_fetch_goes_after_a_leader_that_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tanist.runtime.client.client._BACKOFF_S", (0.0,))
    client = Scripted(fetched(error=ErrorCode.NOT_LEADER_OR_FOLLOWER), Unreachable("gone"), fetched(batch(0, b"a")))
    assert [record.value for record in fetch(client, "t", 0, 0).records] == [b"a"]
    assert client.refreshed == 3


def test_a_fetch_out_of_range_is_reported() -> None:
    with pytest.raises(KafkaError, match=r"OFFSET_OUT_OF_RANGE.*offset 7"):
        fetch(Scripted(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE)), "t", 0, 7)


def test_reading_a_range_waits_for_its_end_and_stops_there() -> None:
    client = Scripted(fetched(batch(0, b"a", b"b")), fetched(), fetched(batch(2, b"c", b"d", b"e")))
    assert [record.value for record in read(client, "t", 0, 1, 4)] == [b"b", b"c", b"d"]


def test_list_offset() -> None:
    partition = list_offsets_response.ListOffsetsPartitionResponse(offset=77)
    answer = list_offsets_response.ListOffsetsResponse(
        topics=(list_offsets_response.ListOffsetsTopicResponse(name="t", partitions=(partition,)),)
    )
    assert list_offset(Scripted(answer), "t", 0, LATEST) == 77


@pytest.mark.parametrize(
    ("key", "hash_value"),
    # From the tests of Java's Utils.murmur2.
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536),
     (b"a-little-bit-longer-string", -1486304829), (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
     (b"abc", 479470107)],
)  # fmt: skip
def test_keys_go_where_java_puts_them(key: bytes, hash_value: int) -> None:
    for partitions in (1, 3, 7, 1000):
        assert partition_for(key, partitions) == (hash_value & 0x7FFFFFFF) % partitions


def test_a_batch_with_another_crc_is_not_believed_and_fetched_again() -> None:
    rotten = bytearray(batch(2, b"c"))
    rotten[-1] ^= 1
    client = Scripted(fetched(batch(0, b"a", b"b") + bytes(rotten)), fetched(bytes(rotten)), fetched(batch(2, b"c")))
    first = fetch(client, "t", 0, 0)
    assert [record.offset for record in first.records] == [0, 1], "what stands before it is intact"
    assert first.next_offset == 2
    assert [record.value for record in fetch(client, "t", 0, 2).records] == [b"c"]
    assert len(client.asked) == 3

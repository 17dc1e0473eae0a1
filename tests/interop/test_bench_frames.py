"""The bench's hand-made frames are what the protocol says, its generator finds errors, and its report counts right."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable

import pytest

from bench import frames
from bench.load import Generator, LoadFailed, LoadSpec, percentile
from bench.measure import Measured
from bench.report import Judged, Range, judge, ratios, table
from bench.workloads import HIGHER, LOWER, RAW, THRESHOLDS, TOOLS, Threshold
from tanist.wire.batch import crc_matches, decode_batch, read_header
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import decode_request, encode_response, parse_request_header
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from tanist.wire.messages.produce_request import ProduceRequest
from tanist.wire.messages.produce_response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

TOPIC = "bench-topic"


def test_a_produce_frame_is_a_produce_request() -> None:
    batch = frames.batch_of_size(16_384, 100, 1_700_000_000_000)
    (frame,) = frames.produce(TOPIC, 3, batch, -1).requests
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    header = parse_request_header(frame[4:])
    request = decode_request(header, frame[4:])
    assert (header.api_version, header.client_id) == (9, "bench")
    assert isinstance(request, ProduceRequest)
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    assert (request.acks, request.transactional_id, topic.name, partition.index) == (-1, None, TOPIC, 3)
    assert partition.records is not None
    assert bytes(partition.records) == batch


@pytest.mark.parametrize(("size", "value"), [(0, 100), (16_384, 100), (1_000_000, 1000)])
def test_a_batch_is_sound_and_of_the_size_asked_for(size: int, value: int) -> None:
    batch = frames.batch_of_size(size, value, 1_700_000_000_000)
    assert crc_matches(batch, 0, len(batch))
    records = decode_batch(batch)
    assert [record.offset for record in records] == list(range(len(records)))
    assert {len(record.value or b"") for record in records} == {value}
    assert read_header(batch).producer_id == -1
    if size:
        assert 0.97 * size < len(batch) <= size
    else:
        assert len(records) == 1


def test_fetch_frames_ask_for_each_offset() -> None:
    offsets = [0, 160, 320_000]
    made = frames.fetch(TOPIC, 0, offsets, 32_768)
    asked = []
    for frame in made.requests:
        request = decode_request(parse_request_header(frame[4:]), frame[4:])
        assert isinstance(request, FetchRequest)
        (topic,) = request.topics
        (partition,) = topic.partitions
        assert (topic.topic, request.replica_id, request.session_epoch) == (TOPIC, -1, -1)
        assert (request.max_bytes, partition.partition_max_bytes, partition.current_leader_epoch) == (
            32_768,
            32_768,
            -1,
        )
        asked.append(partition.fetch_offset)
    assert asked == offsets


def produce_answer(error: int) -> bytes:
    partition = PartitionProduceResponse(index=0, error_code=error, base_offset=7)
    topic = TopicProduceResponse(name=TOPIC, partition_responses=(partition,))
    return encode_response(ProduceResponse(responses=(topic,)), 9, 1)


def fetch_answer(error: int, records: bytes) -> bytes:
    partition = PartitionData(partition_index=0, error_code=error, records=records)
    topic = FetchableTopicResponse(topic=TOPIC, partitions=(partition,))
    return encode_response(FetchResponse(responses=(topic,)), 12, 1)


def test_the_error_is_where_the_frames_say() -> None:
    error_at = frames.produce(TOPIC, 0, b"", 1).error_at
    assert struct.unpack_from(">h", produce_answer(ErrorCode.NOT_ENOUGH_REPLICAS), error_at) == (19,)
    error_at = frames.fetch(TOPIC, 0, [0], 1).error_at
    assert struct.unpack_from(">h", fetch_answer(ErrorCode.OFFSET_OUT_OF_RANGE, b""), error_at) == (1,)


class FakeBroker:
    """Answers every frame with what `answer` makes of its number, cut into pieces of `piece` bytes."""

    def __init__(self, answer: Callable[[int], bytes], piece: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._answer = answer
        self._piece = piece
        self.answered = 0
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        # A generator that has seen an error hangs up on us.
        with connection, connection.makefile("rb") as stream, contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while head := stream.read(4):
                stream.read(int.from_bytes(head))
                answer = self._answer(self.answered)
                self.answered += 1
                for start in range(0, len(answer), self._piece):
                    connection.sendall(answer[start : start + self._piece])

    def close(self) -> None:
        self._thread.join()
        self._listener.close()


def generate(
    answer: Callable[[int], bytes], *, kind: str, piece: int, depth: int = 1, seconds: float = 0.05
) -> tuple[Generator, int]:
    """Run the generator against a fake broker; and how many frames that one has answered."""
    broker = FakeBroker(answer, piece)
    spec = LoadSpec("127.0.0.1", broker.port, TOPIC, kind, 1, depth=depth, offsets=(0, 5), max_bytes=1000)
    generator = Generator(spec)
    try:
        generator.run(seconds)
    finally:
        generator.close()
        broker.close()
    return generator, broker.answered


@pytest.mark.parametrize("piece", [3, 20, 1000])
@pytest.mark.parametrize("depth", [1, 4])
def test_every_answer_is_counted_however_it_is_cut(piece: int, depth: int) -> None:
    generator, answered = generate(lambda _: produce_answer(0), kind="produce", piece=piece, depth=depth)
    assert generator.answers == answered == len(generator.latencies_s) > 0
    assert generator.received_bytes == answered * len(produce_answer(0))


@pytest.mark.parametrize("piece", [3, 100, 100_000])
def test_answers_of_different_lengths(piece: int) -> None:
    lengths = [2000, 10, 777]
    generator, answered = generate(
        lambda number: fetch_answer(0, bytes(lengths[number % 3])), kind="fetch", piece=piece, depth=2
    )
    expected = sum(len(fetch_answer(0, bytes(lengths[number % 3]))) for number in range(answered))
    assert (generator.answers, generator.received_bytes) == (answered, expected)


@pytest.mark.parametrize("piece", [3, 1000])
def test_an_error_ends_the_run(piece: int) -> None:
    with pytest.raises(LoadFailed, match="error 6"):
        generate(lambda number: produce_answer(6 if number == 2 else 0), kind="produce", piece=piece, seconds=30.0)


def test_ratios_are_taken_round_by_round() -> None:
    measured = Measured("w", "W", ("p50_us",))
    for ours, theirs in ((1.0, 2.0), (3.0, 3.0), (2.0, 8.0)):
        measured.add("tanist", {"p50_us": ours})
        measured.add("apache", {"p50_us": theirs})
    assert ratios(measured, "p50_us", "tanist", "apache") == Range(0.5, 0.25, 1.0)
    assert ratios(measured, "p99_us", "tanist", "apache") is None
    assert "| W | p50 µs | 2.00 | 3.00 | **0.50** (0.25–1.00) |" in table([measured], "tanist", "apache")


def test_a_threshold_knows_which_way_is_better() -> None:
    lower = Threshold("w", "p50_us", 0.6, 0.35)
    assert [Judged(lower, Range(value, 0, 9)).met for value in (0.6, 0.61)] == [True, False]
    assert [Judged(lower, Range(value, 0, 9)).goal_met for value in (0.35, 0.4)] == [True, False]
    higher = Threshold("w", "mb_per_s", 1.0)
    assert [Judged(higher, Range(value, 0, 9)).met for value in (1.0, 0.99)] == [True, False]
    assert not Judged(higher, Range(2.0, 0, 9)).goal_met


def test_thresholds_and_metrics_are_of_workloads_there_are() -> None:
    measured = {each.name: set(each.metrics) for each in (*RAW, *TOOLS)}
    assert all(threshold.metric in measured[threshold.workload] for threshold in THRESHOLDS)
    assert all(metrics <= LOWER | HIGHER for metrics in measured.values())
    assert judge([], "tanist", "apache") == []


def test_percentiles() -> None:
    ordered = [float(n) for n in range(1, 101)]
    assert (percentile(ordered, 0.5), percentile(ordered, 0.99), percentile(ordered, 1.0)) == (51.0, 100.0, 100.0)
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)

"""The hand-written Produce codec against the generic one, and against damage."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.wire.codec import EncodingError, UnsupportedVersion, WireError, encoder
from tanist.wire.frames import encode_request, encode_response, parse_request_header
from tanist.wire.messages import produce_request, produce_response
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tanist.wire.messages.produce_response import ProduceResponse
from tanist.wire.produce import (
    NodeEndpoint,
    ProduceCall,
    ProduceResult,
    encode_appended,
    encode_produce_response,
    parse_produce,
    parse_single_produce,
)

VERSIONS = range(3, 14)
NAMES = st.one_of(
    st.sampled_from(["t", "topic", "x" * 126, "y" * 127, "z" * 249, "w" * 250, "ä", ""]), st.text(max_size=8)
)
NAMED_OR_NOT = st.one_of(st.none(), NAMES)
INT16, INT32, INT64 = (st.sampled_from([0, 1, -1, -(2 ** (n - 1)), 2 ** (n - 1) - 1]) for n in (16, 32, 64))
RECORDS = st.sampled_from([None, b"", b"r", b"r" * 126, b"r" * 127, b"r" * 128, b"r" * 20_000])

partitions = st.builds(PartitionProduceData, index=INT32, records=RECORDS)
topics = st.builds(
    TopicProduceData,
    name=NAMES,
    topic_id=st.uuids(),
    partition_data=st.one_of(st.tuples(partitions), st.lists(partitions, max_size=3).map(tuple)),
)
requests = st.builds(
    ProduceRequest,
    transactional_id=NAMED_OR_NOT,
    acks=INT16,
    timeout_ms=INT32,
    topic_data=st.one_of(st.tuples(topics), st.lists(topics, max_size=3).map(tuple)),
)


def as_request(call: ProduceCall, frame: memoryview, version: int) -> ProduceRequest:
    def data(entry: tuple[int, int, int]) -> PartitionProduceData:
        index, start, end = entry
        return PartitionProduceData(index=index, records=None if start == -1 else bytes(frame[start:end]))

    def topic(entry: tuple[Any, list[tuple[int, int, int]]]) -> TopicProduceData:
        named = {"topic_id": entry[0]} if version >= 13 else {"name": entry[0]}
        return TopicProduceData(**named, partition_data=tuple(map(data, entry[1])))

    return ProduceRequest(
        transactional_id=call.transactional_id,
        acks=call.acks,
        timeout_ms=call.timeout_ms,
        topic_data=tuple(map(topic, call.topics)),
    )


def as_sent(request: ProduceRequest, version: int) -> ProduceRequest:
    """The request without what the version drops."""
    sent = []
    for topic in request.topic_data:
        named: dict[str, Any] = {"topic_id": topic.topic_id} if version >= 13 else {"name": topic.name}
        sent.append(TopicProduceData(**named, partition_data=topic.partition_data))
    return ProduceRequest(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=tuple(sent),
    )


@settings(deadline=None)
@given(requests, st.sampled_from(VERSIONS))
def test_requests_are_read_as_the_generic_codec_wrote_them(request: ProduceRequest, version: int) -> None:
    body = encoder(ProduceRequest, version)(request)
    frame = memoryview(bytearray(b"header" + body))
    assert as_request(parse_produce(frame, 6, version), frame, version) == as_sent(request, version)


def usual(version: int, records: bytes | None = b"batch") -> bytes:
    partition = PartitionProduceData(index=7, records=records)
    topic = TopicProduceData(name="topic", topic_id=UUID(int=5), partition_data=(partition,))
    return encoder(ProduceRequest, version)(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(topic,)))


@pytest.mark.parametrize("version", VERSIONS)
def test_positions_are_those_of_the_records_in_the_frame(version: int) -> None:
    frame = memoryview(bytearray(usual(version)))
    call = parse_produce(frame, 0, version)
    ((topic, ((partition, start, end),)),) = call.topics
    assert (topic, partition) == (UUID(int=5) if version == 13 else "topic", 7)
    assert bytes(frame[start:end]) == b"batch"
    assert (call.transactional_id, call.acks, call.timeout_ms) == (None, -1, 30_000)


def as_single(call: ProduceCall) -> tuple[Any, ...] | None:
    """What `parse_single_produce` should make of a request, if it takes it at all."""
    if call.transactional_id is not None or len(call.topics) != 1 or len(call.topics[0][1]) != 1:
        return None
    ((topic, ((partition, start, end),)),) = call.topics
    return (call.acks, call.timeout_ms, topic, partition, start, end) if start >= 0 else None


@settings(deadline=None)
@given(requests, st.sampled_from(VERSIONS))
def test_the_short_way_reads_what_the_long_way_does_or_leaves_it_alone(request: ProduceRequest, version: int) -> None:
    frame = memoryview(bytearray(b"header" + encoder(ProduceRequest, version)(request)))
    found = parse_single_produce(frame, 6, version)
    assert found is None or found == as_single(parse_produce(frame, 6, version))


@pytest.mark.parametrize("records", [b"", b"batch", b"r" * 127, b"r" * 20_000], ids=len)
@pytest.mark.parametrize("version", VERSIONS)
def test_one_batch_for_one_partition_goes_the_short_way(version: int, records: bytes) -> None:
    frame = memoryview(b"12" + usual(version, records))
    assert parse_single_produce(frame, 2, version) == as_single(parse_produce(frame, 2, version)) is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_the_short_way_leaves_damage_and_other_versions_to_the_long_way(version: int) -> None:
    body = usual(version)
    for cut in range(len(body)):
        assert parse_single_produce(memoryview(body[:cut]), 0, version) is None
    rng = random.Random(version)
    for _ in range(3_000):
        mutated = bytearray(body)
        for _ in range(rng.randint(1, 3)):
            mutated[rng.randrange(len(mutated))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        found = parse_single_produce(memoryview(mutated), 0, version)
        assert found is None or found == as_single(parse_produce(memoryview(mutated), 0, version))
    assert (
        parse_single_produce(memoryview(usual(7)), 0, 2) is parse_single_produce(memoryview(usual(13)), 0, 14) is None
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_whole_frame_from_the_network(version: int) -> None:
    request = ProduceRequest(acks=1, topic_data=(TopicProduceData(name="t", topic_id=UUID(int=5)),))
    frame = memoryview(encode_request(request, version, 99, "client"))[4:]
    header = parse_request_header(frame)
    assert as_request(parse_produce(frame, header.body_offset, version), frame, version) == as_sent(request, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_tagged_fields_there_are_is_skipped(version: int) -> None:
    if version < 9:
        pytest.skip("no tagged fields")
    body = usual(version)
    assert body.endswith(b"\0\0\0")
    frame = memoryview(body[:-3] + b"\x01\x05\x02ab" + b"\x02\x06\x00\x07\x01c" + b"\x01\x08\x00")
    ((_, ((_, start, end),)),) = parse_produce(frame, 0, version).topics
    assert bytes(frame[start:end]) == b"batch"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_truncation_is_a_wire_error(version: int) -> None:
    for records in (b"batch", None, b"r" * 200):
        body = usual(version, records)
        for cut in range(len(body)):
            with pytest.raises(WireError):
                parse_produce(memoryview(body[:cut]), 0, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_mutations_are_wire_errors_or_positions_inside_the_frame(version: int) -> None:
    rng = random.Random(version)
    topic = TopicProduceData(name="other", partition_data=(PartitionProduceData(index=1, records=b"xy"),) * 2)
    request = ProduceRequest(transactional_id="id", topic_data=(topic, topic))
    bodies = [usual(version), usual(version, None), encoder(ProduceRequest, version)(request)]
    refused = 0
    for _ in range(5_000):
        mutated = bytearray(rng.choice(bodies))
        for _ in range(rng.randint(1, 3)):
            mutated[rng.randrange(len(mutated))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        try:
            call = parse_produce(memoryview(mutated), 0, version)
        except WireError:
            refused += 1
            continue
        for _, found in call.topics:
            assert all((s, e) == (-1, -1) or 0 <= s <= e <= len(mutated) for _, s, e in found)
    assert 0 < refused < 5_000


@settings(deadline=None)
@given(st.binary(max_size=80), st.sampled_from(VERSIONS))
def test_noise(noise: bytes, version: int) -> None:
    try:
        parse_produce(memoryview(noise), 0, version)
    except WireError:
        return


@pytest.mark.parametrize("version", [-1, 0, 2, 14, 99])
def test_versions_that_are_not_served(version: int) -> None:
    with pytest.raises(UnsupportedVersion):
        parse_produce(memoryview(usual(7)), 0, version)
    with pytest.raises(UnsupportedVersion):
        parse_produce(memoryview(usual(13)), 0, version)
    with pytest.raises(EncodingError):
        encode_produce_response(version, 1, [("t", [ProduceResult(0)])])


results = st.builds(
    ProduceResult,
    partition=INT32,
    error=INT16,
    base_offset=INT64,
    log_append_time_ms=INT64,
    log_start_offset=INT64,
    record_errors=st.lists(st.tuples(INT32, NAMED_OR_NOT), max_size=2),
    error_message=NAMED_OR_NOT,
    current_leader=st.one_of(st.none(), st.tuples(INT32, INT32), st.just((-1, -1))),
)
plain_results = st.tuples(INT32, INT16, INT64, INT64, INT64).map(lambda values: ProduceResult(*values))
answered = st.tuples(
    NAMES, st.uuids(), st.one_of(st.tuples(plain_results), st.tuples(results), st.lists(results, max_size=3))
)
endpoints = st.lists(st.builds(NodeEndpoint, id=INT32, host=NAMES, port=INT32, rack=NAMED_OR_NOT), max_size=2)


@settings(deadline=None)
@given(
    st.one_of(st.tuples(answered), st.lists(answered, max_size=3)),
    st.sampled_from(VERSIONS),
    INT32,
    INT32,
    st.one_of(st.just([]), endpoints),
)
def test_responses_are_the_generic_codecs_bytes(
    topics: Any, version: int, correlation_id: int, throttle: int, nodes: list[NodeEndpoint]
) -> None:
    def partition(result: ProduceResult) -> produce_response.PartitionProduceResponse:
        leader = result.current_leader or (-1, -1)
        return produce_response.PartitionProduceResponse(
            index=result.partition,
            error_code=result.error,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=result.log_start_offset,
            record_errors=tuple(
                produce_response.BatchIndexAndErrorMessage(batch_index=i, batch_index_error_message=text)
                for i, text in result.record_errors
            ),
            error_message=result.error_message,
            current_leader=produce_response.LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1]),
        )

    expected = ProduceResponse(
        responses=tuple(
            produce_response.TopicProduceResponse(
                name=name, topic_id=topic_id, partition_responses=tuple(map(partition, found))
            )
            for name, topic_id, found in topics
        ),
        throttle_time_ms=throttle,
        node_endpoints=tuple(
            produce_response.NodeEndpoint(node_id=i, host=host, port=port, rack=rack) for i, host, port, rack in nodes
        ),
    )
    ours = [(topic_id if version >= 13 else name, found) for name, topic_id, found in topics]
    assert encode_produce_response(version, correlation_id, ours, throttle, nodes) == encode_response(
        expected, version, correlation_id
    )


@settings(deadline=None)
@given(NAMES, st.uuids(), st.sampled_from(VERSIONS), INT32, INT32, INT64, INT64)
def test_the_short_answer_is_the_long_one(
    name: str, topic_id: UUID, version: int, correlation_id: int, index: int, base_offset: int, log_start: int
) -> None:
    topic = topic_id if version >= 13 else name
    expected = encode_produce_response(
        version, correlation_id, [(topic, [ProduceResult(index, 0, base_offset, -1, log_start)])]
    )
    for _ in range(2):  # the topic is learned, then known
        assert encode_appended(version, correlation_id, topic, index, base_offset, log_start) == expected


def test_a_result_that_does_not_fit_is_an_encoding_error() -> None:
    with pytest.raises(EncodingError):
        encode_produce_response(9, 1, [("t", [ProduceResult(0, error=2**15)])])
    with pytest.raises(EncodingError):
        encode_produce_response(13, 1, [("a name where an id belongs", [ProduceResult(0)])])


def test_the_generated_classes_are_those_compared_with() -> None:
    assert produce_request.ProduceRequest.VERSIONS == (3, 13) == ProduceResponse.VERSIONS

"""The hand-written Fetch codec against the generic one, and against damage."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.ports import Chunk, File, FileRange
from tanist.wire.codec import EncodingError, UnsupportedVersion, WireError, encoder
from tanist.wire.fetch import (
    END_OF_PLAN,
    REST_OF_PLAN,
    FetchCall,
    FetchedPartition,
    FetchPlan,
    FetchTarget,
    NodeEndpoint,
    encode_fetch_request,
    encode_fetch_response,
    encode_fetched,
    parse_fetch,
    parse_fetch_response,
    plan_fetch,
)
from tanist.wire.frames import encode_request, encode_response, parse_request_header
from tanist.wire.messages import fetch_response
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.schema import ZERO_UUID

VERSIONS = range(4, 19)
NAMES = st.sampled_from(["t", "topic", "x" * 126, "y" * 127, "z" * 249, "w" * 250, "ä", ""])
NAMED_OR_NOT = st.one_of(st.none(), NAMES)
INT8, INT16, INT32, INT64 = (st.sampled_from([0, 1, -1, -(2 ** (n - 1)), 2 ** (n - 1) - 1]) for n in (8, 16, 32, 64))
IDS = st.sampled_from([ZERO_UUID, UUID(int=1), UUID(int=2**128 - 1)])
RACKS = st.sampled_from(["", "", "", "rack-1", "r" * 200])

targets = st.builds(
    FetchTarget,
    partition=INT32,
    current_leader_epoch=INT32,
    fetch_offset=INT64,
    last_fetched_epoch=INT32,
    log_start_offset=INT64,
    max_bytes=INT32,
    replica_directory_id=IDS,
    high_watermark=INT64,
)
plain_targets = st.tuples(INT32, INT32, INT64, INT32, INT64, INT32).map(lambda values: FetchTarget(*values))


def calls(version: int) -> st.SearchStrategy[FetchCall]:
    """Calls that have nothing that this version would drop."""
    named = IDS if version > 12 else NAMES

    def cut(target: FetchTarget) -> FetchTarget:
        lacking: dict[str, Any] = {}
        if version < 5:
            lacking["log_start_offset"] = -1
        if version < 9:
            lacking["current_leader_epoch"] = -1
        if version < 12:
            lacking["last_fetched_epoch"] = -1
        if version < 17:
            lacking["replica_directory_id"] = ZERO_UUID
        if version < 18:
            lacking["high_watermark"] = 2**63 - 1
        return target._replace(**lacking)

    one = st.one_of(plain_targets, targets).map(cut)
    some = st.one_of(st.lists(one, min_size=1, max_size=1), st.lists(one, max_size=3))
    topic = st.tuples(named, some)
    sessions = version > 6
    return st.builds(
        FetchCall,
        replica_id=st.just(-1) | INT32,
        replica_epoch=st.just(-1) | INT64 if version > 14 else st.just(-1),
        max_wait_ms=INT32,
        min_bytes=INT32,
        max_bytes=INT32,
        isolation_level=INT8,
        session_id=INT32 if sessions else st.just(0),
        session_epoch=INT32 if sessions else st.just(-1),
        topics=st.one_of(st.lists(topic, min_size=1, max_size=1), st.lists(topic, max_size=3)),
        forgotten=(
            st.just([]) | st.lists(st.tuples(named, st.lists(INT32, max_size=3)), max_size=2)
            if sessions
            else st.just([])
        ),
        rack_id=RACKS if version > 10 else st.just(""),
        cluster_id=st.just(None) | NAMED_OR_NOT if version > 11 else st.none(),
    )


def as_request(call: FetchCall, version: int) -> FetchRequest:
    def named(topic: Any) -> dict[str, Any]:
        return {"topic_id": topic} if version > 12 else {"topic": topic}

    return FetchRequest(
        cluster_id=call.cluster_id,
        replica_id=call.replica_id if version < 15 else -1,
        replica_state=ReplicaState(
            replica_id=call.replica_id if version > 14 else -1, replica_epoch=call.replica_epoch
        ),
        max_wait_ms=call.max_wait_ms,
        min_bytes=call.min_bytes,
        max_bytes=call.max_bytes,
        isolation_level=call.isolation_level,
        session_id=call.session_id,
        session_epoch=call.session_epoch,
        topics=tuple(
            FetchTopic(
                **named(topic),
                partitions=tuple(
                    FetchPartition(
                        partition=t.partition,
                        current_leader_epoch=t.current_leader_epoch,
                        fetch_offset=t.fetch_offset,
                        last_fetched_epoch=t.last_fetched_epoch,
                        log_start_offset=t.log_start_offset,
                        partition_max_bytes=t.max_bytes,
                        replica_directory_id=t.replica_directory_id,
                        high_watermark=t.high_watermark,
                    )
                    for t in found
                ),
            )
            for topic, found in call.topics
        ),
        forgotten_topics_data=tuple(
            ForgottenTopic(**named(topic), partitions=tuple(partitions)) for topic, partitions in call.forgotten
        ),
        rack_id=call.rack_id,
    )


versions_and_calls = st.sampled_from(VERSIONS).flatmap(lambda version: st.tuples(st.just(version), calls(version)))


@settings(deadline=None)
@given(versions_and_calls, INT32, NAMED_OR_NOT)
def test_requests_are_the_generic_codecs_bytes_and_read_back(
    both: tuple[int, FetchCall], correlation_id: int, client_id: str | None
) -> None:
    version, call = both
    encoded = encode_fetch_request(version, correlation_id, client_id, call)
    assert encoded == encode_request(as_request(call, version), version, correlation_id, client_id)
    frame = memoryview(bytearray(encoded))[4:]
    header = parse_request_header(frame)
    assert (header.correlation_id, header.client_id) == (correlation_id, client_id)
    assert parse_fetch(frame, header.body_offset, version) == call


def usual_call(version: int) -> FetchCall:
    target = FetchTarget(
        7, 3 if version > 8 else -1, 900, 2 if version > 11 else -1, 5 if version > 4 else -1, 1_000_000
    )
    return FetchCall(max_wait_ms=500, min_bytes=1, topics=[(UUID(int=9) if version > 12 else "topic", [target])])


def unusual_call(version: int) -> FetchCall:
    call = usual_call(version)
    topic, found = call.topics[0]
    call.topics = [(topic, found * 3), (topic, [])]
    if version > 6:
        call.forgotten = [(topic, [1, 2])]
    if version > 10:
        call.rack_id = "rack"
    if version > 11:
        call.cluster_id = "cluster"
    if version > 16:
        call.topics.append((topic, [found[0]._replace(replica_directory_id=UUID(int=3))]))
    if version > 17:
        call.topics.append((topic, [found[0]._replace(high_watermark=3)]))
    if version > 14:
        call.replica_id, call.replica_epoch = 4, 5
    return call


def body_of(version: int, call: FetchCall) -> bytes:
    return encoder(FetchRequest, version)(as_request(call, version))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_truncation_of_a_request_is_a_wire_error(version: int) -> None:
    for call in (usual_call(version), unusual_call(version)):
        body = body_of(version, call)
        assert parse_fetch(memoryview(body), 0, version) == call
        for cut in range(len(body)):
            with pytest.raises(WireError):
                parse_fetch(memoryview(body[:cut]), 0, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_mutated_requests_are_wire_errors_or_calls(version: int) -> None:
    rng = random.Random(version)
    bodies = [body_of(version, usual_call(version)), body_of(version, unusual_call(version))]
    refused = 0
    for _ in range(4_000):
        mutated = mutate(rng, rng.choice(bodies))
        try:
            call = parse_fetch(memoryview(mutated), 0, version)
        except WireError:
            refused += 1
            continue
        assert sum(len(found) for _, found in call.topics) <= len(mutated)
    assert 0 < refused < 4_000


def read_as_planned(plan: FetchPlan, body: bytes) -> FetchCall:
    """The request that `body` is, if it begins as planned and ends as planned."""
    assert body[: plan.length] == plan.prefix
    offset, last_epoch, log_start, size, end = REST_OF_PLAN(memoryview(body), plan.length)
    assert end == END_OF_PLAN
    target = FetchTarget(plan.index, plan.current_leader_epoch, offset, last_epoch, log_start, size)
    return FetchCall(
        max_wait_ms=plan.max_wait_ms,
        min_bytes=plan.min_bytes,
        max_bytes=plan.max_bytes,
        topics=[(plan.topic, [target])],
    )


@pytest.mark.parametrize("version", range(12, 19))
@pytest.mark.parametrize("topic", ["t", "x" * 126], ids=len)
def test_a_consumers_next_request_is_read_by_the_plan_of_the_last(version: int, topic: str) -> None:
    first = usual_call(version)
    if version == 12:
        first.topics = [(topic, first.topics[0][1])]
    body = body_of(version, first)
    plan = plan_fetch(memoryview(b"12" + body), 2, version, first)
    assert plan is not None
    ((named, (target,)),) = first.topics
    for values in ((0, -1, -1, 1), (2**63 - 1, 7, 3, 2**31 - 1)):
        following = FetchCall(max_wait_ms=500, min_bytes=1, topics=[(named, [FetchTarget(7, 3, *values)])])
        assert read_as_planned(plan, body_of(version, following)) == following
    elsewhere = FetchCall(max_wait_ms=500, min_bytes=1, topics=[(named, [target._replace(partition=8)])])
    newer = FetchCall(max_wait_ms=500, min_bytes=1, topics=[(named, [target._replace(current_leader_epoch=4)])])
    patient = FetchCall(max_wait_ms=501, min_bytes=1, topics=first.topics)
    for other in (elsewhere, newer, patient):
        assert body_of(version, other)[: plan.length] != plan.prefix


@settings(deadline=None)
@given(versions_and_calls)
def test_a_plan_is_made_only_of_what_it_can_say(both: tuple[int, FetchCall]) -> None:
    version, call = both
    body = body_of(version, call)
    plan = plan_fetch(memoryview(body), 0, version, call)
    if plan is not None:
        call.session_epoch = -1  # a full request without a session, whatever it is called
        assert read_as_planned(plan, body) == call


SIZES = st.sampled_from([1, 126, 127, 0x3FFE, 0x3FFF, 0x4000, 30_000, 0x1FFFFE, 0x1FFFFF, 0x200000, 2**31 - 400])


@settings(deadline=None)
@given(st.sampled_from(VERSIONS), NAMES, IDS, INT32, INT32, INT64, INT64, INT64, SIZES)
def test_the_short_answer_is_the_long_one(
    version: int,
    name: str,
    topic_id: UUID,
    correlation_id: int,
    index: int,
    high: int,
    stable: int,
    start: int,
    size: int,
) -> None:
    topic = topic_id if version > 12 else name
    records = FileRange(cast(File, "file"), 10, size)
    result = FetchedPartition(index, 0, high, stable, start, records)
    expected = encode_fetch_response(version, correlation_id, [(topic, [result])])
    for _ in range(2):  # the topic is learned, then known
        assert encode_fetched(version, correlation_id, topic, index, high, stable, start, records) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_mutations_are_not_planned_for_what_they_are_not(version: int) -> None:
    rng = random.Random(version)
    made = 0
    for _ in range(3_000):
        mutated = mutate(rng, body_of(version, usual_call(version)))
        try:
            call = parse_fetch(memoryview(mutated), 0, version)
        except WireError:
            continue
        plan = plan_fetch(memoryview(mutated), 0, version, call)
        if plan is not None:
            made += 1
            call.session_epoch = -1
            assert read_as_planned(plan, bytes(mutated)) == call
    assert (made > 0) == (version > 11)


def mutate(rng: random.Random, good: bytes) -> bytearray:
    mutated = bytearray(good)
    for _ in range(rng.randint(1, 3)):
        mutated[rng.randrange(len(mutated))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return mutated


@settings(deadline=None)
@given(st.binary(max_size=120), st.sampled_from(VERSIONS))
def test_noise(noise: bytes, version: int) -> None:
    parsers: list[Callable[[], object]] = [
        lambda: parse_fetch(memoryview(noise), 0, version),
        lambda: parse_fetch_response(memoryview(noise), version),
    ]
    for parse in parsers:
        try:
            parse()
        except WireError:
            continue


def test_tagged_fields_of_a_request_that_nobody_knows_are_skipped() -> None:
    body = body_of(16, usual_call(16))
    assert body.endswith(b"\x00\x00\x01\x01\x00")  # tags of partition and topic, forgotten topics, rack, tags
    unknown = b"\x01\x63\x02ab"
    changed = memoryview(body[:-5] + unknown + unknown + b"\x01\x01" + unknown)
    assert parse_fetch(changed, 0, 16) == usual_call(16)


def test_a_known_tagged_field_of_the_wrong_size_is_a_wire_error() -> None:
    body = body_of(17, usual_call(17))
    for tag in (b"\x01\x01\x02\x01\x01", b"\x01\x00\x03\x02c\x00", b"\x01\x01\x0e" + bytes(14)):
        with pytest.raises(WireError, match=r"size|requires"):
            parse_fetch(memoryview(body[:-1] + tag), 0, 17)


@pytest.mark.parametrize("version", [-1, 0, 3, 19])
def test_versions_that_there_are_not(version: int) -> None:
    with pytest.raises(UnsupportedVersion):
        parse_fetch(memoryview(b""), 0, version)
    with pytest.raises(UnsupportedVersion):
        parse_fetch_response(memoryview(b""), version)
    with pytest.raises(EncodingError):
        encode_fetch_request(version, 1, None, FetchCall())
    with pytest.raises(EncodingError):
        encode_fetch_response(version, 1, [])


# Responses


def record_chunks() -> st.SearchStrategy[Any]:
    piece = st.sampled_from([b"", b"r", b"r" * 125, b"r" * 126, b"r" * 127, b"r" * 20_000])
    return st.one_of(
        st.none(), piece, piece.map(bytearray), piece.map(lambda data: memoryview(data)), st.lists(piece, max_size=3)
    )


pairs = st.one_of(st.none(), st.just((-1, -1)), st.tuples(INT32, INT64))
int_pairs = st.one_of(st.none(), st.just((-1, -1)), st.tuples(INT32, INT32))
ends = st.one_of(st.none(), st.just((-1, -1)), st.tuples(INT64, INT32))
plain_fetched = st.tuples(INT32, INT16, INT64, INT64, INT64, record_chunks()).map(lambda v: FetchedPartition(*v))
aborted = st.one_of(st.none(), st.lists(st.tuples(INT64, INT64), max_size=2))
fetched = st.tuples(INT32, INT16, INT64, INT64, INT64, record_chunks(), aborted, INT32, pairs, int_pairs, ends).map(
    lambda v: FetchedPartition(*v)
)
some_fetched = st.one_of(
    st.lists(plain_fetched, min_size=1, max_size=1),
    st.lists(fetched, min_size=1, max_size=1),
    st.lists(fetched, max_size=3),
)
fetched_topics = st.tuples(NAMES, IDS, some_fetched)
endpoints = st.lists(st.builds(NodeEndpoint, id=INT32, host=NAMES, port=INT32, rack=NAMED_OR_NOT), max_size=2)


def record_bytes(records: Any) -> bytes:
    if records is None:
        return b""
    return b"".join(records) if isinstance(records, list) else bytes(records)


def as_response(
    topics: Any, error: int, session_id: int, throttle: int, nodes: Sequence[NodeEndpoint]
) -> FetchResponse:
    def partition(p: FetchedPartition) -> fetch_response.PartitionData:
        diverging, leader, snapshot = (
            p.diverging_epoch or (-1, -1), p.current_leader or (-1, -1), p.snapshot_id or (-1, -1)
        )  # fmt: skip
        return fetch_response.PartitionData(
            partition_index=p.partition,
            error_code=p.error,
            high_watermark=p.high_watermark,
            last_stable_offset=p.last_stable_offset,
            log_start_offset=p.log_start_offset,
            diverging_epoch=fetch_response.EpochEndOffset(epoch=diverging[0], end_offset=diverging[1]),
            current_leader=fetch_response.LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1]),
            snapshot_id=fetch_response.SnapshotId(end_offset=snapshot[0], epoch=snapshot[1]),
            aborted_transactions=(
                None
                if p.aborted is None
                else tuple(fetch_response.AbortedTransaction(producer_id=i, first_offset=o) for i, o in p.aborted)
            ),
            preferred_read_replica=p.preferred_read_replica,
            records=record_bytes(p.records),
        )

    return FetchResponse(
        throttle_time_ms=throttle,
        error_code=error,
        session_id=session_id,
        responses=tuple(
            fetch_response.FetchableTopicResponse(
                topic=name, topic_id=topic_id, partitions=tuple(map(partition, found))
            )
            for name, topic_id, found in topics
        ),
        node_endpoints=tuple(
            fetch_response.NodeEndpoint(node_id=i, host=host, port=port, rack=rack) for i, host, port, rack in nodes
        ),
    )


@settings(deadline=None)
@given(
    st.one_of(st.lists(fetched_topics, min_size=1, max_size=1), st.lists(fetched_topics, max_size=3)),
    st.sampled_from(VERSIONS),
    st.tuples(INT32, INT16, INT32, INT32),
    st.one_of(st.just([]), endpoints),
)
def test_responses_are_the_generic_codecs_bytes_and_read_back(
    topics: Any, version: int, numbers: tuple[int, int, int, int], nodes: list[NodeEndpoint]
) -> None:
    correlation_id, error, session_id, throttle = numbers
    ours = [(topic_id if version > 12 else name, found) for name, topic_id, found in topics]
    chunks = encode_fetch_response(
        version,
        correlation_id,
        ours,
        error=error,
        session_id=session_id,
        throttle_time_ms=throttle,
        node_endpoints=nodes,
    )
    joined = b"".join(cast(list[bytes], chunks))
    assert joined == encode_response(as_response(topics, error, session_id, throttle, nodes), version, correlation_id)
    assert all(len(cast(bytes, chunk)) for chunk in chunks)

    reply = parse_fetch_response(memoryview(joined)[4:], version)
    assert reply.throttle_time_ms == throttle
    assert (reply.error, reply.session_id) == ((error, session_id) if version > 6 else (0, 0))
    assert reply.node_endpoints == (nodes if version > 15 else [])
    assert [(topic, list(map(plain, found))) for topic, found in reply.topics] == [
        (topic, [expected(each, version) for each in found]) for topic, found in ours
    ]


def plain(result: FetchedPartition) -> FetchedPartition:
    assert isinstance(result.records, memoryview)
    return result._replace(records=bytes(result.records))


def expected(result: FetchedPartition, version: int) -> FetchedPartition:
    """What a reader sees of it."""

    def kept(pair: tuple[int, int] | None) -> tuple[int, int] | None:
        return None if version < 12 or pair == (-1, -1) else pair

    return result._replace(
        records=record_bytes(result.records),
        log_start_offset=result.log_start_offset if version > 4 else -1,
        preferred_read_replica=result.preferred_read_replica if version > 10 else -1,
        diverging_epoch=kept(result.diverging_epoch),
        current_leader=kept(result.current_leader),
        snapshot_id=kept(result.snapshot_id),
    )


class NoFile:
    """Stands for a file that nobody may read here."""


@pytest.mark.parametrize("version", VERSIONS)
def test_file_ranges_pass_through_uncopied_and_count_with_their_length(version: int) -> None:
    first, second = (FileRange(cast(File, NoFile()), offset, 1_000) for offset in (0, 5_000))
    batch = memoryview(b"batch")
    topic: Any = UUID(int=9) if version > 12 else "topic"
    several: list[Chunk] = [first, batch, second]
    for records in (first, several):
        chunks = encode_fetch_response(version, 1, [(topic, [FetchedPartition(0, records=records)])])
        given: list[Chunk] = records if isinstance(records, list) else [records]
        passed = [chunk for chunk in chunks if any(chunk is each for each in given)]
        assert passed == given
        sizes = [chunk.length if isinstance(chunk, FileRange) else len(chunk) for chunk in chunks]
        assert isinstance(chunks[0], bytes)
        assert int.from_bytes(chunks[0][:4], "big") == sum(sizes) - 4
        stand_in: list[Chunk] = [bytes(c.length) if isinstance(c, FileRange) else c for c in given]
        same = encode_fetch_response(version, 1, [(topic, [FetchedPartition(0, records=stand_in)])])
        assert b"".join(cast(list[bytes], same)) == b"".join(
            bytes(c.length) if isinstance(c, FileRange) else c for c in chunks
        )


def usual_answer(version: int) -> bytes:
    result = FetchedPartition(7, 0, 100, 90, 5, b"batches", [(1, 2)], 3)
    if version > 11:
        result = result._replace(diverging_epoch=(1, 2), current_leader=(3, 4), snapshot_id=(5, 6))
    topic: Any = UUID(int=9) if version > 12 else "topic"
    nodes = [NodeEndpoint(1, "host", 9092, "rack")]
    chunks = encode_fetch_response(version, 1, [(topic, [result, result]), (topic, [])], node_endpoints=nodes)
    return b"".join(cast(list[bytes], chunks))[4:]


@pytest.mark.parametrize("version", VERSIONS)
def test_truncated_and_padded_responses_are_wire_errors(version: int) -> None:
    good = usual_answer(version)
    assert parse_fetch_response(memoryview(good), version).topics[0][1][0].high_watermark == 100
    for cut in range(len(good)):
        with pytest.raises(WireError):
            parse_fetch_response(memoryview(good[:cut]), version)
    with pytest.raises(WireError, match="1 bytes after"):
        parse_fetch_response(memoryview(good + b"\0"), version)


@pytest.mark.parametrize("version", VERSIONS)
def test_mutated_responses_are_wire_errors_or_replies(version: int) -> None:
    rng = random.Random(version)
    good = usual_answer(version)
    refused = 0
    for _ in range(3_000):
        try:
            reply = parse_fetch_response(memoryview(mutate(rng, good)), version)
        except WireError:
            refused += 1
            continue
        assert sum(len(found) for _, found in reply.topics) <= len(good)
    assert 0 < refused < 3_000


def test_records_of_a_reply_are_views_of_its_frame() -> None:
    frame = bytearray(usual_answer(12))
    records = parse_fetch_response(memoryview(frame), 12).topics[0][1][0].records
    frame[frame.index(b"batches")] = ord("B")
    assert bytes(cast(memoryview, records)) == b"Batches"


def test_null_records_from_elsewhere_are_no_records() -> None:
    response = as_response([("topic", ZERO_UUID, [FetchedPartition(0)])], 0, 0, 0, [])
    response.responses[0].partitions[0].records = None
    for version in (4, 11, 12):
        frame = memoryview(encode_response(response, version, 1))[4:]
        assert parse_fetch_response(frame, version).topics[0][1][0].records == b""


def test_what_does_not_fit_is_an_encoding_error() -> None:
    with pytest.raises(EncodingError):
        encode_fetch_response(11, 1, [("t", [FetchedPartition(0, error=2**15)])])
    with pytest.raises(EncodingError):
        encode_fetch_response(13, 1, [("a name where an id belongs", [FetchedPartition(0)])])
    with pytest.raises(EncodingError):
        encode_fetch_request(11, 1, None, FetchCall(max_wait_ms=2**31))


def test_calls_compare_by_their_fields() -> None:
    assert dataclasses.replace(usual_call(11), rack_id="x") != usual_call(11)

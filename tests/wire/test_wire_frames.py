"""Frames and headers, the tables of requests, and ids."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.wire.apis import (
    BROKER_APIS,
    CONTROLLER_APIS,
    INTER_BROKER_APIS,
    PRIVATE_FROM,
    SERVED,
    TELEMETRY,
    ApiKey,
    request_class,
    response_class,
)
from tanist.wire.codec import UnsupportedVersion, WireError, encoder
from tanist.wire.errors import EncodingError
from tanist.wire.frames import (
    RequestHeader,
    correlation_id_of,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    parse_request_header,
)
from tanist.wire.ids import METADATA_TOPIC_ID, TopicPartition, id_from_text, id_text
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.messages.request_header import RequestHeader as GenericHeader
from tanist.wire.messages.response_header import ResponseHeader as GenericResponseHeader


@pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: key.name)
def test_requests_and_responses_of_every_key_and_version(key: ApiKey, builder: Any) -> None:
    request_type, response_type = request_class(key), response_class(key)
    assert request_type.API_KEY == response_type.API_KEY == key
    assert request_type.VERSIONS == response_type.VERSIONS
    for version in range(request_type.VERSIONS[0], request_type.VERSIONS[1] + 1):
        request = builder((key, version)).build(request_type, version)
        frame = encode_request(request, version, 7, "client")
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        header = parse_request_header(memoryview(frame)[4:])
        assert header == RequestHeader(key, version, 7, "client", header.body_offset)
        assert decode_request(header, memoryview(frame)[4:]) == request

        response = builder((version, key)).build(response_type, version)
        frame = encode_response(response, version, -5)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        assert correlation_id_of(memoryview(frame)[4:]) == -5
        assert decode_response(key, version, memoryview(frame)[4:]) == response


@settings(deadline=None)
@given(st.integers(-(2**31), 2**31 - 1), st.one_of(st.none(), st.text(max_size=20)))
def test_headers_are_the_generic_codecs(correlation_id: int, client_id: str | None) -> None:
    for version in (8, 9):
        frame = encode_request(MetadataRequest(), version, correlation_id, client_id)[4:]
        generic = GenericHeader(
            request_api_key=3, request_api_version=version, correlation_id=correlation_id, client_id=client_id
        )
        expected = encoder(GenericHeader, 1 if version == 8 else 2)(generic)
        assert frame.startswith(expected)
        assert parse_request_header(frame) == (3, version, correlation_id, client_id, len(expected))


def test_the_response_to_api_versions_keeps_the_old_header() -> None:
    response = ApiVersionsResponse(throttle_time_ms=0)
    body = encoder(ApiVersionsResponse, 3)(response)
    old = encoder(GenericResponseHeader, 0)(GenericResponseHeader(correlation_id=9))
    assert encode_response(response, 3, 9)[4:] == old + body
    assert decode_response(ApiKey.API_VERSIONS, 3, old + body) == response


def test_tagged_fields_in_headers_are_skipped() -> None:
    frame = bytearray(encode_request(MetadataRequest(), 12, 1, "me")[4:])
    at = parse_request_header(frame).body_offset
    assert frame[at - 1] == 0
    frame[at - 1 : at] = b"\x02\x00\x01x\x09\x00"
    header = parse_request_header(frame)
    assert header.body_offset == at + 5
    assert decode_request(header, frame) == MetadataRequest()
    response = bytearray(encode_response(response_class(3)(), 12, 1)[4:])
    response[4:5] = b"\x01\x05\x02xy"
    assert decode_response(3, 12, response) == response_class(3)()


@pytest.mark.parametrize("version", [6, 99, 32767])
def test_api_versions_from_the_future(version: int) -> None:
    """Kafka answers these with version 0 and error 35, so that the client can ask again."""
    assert ApiVersionsRequest.VERSIONS[1] == 5
    known = encode_request(ApiVersionsRequest(), 4, 17, "new")[4:]
    frame = memoryview(known[:2] + version.to_bytes(2, "big") + known[4:] + b"what the future adds")
    header = parse_request_header(frame)
    assert (header.correlation_id, header.client_id, header.api_version) == (17, "new", version)
    answer = encode_response(ApiVersionsResponse(error_code=35), 0, header.correlation_id)
    assert answer.hex() == "0000000a00000011002300000000"


@pytest.mark.parametrize(("key", "version"), [(3, 14), (3, -1), (18, -1), (0, 2), (4, 0), (7, 3), (95, 0), (-1, 0)])
def test_requests_that_there_are_not(key: int, version: int) -> None:
    frame = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + bytes(20)
    with pytest.raises(WireError):
        parse_request_header(frame)


def test_a_version_that_we_lack_is_reported_from_a_key_that_is_none() -> None:
    with pytest.raises(UnsupportedVersion, match="0 to 13, not 14"):
        parse_request_header(b"\0\3\0\x0e" + bytes(20))
    with pytest.raises(WireError, match="no API key 95"):
        parse_request_header(b"\0\x5f\0\0" + bytes(20))


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_noise(noise: bytes) -> None:
    try:
        header = parse_request_header(noise)
        assert header.body_offset <= len(noise)
        decode_request(header, noise)
    except WireError:
        return


def test_truncated_frames_are_wire_errors() -> None:
    frame = encode_request(MetadataRequest(topics=None), 12, 1, "client")[4:]
    for cut in range(len(frame)):
        with pytest.raises(WireError):
            decode_request(parse_request_header(frame[:cut]), frame[:cut])
    with pytest.raises(WireError):
        correlation_id_of(b"\0\0\0")
    with pytest.raises(WireError):
        decode_response(3, 12, b"\0\0\0\0")
    with pytest.raises(WireError, match="client id"):
        parse_request_header(b"\0\3\0\x0c\0\0\0\0\0\x09client")


def test_what_follows_a_request_is_ignored_but_not_what_follows_a_response() -> None:
    frame = encode_request(MetadataRequest(), 12, 1, None)[4:] + b"more"
    assert decode_request(parse_request_header(frame), frame) == MetadataRequest()
    with pytest.raises(WireError, match="4 bytes after MetadataResponse"):
        decode_response(3, 12, encode_response(response_class(3)(), 12, 1)[4:] + b"more")


def test_a_client_id_that_does_not_fit() -> None:
    with pytest.raises(EncodingError):
        encode_request(MetadataRequest(), 12, 1, "c" * 40_000)


# Tables


def test_advertised_versions_are_ones_that_the_codec_has() -> None:
    for table in (BROKER_APIS, CONTROLLER_APIS, INTER_BROKER_APIS, TELEMETRY):
        for key in table:
            first, last = request_class(key).VERSIONS
            served = SERVED.get(key, table[key])
            assert first <= served[0] <= served[1] <= last
            assert table[key][0] <= served[0]
            assert table[key][1] == served[1]


def test_private_keys_are_far_from_apaches() -> None:
    """Apache took 93 back from KIP-966 and gave it to StreamsGroupTopologyDescriptionUpdate (KIP-1331)."""
    private = [key for key in ApiKey if key >= PRIVATE_FROM]
    assert private == [*INTER_BROKER_APIS] == [ApiKey.GET_REPLICA_LOG_INFO]
    assert 93 not in [*ApiKey]
    assert not {*private} & {*BROKER_APIS, *CONTROLLER_APIS}


def test_produce_is_advertised_from_0_and_served_from_3() -> None:
    assert BROKER_APIS[ApiKey.PRODUCE] == (0, 13)
    assert {ApiKey.PRODUCE: (3, 13)} == SERVED


def test_who_listens_to_what() -> None:
    assert ApiKey.VOTE not in BROKER_APIS
    assert CONTROLLER_APIS[ApiKey.VOTE] == (0, 2)
    assert ApiKey.PRODUCE not in CONTROLLER_APIS
    assert ApiKey.GET_REPLICA_LOG_INFO not in {*BROKER_APIS, *CONTROLLER_APIS}
    assert INTER_BROKER_APIS[ApiKey.GET_REPLICA_LOG_INFO] == (0, 0)
    assert BROKER_APIS[ApiKey.ELECT_LEADERS] == (0, 3)
    assert 4 not in BROKER_APIS
    assert BROKER_APIS[ApiKey.INIT_PRODUCER_ID] == (0, 5)
    assert {ApiKey.API_VERSIONS, ApiKey.FETCH} <= BROKER_APIS.keys() & CONTROLLER_APIS.keys()


def test_keys_without_a_message() -> None:
    for find in (request_class, response_class):
        with pytest.raises(WireError, match="no API key 4"):
            find(4)


# Ids


@settings(deadline=None)
@given(st.uuids())
def test_ids_as_text(value: UUID) -> None:
    text = id_text(value)
    assert len(text) == 22
    assert id_from_text(text) == value


def test_ids_as_kafka_prints_them() -> None:
    assert id_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert id_text(UUID("fbff3eff-bfef-7bff-feff-bff7ffdffbff")) == "-_8-_7_ve__-_7_3_9_7_w"
    assert id_from_text("AAAAAAAAAAAAAAAAAAAAAQ==") == METADATA_TOPIC_ID


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 21, "A" * 23, "A" * 5000, "not an id, really!!!!!", "ä" * 22])
def test_texts_that_are_no_ids(text: str) -> None:
    with pytest.raises(ValueError, match="id"):
        id_from_text(text)


def test_a_partition_prints_as_kafka_prints_it() -> None:
    assert str(TopicPartition("topic", 3)) == "topic-3"

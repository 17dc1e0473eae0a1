"""The generic codec by itself: round trips, KIP-966's additions, tagged fields, and bytes that are wrong."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.wire.apis import ApiKey
from tanist.wire.codec import EncodingError, UnsupportedVersion, WireError, decoder, encoder
from tanist.wire.frames import decode_request, encode_request, parse_request_header
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest
from tanist.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse, SupportedFeatureKey
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tanist.wire.messages.fetch_request import FetchRequest, ReplicaState
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.get_replica_log_info_request import GetReplicaLogInfoRequest
from tanist.wire.messages.get_replica_log_info_request import TopicPartitions as LogsOf
from tanist.wire.messages.get_replica_log_info_response import (
    GetReplicaLogInfoResponse,
    LeaderEpochStart,
    PartitionLogInfo,
    TopicPartitionLogInfo,
)
from tanist.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.messages.metadata_response import MetadataResponse
from tanist.wire.primitives import KNOWN_UUIDS, MAX_KNOWN_UUIDS, learn_uuid, read_uvarint, write_uvarint
from tanist.wire.schema import Message


def test_round_trip(message_class: type[Message], builder: Any) -> None:
    for version in range(message_class.VERSIONS[0], message_class.VERSIONS[1] + 1):
        encode, decode = encoder(message_class, version), decoder(message_class, version)
        for number in range(6):
            message = builder(("round trip", message_class.__name__, version, number)).build(message_class, version)
            encoded = encode(message)
            assert decode(encoded, 0) == (message, len(encoded))
            padded = memoryview(bytearray(b"\xff" * 7 + encoded + b"\xff" * 3))
            assert decode(padded, 7) == (message, 7 + len(encoded))


def test_every_truncation_and_many_mutations_are_wire_errors_or_messages(
    message_class: type[Message], builder: Any
) -> None:
    rng = random.Random(message_class.__name__)
    for version in {message_class.VERSIONS[0], message_class.VERSIONS[1]}:
        encode, decode = encoder(message_class, version), decoder(message_class, version)
        for number in range(3):
            message = builder(("mutation", message_class.__name__, version, number)).build(message_class, version)
            encoded = encode(message)
            for cut in range(min(len(encoded), 200)):
                with pytest.raises(WireError):
                    decode(encoded[:cut], 0)
            for _ in range(150):
                mutated = bytearray(encoded or b"\0")
                for _ in range(rng.randint(1, 3)):
                    mutated[rng.randrange(len(mutated))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
                try:
                    decode(mutated, 0)
                except WireError:
                    continue


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from([MetadataResponse, FetchRequest, FetchResponse, ElectLeadersRequest]))
def test_noise_is_a_wire_error_or_a_message(noise: bytes, cls: type[Message]) -> None:
    for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1):
        try:
            decoder(cls, version)(noise, 0)
        except WireError:
            continue


@pytest.mark.parametrize("version", [1, 12])
def test_a_huge_array_length_is_refused_before_anything_is_made(version: int) -> None:
    """2^31 - 1 topics, in a message of a few bytes."""
    length = (2**31 - 1).to_bytes(4, "big") if version == 1 else write_uvarint(2**31)
    with pytest.raises(WireError, match="2147483647 elements"):
        decoder(MetadataRequest, version)(length + bytes(20), 0)


def test_fields_that_a_version_lacks_are_dropped_and_come_back_as_defaults() -> None:
    message = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True)
    encoded = encoder(MetadataRequest, 3)(message)
    assert decoder(MetadataRequest, 3)(encoded, 0)[0] == MetadataRequest(topics=None)


def test_null_where_the_version_has_no_null_is_an_encoding_error() -> None:
    with pytest.raises(EncodingError, match="MetadataRequest version 0"):
        encoder(MetadataRequest, 0)(MetadataRequest(topics=None))


def test_numbers_and_strings_that_do_not_fit_are_encoding_errors() -> None:
    with pytest.raises(EncodingError):
        encoder(BrokerHeartbeatRequest, 1)(BrokerHeartbeatRequest(broker_id=2**31))
    protocol: Any = JoinGroupRequestProtocol(metadata="not bytes")  # type: ignore[arg-type]
    with pytest.raises(EncodingError):
        encoder(JoinGroupRequest, 5)(JoinGroupRequest(protocols=(protocol,)))
    response = ApiVersionsResponse(supported_features=(SupportedFeatureKey(name="n" * 40_000),))
    with pytest.raises(EncodingError, match="too long"):
        encoder(ApiVersionsResponse, 3)(response)


def test_versions_we_do_not_have_are_refused() -> None:
    for make in (encoder, decoder):
        with pytest.raises(UnsupportedVersion, match="2 to 3, not 4"):
            make(AlterPartitionRequest, 4)


def test_tagged_fields_at_their_default_are_not_written() -> None:
    """Older librdkafka cannot read past them: client-traps 1.1."""
    encoded = encoder(ApiVersionsResponse, 3)(ApiVersionsResponse(api_keys=(ApiVersion(api_key=3, max_version=12),)))
    assert encoded == bytes.fromhex("00000200030000000c000000000000")
    fetch = FetchRequest(replica_state=ReplicaState(replica_id=-1, replica_epoch=-1))
    assert encoder(FetchRequest, 17)(fetch)[-1] == 0


def test_tagged_fields_are_written_by_tag_and_read_in_any_order() -> None:
    decode = decoder(FetchRequest, 17)
    message = FetchRequest(cluster_id="c", replica_state=ReplicaState(replica_id=4, replica_epoch=9))
    encoded = encoder(FetchRequest, 17)(message)
    state = b"\x01\x0d" + (4).to_bytes(4, "big") + (9).to_bytes(8, "big") + b"\x00"
    cluster = b"\x00\x02\x02c"
    assert encoded.endswith(b"\x02" + cluster + state)
    start = encoded[: -len(cluster + state) - 1]
    unknown = b"\x63\x03abc"
    assert decode(start + b"\x03" + state + unknown + cluster, 0)[0] == message
    with pytest.raises(WireError, match="size"):
        decode(start + b"\x01\x00\x03\x02c\x00", 0)
    with pytest.raises(WireError, match="beyond"):
        decode(start + b"\x01\x63\x04abc", 0)


def test_designated_election() -> None:
    message = ElectLeadersRequest(
        election_type=2,
        topic_partitions=(TopicPartitions(topic="t", partitions=(0, 1), desired_leaders=(7, 8)), TopicPartitions()),
    )
    encoded = encoder(ElectLeadersRequest, 3)(message)
    assert encoded == bytes.fromhex("0203027403000000000000000103000000070000000800010100000000ea6000")
    assert decoder(ElectLeadersRequest, 3)(encoded, 0)[0] == message
    without = encoder(ElectLeadersRequest, 2)(message)
    assert decoder(ElectLeadersRequest, 2)(without, 0)[0].topic_partitions[0].desired_leaders is None  # type: ignore[index]


def test_replica_log_info() -> None:
    info = PartitionLogInfo(partition=1, last_written_leader_epoch=2, current_leader_epoch=3, log_end_offset=4)
    message = GetReplicaLogInfoResponse(
        broker_epoch=5,
        topic_partition_log_info_list=(TopicPartitionLogInfo(topic_id=UUID(int=6), partition_log_info=(info,)),),
    )
    expected = "000000000000000502" + "00" * 15 + "0602000000010000000200000003"
    assert encoder(GetReplicaLogInfoResponse, 0)(message).hex() == expected + "0000000000000004000000000000"
    info.leader_epochs = (LeaderEpochStart(leader_epoch=2, start_offset=1),)
    assert encoder(GetReplicaLogInfoResponse, 0)(message).hex() == (
        expected + "00000000000000040000000100" + "0e" + "02" + "000000020000000000000001" + "00" + "0000"
    )


def test_the_question_for_replicas_logs_by_its_private_key() -> None:
    asked = LogsOf(topic_id=UUID(int=6), partitions=(1,))
    request = GetReplicaLogInfoRequest(broker_id=2, topic_partitions=(asked,))
    body = "0000000202" + "00" * 15 + "0602000000010000"
    frame = encode_request(request, 0, 9, "c")
    assert frame.hex() == "00000028" + "7d5d" + "0000" + "00000009" + "000163" + "00" + body
    header = parse_request_header(memoryview(frame)[4:])
    assert (header.api_key, header.api_version) == (ApiKey.GET_REPLICA_LOG_INFO, 0)
    assert decode_request(header, memoryview(frame)[4:]) == request


def test_record_batches_are_views_of_the_frame() -> None:
    from tanist.wire.messages.fetch_response import FetchableTopicResponse, PartitionData

    partition = PartitionData(records=b"batches")
    encoded = encoder(FetchResponse, 12)(
        FetchResponse(responses=(FetchableTopicResponse(topic="t", partitions=(partition,)),))
    )
    frame = bytearray(encoded)
    records = decoder(FetchResponse, 12)(memoryview(frame), 0)[0].responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert bytes(records) == b"batches"
    frame[frame.index(b"batches")] = ord("B")
    assert bytes(records) == b"Batches"


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_uvarints(value: int) -> None:
    encoded = write_uvarint(value)
    assert read_uvarint(b"\xff" + encoded + b"\xff", 1) == (value, 1 + len(encoded))
    assert len(encoded) == max(1, -(-value.bit_length() // 7))


@pytest.mark.parametrize("encoded", ["ffffffff1f", "808080808000"])
def test_uvarints_of_more_than_32_bits(encoded: str) -> None:
    with pytest.raises(WireError):
        read_uvarint(bytes.fromhex(encoded), 0)


def test_ids_are_remembered_up_to_a_bound() -> None:
    for number in range(MAX_KNOWN_UUIDS * 2 + 5):
        assert learn_uuid(number.to_bytes(16, "big")).int == number
    assert len(KNOWN_UUIDS) <= MAX_KNOWN_UUIDS

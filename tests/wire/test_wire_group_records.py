"""Records of `__consumer_offsets`: the bytes are those of Apache Kafka 4.3.1's own classes."""

from __future__ import annotations

import contextlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.wire.codec import UnsupportedVersion, WireError
from tanist.wire.coordinator_records import encode_key, encode_value
from tanist.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataMember,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_record,
)

OFFSET_KEY = "00010006677275707065000574c3a4737400000007"
GROUP_KEY = "00020006677275707065"
COMMIT = {
    0: "00000000001cbe991a1400056dc3a974610000018bcfe5687b",
    1: "00010000001cbe991a1400056dc3a974610000018bcfe5687b0000018bcff4aa3f",
    2: "00020000001cbe991a1400056dc3a974610000018bcfe5687b",
    3: "00030000001cbe991a140000000500056dc3a974610000018bcfe5687b",
    4: "00040000001cbe991a1400000005066dc3a974610000018bcfe5687b0100100102030405060708090a0b0c0d0e0f10",
}
MEMBERS_BEGIN = "0008636f6e73756d657200000003000572616e676500036d2d31"
MEMBER = "00036d2d31{instance}000163000a2f3132372e302e302e31{rebalance}0000afc800000003010203000000020405"
GENERATION = {
    0: f"0000{MEMBERS_BEGIN}00000001{MEMBER.format(instance='', rebalance='')}",
    1: f"0001{MEMBERS_BEGIN}00000001{MEMBER.format(instance='', rebalance='000493e0')}",
    2: f"0002{MEMBERS_BEGIN}0000018bcfe569c800000001{MEMBER.format(instance='', rebalance='000493e0')}",
    3: f"0003{MEMBERS_BEGIN}0000018bcfe569c800000001{MEMBER.format(instance='0004696e7374', rebalance='000493e0')}",
    4: "000409636f6e73756d6572000000030672616e6765046d2d310000018bcfe569c802046d2d3105696e737402630b2f3132372e302e302e"
    "31000493e00000afc8040102030304050000",
}


def committed(version: int) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=123456789012,
        leader_epoch=5 if version >= 3 else -1,
        metadata="méta",
        commit_timestamp=1700000000123,
        expire_timestamp=1700000999999 if version == 1 else -1,
        topic_id=UUID("01020304-0506-0708-090a-0b0c0d0e0f10") if version >= 4 else UUID(int=0),
    )


def generation(version: int) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="m-1",
        current_state_timestamp=1700000000456 if version >= 2 else -1,
        members=(
            GroupMetadataMember(
                member_id="m-1",
                group_instance_id="inst" if version >= 3 else None,
                client_id="c",
                client_host="/127.0.0.1",
                rebalance_timeout=300_000 if version >= 1 else 0,
                session_timeout=45_000,
                subscription=b"\1\2\3",
                assignment=b"\4\5",
            ),
        ),
    )


@pytest.mark.parametrize("version", range(5))
def test_a_committed_offset_is_the_bytes_of_apache(version: int) -> None:
    key = OffsetCommitKey(group="gruppe", topic="täst", partition=7)
    assert encode_key(key).hex() == OFFSET_KEY
    assert encode_value(committed(version), version).hex() == COMMIT[version]
    decoded = decode_group_record(bytes.fromhex(OFFSET_KEY), bytes.fromhex(COMMIT[version]))
    assert decoded == (key, committed(version))


@pytest.mark.parametrize("version", range(5))
def test_a_generation_is_the_bytes_of_apache(version: int) -> None:
    key = GroupMetadataKey(group="gruppe")
    assert encode_key(key).hex() == GROUP_KEY
    assert encode_value(generation(version), version).hex() == GENERATION[version]
    decoded = decode_group_record(bytes.fromhex(GROUP_KEY), bytes.fromhex(GENERATION[version]))
    assert decoded == (key, generation(version))


def test_the_versions_written_are_those_of_kafka_4_3() -> None:
    assert encode_value(OffsetCommitValue(offset=1, commit_timestamp=2)).hex() == (
        "00040000000000000001ffffffff01000000000000000200"
    )
    empty = GroupMetadataValue(protocol_type="consumer", generation=4, current_state_timestamp=9)
    assert encode_value(empty).hex() == "00030008636f6e73756d657200000004ffffffff000000000000000900000000"


def test_a_tombstone_has_a_key_and_no_value() -> None:
    assert decode_group_record(bytes.fromhex(GROUP_KEY), None) == (GroupMetadataKey(group="gruppe"), None)


def test_the_older_kind_of_an_offsets_key_is_read_and_other_kinds_are_passed_over() -> None:
    old = bytes.fromhex("0000" + OFFSET_KEY[4:])
    assert decode_group_record(old, None) == (OffsetCommitKey(group="gruppe", topic="täst", partition=7), None)
    assert decode_group_record(b"\0\x18\0\1g", b"\0\0what it says") is None


def test_a_value_of_an_unknown_version_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="0 to 4, not 5"):
        decode_group_record(bytes.fromhex(OFFSET_KEY), b"\0\5" + bytes.fromhex(COMMIT[4])[2:])


@pytest.mark.parametrize("version", range(5))
def test_what_is_cut_short_or_goes_on_is_malformed(version: int) -> None:
    key, value = bytes.fromhex(GROUP_KEY), bytes.fromhex(GENERATION[version])
    for length in range(len(value)):
        with pytest.raises(WireError):
            decode_group_record(key, value[:length])
    with pytest.raises(WireError):
        decode_group_record(key, value + b"\0")
    for length in range(len(key)):
        with pytest.raises(WireError):
            decode_group_record(key[:length], value)


@given(st.binary(max_size=60), st.binary(max_size=60) | st.none())
def test_nonsense_raises_nothing_but_a_wire_error(key: bytes, value: bytes | None) -> None:
    with contextlib.suppress(WireError):
        decode_group_record(key, value)

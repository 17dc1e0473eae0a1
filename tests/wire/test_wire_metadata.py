"""The metadata log's records: versions, and values that are none. Apache's bytes are among `tests/lab/scenarios`."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.wire import metadata, metadata_records, metadata_records_security
from tanist.wire.codec import UnsupportedVersion, WireError
from tanist.wire.errors import ErrorCode
from tanist.wire.metadata import (
    METADATA_VERSIONS,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    decode_record,
    encode_record,
    record_version,
)

RECORD_CLASSES = [
    thing
    for module in (metadata_records, metadata_records_security)
    for thing in vars(module).values()
    if isinstance(thing, type) and issubclass(thing, MetadataRecord) and thing is not MetadataRecord
]


@pytest.mark.parametrize("cls", RECORD_CLASSES, ids=lambda cls: cls.__name__)
def test_every_record_in_every_version(cls: type[MetadataRecord], builder: Any) -> None:
    assert cls.__name__ in metadata.__all__
    for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1):
        for number in range(10):
            record = builder((cls.__name__, version, number)).build(cls, version)
            value = encode_record(record, version)
            assert decode_record(memoryview(value)) == record
            assert value[:2] == bytes((1, cls.RECORD_KEY))
            for cut in range(len(value)):
                with pytest.raises(WireError):
                    decode_record(value[:cut])


def test_keys_are_apaches_and_unique() -> None:
    assert {cls.RECORD_KEY: cls.__name__.removesuffix("Record") for cls in RECORD_CLASSES} == {
        0: "RegisterBroker",
        1: "UnregisterBroker",
        2: "Topic",
        3: "Partition",
        4: "Config",
        5: "PartitionChange",
        7: "FenceBroker",
        8: "UnfenceBroker",
        9: "RemoveTopic",
        10: "DelegationToken",
        11: "UserScramCredential",
        12: "FeatureLevel",
        14: "ClientQuota",
        15: "ProducerIds",
        17: "BrokerRegistrationChange",
        18: "AccessControlEntry",
        19: "RemoveAccessControlEntry",
        20: "NoOp",
        21: "ZkMigrationState",
        22: "RemoveUserScramCredential",
        23: "BeginTransaction",
        24: "EndTransaction",
        25: "AbortTransaction",
        26: "RemoveDelegationToken",
        27: "RegisterController",
        28: "ClearElr",
        29: "UnregisterController",
    }
    assert len({cls.RECORD_KEY for cls in RECORD_CLASSES}) == len(RECORD_CLASSES)


@pytest.mark.parametrize(
    ("name", "broker", "partition", "registration_change"),
    [
        ("3.3-IV3", 1, 0, 1),
        ("3.4-IV0", 2, 0, 1),
        ("3.7-IV1", 2, 0, 1),
        ("3.7-IV2", 3, 1, 2),
        ("4.0-IV0", 3, 1, 2),
        ("4.0-IV1", 3, 2, 2),
        ("4.2-IV1", 3, 2, 2),
        ("4.3-IV0", 4, 2, 3),
        ("4.4-IV2", 4, 2, 3),
    ],
)
def test_versions_that_are_written(name: str, broker: int, partition: int, registration_change: int) -> None:
    """Rules 72 and 75; the levels are those of Apache's MetadataVersion."""
    level = METADATA_VERSIONS[name]
    assert record_version(RegisterBrokerRecord, level) == broker
    assert record_version(PartitionRecord, level) == record_version(PartitionChangeRecord, level) == partition
    assert record_version(BrokerRegistrationChangeRecord, level) == registration_change
    assert record_version(TopicRecord, level) == 0


def test_levels_of_the_metadata_version() -> None:
    assert list(METADATA_VERSIONS.values()) == list(range(7, 34))
    assert METADATA_VERSIONS["3.7-IV2"] == 17
    assert METADATA_VERSIONS["4.0-IV1"] == 23


def test_the_elr_is_dropped_before_version_2() -> None:
    record = PartitionRecord(isr=(1,), eligible_leader_replicas=(2,), last_known_elr=(3,))
    lost = dataclasses.replace(record, eligible_leader_replicas=None, last_known_elr=None)
    assert decode_record(encode_record(record, 1)) == lost
    assert decode_record(encode_record(record, 2)) == record


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"\x01\x06\x03rest", "key 6 .version 3"),
        (b"\x01\x03\x07", "PartitionRecord has versions 0 to 2, not 7"),
        (b"\x02\x03\x00", "frames have version 1, not 2"),
    ],
)
def test_records_that_we_do_not_know(value: bytes, message: str) -> None:
    with pytest.raises(UnsupportedVersion, match=message):
        decode_record(value)


def test_bytes_after_a_record() -> None:
    with pytest.raises(WireError, match="1 bytes after NoOpRecord"):
        decode_record(encode_record(NoOpRecord(), 0) + b"\0")


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_noise(noise: bytes) -> None:
    try:
        decode_record(noise)
    except WireError:
        return


def test_null_deletes_a_configuration() -> None:
    record = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=None)
    assert decode_record(encode_record(record, 0)) == record


def test_our_error_code_is_none_of_kafkas() -> None:
    kafkas = [code for code in ErrorCode if code is not ErrorCode.REQUEST_LIMIT_REACHED]
    assert [int(code) for code in kafkas] == list(range(-1, 137))
    assert ErrorCode.name_of(107) == "INELIGIBLE_REPLICA"
    assert ErrorCode.name_of(700) == "ERROR_700"

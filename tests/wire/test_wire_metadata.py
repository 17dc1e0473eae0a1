"""The metadata log's records: Apache's bytes, versions, and values that are none."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.wire import metadata, metadata_records, metadata_records_security
from tanist.wire.codec import UnsupportedVersion, WireError, decoder, encoder
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState
from tanist.wire.messages.alter_partition_request import PartitionData as RequestPartition
from tanist.wire.messages.alter_partition_request import TopicData as RequestTopic
from tanist.wire.messages.alter_partition_response import AlterPartitionResponse
from tanist.wire.messages.alter_partition_response import PartitionData as ResponsePartition
from tanist.wire.messages.alter_partition_response import TopicData as ResponseTopic
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from tanist.wire.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tanist.wire.messages.describe_topic_partitions_response import Cursor as NextCursor
from tanist.wire.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from tanist.wire.metadata import (
    METADATA_VERSIONS,
    BrokerEndpoint,
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
from tanist.wire.schema import Message

GOLDEN = yaml.safe_load((Path(__file__).parent / "golden_bytes.yaml").read_text())
RECORD_CLASSES = [
    thing
    for module in (metadata_records, metadata_records_security)
    for thing in vars(module).values()
    if isinstance(thing, type) and issubclass(thing, MetadataRecord) and thing is not MetadataRecord
]
TOPIC_ID = UUID(int=(1 << 64) | 2)


def identifier(value: Any) -> UUID:
    """As the samples write ids: [most, least significant half], or only the least."""
    high, low = value if isinstance(value, list) else (0, value)
    return UUID(int=(high << 64) | low)


def value_of(name: str, value: Any) -> Any:
    if name in ("topic_id", "incarnation_id"):
        return identifier(value)
    if name in ("directories", "log_dirs"):
        return tuple(map(identifier, value))
    if name == "leader_recovery_state":
        return ["RECOVERED", "RECOVERING"].index(value)
    if name == "end_points":
        listener, host, port, protocol = value
        return (BrokerEndpoint(name=listener, host=host, port=port, security_protocol=protocol),)
    return tuple(value) if isinstance(value, list) else value


SAMPLE_NAMES = {
    "incarnation": "incarnation_id",
    "elr": "eligible_leader_replicas",
    "recovery": "leader_recovery_state",
    "listener": "end_points",
}
SAMPLE_NAMES |= {"removing": "removing_replicas", "adding": "adding_replicas"}
PARTITION_V1 = {
    "partition_id": 0,
    "replicas": [1, 2, 3],
    "isr": [1],
    "leader": 1,
    "leader_epoch": 4,
    "partition_epoch": 7,
    "directories": [101, 102, 103],
}


def sample_record(sample: dict[str, Any]) -> MetadataRecord:
    fields: dict[str, Any] = dict(sample["fields"])
    if fields.pop("same_as", None) == "v1":
        fields = {**PARTITION_V1, **fields}
    cls = getattr(metadata, sample["record"])
    values: dict[str, Any] = {SAMPLE_NAMES.get(name, name): value for name, value in fields.items()}
    if cls in (PartitionRecord, PartitionChangeRecord):
        values["topic_id"] = [1, 2]
    record: MetadataRecord = cls(**{name: value_of(name, value) for name, value in values.items()})
    return record


@pytest.mark.parametrize("sample", GOLDEN["record_format"], ids=lambda sample: sample["id"])
def test_apaches_bytes_of_records(sample: dict[str, Any]) -> None:
    record = sample_record(sample)
    version = sample["version"]
    assert encoder(type(record), version)(record).hex() == str(sample["body_hex"])
    assert encode_record(record, version).hex() == str(sample["framed_hex"])
    assert decode_record(bytes.fromhex(str(sample["framed_hex"]))) == record


ALTERED = AlterPartitionRequest(
    broker_id=1,
    broker_epoch=9,
    topics=(
        RequestTopic(
            topic_id=TOPIC_ID,
            partitions=(
                RequestPartition(
                    partition_index=0,
                    leader_epoch=4,
                    new_isr_with_epochs=(
                        BrokerState(broker_id=1, broker_epoch=9),
                        BrokerState(broker_id=2, broker_epoch=-1),
                    ),
                    partition_epoch=7,
                ),
            ),
        ),
    ),
)
DESCRIBED = DescribeTopicPartitionsResponsePartition(
    partition_index=0,
    leader_id=-1,
    leader_epoch=4,
    replica_nodes=(1, 2, 3),
    isr_nodes=(),
    eligible_leader_replicas=(2, 3),
    last_known_elr=(3,),
    offline_replicas=(1, 2, 3),
)
RPCS: dict[str, Message] = {
    "rpc-01": ALTERED,
    "rpc-02": AlterPartitionResponse(
        topics=(
            ResponseTopic(
                topic_id=TOPIC_ID,
                partitions=(ResponsePartition(leader_id=1, leader_epoch=4, isr=(1, 2), partition_epoch=8),),
            ),
        )
    ),
    "rpc-03": BrokerHeartbeatRequest(
        broker_id=1, broker_epoch=9, current_metadata_offset=100, want_fence=False, want_shut_down=True
    ),
    "rpc-04": BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False, should_shut_down=False),
    "rpc-05": DescribeTopicPartitionsRequest(
        topics=(TopicRequest(name="foo"),),
        response_partition_limit=2,
        cursor=Cursor(topic_name="foo", partition_index=1),
    ),
    "rpc-06": DescribeTopicPartitionsRequest(topics=(TopicRequest(name="foo"),), response_partition_limit=2),
    "rpc-07": DescribeTopicPartitionsResponse(
        topics=(DescribeTopicPartitionsResponseTopic(name="foo", topic_id=TOPIC_ID, partitions=(DESCRIBED,)),),
        next_cursor=NextCursor(topic_name="foo", partition_index=1),
    ),
}


@pytest.mark.parametrize("sample", GOLDEN["rpc_format"], ids=lambda sample: sample["id"])
def test_apaches_bytes_of_requests(sample: dict[str, Any]) -> None:
    message = RPCS[sample["id"]]
    assert type(message).__name__ == sample["message"]
    body = bytes.fromhex(str(sample["body_hex"]))
    assert encoder(type(message), sample["version"])(message) == body
    assert decoder(type(message), sample["version"])(body, 0) == (message, len(body))


def test_the_golden_samples_are_all_there() -> None:
    assert len(GOLDEN["record_format"]) == 24
    assert {sample["id"] for sample in GOLDEN["rpc_format"]} == set(RPCS)


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
    ],
)
def test_versions_that_are_written(name: str, broker: int, partition: int, registration_change: int) -> None:
    """Facts 72 and 75; the levels are those of Apache's MetadataVersion."""
    level = METADATA_VERSIONS[name]
    assert record_version(RegisterBrokerRecord, level) == broker
    assert record_version(PartitionRecord, level) == record_version(PartitionChangeRecord, level) == partition
    assert record_version(BrokerRegistrationChangeRecord, level) == registration_change
    assert record_version(TopicRecord, level) == 0


def test_levels_of_the_metadata_version() -> None:
    assert list(METADATA_VERSIONS.values()) == list(range(7, 31))
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
    assert [int(code) for code in kafkas] == list(range(-1, 134))
    assert ErrorCode.name_of(107) == "INELIGIBLE_REPLICA"
    assert ErrorCode.name_of(700) == "ERROR_700"
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.is_retriable
    assert not ErrorCode.INVALID_REQUEST.is_retriable

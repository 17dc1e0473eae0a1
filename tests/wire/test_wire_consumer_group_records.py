"""The records of consumer groups (KIP-848), against the field tables that Apache Kafka ships in its jar."""

from __future__ import annotations

import json
import re
import zipfile
from typing import Any

import pytest

from tanist.wire import consumer_group_records as records
from tanist.wire.coordinator_records import CoordinatorKey, encode_key, encode_value
from tanist.wire.group_records import decode_group_record
from tanist.wire.schema import ZERO_UUID, Array, Field
from tests.interop import apache

PAIRS = {
    "ConsumerGroupMetadata": (records.ConsumerGroupKey, records.ConsumerGroupValue),
    "ConsumerGroupMemberMetadata": (records.ConsumerMemberKey, records.ConsumerMemberValue),
    "ConsumerGroupTargetAssignmentMetadata": (records.TargetAssignmentKey, records.TargetAssignmentValue),
    "ConsumerGroupTargetAssignmentMember": (records.MemberTargetKey, records.MemberTargetValue),
    "ConsumerGroupCurrentMemberAssignment": (records.MemberCurrentKey, records.MemberCurrentValue),
    "ConsumerGroupRegularExpression": (records.GroupRegexKey, records.GroupRegexValue),
}
RENAMED = {"group_id": "group"}


def schema(name: str) -> dict[str, Any]:
    jars = list(apache.jar_folder().glob("kafka-group-coordinator-4*.jar"))
    if not jars:
        pytest.skip("Apache Kafka's jars are not here")
    with zipfile.ZipFile(jars[0]) as jar:
        text = jar.read(f"common/message/{name}.json").decode()
    found: dict[str, Any] = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))
    return found


def snake(name: str) -> str:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    return RENAMED.get(name, name)


def shape(fields: list[dict[str, Any]], common: dict[str, Any]) -> list[tuple[Any, ...]]:
    found = []
    for field in fields:
        kind = field["type"].removeprefix("[]")
        inner = field.get("fields") or common.get(kind)
        found.append(
            (snake(field["name"]), field["type"].startswith("[]"), shape(inner, common) if inner else kind,
             field.get("tag"), "nullableVersions" in field)
        )  # fmt: skip
    return found


def ours(fields: tuple[Field, ...]) -> list[tuple[Any, ...]]:
    found = []
    for field in fields:
        array = isinstance(field.type, Array)
        kind = field.type.element if isinstance(field.type, Array) else field.type
        inner = kind if isinstance(kind, str) else ours(kind.FIELDS)
        found.append((field.name, array, inner, field.tag, field.nullable is not None))
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_fields_are_apaches(name: str) -> None:
    key: Any
    value: Any
    key, value = PAIRS[name]
    for cls, part in ((key, "Key"), (value, "Value")):
        apaches = schema(name + part)
        common = {each["name"]: each["fields"] for each in apaches.get("commonStructs", [])}
        assert ours(cls.FIELDS) == shape(apaches["fields"], common)
    assert (schema(f"{name}Key")["apiKey"],) == key.RECORD_KINDS


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (records.ConsumerGroupKey(group="g"), records.ConsumerGroupValue(epoch=7, metadata_hash=-5)),
        (
            records.ConsumerMemberKey(group="g", member_id="m"),
            records.ConsumerMemberValue(
                instance_id="i",
                client_id="c",
                client_host="/h",
                subscribed_topic_names=("a", "b"),
                subscribed_topic_regex="x.*",
                rebalance_timeout_ms=5,
                classic_member_metadata=records.ClassicMemberMetadata(
                    session_timeout_ms=6,
                    supported_protocols=(records.ClassicProtocol(name="range", metadata=b"\1"),),
                ),
            ),
        ),
        (records.TargetAssignmentKey(group="g"), records.TargetAssignmentValue(assignment_epoch=3)),
        (
            records.MemberTargetKey(group="g", member_id="m"),
            records.MemberTargetValue(
                topic_partitions=(records.TargetPartitions(topic_id=ZERO_UUID, partitions=(1, 2)),)
            ),
        ),
        (
            records.MemberCurrentKey(group="g", member_id="m"),
            records.MemberCurrentValue(
                member_epoch=3,
                previous_member_epoch=2,
                state=1,
                assigned_partitions=(
                    records.CurrentPartitions(topic_id=ZERO_UUID, partitions=(1,), assignment_epochs=(2,)),
                ),
            ),
        ),
        (
            records.GroupRegexKey(group="g", regular_expression="x.*"),
            records.GroupRegexValue(topics=("x1",), version=9, timestamp=10),
        ),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_is_written_is_read(key: CoordinatorKey, value: Any) -> None:
    assert decode_group_record(encode_key(key), encode_value(value)) == (key, value)
    assert decode_group_record(encode_key(key), None) == (key, None)


@pytest.mark.parametrize(
    ("classic", "tags"),
    [
        (records.ClassicMemberMetadata(), "00"),
        (None, "01 00 01 00"),
        (
            records.ClassicMemberMetadata(
                session_timeout_ms=6000,
                supported_protocols=(records.ClassicProtocol(name="range", metadata=b"\1\2\3"),),
            ),
            "01 00 12 01 00001770 02 06 72616e6765 04 010203 00 00",
        ),
    ],
    ids=["default", "none", "some"],
)
def test_whether_a_member_is_a_classic_one_is_said_as_apache_says_it(
    classic: records.ClassicMemberMetadata | None, tags: str
) -> None:
    """The bytes are those that Apache Kafka's class writes."""
    value = records.ConsumerMemberValue(
        instance_id="", rack_id="", client_id="c", client_host="h", subscribed_topic_names=("t",),
        subscribed_topic_regex="", server_assignor="", classic_member_metadata=classic,
    )  # fmt: skip
    written = bytes.fromhex("0000 01 01 0263 0268 020274 01 ffffffff 01" + tags)
    assert encode_value(value) == written
    key = records.ConsumerMemberKey(group="g", member_id="m")
    assert decode_group_record(encode_key(key), written) == (key, value)

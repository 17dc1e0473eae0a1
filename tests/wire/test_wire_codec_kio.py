"""The codec against kio, an independent implementation of the same schemas: byte-equal for random messages."""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import io
import types
import typing
from typing import Any

import pytest

from tanist.wire.codec import decoder, encoder
from tanist.wire.schema import ZERO_UUID, Message, Struct

kio_index = pytest.importorskip("kio.schema.index")
kio_serial = pytest.importorskip("kio.serial")
kio_errors = pytest.importorskip("kio.schema.errors")

NOT_OF_KIO = {
    "GetReplicaLogInfoRequest",
    "GetReplicaLogInfoResponse",
    "UnregisterControllerRequest",
    "UnregisterControllerResponse",
}
LATER_THAN_KIO = {
    "ApiVersionsRequest": 5,
    "ApiVersionsResponse": 5,
    "DeleteGroupsRequest": 3,
    "DeleteGroupsResponse": 3,
    "ElectLeadersRequest": 3,
    "ElectLeadersResponse": 3,
    "StreamsGroupDescribeRequest": 1,
    "StreamsGroupDescribeResponse": 1,
    "StreamsGroupHeartbeatRequest": 1,
    "StreamsGroupHeartbeatResponse": 1,
    "TxnOffsetCommitRequest": 6,
    "TxnOffsetCommitResponse": 6,
}
"""Message -> the version of it that kio does not have. Those of Apache Kafka: `test_wire_versions_of_4_4.py`."""
TAGS_OF_OURS = {
    "DescribeClusterResponse": ("metadata_age_ms",),
    "DescribeTopicPartitionsResponsePartition": ("last_unclean_epoch",),
    "TransactionState": ("client_transaction_version",),
    "EnvelopeResponse": ("committed_offset",),
}
"""Struct -> tagged fields that Kafka does not know; at their defaults they are not on the wire."""
OTHER_NAMES = {("StreamsGroupHeartbeatResponse", "acceptable_recovery_lag"): "acceptable_recovery_lag_legacy"}
"""Fields that Kafka 4.4 calls by another name."""
MODULES = {"kraft_version_record": "k_raft_version_record"}
EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


def kio_class(cls: type[Message], version: int) -> Any:
    name = cls.__module__.rpartition(".")[2]
    for kind in ("request", "response"):
        name = name.removesuffix(f"_{kind}")
    paths = kio_index.schema_name_map[MODULES.get(name, name)].get(version)
    if paths is None:
        return None
    for path in paths.values():
        module, _, class_name = path.partition(":")
        if class_name == cls.__name__:
            return getattr(importlib.import_module(module), class_name)
    return None


def to_kio(value: Any, kio_type: Any, kind: str | None) -> Any:
    """Our value as kio wants it. `KeyError` if kio cannot express it."""
    if typing.get_origin(kio_type) in (typing.Union, types.UnionType):
        inner = next(part for part in typing.get_args(kio_type) if part is not types.NoneType)
        if value is None or (kind == "uuid" and value == ZERO_UUID):
            return None
        if kind == "datetime_i64" and value == -1:
            return None
        return to_kio(value, inner, kind)
    if typing.get_origin(kio_type) is tuple:
        return tuple(to_kio(each, typing.get_args(kio_type)[0], kind) for each in value)
    if dataclasses.is_dataclass(kio_type):
        arguments = {}
        for field in dataclasses.fields(kio_type):
            field_kind = field.metadata.get("kafka_type")
            name = field.name.removesuffix("_")
            if field_kind and field_kind.startswith(("timedelta", "datetime")):
                name += "_ms"
            name = OTHER_NAMES.get((type(value).__name__, name), name)
            arguments[field.name] = to_kio(getattr(value, name), field.type, field_kind)
        return kio_type(**arguments)  # type: ignore[operator]
    if kind == "error_code":
        return kio_errors.ErrorCode(value)
    if kind is not None and kind.startswith("timedelta"):
        return datetime.timedelta(milliseconds=value)
    if kind == "datetime_i64":
        return EPOCH + datetime.timedelta(milliseconds=value)
    return value


def without_ours(value: Any) -> None:
    """Set what only we have to its default, here and below."""
    if isinstance(value, tuple):
        for each in value:
            without_ours(each)
    elif isinstance(value, Struct):
        for ours in TAGS_OF_OURS.get(type(value).__name__, ()):
            if hasattr(value, ours):
                setattr(value, ours, getattr(type(value)(), ours))
        for field in value.FIELDS:
            without_ours(getattr(value, field.name))


def test_bytes_equal_to_kio(message_class: type[Message], builder: Any) -> None:
    if message_class.__name__ in NOT_OF_KIO:
        pytest.skip("kio does not have it")
    compared = 0
    for version in range(message_class.VERSIONS[0], message_class.VERSIONS[1] + 1):
        theirs = kio_class(message_class, version)
        if theirs is None:
            assert LATER_THAN_KIO.get(message_class.__name__) == version
            continue
        assert theirs.__flexible__ == (
            message_class.FLEXIBLE_FROM is not None and version >= message_class.FLEXIBLE_FROM
        )
        write = kio_serial.entity_writer(theirs)
        encode, decode = encoder(message_class, version), decoder(message_class, version)
        for round_number in range(8):
            message = builder((message_class.__name__, version, round_number)).build(message_class, version)
            without_ours(message)
            try:
                other = to_kio(message, theirs, None)
            except (ValueError, OverflowError):  # an error code or a date beyond what kio can name
                continue
            expected = io.BytesIO()
            write(expected, other)
            assert encode(message) == expected.getvalue(), (version, message)
            again, end = decode(expected.getvalue(), 0)
            assert end == len(expected.getvalue())
            assert again == message, version
            compared += 1
    assert compared >= 4

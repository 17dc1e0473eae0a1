"""Golden bytes: kinds `record_format` and `rpc_format`.

Owns the conversion of a scenario's short form to a record or a message. Each is encoded, compared, and decoded back.
Topic ids are [most, least significant half]; directories are given by their lower half.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from tanist.lab.scenarios.fields import Fields, NotUnderstood
from tanist.lab.scenarios.outcome import Difference, same
from tanist.lab.scenarios.partitions import is_recovering
from tanist.wire import metadata
from tanist.wire.codec import decoder, encoder
from tanist.wire.messages import alter_partition_request, alter_partition_response
from tanist.wire.messages import describe_topic_partitions_request as describe_request
from tanist.wire.messages import describe_topic_partitions_response as describe_response
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from tanist.wire.metadata import (
    BrokerEndpoint,
    PartitionChangeRecord,
    PartitionRecord,
    decode_record,
    encode_record,
)
from tanist.wire.schema import Message, MetadataRecord

_NAMES = {
    "incarnation": "incarnation_id",
    "elr": "eligible_leader_replicas",
    "recovery": "leader_recovery_state",
    "listener": "end_points",
    "removing": "removing_replicas",
    "adding": "adding_replicas",
}
_PARTITION_OF_V1 = {
    "partition_id": 0,
    "replicas": [1, 2, 3],
    "isr": [1],
    "leader": 1,
    "leader_epoch": 4,
    "partition_epoch": 7,
    "directories": [101, 102, 103],
}
"""The beginning of the records that are the `same_as: v1`."""
_TOPIC = [1, 2]
"""The topic of every record about a partition."""


def _identifier(value: Any) -> UUID:
    high, low = value if isinstance(value, list) else (0, value)
    return UUID(int=(high << 64) | low)


# -- records ----------------------------------------------------------------------------------------------------------


def record_format(item: Fields) -> Sequence[Difference]:
    record = _record(str(item["record"]), item.inner("fields"))
    version, framed = item.number("version"), str(item["framed_hex"])
    if "body_hex" in item:
        same("the record's bytes", encoder(type(record), version)(record).hex(), str(item["body_hex"]))
    same("the framed bytes", encode_record(record, version).hex(), framed)
    same("the record read back", decode_record(bytes.fromhex(framed)), record)
    return ()


def _record(name: str, fields: Fields) -> MetadataRecord:
    cls = getattr(metadata, name, None) if name in metadata.__all__ else None
    if not isinstance(cls, type) or not issubclass(cls, MetadataRecord):
        raise NotUnderstood(f"there is no record {name}")
    given = fields.plain()
    like = given.pop("same_as", None)
    if like == "v1":
        given = _PARTITION_OF_V1 | given
    elif like is not None:
        raise NotUnderstood(f"same_as: {like}")
    if cls in (PartitionRecord, PartitionChangeRecord):
        given["topic_id"] = _TOPIC
    known = {field.name for field in cls.FIELDS}
    values = {_NAMES.get(each, each): value for each, value in given.items()}
    if not values.keys() <= known:
        raise NotUnderstood(f"{name} has no {', '.join(sorted(values.keys() - known))}")
    return cls(**{each: _value(each, value) for each, value in values.items()})


def _value(name: str, value: Any) -> Any:
    if name in ("topic_id", "incarnation_id"):
        return _identifier(value)
    if name in ("directories", "log_dirs"):
        return tuple(map(_identifier, value))
    if name == "leader_recovery_state":
        return int(is_recovering(value))
    if name == "end_points":
        listener, host, port, protocol = value
        return (BrokerEndpoint(name=listener, host=host, port=port, security_protocol=protocol),)
    return tuple(value) if isinstance(value, list) else value


# -- messages ---------------------------------------------------------------------------------------------------------


def rpc_format(item: Fields) -> Sequence[Difference]:
    name = str(item["message"])
    build = _MESSAGES.get(name)
    if build is None:
        raise NotUnderstood(f"no golden bytes are known of {name}")
    message, version, body = build(item.inner("fields")), item.number("version"), str(item["body_hex"])
    same("the message's bytes", encoder(type(message), version)(message).hex(), body)
    data = bytes.fromhex(body)
    same("the message read back", decoder(type(message), version)(data, 0), (message, len(data)))
    return ()


def _alter_partition_request(fields: Fields) -> Message:
    partition = alter_partition_request.PartitionData(
        partition_index=fields.number("partition"),
        leader_epoch=fields.number("leader_epoch"),
        new_isr_with_epochs=tuple(
            alter_partition_request.BrokerState(broker_id=broker_id, broker_epoch=epoch)
            for broker_id, epoch in fields["isr"]
        ),
        leader_recovery_state=int(is_recovering(fields["recovery"])),
        partition_epoch=fields.number("partition_epoch"),
    )
    topic = alter_partition_request.TopicData(topic_id=_identifier(fields["topic"]), partitions=(partition,))
    return alter_partition_request.AlterPartitionRequest(
        broker_id=fields.number("broker_id"), broker_epoch=fields.number("broker_epoch"), topics=(topic,)
    )


def _alter_partition_response(fields: Fields) -> Message:
    partition = alter_partition_response.PartitionData(
        partition_index=fields.number("partition"),
        error_code=fields.number("error"),
        leader_id=fields.number("leader"),
        leader_epoch=fields.number("leader_epoch"),
        isr=fields.ids("isr"),
        leader_recovery_state=int(is_recovering(fields["recovery"])),
        partition_epoch=fields.number("partition_epoch"),
    )
    topic = alter_partition_response.TopicData(topic_id=_identifier(fields["topic"]), partitions=(partition,))
    return alter_partition_response.AlterPartitionResponse(topics=(topic,))


def _heartbeat_request(fields: Fields) -> Message:
    return BrokerHeartbeatRequest(
        broker_id=fields.number("broker_id"),
        broker_epoch=fields.number("broker_epoch"),
        current_metadata_offset=fields.number("offset"),
        want_fence=bool(fields["want_fence"]),
        want_shut_down=bool(fields["want_shutdown"]),
    )


def _heartbeat_response(fields: Fields) -> Message:
    return BrokerHeartbeatResponse(
        is_caught_up=bool(fields["caught_up"]),
        is_fenced=bool(fields["fenced"]),
        should_shut_down=bool(fields["should_shut_down"]),
    )


def _describe_request(fields: Fields) -> Message:
    cursor = fields["cursor"]
    return describe_request.DescribeTopicPartitionsRequest(
        topics=tuple(describe_request.TopicRequest(name=name) for name in fields["topics"]),
        response_partition_limit=fields.number("limit"),
        cursor=None if cursor is None else describe_request.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def _describe_response(fields: Fields) -> Message:
    partition = describe_response.DescribeTopicPartitionsResponsePartition(
        partition_index=fields.number("partition"),
        leader_id=fields.number("leader"),
        leader_epoch=fields.number("leader_epoch"),
        replica_nodes=fields.ids("replicas"),
        isr_nodes=fields.ids("isr"),
        eligible_leader_replicas=fields.ids("elr"),
        last_known_elr=fields.ids("last_known_elr"),
        offline_replicas=fields.ids("offline"),
    )
    topic = describe_response.DescribeTopicPartitionsResponseTopic(
        name=fields["topic"],
        topic_id=_identifier(fields["id"]),
        is_internal=bool(fields["internal"]),
        partitions=(partition,),
        topic_authorized_operations=fields.number("authorized_ops"),
    )
    cursor = fields["next_cursor"]
    return describe_response.DescribeTopicPartitionsResponse(
        topics=(topic,),
        next_cursor=None
        if cursor is None
        else describe_response.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


_MESSAGES: Mapping[str, Callable[[Fields], Message]] = {
    "AlterPartitionRequest": _alter_partition_request,
    "AlterPartitionResponse": _alter_partition_response,
    "BrokerHeartbeatRequest": _heartbeat_request,
    "BrokerHeartbeatResponse": _heartbeat_response,
    "DescribeTopicPartitionsRequest": _describe_request,
    "DescribeTopicPartitionsResponse": _describe_response,
}

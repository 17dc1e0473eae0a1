"""Versions of messages that came with Apache Kafka 4.4, which kio does not have: the bytes are its own classes'."""

from __future__ import annotations

from uuid import UUID

import pytest

from tanist.wire.codec import decoder, encoder
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tanist.wire.messages.delete_groups_request import DeleteGroupsRequest
from tanist.wire.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from tanist.wire.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from tanist.wire.messages.streams_group_describe_response import (
    DescribedGroup,
    StreamsGroupDescribeResponse,
    TopologyDescription,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)
from tanist.wire.messages.streams_group_heartbeat_request import Endpoint, StreamsGroupHeartbeatRequest
from tanist.wire.messages.streams_group_heartbeat_response import Status, StreamsGroupHeartbeatResponse
from tanist.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tanist.wire.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tanist.wire.messages.unregister_controller_request import UnregisterControllerRequest
from tanist.wire.messages.unregister_controller_response import UnregisterControllerResponse
from tanist.wire.schema import Message

TOPIC = UUID(int=(1 << 64) + 2)
OF_KAFKA: list[tuple[Message, int, str]] = [
    (
        ApiVersionsRequest(client_software_name="n", client_software_version="1", cluster_id="c", node_id=7),
        5,
        "026e023102630000000700",
    ),
    (ApiVersionsRequest(client_software_name="n", client_software_version="1"), 5, "026e023100ffffffff00"),
    (ApiVersionsResponse(error_code=129), 5, "0081010000000000"),
    (DeleteGroupsRequest(groups_names=("g",)), 3, "02026700"),
    (
        StreamsGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=3,
            endpoint_information_epoch=4,
            rebalance_timeout_ms=5,
            process_id="p",
            user_endpoint=Endpoint(host="h", port=60000),
        ),
        1,
        "0267026d0000000300000004000000000005ff0000000270010268ea60000000000000",
    ),
    (
        StreamsGroupHeartbeatResponse(
            member_id="m",
            member_epoch=3,
            heartbeat_interval_ms=7,
            task_offset_interval_ms=8,
            acceptable_recovery_lag_legacy=9,
            status=(Status(status_code=3, status_detail="d"),),
        ),
        0,
        "00000000000000026d000000030000000700000009000000080203026400000000000000000000",
    ),
    (
        StreamsGroupHeartbeatResponse(
            member_id="m",
            member_epoch=3,
            heartbeat_interval_ms=7,
            task_offset_interval_ms=8,
            acceptable_recovery_lag=1 << 40,
            topology_description_required=True,
            status=(Status(status_code=3, status_detail="d"),),
        ),
        1,
        "00000000000000026d0000000300000007000000080000010000000000020302640000000001000000000000",
    ),
    (
        StreamsGroupDescribeRequest(group_ids=("g",), include_topology_description=True),
        1,
        "020267000100",
    ),
    (
        StreamsGroupDescribeResponse(
            groups=(
                DescribedGroup(
                    group_id="g",
                    group_state="Stable",
                    group_epoch=2,
                    assignment_epoch=3,
                    assignor_name="sticky",
                    topology_description_status=3,
                    topology_description=TopologyDescription(
                        subtopologies=(
                            TopologyDescriptionSubtopology(
                                subtopology_id="0",
                                nodes=(TopologyDescriptionNode(name="n", node_type=1, source_topics=("t",)),),
                            ),
                        )
                    ),
                ),
            )
        ),
        1,
        "0000000002000000026707537461626c650000000200000003ff01800000000102023002026e01020274000101000001000307737469636b790000",
    ),
    (
        DeleteGroupsResponse(
            throttle_time_ms=2,
            results=(
                DeletableGroupResult(group_id="g", error_code=134, error_message="m"),
                DeletableGroupResult(group_id="h"),
            ),
        ),
        3,
        "000000020302670086026d0002680000000000",
    ),
    (
        TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="g",
            producer_id=3,
            producer_epoch=4,
            generation_id=5,
            member_id="m",
            group_instance_id="i",
            topics=(
                TxnOffsetCommitRequestTopic(
                    topic_id=TOPIC,
                    partitions=(
                        TxnOffsetCommitRequestPartition(
                            partition_index=6,
                            committed_offset=7,
                            committed_leader_epoch=8,
                            committed_metadata="x",
                        ),
                    ),
                ),
            ),
        ),
        6,
        "027402670000000000000003000400000005026d0269020000000000000001000000000000000202000000060000000000000007000000"
        "080278000000",
    ),
    (
        TxnOffsetCommitResponse(
            throttle_time_ms=2,
            topics=(
                TxnOffsetCommitResponseTopic(
                    topic_id=TOPIC,
                    partitions=(TxnOffsetCommitResponsePartition(partition_index=6, error_code=100),),
                ),
            ),
        ),
        6,
        "00000002020000000000000001000000000000000202000000060064000000",
    ),
    (UnregisterControllerRequest(controller_id=7), 0, "0000000700"),
    (
        UnregisterControllerResponse(throttle_time_ms=2, error_code=136, error_message="m"),
        0,
        "000000020088026d00",
    ),
]


@pytest.mark.parametrize(("message", "version", "expected"), OF_KAFKA, ids=lambda each: type(each).__name__)
def test_the_bytes_are_apaches(message: Message, version: int, expected: str) -> None:
    cls = type(message)
    assert bytes(encoder(cls, version)(message)).hex() == expected
    assert decoder(cls, version)(bytes.fromhex(expected), 0) == (message, len(expected) // 2)


def test_a_topic_has_a_name_or_an_id() -> None:
    """Version 6 has no names, and earlier ones have no ids: each leaves out what it does not have."""
    topic = TxnOffsetCommitRequestTopic(name="t", topic_id=TOPIC)
    request = TxnOffsetCommitRequest(topics=(topic,))
    for version, named, by_id in ((5, "t", UUID(int=0)), (6, "", TOPIC)):
        read, _ = decoder(TxnOffsetCommitRequest, version)(encoder(TxnOffsetCommitRequest, version)(request), 0)
        assert [(each.name, each.topic_id) for each in read.topics] == [(named, by_id)]

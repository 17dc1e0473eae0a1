"""The quorum as DescribeQuorum shows it.

Owns the answer to DescribeQuorum (versions 0-2) and the same values for this node's own use. Times inside this package
are monotonic; the answer has times of day, made with the offset that the node last gave.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tanist.quorum import messages, voters
from tanist.quorum.state.node_state import Quorum
from tanist.quorum.state.progress import ReplicaProgress
from tanist.quorum.state.roles import Leader
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import METADATA_TOPIC
from tanist.wire.messages.describe_quorum_request import DescribeQuorumRequest
from tanist.wire.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)


@dataclass(frozen=True, slots=True)
class QuorumInfo:
    """A node's view of the quorum; with the replicas only if it leads."""

    leader_id: int | None
    epoch: int
    high_watermark: int
    voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]


def quorum_info(quorum: Quorum, now_ms: int, wall_offset_ms: int) -> QuorumInfo:
    members: tuple[ReplicaState, ...] = ()
    observers: tuple[ReplicaState, ...] = ()
    role = quorum.role
    if isinstance(role, Leader):
        members = tuple(_states(quorum, role, role.progress.voters.values(), now_ms, wall_offset_ms))
        observers = tuple(_states(quorum, role, role.progress.present_observers(now_ms), now_ms, wall_offset_ms))
    return QuorumInfo(quorum.leader_id, quorum.epoch, quorum.high_watermark, members, observers)


def _states(
    quorum: Quorum, leader: Leader, replicas: Iterable[ReplicaProgress], now_ms: int, wall_offset_ms: int
) -> Iterable[ReplicaState]:
    for replica in replicas:
        state = ReplicaState(
            replica_id=replica.key.node_id,
            replica_directory_id=replica.key.directory_id,
            log_end_offset=-1 if replica.end_offset is None else replica.end_offset,
        )
        if replica.key.node_id == leader.leader_id:
            state.log_end_offset = quorum.log.end_offset
            state.last_caught_up_timestamp = now_ms + wall_offset_ms
            state.last_fetch_timestamp = now_ms + wall_offset_ms
        else:
            if replica.last_fetch_ms is not None:
                state.last_fetch_timestamp = replica.last_fetch_ms + wall_offset_ms
            if replica.last_caught_up_ms is not None:
                state.last_caught_up_timestamp = replica.last_caught_up_ms + wall_offset_ms
        yield state


def describe_quorum(
    quorum: Quorum, request: DescribeQuorumRequest, now_ms: int, wall_offset_ms: int
) -> DescribeQuorumResponse:
    part = messages.only(request.topics)
    if part is None:
        return DescribeQuorumResponse(
            topics=tuple(
                TopicData(
                    topic_name=topic.topic_name,
                    partitions=tuple(
                        PartitionData(
                            partition_index=partition.partition_index,
                            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        )
                        for partition in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )
    role = quorum.role
    if not isinstance(role, Leader):
        answer = PartitionData(
            partition_index=messages.PARTITION,
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            error_message=None,
            leader_id=-1 if quorum.leader_id is None else quorum.leader_id,
            leader_epoch=quorum.epoch,
        )
        return DescribeQuorumResponse(
            error_message=None, topics=(TopicData(topic_name=METADATA_TOPIC, partitions=(answer,)),)
        )
    info = quorum_info(quorum, now_ms, wall_offset_ms)
    answer = PartitionData(
        partition_index=messages.PARTITION,
        error_message=None,
        leader_id=role.leader_id,
        leader_epoch=role.epoch,
        high_watermark=-1 if role.committed is None else role.committed,
        current_voters=info.voters,
        observers=info.observers,
    )
    listener_name = quorum.config.listener_name
    return DescribeQuorumResponse(
        error_message=None,
        topics=(TopicData(topic_name=METADATA_TOPIC, partitions=(answer,)),),
        nodes=tuple(
            Node(
                node_id=voter.node_id,
                listeners=tuple(
                    Listener(name=each.name, host=each.host, port=each.port)
                    for each in voter.listeners or (voters.Listener(listener_name, voter.host, voter.port),)
                ),
            )
            for voter in quorum.voters
        ),
    )

"""Kafka's quorum messages about the one partition there is: `__cluster_metadata`-0.

Builds and reads messages and judges none. Every message of the quorum is a list of topics of a list of partitions; one
that names anything but our partition gives None. Fields that a version lacks may be filled all the same, the codec
drops them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from tanist.quorum.state.roles import VoteAsk
from tanist.quorum.storage.voter_history import address
from tanist.quorum.voters import Endpoint, Listener, LogEnd, ReplicaKey, SnapshotId, Voter
from tanist.wire.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from tanist.wire.messages import (
    begin_quorum_epoch_request,
    begin_quorum_epoch_response,
    end_quorum_epoch_request,
    end_quorum_epoch_response,
    fetch_request,
    fetch_response,
    fetch_snapshot_request,
    fetch_snapshot_response,
    vote_request,
    vote_response,
)
from tanist.wire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from tanist.wire.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from tanist.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from tanist.wire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.fetch_snapshot_request import FetchSnapshotRequest
from tanist.wire.messages.fetch_snapshot_response import FetchSnapshotResponse
from tanist.wire.messages.vote_request import VoteRequest
from tanist.wire.messages.vote_response import VoteResponse

PARTITION = 0


class Answer(NamedTuple):
    """The leadership fields of every response."""

    error: int
    leader_id: int | None
    epoch: int
    endpoint: Endpoint | None = None
    """Where the leader listens, where the response says so."""


# -- taking apart

P_co = TypeVar("P_co", covariant=True)


class _NamedTopic(Protocol[P_co]):
    @property
    def topic_name(self) -> str: ...

    @property
    def partitions(self) -> tuple[P_co, ...]: ...


def only(topics: tuple[_NamedTopic[P_co], ...]) -> P_co | None:
    """Our partition's part of a Vote, BeginQuorumEpoch, EndQuorumEpoch or DescribeQuorum message."""
    if len(topics) != 1 or topics[0].topic_name != METADATA_TOPIC or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    return partition if getattr(partition, "partition_index", None) == PARTITION else None


def fetch_part(request: FetchRequest, api_version: int) -> fetch_request.FetchPartition | None:
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    topic = request.topics[0]
    named = topic.topic_id == METADATA_TOPIC_ID if api_version >= 13 else topic.topic == METADATA_TOPIC
    return topic.partitions[0] if named and topic.partitions[0].partition == PARTITION else None


def fetch_answer_part(response: FetchResponse) -> fetch_response.PartitionData | None:
    if len(response.responses) != 1 or len(response.responses[0].partitions) != 1:
        return None
    topic = response.responses[0]
    # The version decides which of the two names was on the wire; the other is at its default.
    named = topic.topic_id == METADATA_TOPIC_ID or topic.topic == METADATA_TOPIC
    return topic.partitions[0] if named and topic.partitions[0].partition_index == PARTITION else None


def snapshot_part(request: FetchSnapshotRequest) -> fetch_snapshot_request.PartitionSnapshot | None:
    for topic in request.topics:
        for partition in topic.partitions:
            if topic.name == METADATA_TOPIC and partition.partition == PARTITION:
                return partition
    return None


def snapshot_answer_part(response: FetchSnapshotResponse) -> fetch_snapshot_response.PartitionSnapshot | None:
    for topic in response.topics:
        for partition in topic.partitions:
            if topic.name == METADATA_TOPIC and partition.index == PARTITION:
                return partition
    return None


def fetching_replica(request: FetchRequest, part: fetch_request.FetchPartition) -> ReplicaKey:
    """The fetching replica: the id moved into `replica_state` in version 15; the one that was not sent is -1."""
    replica_id = request.replica_state.replica_id
    return ReplicaKey(request.replica_id if replica_id < 0 else replica_id, part.replica_directory_id)


def vote_ask(part: vote_request.PartitionData) -> VoteAsk:
    return VoteAsk(
        candidate=ReplicaKey(part.replica_id, part.replica_directory_id),
        epoch=part.replica_epoch,
        log_end=LogEnd(part.last_offset_epoch, part.last_offset),
        pre_vote=part.pre_vote,
    )


def preferred_candidates(part: end_quorum_epoch_request.PartitionData) -> tuple[ReplicaKey, ...]:
    """Version 0 has ids, version 1 has keys."""
    if part.preferred_candidates:
        return tuple(ReplicaKey(r.candidate_id, r.candidate_directory_id) for r in part.preferred_candidates)
    return tuple(ReplicaKey(node_id) for node_id in part.preferred_successors)


class _LeaderHint(Protocol):
    @property
    def leader_id(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...


class _NodeEndpoint(Protocol):
    @property
    def node_id(self) -> int: ...

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


def answer(error: int, hint: _LeaderHint, nodes: Iterable[_NodeEndpoint] = ()) -> Answer:
    if hint.leader_id < 0:
        return Answer(error, None, hint.leader_epoch)
    endpoint = next((Endpoint(node.host, node.port) for node in nodes if node.node_id == hint.leader_id), None)
    return Answer(error, hint.leader_id, hint.leader_epoch, endpoint)


class _NamedEndpoint(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


def claimed_endpoint(endpoints: Iterable[_NamedEndpoint], listener_name: str) -> Endpoint | None:
    """Where the leader that sends BeginQuorumEpoch or EndQuorumEpoch listens; version 0 does not say."""
    listeners = [Listener(each.name, each.host, each.port) for each in endpoints]
    return address(listeners, listener_name) if listeners else None


# -- requests


def vote(cluster_id: str, me: ReplicaKey, to: Voter, epoch: int, log_end: LogEnd, *, pre_vote: bool) -> VoteRequest:
    part = vote_request.PartitionData(
        partition_index=PARTITION,
        replica_epoch=epoch,
        replica_id=me.node_id,
        replica_directory_id=me.directory_id,
        voter_directory_id=to.directory_id,
        last_offset_epoch=log_end.epoch,
        last_offset=log_end.offset,
        pre_vote=pre_vote,
    )
    topic = vote_request.TopicData(topic_name=METADATA_TOPIC, partitions=(part,))
    return VoteRequest(cluster_id=cluster_id, voter_id=to.node_id, topics=(topic,))


def begin_quorum_epoch(
    cluster_id: str, leader: Voter, to: Voter, epoch: int, listener_name: str
) -> BeginQuorumEpochRequest:
    part = begin_quorum_epoch_request.PartitionData(
        partition_index=PARTITION,
        voter_directory_id=to.directory_id,
        leader_id=leader.node_id,
        leader_epoch=epoch,
    )
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=to.node_id,
        topics=(begin_quorum_epoch_request.TopicData(topic_name=METADATA_TOPIC, partitions=(part,)),),
        leader_endpoints=(
            begin_quorum_epoch_request.LeaderEndpoint(name=listener_name, host=leader.host, port=leader.port),
        ),
    )


def end_quorum_epoch(
    cluster_id: str, leader: Voter, epoch: int, preferred: Iterable[ReplicaKey], listener_name: str
) -> EndQuorumEpochRequest:
    keys = tuple(preferred)
    part = end_quorum_epoch_request.PartitionData(
        partition_index=PARTITION,
        leader_id=leader.node_id,
        leader_epoch=epoch,
        preferred_successors=tuple(key.node_id for key in keys),
        preferred_candidates=tuple(
            end_quorum_epoch_request.ReplicaInfo(candidate_id=key.node_id, candidate_directory_id=key.directory_id)
            for key in keys
        ),
    )
    return EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=(end_quorum_epoch_request.TopicData(topic_name=METADATA_TOPIC, partitions=(part,)),),
        leader_endpoints=(
            end_quorum_epoch_request.LeaderEndpoint(name=listener_name, host=leader.host, port=leader.port),
        ),
    )


def fetch(
    cluster_id: str,
    me: ReplicaKey,
    epoch: int,
    log_end: LogEnd,
    log_start: int,
    high_watermark: int,
    max_wait_ms: int,
    max_bytes: int,
) -> FetchRequest:
    part = fetch_request.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=epoch,
        fetch_offset=log_end.offset,
        last_fetched_epoch=log_end.epoch,
        log_start_offset=log_start,
        partition_max_bytes=max_bytes,
        replica_directory_id=me.directory_id,
        high_watermark=high_watermark,
    )
    topic = fetch_request.FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=(part,))
    return FetchRequest(
        cluster_id=cluster_id,
        replica_id=me.node_id,
        replica_state=fetch_request.ReplicaState(replica_id=me.node_id),
        max_wait_ms=max_wait_ms,
        min_bytes=0,
        max_bytes=max_bytes,
        topics=(topic,),
    )


def fetch_snapshot(
    cluster_id: str, me: ReplicaKey, epoch: int, snapshot_id: SnapshotId, position: int, max_bytes: int
) -> FetchSnapshotRequest:
    part = fetch_snapshot_request.PartitionSnapshot(
        partition=PARTITION,
        current_leader_epoch=epoch,
        snapshot_id=fetch_snapshot_request.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
        position=position,
        replica_directory_id=me.directory_id,
    )
    topic = fetch_snapshot_request.TopicSnapshot(name=METADATA_TOPIC, partitions=(part,))
    return FetchSnapshotRequest(cluster_id=cluster_id, replica_id=me.node_id, max_bytes=max_bytes, topics=(topic,))


# -- responses


class Known(Protocol):
    """Where nodes listen, as far as it is known: a `Quorum` or a `VoterSet`."""

    def get(self, node_id: int) -> Voter | None: ...


def _leader(known: Known, leader_id: int | None) -> Voter | None:
    return None if leader_id is None else known.get(leader_id)


def _sent_id(leader_id: int | None) -> int:
    return -1 if leader_id is None else leader_id


def vote_reply(known: Known, leader_id: int | None, epoch: int, error: int, granted: bool) -> VoteResponse:
    part = vote_response.PartitionData(
        partition_index=PARTITION,
        error_code=error,
        leader_id=_sent_id(leader_id),
        leader_epoch=epoch,
        vote_granted=granted,
    )
    leader = _leader(known, leader_id)
    return VoteResponse(
        topics=(vote_response.TopicData(topic_name=METADATA_TOPIC, partitions=(part,)),),
        node_endpoints=()
        if leader is None
        else (vote_response.NodeEndpoint(node_id=leader.node_id, host=leader.host, port=leader.port),),
    )


def begin_reply(known: Known, leader_id: int | None, epoch: int, error: int) -> BeginQuorumEpochResponse:
    part = begin_quorum_epoch_response.PartitionData(
        partition_index=PARTITION, error_code=error, leader_id=_sent_id(leader_id), leader_epoch=epoch
    )
    leader = _leader(known, leader_id)
    return BeginQuorumEpochResponse(
        topics=(begin_quorum_epoch_response.TopicData(topic_name=METADATA_TOPIC, partitions=(part,)),),
        node_endpoints=()
        if leader is None
        else (begin_quorum_epoch_response.NodeEndpoint(node_id=leader.node_id, host=leader.host, port=leader.port),),
    )


def end_reply(known: Known, leader_id: int | None, epoch: int, error: int) -> EndQuorumEpochResponse:
    part = end_quorum_epoch_response.PartitionData(
        partition_index=PARTITION, error_code=error, leader_id=_sent_id(leader_id), leader_epoch=epoch
    )
    leader = _leader(known, leader_id)
    return EndQuorumEpochResponse(
        topics=(end_quorum_epoch_response.TopicData(topic_name=METADATA_TOPIC, partitions=(part,)),),
        node_endpoints=()
        if leader is None
        else (end_quorum_epoch_response.NodeEndpoint(node_id=leader.node_id, host=leader.host, port=leader.port),),
    )


def fetch_reply(known: Known, leader_id: int | None, epoch: int, part: fetch_response.PartitionData) -> FetchResponse:
    part.partition_index = PARTITION
    part.current_leader = fetch_response.LeaderIdAndEpoch(leader_id=_sent_id(leader_id), leader_epoch=epoch)
    leader = _leader(known, leader_id)
    topic = fetch_response.FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=(part,))
    return FetchResponse(
        responses=(topic,),
        node_endpoints=()
        if leader is None
        else (fetch_response.NodeEndpoint(node_id=leader.node_id, host=leader.host, port=leader.port),),
    )


def snapshot_reply(
    known: Known, leader_id: int | None, epoch: int, part: fetch_snapshot_response.PartitionSnapshot
) -> FetchSnapshotResponse:
    part.index = PARTITION
    part.current_leader = fetch_snapshot_response.LeaderIdAndEpoch(leader_id=_sent_id(leader_id), leader_epoch=epoch)
    if part.unaligned_records is None:
        part.unaligned_records = b""
    leader = _leader(known, leader_id)
    return FetchSnapshotResponse(
        topics=(fetch_snapshot_response.TopicSnapshot(name=METADATA_TOPIC, partitions=(part,)),),
        node_endpoints=()
        if leader is None
        else (fetch_snapshot_response.NodeEndpoint(node_id=leader.node_id, host=leader.host, port=leader.port),),
    )


def is_for(voter_id: int, voter_directory_id: UUID, me: ReplicaKey) -> bool:
    """Whether a Vote or BeginQuorumEpoch was meant for this replica; version 0 does not name the replica."""
    if voter_id < 0:
        return True
    return voter_id == me.node_id and voter_directory_id in (ReplicaKey(0).directory_id, me.directory_id)

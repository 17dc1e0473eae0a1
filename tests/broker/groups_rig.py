"""Members of groups in a virtual cluster: they find their coordinator and ask again as client libraries do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC, partition_of
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from tanist.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tanist.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tanist.wire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker.cluster_rig import Cluster

RETRIABLE = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
}
ATTEMPTS = 400
BACKOFF_MS = 50


def groups_cluster(*, nodes: int = 3, partitions: int = 5, config: Mapping[str, str] | None = None) -> Cluster:
    settings = {"offsets.topic.num.partitions": str(partitions), "group.initial.rebalance.delay.ms": "0"}
    return Cluster(nodes=nodes, config={**settings, **(config or {})})


class Client:
    """One client of one group."""

    def __init__(self, cluster: Cluster, group: str = "g") -> None:
        self.cluster = cluster
        self.group = group
        self.errors: list[int] = []
        """Requests that it was to send again."""

    # -- asking

    def _alive(self) -> int:
        return next(node.node_id for node in self.cluster.world.nodes())

    def coordinator(self) -> int:
        for _ in range(ATTEMPTS):
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=(self.group,))
            answer = self.cluster.ask(request, 4, to=self._alive())
            if answer is not None:
                found = answer.coordinators[0]
                if found.error_code == 0:
                    return int(found.node_id)
                assert found.error_code in RETRIABLE, found
            self.cluster.run(BACKOFF_MS)
        raise AssertionError("no coordinator is found")

    def ask(self, request: Any, version: int, error_of: Callable[[Any], int]) -> Any:
        """Ask the coordinator, wherever it is by now."""
        for _ in range(ATTEMPTS):
            answer = self.cluster.ask(request, version, to=self.coordinator())
            if answer is not None:
                error = error_of(answer)
                if error not in RETRIABLE:
                    return answer
                self.errors.append(error)
            self.cluster.run(BACKOFF_MS)
        raise AssertionError(f"asked in vain: {self.errors[-5:]}")

    # -- offsets

    def commit_request(self, offset: int, topic: str = "t", metadata: str | None = "") -> OffsetCommitRequest:
        place = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_leader_epoch=2, committed_metadata=metadata
        )
        topics = (OffsetCommitRequestTopic(name=topic, partitions=(place,)),)
        return OffsetCommitRequest(group_id=self.group, topics=topics)

    def commit(self, offset: int, topic: str = "t", metadata: str | None = "") -> int:
        answer = self.ask(
            self.commit_request(offset, topic, metadata), 8, lambda a: int(a.topics[0].partitions[0].error_code)
        )
        return int(answer.topics[0].partitions[0].error_code)

    def fetched(self, topic: str = "t") -> Any:
        """What is committed of partition 0."""
        wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=(0,))
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=self.group, topics=(wanted,)),))
        answer = self.ask(request, 9, lambda a: int(a.groups[0].error_code))
        assert answer.groups[0].error_code == 0, answer
        return answer.groups[0].topics[0].partitions[0]

    def committed(self, topic: str = "t") -> int:
        return int(self.fetched(topic).committed_offset)

    # -- membership

    def commit_as(self, joined: Any, offset: int) -> None:
        """Commit as a member of a generation."""
        request = self.commit_request(offset)
        request.member_id, request.generation_id_or_member_epoch = joined.member_id, joined.generation_id
        answer = self.ask(request, 8, lambda a: int(a.topics[0].partitions[0].error_code))
        assert answer.topics[0].partitions[0].error_code == 0, answer

    def join(self, member_id: str = "", *, version: int = 9, session_ms: int = 30_000, metadata: bytes = b"m") -> Any:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=10_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
        )
        answer = self.ask(request, version, lambda a: int(a.error_code))
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return self.join(answer.member_id, version=version, session_ms=session_ms, metadata=metadata)
        return answer

    def sync(self, joined: Any, assignment: bytes | None = None) -> Any:
        assignments: tuple[SyncGroupRequestAssignment, ...] = ()
        if assignment is not None:
            assignments = (SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment),)
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        return self.ask(request, 5, lambda a: int(a.error_code))

    def heartbeat(self, joined: Any) -> int:
        request = HeartbeatRequest(group_id=self.group, generation_id=joined.generation_id, member_id=joined.member_id)
        return int(self.ask(request, 4, lambda a: int(a.error_code)).error_code)

    @property
    def partition(self) -> int:
        topic = self.cluster.node(self._alive()).metadata.image.topic(OFFSETS_TOPIC)
        assert topic is not None
        return partition_of(self.group, len(topic.partitions))

"""The member of a group through a client whose coordinator is played."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tanist.client.metadata import ClusterView, PartitionView, TopicView
from tanist.runtime.client.client import Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.group_member import PolledGroupMember, new_member
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from tanist.wire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

T = UUID(int=1)


class Played(Client):
    """Broker 1 coordinates; its answers, or what happens instead, come from a list."""

    def __init__(self, *answers: Any, metadata_fails: int = 0) -> None:
        super().__init__([("nowhere", 1)], timeout_s=5.0)
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.metadata_fails = metadata_fails

    def ask(self, request: Any, answer: Any, **_: Any) -> Any:
        if isinstance(request, FindCoordinatorRequest):
            return FindCoordinatorResponse(coordinators=(Coordinator(key="g", node_id=1, host="nowhere", port=1),))
        self.asked.append(request)
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def metadata(self, *_: Any, **__: Any) -> ClusterView:
        if self.metadata_fails:
            self.metadata_fails -= 1
            raise Unreachable("nobody")
        partitions = {index: PartitionView(index, 1, 0, (), (), ()) for index in (0, 1)}
        return ClusterView(topics={"t": TopicView("t", T, 0, False, partitions)})


def heartbeat(epoch: int, *assigned: int, error: int = 0) -> ConsumerGroupHeartbeatResponse:
    parts = (TopicPartitions(topic_id=T, partitions=assigned),)
    assignment = Assignment(topic_partitions=parts) if assigned else None
    return ConsumerGroupHeartbeatResponse(
        error_code=error, member_epoch=epoch, heartbeat_interval_ms=60_000, assignment=assignment
    )


def committed(error: int = 0) -> OffsetCommitResponse:
    partition = OffsetCommitResponsePartition(error_code=error)
    return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="t", partitions=(partition,)),))


def test_it_joins_when_there_is_somebody_to_tell_it_of_the_topics() -> None:
    client = Played(heartbeat(1, 0, 1), metadata_fails=1)
    member = PolledGroupMember(client, "g", ["t"], "consumer")
    assert member.poll()
    assert member.assigned == {("t", 0), ("t", 1)}


def test_a_poll_that_failed_is_no_end() -> None:
    client = Played(heartbeat(1, 0), metadata_fails=1)
    client.timeout_s = 0.0
    member = PolledGroupMember(client, "g", ["t"], "consumer")
    with pytest.raises(Unreachable):
        member.poll()
    assert member.poll()


def test_after_a_lost_answer_the_next_attempt_says_everything() -> None:
    client = Played(heartbeat(1, 0), heartbeat(1), Unreachable("lost"), heartbeat(2, 1), heartbeat(2))
    member = PolledGroupMember(client, "g", ["t"], "consumer")
    member.poll()
    member.poll()  # it reports what it has
    member._waiting = [(0.0, pause) for _, pause in member._waiting]
    assert member.poll()
    assert [request.subscribed_topic_names for request in client.asked] == [("t",), None, None, ("t",)]


def test_a_commit_of_an_older_epoch_is_made_again_in_the_newer_one() -> None:
    client = Played(heartbeat(1, 0), committed(ErrorCode.STALE_MEMBER_EPOCH), heartbeat(2), committed())
    member = PolledGroupMember(client, "g", ["t"], "consumer")
    member.poll()
    assert member.commit({("t", 0): 5})
    assert [getattr(request, "generation_id_or_member_epoch", None) for request in client.asked] == [None, 1, None, 2]


def test_who_was_never_answered_says_no_goodbye() -> None:
    silent = Played()
    PolledGroupMember(silent, "g", ["t"], "consumer").leave()
    assert silent.asked == []
    client = Played(heartbeat(1, 0), heartbeat(-1))
    member = PolledGroupMember(client, "g", ["t"], "consumer")
    member.poll()
    member.leave()
    assert [request.member_epoch for request in client.asked] == [0, -1]
    assert not member.assigned


def test_a_refusal_is_raised_and_a_cluster_without_the_protocol_gets_a_classic_member() -> None:
    full = Played(heartbeat(0, error=ErrorCode.GROUP_MAX_SIZE_REACHED))
    with pytest.raises(KafkaError, match="GROUP_MAX_SIZE_REACHED"):
        PolledGroupMember(full, "g", ["t"], "consumer").poll()
    older = Played(heartbeat(0, error=ErrorCode.UNSUPPORTED_VERSION), Unsupported("no such request"))
    with pytest.raises(Unsupported):
        new_member(older, "g", ["t"], None).poll()
    assert [isinstance(request, ConsumerGroupHeartbeatRequest) for request in older.asked] == [True, False]

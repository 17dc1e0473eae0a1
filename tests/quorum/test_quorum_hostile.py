"""Requests with any numbers in them: an answer, or the one error that says that the quorum is inconsistent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.lab.scenarios.quorum_node import EVERYBODY, ME, directory, fetch, log_of, vote
from tanist.quorum import ElectionState, QuorumInconsistent, ReplicaKey, Reply, SnapshotId, messages
from tanist.wire.messages import begin_quorum_epoch_request, end_quorum_epoch_request
from tanist.wire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from tanist.wire.messages.describe_quorum_request import DescribeQuorumRequest
from tanist.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from tanist.wire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.fetch_snapshot_request import FetchSnapshotRequest
from tanist.wire.messages.vote_request import VoteRequest
from tanist.wire.messages.vote_response import VoteResponse
from tanist.wire.schema import Request
from tests.quorum.quorum_kit import Kit, fetch_snapshot

NUMBER = st.integers(-2, 8) | st.sampled_from([-(2**31), 2**31 - 1])
OFFSET = st.integers(-2, 8) | st.sampled_from([-(2**63), 2**63 - 1])
NODE = st.integers(-2, 5)


def begin_any(node_id: int, epoch: int, to_id: int) -> Request:
    part = begin_quorum_epoch_request.PartitionData(leader_id=node_id, leader_epoch=epoch)
    topic = begin_quorum_epoch_request.TopicData(topic_name="__cluster_metadata", partitions=(part,))
    return BeginQuorumEpochRequest(voter_id=to_id, topics=(topic,))


def end_any(node_id: int, epoch: int, heirs: list[int]) -> Request:
    part = end_quorum_epoch_request.PartitionData(
        leader_id=node_id, leader_epoch=epoch, preferred_successors=tuple(heirs)
    )
    topic = end_quorum_epoch_request.TopicData(topic_name="__cluster_metadata", partitions=(part,))
    return EndQuorumEpochRequest(topics=(topic,))


REQUESTS: st.SearchStrategy[Request] = st.one_of(
    st.builds(vote, NUMBER, NODE, NUMBER, OFFSET, pre_vote=st.booleans(), to_id=NODE),
    st.builds(begin_any, NODE, NUMBER, NODE),
    st.builds(end_any, NODE, NUMBER, st.lists(NODE, max_size=4)),
    st.builds(
        fetch,
        NUMBER,
        NODE,
        OFFSET,
        NUMBER,
        max_wait_ms=NUMBER,
        high_watermark=OFFSET,
        from_directory=st.sampled_from([directory(1), directory(2)]),
    ),
    st.builds(fetch_snapshot, NUMBER, NODE, st.builds(SnapshotId, OFFSET, NUMBER), OFFSET, max_bytes=NUMBER),
    st.sampled_from([cls() for cls in (VoteRequest, BeginQuorumEpochRequest, EndQuorumEpochRequest, FetchRequest)]),
    st.sampled_from([FetchSnapshotRequest(), DescribeQuorumRequest()]),
)
ROLES: list[ElectionState] = [
    ElectionState(3),
    ElectionState(3, 1),
    ElectionState(3, ME),
    ElectionState(3, None, ReplicaKey(ME, directory(ME))),
]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ROLES), st.booleans(), st.lists(REQUESTS, min_size=1, max_size=8))
def test_every_request_is_answered_once(stored: ElectionState, lead: bool, requests: list[Request]) -> None:
    kit = Kit(stored=stored, log=log_of([(1, 2), (3, 2)], SnapshotId(2, 1)))
    if lead:
        kit.become_leader()
    sources = []
    for number, request in enumerate(requests):
        epoch = kit.node.epoch
        try:
            kit.receive(request, source=number)
        except QuorumInconsistent:
            break
        sources.append(number)
        assert kit.node.epoch >= epoch
    else:
        # Fetches may wait; when the log grows, or leadership ends, they have waited enough.
        if kit.node.is_leader:
            kit.take(kit.node.resign(kit.now_ms))
        answered = [effect.source for effect in kit.effects if isinstance(effect, Reply)]
        assert sorted(source for source in answered if source in sources) == sources
    assert kit.log.start_offset == 2
    assert kit.log.end_offset >= 4


RESPONSES: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        lambda leader, epoch, error, granted: messages.vote_reply(EVERYBODY, leader, epoch, error, granted),
        st.none() | NODE,
        NUMBER,
        st.sampled_from([0, 42, 74, 75, 6]),
        st.booleans(),
    ),
    st.builds(
        lambda leader, epoch, error: messages.begin_reply(EVERYBODY, leader, epoch, error),
        st.none() | NODE,
        NUMBER,
        st.sampled_from([0, 42, 74, 75]),
    ),
    st.sampled_from([VoteResponse(), FetchResponse(), EndQuorumEpochResponse()]),
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(ROLES), st.lists(RESPONSES, min_size=1, max_size=6))
def test_any_answer_is_survived(stored: ElectionState, responses: list[Any]) -> None:
    kit = Kit(stored=stored, log=log_of([(1, 2), (3, 2)]))
    for response in responses:
        epoch = kit.node.epoch
        try:
            kit.respond(kit.sent()[-1], response)
        except QuorumInconsistent:
            return
        assert kit.node.epoch >= epoch
        kit.pass_time(50)


def test_what_is_no_answer_of_the_quorum_is_refused() -> None:
    kit = Kit(stored=ElectionState(3, 1))
    with pytest.raises(TypeError):
        kit.node.response(kit.last_sent(FetchRequest).request_id, object(), 0)  # type: ignore[arg-type]

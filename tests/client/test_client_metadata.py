"""Leaders from Metadata responses of brokers that may lag behind."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tanist.client.metadata import Broker, ClusterView, cluster_view, metadata_request
from tanist.client.requests import CoordinatorKind, coordinator_in, find_coordinator
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import decode_request, encode_request, parse_request_header
from tanist.wire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from tanist.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FIRST, SECOND = UUID(int=1), UUID(int=2)


def view(leader: int, epoch: int, *, topic_id: UUID = FIRST, error: int = 0) -> ClusterView:
    partition = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    topic = MetadataResponseTopic(
        name="t", topic_id=topic_id, error_code=error, partitions=() if error else (partition,)
    )
    brokers = tuple(MetadataResponseBroker(node_id=each, host=f"h{each}", port=9) for each in (1, 2, 3))
    return cluster_view(MetadataResponse(brokers=brokers, topics=(topic,)))


def leader(seen: ClusterView) -> tuple[int, int] | None:
    found = seen.leader_of("t", 0)
    return None if found is None else (found[0].node_id, found[1])


@given(st.lists(st.integers(0, 5), min_size=1))
def test_the_leader_of_the_latest_epoch_stays_in_any_order_of_responses(epochs: list[int]) -> None:
    seen = ClusterView()
    for epoch in epochs:
        seen = seen.merged(view(1 + epoch % 3, epoch))
    assert leader(seen) == (1 + max(epochs) % 3, max(epochs))


def test_a_topic_that_was_made_anew_begins_at_its_own_epoch() -> None:
    assert leader(view(1, 8).merged(view(2, 0, topic_id=SECOND))) == (2, 0)


def test_a_denial_takes_nothing_away() -> None:
    denied = view(0, 0, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert leader(view(1, 8).merged(denied)) == (1, 8)
    assert denied.merged(view(1, 8)).topics["t"].error_code == 0


def test_a_leader_that_is_no_broker_is_not_known() -> None:
    assert leader(view(-1, 3)) is None
    assert leader(view(7, 3)) is None
    assert ClusterView().leader_of("t", 0) is None


def test_asking_creates_no_topic() -> None:
    assert metadata_request(None).topics is None
    assert [each.name for each in metadata_request(["a", "b"]).topics or ()] == ["a", "b"]
    assert not metadata_request(["a"]).allow_auto_topic_creation


def test_one_request_finds_a_coordinator_in_all_versions() -> None:
    request = find_coordinator(CoordinatorKind.TRANSACTION, "id")
    for version in range(request.VERSIONS[0] + 1, request.VERSIONS[1] + 1):
        frame = memoryview(encode_request(request, version, 1, "c"))[4:]
        decoded: Any = decode_request(parse_request_header(frame), frame)
        assert "id" in (decoded.key, *decoded.coordinator_keys)
        assert decoded.key_type == CoordinatorKind.TRANSACTION
    old = FindCoordinatorResponse(node_id=2, host="h", port=9)
    new = FindCoordinatorResponse(coordinators=(Coordinator(key="id", node_id=2, host="h", port=9),))
    assert coordinator_in(old) == coordinator_in(new) == Broker(2, "h", 9)
    assert CoordinatorKind.GROUP.topic == "__consumer_offsets"
    assert CoordinatorKind.TRANSACTION.topic == "__transaction_state"

"""DescribeQuorum: who has come how far."""

from __future__ import annotations

from typing import Any

from tanist.lab.scenarios.quorum_node import ME, WALL_MS, directory, fetch, part_of
from tanist.quorum import (
    ElectionState,
    ReplicaKey,
)
from tanist.quorum.state.progress import MAX_OBSERVERS, OBSERVER_SESSION_MS
from tanist.wire.ids import METADATA_TOPIC
from tanist.wire.messages import describe_quorum_request
from tests.quorum.quorum_kit import Kit, elected, error_of


class TestDescribe:
    def request(self, topic: str = METADATA_TOPIC) -> describe_quorum_request.DescribeQuorumRequest:
        part = describe_quorum_request.PartitionData(partition_index=0)
        return describe_quorum_request.DescribeQuorumRequest(
            topics=(describe_quorum_request.TopicData(topic_name=topic, partitions=(part,)),)
        )

    def test_who_has_come_how_far(self) -> None:
        kit = elected()
        kit.now_ms += 100
        kit.ask(fetch(5, 9, 1, 5, max_wait_ms=0))
        kit.take(kit.node.append([b"x"], kit.now_ms, WALL_MS + kit.now_ms).effects)
        kit.now_ms += 50
        kit.ask(fetch(5, 1, 2, 5, max_wait_ms=0))
        response = kit.ask(self.request())
        part = part_of(response)
        assert (part.leader_id, part.leader_epoch, part.high_watermark) == (ME, 5, 2)
        one = next(voter for voter in part.current_voters if voter.replica_id == 1)
        assert (one.log_end_offset, one.replica_directory_id) == (2, directory(1))
        assert one.last_fetch_timestamp == one.last_caught_up_timestamp == WALL_MS + kit.now_ms
        (observer,) = part.observers
        assert (observer.replica_id, observer.log_end_offset) == (9, 1)
        assert observer.last_caught_up_timestamp == WALL_MS + kit.now_ms - 50
        assert [(node.node_id, node.listeners[0].host) for node in response.nodes] == [
            (0, "node0"),
            (1, "node1"),
            (2, "node2"),
        ]

    def test_caught_up_means_having_what_the_leader_had_a_fetch_ago(self) -> None:
        kit = elected()
        start = kit.now_ms
        kit.ask(fetch(5, 1, 1, 5, max_wait_ms=0))
        for step in range(1, 4):
            kit.take(kit.node.append([b"x"], kit.now_ms, WALL_MS + kit.now_ms).effects)
            kit.now_ms = start + step * 10
            kit.ask(fetch(5, 1, step, 5, max_wait_ms=0))
        (voter,) = [v for v in kit.node.describe(kit.now_ms).voters if v.replica_id == 1]
        assert voter.last_caught_up_timestamp == WALL_MS + start + 20

    def test_only_a_leader_knows(self) -> None:
        response = Kit(stored=ElectionState(5, 1)).ask(self.request())
        assert error_of(response) == "NOT_LEADER_OR_FOLLOWER"
        assert Kit(stored=ElectionState(5, 1)).node.describe(0).voters == ()

    def test_of_another_topic(self) -> None:
        assert error_of(elected().ask(self.request("orders"))) == "UNKNOWN_TOPIC_OR_PARTITION"

    def test_silent_observers_are_forgotten_and_their_number_is_bounded(self) -> None:
        kit = elected()
        role: Any = kit.node._quorum.role
        progress = role.progress
        for node_id in range(100, 100 + MAX_OBSERVERS + 5):
            progress.fetched(ReplicaKey(node_id), 0, 1, 0)
        assert len(progress.observers) == MAX_OBSERVERS
        assert ReplicaKey(100) not in progress.observers
        progress.fetched(ReplicaKey(50), 0, 1, OBSERVER_SESSION_MS)
        assert [observer.key.node_id for observer in progress.present_observers(OBSERVER_SESSION_MS)] == [50]

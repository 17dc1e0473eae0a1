"""AlterPartition from a broker's leaders to the controller, on whole nodes: rules 17 and 21."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest
from tanist.wire.messages.alter_partition_response import AlterPartitionResponse
from tests.broker.cluster_rig import Cluster

HELD_MS = 5_000


class Listener:
    """Hears the AlterPartitions of broker 1 on their way to the controller; may hold back or make up the answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[tuple[int, list[int]]] = []
        """When, and which partitions."""
        self.under_way = 0
        self.most_under_way = 0
        self.hold_ms = 0
        self.fail_next: AlterPartitionResponse | None = None
        self.listening = False
        self.requests: list[AlterPartitionRequest] = []
        call_for_real = ControllerChannel.call

        def call(channel: Any, request: Any, version: int, timeout_ms: int, on_answer: Callable[[Any], None]) -> None:
            if not (self.listening and isinstance(request, AlterPartitionRequest) and request.broker_id == 1):
                call_for_real(channel, request, version, timeout_ms, on_answer)
                return
            clock = channel._context.clock
            self.requests.append(request)
            self.sent.append(
                (clock.now_ms(), sorted(each.partition_index for topic in request.topics for each in topic.partitions))
            )
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)

            def handle_response(response: Any) -> None:
                self.under_way -= 1
                on_answer(response)

            if self.fail_next is not None:
                response, self.fail_next = self.fail_next, None
                clock.call_soon(lambda: handle_response(response))
                return
            call_for_real(
                channel,
                request,
                version,
                timeout_ms,
                lambda response: clock.call_at(clock.now_ms() + self.hold_ms, lambda: handle_response(response)),
            )

        monkeypatch.setattr(ControllerChannel, "call", call)


def in_sync(cluster: Cluster, partitions: int, count: int) -> bool:
    return all(len(cluster.hosted("t", partition)[1].leader.isr) == count for partition in range(partitions))


def test_rule_21_one_request_at_a_time_with_all_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener(monkeypatch)
    listener.hold_ms = HELD_MS
    cluster = Cluster(nodes=5)
    cluster.create_topic("t", assignment=[[1, 2]] * 6 + [[1, 3]] * 6)
    for node_id in (2, 3):
        cluster.host(node_id).kill()
    cluster.until(lambda: in_sync(cluster, 12, 1))
    listener.listening = True
    cluster.host(2).start()
    cluster.until(lambda: bool(listener.sent))
    cluster.host(3).start()
    cluster.until(
        lambda: len(cluster.node(1).components.isr_changes) == 12
    )  # proposed while the first request is under way
    assert len(listener.sent) == 1
    cluster.until(lambda: in_sync(cluster, 12, 2))
    assert listener.most_under_way == 1
    (first_ms, first), (second_ms, second), *more = listener.sent
    assert (first, second, more) == (list(range(6)), list(range(6, 12)), [])
    assert second_ms >= first_ms + HELD_MS


@pytest.mark.parametrize("error", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.NOT_CONTROLLER])
def test_rule_21_a_request_that_fails_as_a_whole_is_sent_again_after_50_ms(
    monkeypatch: pytest.MonkeyPatch, error: ErrorCode
) -> None:
    listener = Listener(monkeypatch)
    cluster = Cluster()
    cluster.create_topic("t", assignment=[[1, 2, 3]] * 4)
    cluster.host(3).kill()
    cluster.until(lambda: in_sync(cluster, 4, 2))
    listener.listening = True
    listener.fail_next = AlterPartitionResponse(error_code=error)
    cluster.host(3).start()
    cluster.until(lambda: in_sync(cluster, 4, 3))
    (first_ms, first), (second_ms, second) = listener.sent
    assert first == second == [0, 1, 2, 3]
    assert second_ms - first_ms == 50
    assert listener.requests[0] == listener.requests[1]


def test_rule_17_a_request_vouches_for_each_member(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener(monkeypatch)
    cluster = Cluster()
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    cluster.host(3).kill()
    cluster.until(lambda: in_sync(cluster, 1, 2))
    listener.listening = True
    cluster.host(3).start()
    cluster.until(lambda: in_sync(cluster, 1, 3))
    ((partition,),) = (topic.partitions for topic in listener.requests[0].topics)
    epochs = {node.node_id: node.lifecycle.broker_epoch for node in cluster.world.nodes()}
    assert {each.broker_id: each.broker_epoch for each in partition.new_isr_with_epochs} == epochs

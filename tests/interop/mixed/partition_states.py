"""Partitions as DescribeTopicPartitions shows them: with the ELR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tanist.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest, TopicRequest
from tanist.wire.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse
from tests.interop.mixed.mixed_cluster import MixedCluster
from tests.interop.mixed.watched_load import RECOVERY_S, Watch
from tests.interop.pair import Asker
from tests.interop.waiting import NeverCame, wait_for


@dataclass(frozen=True, slots=True)
class State:
    """One partition."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    offline: tuple[int, ...]


def states(cluster: MixedCluster, topic: str, *, ask: int | None = None) -> list[State]:
    """All partitions of a topic, as one broker sees them: the given one, or the first that runs."""
    node_id = ask if ask is not None else next(each for each in cluster.node_ids if cluster.pid(each) is not None)
    with Asker(cluster.address(node_id)) as asker:
        request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name=topic),))
        answer = asker.ask(request, 0, DescribeTopicPartitionsResponse)
    (found,) = answer.topics
    return [
        State(
            each.leader_id,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            tuple(each.eligible_leader_replicas or ()),
            tuple(each.offline_replicas),
        )
        for each in sorted(found.partitions, key=lambda each: each.partition_index)
    ]


def wait_states(watch: Watch, what: str, condition: Callable[[State], bool], *, ask: int | None = None) -> None:
    """Until it holds of every partition of the topic."""
    wait_each(watch, what, lambda _, state: condition(state), ask=ask)


def wait_each(watch: Watch, what: str, condition: Callable[[int, State], bool], *, ask: int | None = None) -> None:
    """Until it holds of every partition of the topic, and its number."""
    seen: list[State] = []

    def all_are() -> bool:
        watch.cluster.check_alive()
        seen[:] = states(watch.cluster, watch.topic, ask=ask)
        return bool(seen) and all(condition(number, state) for number, state in enumerate(seen))

    try:
        wait_for(all_are, what, timeout_s=RECOVERY_S, poll_s=0.1)
    except NeverCame as never:
        raise NeverCame(f"{never}; last seen: {seen}") from None
    watch.say(what)

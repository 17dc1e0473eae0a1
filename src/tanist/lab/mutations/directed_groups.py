"""Directed runs with consumer groups: moments of a coordinator's life that random runs hardly ever meet.

Owns the run in which group members work during a script, and the scripts. A script's partition is the one of
`__consumer_offsets` that has all groups of the run. The ledger of the groups judges the run, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tanist.lab.mutations.directed import CONTROLLER, Directed, Script, Until
from tanist.sim.run.config import CONSUMER, GROUPS, TOPIC, ChaosConfig, GroupPlan, GroupSettings
from tanist.sim.workload.operations import Topic
from tanist.wire.ids import TopicIdPartition
from tanist.wire.internal_topics import OFFSETS_TOPIC

_COMMITS = 20
"""Number of acknowledged commits before a script acts: the group is at work."""
_ASKED_MS = 700
"""Longer than clients need to find a successor and ask it; less than a replica may lag."""
_SUCCEEDED_MS = 2_000
"""Time for members to find the successor and commit there, and for the watcher to ask the old one again."""
_PARTITIONS = 3


class DirectedGroups(Directed):
    """One seed of a directed run in which only the script and the group members act."""

    def __init__(self, seed: int, script: Callable[[DirectedGroups], Script], config: ChaosConfig) -> None:
        super().__init__(seed, lambda run: script(self), config)

    @property
    def key(self) -> TopicIdPartition:
        return (self.checkers.replicas.metadata.image.topic_ids[OFFSETS_TOPIC], 0)

    def at_work(self) -> bool:
        """Offsets and many commits were returned: clients will notice anything that a coordinator forgets."""
        counts = self.world.counts
        return counts["groups: offsets returned"] > 0 and counts["groups: commits acknowledged"] >= _COMMITS


def config(**changes: Any) -> ChaosConfig:
    """Three brokers and a separate controller; one group, whose members and watcher never pause for long."""
    groups = GroupSettings(
        plans=(GroupPlan("g0", CONSUMER, 2, (TOPIC,)),), commit_pause_ms=40, watch_pause_ms=40, churn=(), grows=False
    )
    settings: dict[str, Any] = {
        "workload": GROUPS,
        "groups": groups,
        "roles": {**dict.fromkeys((1, 2, 3), "broker"), CONTROLLER: "controller"},
        "topics": (Topic(TOPIC, _PARTITIONS, 3),),
        "min_insync_replicas": 2,
        "fault_time_ms": 6_000,
        "latency_us": (50, 300),
        "kinds": (),
        "operations": (),
        "down_max": 3,
        "properties": {
            "broker.session.timeout.ms": "9000",
            "broker.heartbeat.interval.ms": "500",
            "replica.lag.time.max.ms": "1500",
            "offsets.topic.num.partitions": "1",
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": "3000",
            "group.consumer.heartbeat.interval.ms": "500",
        },
    }
    return ChaosConfig(**{**settings, **changes})


def a_successor_that_cannot_tell_yet(run: DirectedGroups) -> Script:
    """The coordinator dies; its successor is asked while it cannot know yet whether its last commit counts."""
    yield Until(run.at_work)
    yield Until(lambda: set(run.state.isr) == set(run.state.replicas))
    leader = run.state.leader
    successor, other = (each for each in run.state.replicas if each != leader)
    answers = run.hold_answers(other, leader)
    fetches = run.hold_fetches(other, successor)
    yield Until(lambda: run.end(successor) > run.end(other))
    run.host(leader).kill()
    yield Until(lambda: run.leader_state(successor) is not None)
    uncertain = run.end(successor)
    yield _ASKED_MS
    if run.high_watermark(successor) >= uncertain:
        raise LookupError("the successor knew all along")
    answers.release()
    fetches.release()
    yield Until(lambda: run.high_watermark(successor) == run.end(successor))
    run.host(leader).start()


def a_coordinator_that_is_cut_off(run: DirectedGroups) -> Script:
    """Only clients reach the coordinator. It still acts while its successor has returned newer offsets."""
    yield Until(run.at_work)
    yield Until(lambda: set(run.state.isr) == set(run.state.replicas))
    leader = run.state.leader
    others = [CONTROLLER, *(each for each in run.state.replicas if each != leader)]
    for other in others:
        run.block(leader, other)
        run.block(other, leader)
    yield Until(lambda: run.state.leader not in (leader, -1))
    yield _SUCCEEDED_MS
    if run.leader_state(leader) is None:
        raise LookupError("the old coordinator has heard of it")
    for other in others:
        run.unblock(leader, other)
        run.unblock(other, leader)

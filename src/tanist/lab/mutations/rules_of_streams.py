"""Rules of Streams groups, broken: tasks given too early or twice, epochs that go back, topics that do not fit.

Owns the patches, and `STREAMS_MUTANTS`, each with the runs that show it, which have Streams groups (`sim.run.streams`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tanist.coordinator.effects import Answer, Append, ConsumerGroupChanged
from tanist.coordinator.group_shard import GroupShard
from tanist.coordinator.sessions import CommittingMembers
from tanist.coordinator.streams import group, topology
from tanist.coordinator.streams.assignor import assign_sticky
from tanist.coordinator.streams.group import StreamsGroup
from tanist.coordinator.streams.tasks import Role, RoleIn
from tanist.lab.mutations.patching import Breaks, Patch, always, fixed
from tanist.lab.mutations.simulator import Mutation, drawn
from tanist.lab.mutations.situations import Changed, of_workload
from tanist.sim.run.config import STREAMS, ChaosConfig
from tanist.sim.workload.streams_settings import StreamsPlan
from tanist.wire.errors import ErrorCode

# -- tasks


def _reconciling(**changed: Callable[[Any], Any]) -> tuple[Patch, ...]:
    """The step towards the target, with some of its arguments changed."""
    names = ("current", "target_epoch", "target", "reported", "is_free")
    next_current = vars(group)["next_current"]

    def differently(*arguments: Any, **rest: Any) -> Any:
        given = dict(zip(names, arguments, strict=True))
        given.update((name, change(given[name])) for name, change in changed.items())
        return next_current(*given.values(), **rest)

    return (Patch(group, "next_current", differently),)


def tasks_are_always_free() -> tuple[Patch, ...]:
    return _reconciling(is_free=lambda is_free: always(True))


def nobody_waits_for_a_revocation() -> tuple[Patch, ...]:
    return _reconciling(reported=lambda reported: {})


def _assigning(changed: Callable[[dict[str, dict[RoleIn, frozenset[int]]]], None]) -> tuple[Patch, ...]:
    def differently(*arguments: Any) -> Any:
        made = {member_id: dict(target) for member_id, target in assign_sticky(*arguments).items()}
        changed(made)
        return made

    return (Patch(group, "assign_sticky", differently),)


def members_follow_what_they_work_on() -> tuple[Patch, ...]:
    def followed(made: dict[str, dict[RoleIn, frozenset[int]]]) -> None:
        for target in made.values():
            for key in [each for each in target if each.role is Role.ACTIVE]:
                target[RoleIn(Role.STANDBY, key.subtopology_id)] = target[key]

    def standbys_are_free(is_free: Callable[[RoleIn, int], bool]) -> Callable[[RoleIn, int], bool]:
        return lambda key, index: key.role is Role.STANDBY or is_free(key, index)

    return (*_assigning(followed), *_reconciling(is_free=standbys_are_free))


def the_last_task_is_nobodys() -> tuple[Patch, ...]:
    def without(made: dict[str, dict[RoleIn, frozenset[int]]]) -> None:
        for target in made.values():
            for key in target:
                if key.role is Role.ACTIVE and len(target[key]) > 1:
                    target[key] -= {max(target[key])}

    return _assigning(without)


def nobody_follows() -> tuple[Patch, ...]:
    return _assigning(
        lambda made: made.update(
            (each, {key: tasks for key, tasks in target.items() if key.role is Role.ACTIVE})
            for each, target in made.items()
        )
    )


# -- answers


def answers_before_the_commit() -> tuple[Patch, ...]:
    heartbeat = GroupShard.streams_heartbeat

    def at_once(shard: GroupShard, *arguments: Any) -> list[Any]:
        effects: list[Any] = []
        for effect in heartbeat(shard, *arguments):
            if isinstance(effect, Append) and isinstance(effect.purpose, ConsumerGroupChanged):
                effects.append(Answer(effect.purpose.ticket, effect.purpose.response))
                effect = replace(effect, purpose=replace(effect.purpose, ticket=None))
            effects.append(effect)
        return effects

    return (Patch(GroupShard, "streams_heartbeat", at_once),)


# -- epochs, sessions and commits


def an_empty_group_begins_anew() -> tuple[Patch, ...]:
    next_value = StreamsGroup._next_value

    def again(streams: StreamsGroup) -> Any:
        value = next_value(streams)
        if not streams.members:
            value.epoch = 1
        return value

    return (Patch(StreamsGroup, "_next_value", again),)


def sessions_are_short() -> tuple[Patch, ...]:
    session_timeout_ms = StreamsGroup.session_timeout_ms
    return (
        Patch(StreamsGroup, "session_timeout_ms", lambda streams, each: session_timeout_ms(streams, each) // 4),
    )  # fmt: skip


def nobody_may_take_time_to_revoke() -> tuple[Patch, ...]:
    time_to_revoke = StreamsGroup.time_to_revoke

    def none(streams: StreamsGroup, member_id: str) -> int | None:
        return None if time_to_revoke(streams, member_id) is None else 1

    return (Patch(StreamsGroup, "time_to_revoke", none),)


everybody_commits = fixed(CommittingMembers, "commit_error", always(int(ErrorCode.NONE)))


# -- topics


def changelogs_have_one_more() -> tuple[Patch, ...]:
    new_topic = vars(topology)["_new_topic"]

    def larger(info: Any, partitions: int) -> Any:
        return new_topic(info, partitions + info.name.endswith("-changelog"))

    return (Patch(topology, "_new_topic", larger),)


joined_topics_differ = fixed(topology, "_copartition", always(None))


# -- the table


def _drawn(rule: str, patches: Breaks, changed: Changed | None = None, **settings: Any) -> Mutation:
    """Shows in random runs, perhaps with changes."""
    return drawn(rule, patches, of_workload(STREAMS, changed, **settings))


def _quiet(config: ChaosConfig) -> ChaosConfig:
    """Nothing happens, so that it need not wait long in the end."""
    return replace(config.calm(), fault_time_ms=3_000, settle_time_ms=20_000)


def _sleeping(config: ChaosConfig) -> ChaosConfig:
    """Processes sleep through their sessions, and go on."""
    busy = _busy(config)
    properties = {**busy.properties, "group.streams.session.timeout.ms": "1500"}
    changed = replace(_quiet(busy), fault_time_ms=14_000, properties=properties)
    return changed.with_settings(
        session_timeout_ms=1_500,
        commit_pause_ms=40,
        churn=("pause",),
        churn_pause_ms=(300, 1_500),
        away_ms=(2_500, 5_000),
    )


def _busy(config: ChaosConfig) -> ChaosConfig:
    """Three processes share many tasks, and some of them follow others' tasks."""
    topics = tuple(replace(topic, partitions=4) for topic in config.topics)
    plan = StreamsPlan("a0", 3, 1, tuple(topic.name for topic in topics), ("table",))
    properties = {**config.properties, "group.streams.num.standby.replicas": "1"}
    changed = replace(config, topics=topics, properties=properties, may_lose=False)
    return changed.with_settings(plans=(plan,), standby_replicas=1)


def _failing(config: ChaosConfig) -> ChaosConfig:
    """Coordinators die while they decide, and somebody looks on."""
    properties = {**config.properties, "group.streams.assignment.interval.ms": "0"}
    changed = replace(
        config,
        kinds=("crash-leader",),
        fault_pause_ms=(100, 600),
        latency_us=(500, 5_000),
        may_lose=False,
        operations=(),
        properties=properties,
    )
    return changed.with_settings(describe_pause_ms=10, churn=("die", "leave"), churn_pause_ms=(100, 500))


def _joining(config: ChaosConfig) -> ChaosConfig:
    """Two topics with different numbers of partitions are joined."""
    events, orders = replace(config.topics[0], partitions=4), replace(config.topics[0], name="orders", partitions=2)
    plan = StreamsPlan("a0", 2, 1, ("events", "orders"), ("join",))
    return _quiet(replace(config, topics=(events, orders))).with_settings(plans=(plan,))


STREAMS_MUTANTS: Mapping[str, Mutation] = {
    "streams-free": _drawn("a task is given before another member has given it up", tasks_are_always_free, _busy),
    "streams-revoked": _drawn("nobody waits for a revocation", nobody_waits_for_a_revocation, _busy),
    "streams-patience": _drawn("a member has no time to give tasks up", nobody_may_take_time_to_revoke, _busy),
    "streams-session": _drawn("a session ends before its time", sessions_are_short, _busy),
    "streams-early": _drawn(
        "a heartbeat is answered before its records are committed", answers_before_the_commit, _failing
    ),
    "streams-anew": _drawn("the epochs of a group without members begin anew", an_empty_group_begins_anew),
    "streams-roles": _drawn("a member follows the tasks that it works on", members_follow_what_they_work_on, _busy),
    "streams-nobodys": _drawn("a task is nobody's", the_last_task_is_nobodys, lambda config: _quiet(_busy(config))),
    "streams-standbys": _drawn("nobody follows", nobody_follows, lambda config: _quiet(_busy(config))),
    "streams-partitions": _drawn(
        "a changelog topic has a partition more", changelogs_have_one_more, lambda config: _quiet(_busy(config))
    ),
    "streams-joined": _drawn("topics that are joined have different partitions", joined_topics_differ, _joining),
    "streams-fenced": _drawn("commits of all members and epochs are taken", everybody_commits, _sleeping),
}

"""Rules of consumer groups, broken: early answers, stale coordinators, lost commits, sessions without an end.

Owns the patches, and `GROUP_MUTANTS`, each with the runs that show it. Those runs have consumer groups
(`sim.run.groups`), unlike the runs of the other mutations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tanist.broker.coordinator_runtime.runtime import CoordinatorRuntime
from tanist.broker.replication.leadership import Confirmation, Leadership, OnConfirmation
from tanist.coordinator.consumer import group as consumer_group
from tanist.coordinator.consumer.group import ConsumerGroup
from tanist.coordinator.consumer.tables import CONSUMER_KEYS
from tanist.coordinator.consumer_groups import ConsumerGroups
from tanist.coordinator.effects import (
    Answer,
    Append,
    AssignmentStored,
    ConsumerGroupChanged,
    Effect,
    OffsetsDeleted,
    OffsetsStored,
)
from tanist.coordinator.group import Group
from tanist.coordinator.group_shard import GroupShard
from tanist.coordinator.offsets import GroupOffsets
from tanist.coordinator.rebalance import Rebalancing
from tanist.coordinator.table import GroupTable
from tanist.lab.mutations import directed_groups
from tanist.lab.mutations.directed import Script
from tanist.lab.mutations.directed_groups import DirectedGroups
from tanist.lab.mutations.patching import Breaks, Patch, always, fixed
from tanist.lab.mutations.simulator import Mutation, drawn
from tanist.lab.mutations.situations import Changed, of_workload
from tanist.sim.run.config import CLASSIC, CONSUMER, GROUPS, ChaosConfig
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC, partition_of

# -- offsets


def g1_tells_before_the_commit() -> tuple[Patch, ...]:
    commit = GroupOffsets.commit

    def answer_at_once(
        shard: GroupShard, request: Any, ticket: object, now_ms: int, *, exact: bool = False
    ) -> list[Effect]:
        effects = commit(shard, request, ticket, now_ms, exact=exact)
        for effect in effects:
            if isinstance(effect, Append):
                shard.apply(effect)
        return effects

    return (Patch(GroupOffsets, "commit", answer_at_once),)


def g2_answers_before_the_commit() -> tuple[Patch, ...]:
    commit = GroupOffsets.commit

    def answer_at_once(
        shard: GroupShard, request: Any, ticket: object, now_ms: int, *, exact: bool = False
    ) -> list[Effect]:
        effects: list[Effect] = []
        for effect in commit(shard, request, ticket, now_ms, exact=exact):
            if isinstance(effect, Append) and isinstance(effect.purpose, OffsetsStored):
                effects.append(replace(effect, purpose=OffsetsDeleted(None, None)))
                effects.append(Answer(ticket, effect.purpose.response))
            else:
                effects.append(effect)
        return effects

    return (Patch(GroupOffsets, "commit", answer_at_once),)


g3_any_generation_commits = fixed(Group, "commit_error", always(0))
g3b_any_epoch_commits = fixed(ConsumerGroup, "commit_error", always(0))


# -- changes of coordinator


def _serves_what_is_not_loaded(runtime: CoordinatorRuntime[GroupShard], group_id: str) -> Any:
    topic = runtime._components.metadata.image.topic(OFFSETS_TOPIC)
    if topic is None or runtime._closed:
        return ErrorCode.NOT_COORDINATOR
    partition = runtime._partitions.get(partition_of(group_id, len(topic.partitions)))
    return ErrorCode.NOT_COORDINATOR if partition is None else partition


g4_serves_before_it_has_loaded = fixed(CoordinatorRuntime, "find", _serves_what_is_not_loaded)


def g5_deposed_coordinators_go_on() -> tuple[Patch, ...]:
    role_changed = CoordinatorRuntime.role_changed

    def goes_on(runtime: CoordinatorRuntime[GroupShard], partition: Any) -> None:
        if partition.leader is not None and not partition.stale:
            role_changed(runtime, partition)

    return (Patch(CoordinatorRuntime, "role_changed", goes_on),)


def g11_tells_without_making_sure() -> tuple[Patch, ...]:
    def at_once(leadership: Leadership, partition: Any, patience_ms: int, confirmed: OnConfirmation) -> None:
        confirmed(Confirmation.YES)

    return (Patch(Leadership, "confirm", at_once),)


def g12_loads_another_group_than_there_was() -> tuple[Patch, ...]:
    replay = GroupTable.replay

    def of_the_first_kind(table: GroupTable, key: Any, value: Any) -> None:
        """A group that is about to go over has opened its consumer group before; a log that is loaded has not."""
        if not (isinstance(key, CONSUMER_KEYS) and table.classic(key.group) is not None):
            replay(table, key, value)

    return (Patch(GroupTable, "replay", of_the_first_kind),)


def g13_lists_what_it_has_loaded() -> tuple[Patch, ...]:
    partitions = CoordinatorRuntime.partitions

    def loaded(runtime: CoordinatorRuntime[GroupShard]) -> Any:
        return (partition for partition in partitions(runtime) if partition.ready)

    return (Patch(CoordinatorRuntime, "partitions", loaded),)


# -- assignments


def g6_tells_before_it_is_stored() -> tuple[Patch, ...]:
    sync = Group.sync

    def answer_at_once(group: Group, request: Any, ticket: object, now_ms: int) -> list[Effect]:
        effects = sync(group, request, ticket, now_ms)
        for effect in list(effects):
            if isinstance(effect, Append) and isinstance(effect.purpose, AssignmentStored):
                effects += group.written(effect.purpose, 0, now_ms)
        return effects

    return (Patch(Group, "sync", answer_at_once),)


def g6b_tells_before_it_is_stored() -> tuple[Patch, ...]:
    append = ConsumerGroups._append

    def answer_at_once(groups: ConsumerGroups, *args: Any) -> list[Effect]:
        effects: list[Effect] = []
        for effect in append(groups, *args):
            if isinstance(effect, Append) and isinstance(effect.purpose, ConsumerGroupChanged):
                purpose = effect.purpose
                effects.append(replace(effect, purpose=replace(purpose, ticket=None)))
                if purpose.ticket is not None:
                    effects.append(Answer(purpose.ticket, purpose.response))
            else:
                effects.append(effect)
        return effects

    return (Patch(ConsumerGroups, "_append", answer_at_once),)


def g7_gives_on_what_is_not_given_up() -> tuple[Patch, ...]:
    next_current = vars(consumer_group)["next_current"]

    def free_for_all(current: Any, epoch: int, target: Any, reported: Any, _is_free: Any, *, subscribed: Any) -> Any:
        return next_current(current, epoch, target, reported, always(True), subscribed=subscribed)

    return (Patch(consumer_group, "next_current", free_for_all),)


def g8_refused_decisions_stand() -> tuple[Patch, ...]:
    return (Patch(GroupTable, "take_back", always(None)),)


def g9_sessions_never_end() -> tuple[Patch, ...]:
    tick = Rebalancing.tick

    def tick_for_the_living(group: Rebalancing, now_ms: int) -> list[Effect]:
        for member in group.members.values():
            member.deadline_ms = max(member.deadline_ms, now_ms + member.session_timeout_ms)
        return tick(group, now_ms)

    return (Patch(Rebalancing, "tick", tick_for_the_living),)


def _nobody_is_late(group: ConsumerGroup, now_ms: int) -> list[str]:
    for member_id in group.members:
        group.deadlines[member_id] = now_ms + group.session_timeout_ms(member_id)
    return []


g9b_sessions_never_end = fixed(ConsumerGroup, "overdue", _nobody_is_late)
g10_topics_are_not_looked_at = fixed(consumer_group, "hash_of", always(0))


# -- the table


def _drawn(rule: str, patches: Breaks) -> Mutation:
    """Shows in random runs."""
    return drawn(rule, patches, of_workload(GROUPS))


def _asked(rule: str, patches: Breaks) -> Mutation:
    """Shows in random runs in which brokers are asked for their groups all the time."""
    return drawn(rule, patches, of_workload(GROUPS, lambda config: replace(config, inquirers=True)))


def _among(protocol: str, rule: str, patches: Breaks, changed: Changed | None = None, **settings: Any) -> Mutation:
    """Shows in random runs with all groups of one protocol, and perhaps other changes."""

    def situation(seed: int) -> ChaosConfig:
        config = of_workload(GROUPS, changed, **settings)(seed)
        return config.with_settings(plans=tuple(replace(plan, protocol=protocol) for plan in config.groups.plans))

    return drawn(rule, patches, situation)


def _directed(rule: str, patches: Breaks, script: Callable[[DirectedGroups], Script], **settings: Any) -> Mutation:
    """Shows in a directed run."""
    made = directed_groups.config(**settings)
    return Mutation(rule, patches, lambda seed: DirectedGroups(seed, script, made), directed=script.__name__)


def _dying(config: ChaosConfig) -> ChaosConfig:
    """Some members die and never come back."""
    return replace(config, settle_time_ms=25_000).with_settings(
        churn=("die",), churn_pause_ms=(1_000, 40_000), away_ms=(60_000, 60_000), all_return=False
    )


def _quiet(config: ChaosConfig) -> ChaosConfig:
    """Nothing happens except that a topic grows."""
    return replace(config.calm(), settle_time_ms=10_000).with_settings(grows=True)


GROUP_MUTANTS: Mapping[str, Mutation] = {
    "G1": _drawn("an offset is returned before it is committed", g1_tells_before_the_commit),
    "G2": _drawn("a commit is answered before it is committed", g2_answers_before_the_commit),
    "G3": _among(
        CLASSIC,
        "a member of another generation may commit",
        g3_any_generation_commits,
        churn=("pause",),
        session_timeout_ms=1_500,
    ),
    "G3b": _among(
        CONSUMER,
        "a member of any epoch may commit anything",
        g3b_any_epoch_commits,
        churn=("pause",),
    ),
    "G4": _directed(
        "a successor serves before it has loaded",
        g4_serves_before_it_has_loaded,
        directed_groups.a_successor_that_cannot_tell_yet,
    ),
    "G5": _drawn("a coordinator goes on when another has its partition", g5_deposed_coordinators_go_on),
    "G6": _drawn("an assignment is returned before it is stored (classic)", g6_tells_before_it_is_stored),
    "G6b": _drawn("an assignment is returned before it is stored (consumer)", g6b_tells_before_it_is_stored),
    "G7": _drawn("a partition is given on before its owner has given it up", g7_gives_on_what_is_not_given_up),
    "G8": _drawn("what the log has refused stays decided", g8_refused_decisions_stand),
    "G9": _among(CLASSIC, "a session that ended keeps its partitions (classic)", g9_sessions_never_end, _dying),
    "G9b": _among(CONSUMER, "a session that ended keeps its partitions (consumer)", g9b_sessions_never_end, _dying),
    "G10": _among(CONSUMER, "the hash of the topics is not looked at", g10_topics_are_not_looked_at, _quiet),
    "G11": _directed(
        "a coordinator tells offsets without making sure that it is one",
        g11_tells_without_making_sure,
        directed_groups.a_coordinator_that_is_cut_off,
        fault_time_ms=15_000,  # long enough for a session to end
    ),
    "G12": _drawn("a log is loaded as if a group with offsets stayed classic", g12_loads_another_group_than_there_was),
    "G13": _asked("a coordinator lists what it has loaded by now, without an error", g13_lists_what_it_has_loaded),
}

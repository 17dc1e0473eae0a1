"""One Streams group (KIP-1071): heartbeats and their effects.

As in a consumer group there are three kinds of epochs, and a member gives up the tasks outside its target before it
takes over the target's epoch. What differs: the first member brings the application's topology; no task is assigned
before all its topics are there; and a process has a task once, in whatever role.

Decisions are records (`tables`), answered when they are committed. `sessions` has the members' deadlines. Delays,
endpoints' epochs and the wish to shut down are of this coordinator alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

from tanist.coordinator.consumer.member import JOINING_EPOCH, LEAVING_STATIC_EPOCH, MemberState
from tanist.coordinator.consumer.reconciliation import next_current
from tanist.coordinator.consumer.topics import Topics, hash_of
from tanist.coordinator.effects import NEVER_MS, Refused
from tanist.coordinator.rebalance import GroupSettings
from tanist.coordinator.sessions import CommittingMembers
from tanist.coordinator.streams import statuses
from tanist.coordinator.streams.assignor import Worker, assign_sticky
from tanist.coordinator.streams.endpoints import endpoint_partitions
from tanist.coordinator.streams.member import TaskOffsets, check_epoch, check_tasks, merged, needs_new_assignment
from tanist.coordinator.streams.tables import StreamsTables
from tanist.coordinator.streams.tasks import (
    CurrentTasks,
    Role,
    RoleIn,
    Tasks,
    current_record,
    ids_of,
    reported_in,
    target_record,
)
from tanist.coordinator.streams.topology import (
    ConfiguredTopology,
    configure,
    required_topics,
)
from tanist.wire.consumer_group_records import TargetAssignmentValue
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_topics_request import CreatableTopic
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, Topology
from tanist.wire.messages.streams_group_heartbeat_response import Status, StreamsGroupHeartbeatResponse, TaskIds
from tanist.wire.streams_group_records import (
    AssignmentConfig,
    StreamsGroupKey,
    StreamsGroupValue,
    StreamsMemberCurrentKey,
    StreamsMemberKey,
    StreamsMemberTargetKey,
    StreamsMemberValue,
    StreamsTargetKey,
    StreamsTopologyKey,
    StreamsTopologyValue,
)

PROTOCOL_TYPE: Final = "streams"
_STANDBY_REPLICAS: Final = "num.standby.replicas"
_RACK_TAGS: Final = "rack.aware.assignment.tags"

Decide = Callable[[CoordinatorKey, CoordinatorValue | None], None]


class StreamsGroupState(Enum):
    """States of a Streams group, by Kafka's names."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Beaten(NamedTuple):
    """What a heartbeat comes to."""

    response: StreamsGroupHeartbeatResponse
    missing: tuple[CreatableTopic, ...] = ()
    """Internal topics to create."""


class StreamsGroup(StreamsTables, CommittingMembers):
    """A Streams group, as its coordinator sees it."""

    kind = "streams"
    protocol_type = PROTOCOL_TYPE

    def __init__(self, group_id: str, settings: GroupSettings, topics: Topics, decide: Decide) -> None:
        StreamsTables.__init__(self, group_id)
        CommittingMembers.__init__(self)
        self.emit = decide
        """Decide: apply the record at once, and have it written."""
        self.settings = settings
        self.topics = topics
        self._configured: ConfiguredTopology | None = None
        """The topology among the present topics; None: not compared yet."""
        self._delayed_until_ms = NEVER_MS
        """Until then the first assignment of a group waits for more members."""
        self._assigned_ms: int | None = None
        """When this coordinator has made the last target."""
        self.endpoint_epoch = 0
        """Grows when a member with an endpoint gets or loses tasks."""
        self.task_offsets: dict[str, TaskOffsets] = {}
        """How far members are with their tasks, as far as they have said so."""
        self._shutdown_by: str | None = None
        """The member that wants all to shut down."""

    # -- what there is

    @property
    def state(self) -> StreamsGroupState:
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.stored is None or self.stored.validated_topology_epoch != self.topology.epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.target_epoch:
            return StreamsGroupState.ASSIGNING
        for member_id in self.members:
            current = self.current(member_id)
            if current.state is not MemberState.STABLE or current.epoch != self.target_epoch:
                return StreamsGroupState.RECONCILING
        return StreamsGroupState.STABLE

    def subscribed_topics(self) -> frozenset[str]:
        """The topics that the application reads, if it has members."""
        if self.topology is None or not self.members:
            return frozenset()
        return required_topics(self.topology.subtopologies) - {
            each.name for part in self.topology.subtopologies for each in part.state_changelog_topics
        }

    def configured(self) -> ConfiguredTopology:
        """The topology among the present topics."""
        if self._configured is None:
            if self.topology is None:
                raise RuntimeError(f"Streams group {self.group_id} has no topology")
            self._configured = configure(self.topology, self._count)
        return self._configured

    def _count(self, name: str) -> int | None:
        found = self.topics.find(name)
        return None if found is None else found[1]

    # -- sessions and commits

    def member_ids(self) -> Collection[str]:
        return self.members.keys()

    def session_timeout_ms(self, member_id: str) -> int:
        return self.settings.streams_timing(self.group_id).session_timeout_ms

    def time_to_revoke(self, member_id: str) -> int | None:
        revokes = self.current(member_id).state is MemberState.UNREVOKED_PARTITIONS
        return self.members[member_id].rebalance_timeout_ms if revokes else None

    def assigned_since(self, member_id: str, topic_id: UUID, index: int) -> int | None:
        name = self.topics.name_of(topic_id)
        current = self.current(member_id)
        for part in () if self.topology is None else self.topology.subtopologies:
            if name in part.source_topics or any(each.name == name for each in part.repartition_source_topics):
                for owned in (current.assigned, current.revoking):
                    since = owned.get(RoleIn(Role.ACTIVE, part.subtopology_id), {}).get(index)
                    if since is not None:
                        return since
        return None

    def taken_back(self, now_ms: int) -> None:
        super().taken_back(now_ms)
        self.task_offsets = {each: offsets for each, offsets in self.task_offsets.items() if each in self.members}

    def rescan(self) -> None:
        super().rescan()
        self.check_ms = min(self.check_ms, self._delayed_until_ms)

    # -- heartbeats

    def heartbeat(self, beat: StreamsGroupHeartbeatRequest, client_id: str, client_host: str, now_ms: int) -> Beaten:
        """A member joins, or sends a heartbeat. `Refused` if it or its epoch is not known, or its topology no good."""
        member_id, joining = beat.member_id, beat.member_epoch == JOINING_EPOCH
        is_new_group = self.stored is None
        reported = reported_in(beat)
        before = self.members.get(member_id)
        if before is None and joining:
            self._check_size(beat.instance_id)
        self.static_members.check(beat.instance_id, member_id, beat.member_epoch, self.epoch_of)
        if beat.instance_id is not None:
            before = self._replace_static(beat.instance_id, member_id, beat.process_id)
        check_epoch(beat, reported, None if before is None else self.current(member_id))
        was_empty = not self.members
        member = merged(before, beat, client_id, client_host)
        if member != before:
            self.emit(StreamsMemberKey(group=self.group_id, member_id=member_id), member)
        self._update_topology(beat.topology)
        status = statuses.stale_topology(member.topology_epoch, self.topology.epoch if self.topology is not None else 0)
        configured, is_new = self._refreshed()
        check_tasks(configured, reported)
        offsets = self.offsets_of(member_id).updated(beat)
        self.task_offsets[member_id] = offsets.within(configured.subtopologies) if configured.is_ready else offsets
        changed = needs_new_assignment(before, member)
        if changed or is_new or self._configs_changed():
            self._update_epoch(configured, changed=changed)
        if was_empty:
            self._delay(now_ms)
        had = self.current(member_id)
        if self._may_assign(now_ms, status):
            self.assign(now_ms)
        has = self._reconcile(member_id, reported)
        self.heard_of(member_id, now_ms)
        self.be_patient(member_id, now_ms)
        if beat.shutdown_application and self._shutdown_by is None:
            self._shutdown_by = member_id
        moved = member.user_endpoint != (before.user_endpoint if before is not None else None)
        response = self._response(beat, reported, had, has, moved=moved)
        if is_new_group:  # Apache Kafka's counts from its second heartbeat on
            self.endpoint_epoch = response.endpoint_information_epoch = 0
        if configured.status is not None:
            status.append(configured.status)
        if self._shutdown_by is not None:
            status.append(statuses.shutdown(self._shutdown_by))
        tags = self.settings.streams_timing(self.group_id).rack_aware_assignment_tags
        status += statuses.missing_tags(member, tags)
        response.status = tuple(status)
        return Beaten(response, tuple(configured.missing.values()))

    def _check_size(self, instance_id: str | None) -> None:
        most = self.settings.streams_max_size
        if len(self.members) >= most and instance_id not in self.static_members:
            raise Refused(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {most} members.",
            )

    def _update_topology(self, sent: Topology | None) -> None:
        """The first member's topology is the group's. One with a smaller epoch may join, and hears that it is stale."""
        if self.topology is None:
            if sent is None:
                raise Refused(ErrorCode.INVALID_REQUEST, "The group has no topology, and the request has none.")
            value = StreamsTopologyValue(epoch=sent.epoch, subtopologies=sent.subtopologies)
            configure(value, self._count)  # it is refused before there is a record of it
            self.emit(StreamsTopologyKey(group=self.group_id), value)
            self._configured = None
        elif sent is not None and sent.epoch >= self.topology.epoch:
            known = {part.subtopology_id: part for part in self.topology.subtopologies}
            new = {part.subtopology_id: part for part in sent.subtopologies}
            if sent.epoch != self.topology.epoch or known != new:
                raise Refused(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")

    # -- the three epochs

    def _refreshed(self) -> tuple[ConfiguredTopology, bool]:
        """The topology among the present topics, and whether it was compared anew."""
        if self.refresh_requested:
            self.refresh_requested = False
            self._configured = None
        is_new = self._configured is None
        return self.configured(), is_new

    def _configs_changed(self) -> bool:
        return self.stored is not None and self.stored.last_assignment_configs != self._assignment_configs()

    def _update_epoch(self, configured: ConfiguredTopology, *, changed: bool) -> None:
        """The group's epoch grows when members, topics or the configuration of assignments have changed."""
        topology = self.topology
        names = required_topics(topology.subtopologies) if topology is not None else ()
        found = {name: self.topics.find(name) for name in names}
        value = self._next_value()
        value.metadata_hash = hash_of({name: topic for name, topic in found.items() if topic is not None})
        value.validated_topology_epoch = topology.epoch if topology is not None and configured.is_ready else -1
        value.last_assignment_configs = self._assignment_configs()
        if changed or self.stored is None or _without_epoch(value) != _without_epoch(self.stored):
            self.emit(StreamsGroupKey(group=self.group_id), value)

    def _next_value(self) -> StreamsGroupValue:
        """The group's record with its next epoch."""
        value = copy(self.stored or StreamsGroupValue())
        value.epoch = self.epoch + 1
        return value

    def _assignment_configs(self) -> tuple[AssignmentConfig, ...]:
        timing = self.settings.streams_timing(self.group_id)
        configs = [AssignmentConfig(key=_STANDBY_REPLICAS, value=str(timing.standby_replicas))]
        if timing.rack_aware_assignment_tags:
            configs.append(AssignmentConfig(key=_RACK_TAGS, value=",".join(timing.rack_aware_assignment_tags)))
        return tuple(configs)

    def _delay(self, now_ms: int) -> None:
        """The first members of a group wait for others, so that tasks need not move."""
        delay_ms = self.settings.streams_timing(self.group_id).initial_rebalance_delay_ms
        if delay_ms > 0 and self._delayed_until_ms == NEVER_MS:
            self._delayed_until_ms = now_ms + delay_ms
            self.check_ms = min(self.check_ms, self._delayed_until_ms)

    def _may_assign(self, now_ms: int, status: list[Status]) -> bool:
        if self._delayed_until_ms > now_ms and self._delayed_until_ms != NEVER_MS:
            status.append(statuses.delayed("initial rebalance delay"))
            return False
        if self.target_epoch >= self.epoch:
            return False
        interval_ms = self.settings.streams_timing(self.group_id).assignment_interval_ms
        if self._assigned_ms is not None and now_ms - self._assigned_ms < interval_ms:
            status.append(statuses.delayed("assignment interval"))
            return False
        return True

    def delay_ended(self, now_ms: int) -> bool:
        """Whether the first assignment is due; it is made then."""
        if self._delayed_until_ms > now_ms:
            return False
        self._delayed_until_ms = NEVER_MS
        if not self.members or self.topology is None or self.target_epoch >= self.epoch:
            return False
        self.assign(now_ms)
        return True

    def assign(self, now_ms: int) -> None:
        """Make the target assignment of the group's epoch; without tasks while topics are missing."""
        self._delayed_until_ms = NEVER_MS
        configured = self.configured()
        made: dict[str, Tasks] = {member_id: {} for member_id in self.members}
        if configured.is_ready:
            workers = {
                member_id: Worker(
                    member.process_id, self.targets.get(member_id, {}), self.offsets_of(member_id).reached
                )
                for member_id, member in self.members.items()
            }
            replicas = self.settings.streams_timing(self.group_id).standby_replicas
            made.update(assign_sticky(workers, configured.subtopologies, replicas))
        for member_id, target in made.items():
            if self.targets.get(member_id) != target:
                self.emit(StreamsMemberTargetKey(group=self.group_id, member_id=member_id), target_record(target))
        self.emit(StreamsTargetKey(group=self.group_id), TargetAssignmentValue(assignment_epoch=self.epoch))
        self._assigned_ms = now_ms

    def offsets_of(self, member_id: str) -> TaskOffsets:
        """How far the member is with its tasks, as far as it has said so."""
        return self.task_offsets.get(member_id, TaskOffsets())

    def _reconcile(self, member_id: str, reported: Tasks | None) -> CurrentTasks:
        """Bring a member one step nearer to its target."""
        current, process_id = self.current(member_id), self.members[member_id].process_id

        def is_free(key: RoleIn, index: int) -> bool:
            """Nobody works on the task that is to be worked on, and the process does not have it in another role."""
            holders = self.holders.get((key.subtopology_id, index), ())
            is_worked_on = any(had.role is Role.ACTIVE for had, holder in holders if holder in self.members)
            return not (key.role is Role.ACTIVE and is_worked_on) and not self.is_on(process_id, key, index)

        target = self.targets.get(member_id, {})
        has = next_current(current, self.target_epoch, target, reported, is_free, subscribed=None)
        if has != current or member_id not in self.currents:
            self.emit(StreamsMemberCurrentKey(group=self.group_id, member_id=member_id), current_record(has))
        return has

    # -- the answer

    def _response(
        self,
        beat: StreamsGroupHeartbeatRequest,
        reported: Tasks | None,
        had: CurrentTasks,
        has: CurrentTasks,
        *,
        moved: bool,
    ) -> StreamsGroupHeartbeatResponse:
        """`moved`: the member has another endpoint than before."""
        timing = self.settings.streams_timing(self.group_id)
        has_places = _places(has.assigned)
        changed = _places(had.assigned) != has_places
        if moved or (changed and self.members[beat.member_id].user_endpoint is not None):
            self.endpoint_epoch += 1
        # A member that says other tasks than it has may not have heard of them: an answer may have been lost.
        unheard = reported is not None and _places(reported) != has_places
        tells = changed or unheard or beat.member_epoch == JOINING_EPOCH
        endpoints = None
        if self.endpoint_epoch != beat.endpoint_information_epoch:
            subtopologies = self.configured().subtopologies
            endpoints = endpoint_partitions(self.members, self.currents, subtopologies, self._count)
        return StreamsGroupHeartbeatResponse(
            member_id=beat.member_id,
            member_epoch=has.epoch,
            heartbeat_interval_ms=timing.heartbeat_interval_ms,
            acceptable_recovery_lag=timing.acceptable_recovery_lag,
            task_offset_interval_ms=timing.task_offset_interval_ms,
            active_tasks=ids_of(has.assigned, Role.ACTIVE, TaskIds) if tells else None,
            standby_tasks=ids_of(has.assigned, Role.STANDBY, TaskIds) if tells else None,
            warmup_tasks=ids_of(has.assigned, Role.WARMUP, TaskIds) if tells else None,
            endpoint_information_epoch=self.endpoint_epoch,
            partitions_by_user_endpoint=endpoints,
        )

    # -- leaving

    def leave(self, beat: StreamsGroupHeartbeatRequest) -> Beaten:
        """A member leaves: for good, or, if static and with epoch -2, for a while. `Refused` if it is none."""
        member_id = beat.member_id
        self.static_members.check(beat.instance_id, member_id, beat.member_epoch, self.epoch_of)
        if member_id not in self.members:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not in the group.")
        if beat.shutdown_application and self._shutdown_by is None:
            self._shutdown_by = member_id
        if beat.member_epoch == LEAVING_STATIC_EPOCH:
            away = current_record(self.current(member_id).away())
            self.emit(StreamsMemberCurrentKey(group=self.group_id, member_id=member_id), away)
            self.patience.pop(member_id, None)
        else:
            self.remove([member_id])
        return Beaten(StreamsGroupHeartbeatResponse(member_id=member_id, member_epoch=beat.member_epoch))

    def _replace_static(self, instance_id: str, member_id: str, process_id: str | None) -> StreamsMemberValue | None:
        """A static member is back under a new id: it takes over its old state, and has no other.

        Its process may be a new one, which was given some of its tasks to follow before. It gets these after that.
        """
        old_id = self.static_members.get(instance_id)
        if old_id is None or old_id == member_id:
            return self.members.get(member_id)
        member, target, current = self.members[old_id], self.targets.get(old_id, {}), self.current(old_id)
        self._erase(old_id)
        group, process = self.group_id, process_id or member.process_id
        kept = {
            key: {index: epoch for index, epoch in owned.items() if not self.is_on(process, key, index)}
            for key, owned in current.assigned.items()
        }
        self.emit(StreamsMemberKey(group=group, member_id=member_id), member)
        self.emit(StreamsMemberTargetKey(group=group, member_id=member_id), target_record(target))
        current = replace(current.back(), assigned=kept)
        self.emit(StreamsMemberCurrentKey(group=group, member_id=member_id), current_record(current))
        return member

    def remove(self, member_ids: Iterable[str]) -> None:
        """Remove members; their tasks go to others in the next epoch."""
        for member_id in member_ids:
            self._erase(member_id)
        self.emit(StreamsGroupKey(group=self.group_id), self._next_value())
        if not self.members:
            self._shutdown_by = None

    def _erase(self, member_id: str) -> None:
        for key in (StreamsMemberCurrentKey, StreamsMemberTargetKey, StreamsMemberKey):
            self.emit(key(group=self.group_id, member_id=member_id), None)
        self.forget_deadlines(member_id)
        self.task_offsets.pop(member_id, None)


def _places(tasks: Mapping[RoleIn, Iterable[int]]) -> dict[RoleIn, frozenset[int]]:
    places = {key: frozenset(indexes) for key, indexes in tasks.items()}
    return {key: indexes for key, indexes in places.items() if indexes}


def _without_epoch(value: StreamsGroupValue) -> tuple[object, ...]:
    return value.metadata_hash, value.validated_topology_epoch, value.last_assignment_configs

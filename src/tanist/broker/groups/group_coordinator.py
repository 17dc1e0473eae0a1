"""The group coordinator of a broker: the groups of the partitions of `__consumer_offsets` that it leads.

Owns what groups need of the coordinators' runtime (`coordinator_runtime.runtime`): their settings, the encoding of
their records, the expiry of offsets, and news of topics. Nothing here runs for Produce and Fetch, and nothing of it is
imported before a broker has a group to see to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from uuid import UUID

from tanist.broker.coordinator_runtime.components import CoordinatorComponents
from tanist.broker.coordinator_runtime.partition import CoordinatorPartition
from tanist.broker.coordinator_runtime.runtime import CoordinatorRuntime, Reply, ShardKind
from tanist.broker.metadata.image_queries import GroupValues, TimingOfImage, TopicsOfImage, streams_timing
from tanist.broker.network.call import Call
from tanist.coordinator.effects import Append, FindShareState, InitializeShareState, MarkerAppend
from tanist.coordinator.group import JoinContext
from tanist.coordinator.group_shard import GroupShard
from tanist.coordinator.rebalance import GroupSettings
from tanist.wire.batch import NewRecord
from tanist.wire.consumer_group_records import GroupRegexValue, TargetAssignmentValue
from tanist.wire.coordinator_records import encode_key, encode_value
from tanist.wire.errors import ErrorCode
from tanist.wire.group_records import (
    GroupMetadataValue,
    OffsetCommitValue,
    decode_group_record,
)
from tanist.wire.internal_topics import OFFSETS_TOPIC

if TYPE_CHECKING:
    from tanist.broker.share.persister import Persister
    from tanist.broker.share.state_requests import StateRequest
    from tanist.coordinator.share.state_shard import Outcome, SharePartitionId

_MINUTE_MS: Final = 60_000

GroupPartition: TypeAlias = CoordinatorPartition[GroupShard]


class GroupCoordinator:
    """The groups of this broker."""

    def __init__(self, components: CoordinatorComponents, persister: Callable[[], Persister]) -> None:
        """`persister` asks for the state of share partitions."""
        context = self._context = components.context
        config = context.config
        self._metadata = components.metadata
        values = GroupValues(context, components.metadata)
        self._settings = GroupSettings(
            initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
            min_session_timeout_ms=config.group_min_session_timeout_ms,
            max_session_timeout_ms=config.group_max_session_timeout_ms,
            max_size=config.group_max_size,
            offset_metadata_max_bytes=config.offset_metadata_max_bytes,
            consumer_session_timeout_ms=config.group_consumer_session_timeout_ms,
            consumer_heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
            consumer_max_size=config.group_consumer_max_size,
            assignors=tuple(config.group_consumer_assignors),
            migration_policy=config.group_consumer_migration_policy.lower(),
            timing=TimingOfImage(values, "consumer"),
            share_session_timeout_ms=config.group_share_session_timeout_ms,
            share_heartbeat_interval_ms=config.group_share_heartbeat_interval_ms,
            share_max_size=config.group_share_max_size,
            share_initialize_retry_ms=config.group_share_initialize_retry_interval_ms,
            share_timing=TimingOfImage(values, "share"),
            streams_max_size=config.group_streams_max_size,
            streams_timing=partial(streams_timing, values),
        )
        self._persister = persister
        self._topics = TopicsOfImage(components.metadata)
        runtime = self._runtime = CoordinatorRuntime(
            components,
            ShardKind(
                topic=OFFSETS_TOPIC,
                make_shard=lambda hosted: GroupShard(self._settings, self._topics),
                decode=decode_group_record,
                encode=_records_of,
                append_timeout_ms=config.offsets_commit_timeout_ms,
                entries="groups",
                count=lambda shard: len(shard.groups),
                # Offsets of topics that were deleted while the partition was elsewhere. This broker's metadata is not
                # behind: it has the record that made it the leader, and who led before took no commit after that one.
                loaded=GroupShard.forget_missing,
                carry_out=self._ask_for_state,
            ),
        )
        self.find = runtime.find
        self.when_sure = runtime.when_sure
        self.partitions = runtime.partitions
        self.role_changed = runtime.role_changed
        self.carry_out = runtime.carry_out
        self.step = runtime.step
        self.load_time = runtime.load_time
        self._expiry = context.clock.call_at(
            context.clock.now_ms() + config.offsets_retention_check_interval_ms, self._expire
        )
        runtime.start()

    def when_committed(self, group_ids: Iterable[str], then: Callable[[dict[str, int]], None]) -> None:
        """Call `then` when all that was decided on these groups so far is committed; with those that it is not true of,
        and why."""
        errors: dict[str, int] = {}
        sought: dict[GroupPartition, list[str]] = {}
        for group_id in group_ids:
            found = self.find(group_id)
            if isinstance(found, int):
                errors[group_id] = found
            else:
                sought.setdefault(found, []).append(group_id)
        left = set(sought)

        def answered(partition: GroupPartition, error: int) -> None:
            left.discard(partition)
            if error:
                errors.update(dict.fromkeys(sought[partition], error))
            if not left:
                then(errors)

        if not sought:
            then(errors)
        for partition in sought:
            ticket = partial(answered, partition)
            unavailable = partial(ticket, int(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            self.carry_out(partition, partial(partition.shard.when_committed, ticket), unavailable)

    def write_marker(self, index: int, marker: MarkerAppend) -> None:
        """Write the marker of a transaction that has committed offsets; its ticket is called with an error code."""
        partition = self._runtime.of_index(index)
        if partition is None or not partition.ready:
            # A coordinator that loads is asked again, like one that has moved.
            cast(Reply, marker.ticket)(int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return
        self.carry_out(partition, lambda: [marker])

    def topics_deleted(self, topics: Mapping[UUID, str]) -> None:
        """Offsets of these topics go: topics that are made again under the names begin at their beginning."""
        names = frozenset(topics.values())
        for partition in list(self.partitions()):
            if partition.ready:
                self.carry_out(partition, partial(partition.shard.forget_topics, names))
                self.carry_out(partition, partial(partition.shard.shares.topics_deleted, topics))

    def topics_changed(self) -> None:
        """Topics came, went or got partitions: consumer groups may have something to assign."""
        self._topics.version = self._metadata.applied_offset
        for partition in list(self.partitions()):
            with self.step(partition):
                partition.shard.topics_changed()

    def _expire(self) -> None:
        """Look for offsets that nobody has used for too long."""
        clock, config = self._context.clock, self._context.config
        self._expiry = clock.call_at(clock.now_ms() + config.offsets_retention_check_interval_ms, self._expire)
        retention_ms = config.offsets_retention_minutes * _MINUTE_MS
        for partition in list(self.partitions()):
            if partition.ready:
                self.carry_out(partition, partial(partition.shard.expire, clock.wall_ms(), retention_ms))

    def _ask_for_state(self, partition: GroupPartition, effect: Any) -> None:
        """Ask the coordinators of the share partitions; when all have answered, the group goes on."""
        from tanist.broker.share.state_requests import (  # not before there are share groups
            Delete,
            Initialize,
            Summarize,
        )
        from tanist.coordinator.share.state_shard import SharePartitionId, is_missing

        asked: Mapping[UUID, Iterable[int]] = effect.partitions
        left = {SharePartitionId(effect.group_id, each, index) for each in asked for index in asked[each]}
        errors: list[int] = []
        missing: dict[UUID, list[int]] = {}

        def answered(where: SharePartitionId, outcome: Outcome) -> None:
            left.discard(where)
            if outcome.error:
                errors.append(outcome.error)
            elif is_missing(outcome.state):
                missing.setdefault(where.topic_id, []).append(where.partition)
            if left:
                return
            error = errors[0] if errors else int(ErrorCode.NONE)
            shares = partition.shard.shares
            # If the group has another coordinator by now, this append is refused, and the client hears of it.
            if isinstance(effect, FindShareState):
                decide = partial(shares.state_missed, effect.group_id, missing)
            elif isinstance(effect, InitializeShareState):
                decide = partial(shares.state_initialized, effect, error)
            else:
                decide = partial(shares.state_deleted, effect, error)
            self.carry_out(partition, decide)

        for where in sorted(left):
            request: StateRequest = Delete()
            if isinstance(effect, FindShareState):
                request = Summarize()
            elif isinstance(effect, InitializeShareState):
                request = Initialize(effect.state_epoch, effect.partitions[where.topic_id][where.partition])
            self._persister().ask(where, request, partial(answered, where))

    def close(self) -> None:
        """The broker is going down; its connections close with it."""
        self._runtime.close()
        self._expiry.cancel()

    def join_context(self, call: Call, reply: Reply, new_member_id: str, *, static: bool) -> JoinContext:
        """The sender of this JoinGroup, and the abilities of its version."""
        client_id, client_host = call.client
        return JoinContext(
            ticket=reply,
            client_id=client_id,
            client_host=client_host,
            new_member_id=new_member_id,
            needs_known_id=call.version >= 4 and not static,
            may_skip_assignment=call.version >= 9,
        )


def _records_of(appends: Sequence[Append], wall_ms: int) -> list[NewRecord]:
    """Their records, with the time of day where they want it."""
    records: list[NewRecord] = []
    for append in appends:
        for key, value in append.records:
            if isinstance(value, OffsetCommitValue):
                value.commit_timestamp = wall_ms
            elif isinstance(value, GroupMetadataValue):
                value.current_state_timestamp = wall_ms
            elif isinstance(value, TargetAssignmentValue):
                value.assignment_timestamp = wall_ms
            elif isinstance(value, GroupRegexValue):
                value.timestamp = wall_ms
            encoded = None if value is None else encode_value(value)
            records.append(NewRecord(timestamp=wall_ms, key=encode_key(key), value=encoded))
    return records

"""The group coordinator of a broker: which groups are here, and how their decisions get into the log and out again.

Owns the partitions of `__consumer_offsets` that this broker leads, as `coordinator.Shard`s, and carries out their
effects: what a turn's requests append goes into the partition's log as one batch, like any produce with acks=all, and
is applied and answered when the high watermark covers it. A partition whose leadership has come is replayed from its
log, slice by slice between the turns of others, one partition at a time; until then its groups get
COORDINATOR_LOAD_IN_PROGRESS. It begins to be served only when everything that its log held at the start is committed:
offsets that a client has seen never go back, whichever broker leads next. A broker that has lost a partition forgets it
at once, and sends the requests that wait elsewhere.

Nothing here runs for Produce and Fetch, and nothing of it is imported before a broker has a group to see to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from tanist.broker.context import NodeContext
from tanist.broker.groups.image_queries import TimingOfImage, TopicsOfImage
from tanist.broker.groups.loading import GroupPartition, Loader
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.client_connection import Call
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.leadership import Confirmation, Leadership
from tanist.broker.replication.purgatory import Purgatory
from tanist.broker.replication.replica_effects import ReplicaEffects
from tanist.broker.replication.replicas import Replicas
from tanist.broker.turn import Turn
from tanist.coordinator.effects import Append, Effect
from tanist.coordinator.group import JoinContext
from tanist.coordinator.partitioning import partition_of
from tanist.coordinator.rebalance import NEVER_MS, GroupSettings
from tanist.ports import Timer
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.consumer_group_records import GroupRegexValue, TargetAssignmentValue
from tanist.wire.errors import ErrorCode
from tanist.wire.group_records import (
    GroupMetadataValue,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from tanist.wire.internal_topics import OFFSETS_TOPIC

if TYPE_CHECKING:
    from tanist.replica.leader import LeaderState

_MINUTE_MS: Final = 60_000

_NOT_SURE: Final = {
    Confirmation.NO: ErrorCode.NOT_COORDINATOR,
    Confirmation.UNKNOWN: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}

Reply = Callable[[Any], None]
"""The tickets that this broker gives along with requests."""


class _CommittedOnce:
    """Waits, like a produce, until what another leader wrote is committed under this one."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.done = False
        self._then = then

    def settle(self, ticket: int, error: int) -> None:
        self.done = True
        if error in (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
            self._then()


class _Batch:
    """Decisions of groups in one turn, on their way: until it is committed, the leadership is lost, or time is up."""

    __slots__ = ("_answered", "_appends", "_coordinator", "_partition", "done")

    def __init__(self, coordinator: Coordinator, partition: GroupPartition, appends: Sequence[Append]) -> None:
        self._coordinator = coordinator
        self._partition = partition
        self._appends = appends
        self._answered = False
        self.done = False

    def settle(self, ticket: int, error: int) -> None:
        self.done = True
        if error == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            error = ErrorCode.NONE  # the high watermark has passed it: it is committed
        answered, self._answered = self._answered, True
        for append in self._appends:
            if not error:
                self._partition.shard.apply(append)
            if not answered:
                self._coordinator.written(self._partition, append, error)

    def expire(self) -> None:
        """The clients have waited long enough. Their requests count all the same, once they are committed."""
        if not self._answered:
            self._answered = True
            for append in self._appends:
                self._coordinator.written(self._partition, append, ErrorCode.REQUEST_TIMED_OUT)


class Coordinator:
    """The groups of this broker."""

    def __init__(
        self,
        context: NodeContext,
        metadata: MetadataView,
        replicas: Replicas,
        leadership: Leadership,
        effects: ReplicaEffects,
        purgatory: Purgatory,
        turn: Turn,
    ) -> None:
        config = context.config
        self._context = context
        self._metadata = metadata
        self._leadership = leadership
        self._effects = effects
        self._purgatory = purgatory
        self._turn = turn
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
            timing=TimingOfImage(context, metadata),
        )
        self._topics = TopicsOfImage(metadata)
        self._partitions: dict[int, GroupPartition] = {}
        self._loader = Loader(context, self._is_served, self._loaded)
        self._timer: Timer | None = None
        self._armed_ms = NEVER_MS
        self._closed = False
        self._expiry = self._context.clock.call_at(
            self._context.clock.now_ms() + config.offsets_retention_check_interval_ms, self._expire
        )
        for hosted in dict(replicas.by_topic.get(OFFSETS_TOPIC) or {}).values():
            self.role_changed(hosted)

    # -- where a group is

    def find(self, group_id: str) -> GroupPartition | int:
        """The partition of a group, if it is served here; else the error that sends the client on."""
        topic = self._metadata.image.topic(OFFSETS_TOPIC)
        if topic is None or self._closed:
            return ErrorCode.NOT_COORDINATOR
        partition = self._partitions.get(partition_of(group_id, len(topic.partitions)))
        if partition is None:
            return ErrorCode.NOT_COORDINATOR
        return partition if partition.ready else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def when_sure(self, group_ids: Iterable[str], then: Callable[[dict[str, int]], None]) -> None:
        """Call `then` with the groups that are not served here, and why; all others are, as of now.

        For answers from memory: a coordinator that was deposed and has yet to hear of it would give old ones.
        """
        errors: dict[str, int] = {}
        sought: dict[GroupPartition, list[str]] = {}
        for group_id in group_ids:
            found = self.find(group_id)
            if isinstance(found, int):
                errors[group_id] = found
            else:
                sought.setdefault(found, []).append(group_id)
        if not sought:
            then(errors)
            return
        left = set(sought)

        def confirmed(partition: GroupPartition, confirmation: Confirmation) -> None:
            left.discard(partition)
            if confirmation is not Confirmation.YES:
                errors.update(dict.fromkeys(sought[partition], _NOT_SURE[confirmation]))
            if not left:
                then(errors)

        patience_ms = self._context.config.offsets_commit_timeout_ms
        for partition in sought:
            self._leadership.confirm(partition.hosted, patience_ms, partial(confirmed, partition))

    def partitions(self) -> Iterator[GroupPartition]:
        """All partitions that are led here, loaded or not, in order."""
        return iter([self._partitions[index] for index in sorted(self._partitions)])

    # -- leadership

    def role_changed(self, hosted: HostedPartition) -> None:
        """This broker has become the leader of a partition, or is not any more."""
        index = hosted.index
        partition = self._partitions.get(index)
        if hosted.leader is None or hosted.stale:
            if partition is not None and partition.hosted is hosted:
                del self._partitions[index]
                self._answer(partition, partition.shard.dismiss(ErrorCode.NOT_COORDINATOR))
            return
        if partition is not None and partition.hosted is hosted:
            return  # it leads on
        partition = self._partitions[index] = GroupPartition(hosted, self._settings, self._topics)
        partition.began_ms = self._context.clock.now_ms()
        if partition.load_end == partition.next_offset:
            partition.ready = True
        elif hosted.leader.high_watermark >= partition.load_end:
            self._loader.add(partition)
        else:
            loading = partition
            waiter = _CommittedOnce(lambda: self._loader.add(loading))
            hosted.ack_waiters.append((partition.load_end, waiter, 0))

    def _is_served(self, partition: GroupPartition) -> bool:
        return self._partitions.get(partition.hosted.index) is partition

    def _loaded(self, partition: GroupPartition) -> None:
        shard = partition.shard
        partition.ready = True
        groups = len(shard.groups) + len(shard.consumers.groups)
        self._context.report(
            "INFO",
            f"{OFFSETS_TOPIC}-{partition.hosted.index}: {groups} groups of "
            f"{partition.records} records, {self._context.clock.now_ms() - partition.began_ms} ms after the election",
        )
        self.carry_out(partition, partition.shard.loaded(self._context.clock.now_ms()))
        topic_ids = self._metadata.image.topic_ids
        known = {topic for committed in partition.shard.offsets.values() for topic, _ in committed}
        self.carry_out(partition, partition.shard.forget_topics(known - topic_ids.keys()))

    def topics_deleted(self, names: Iterable[str]) -> None:
        """Offsets of these topics go: topics that are made again under the names begin at their beginning."""
        names = frozenset(names)
        for partition in list(self._partitions.values()):
            if partition.ready:
                self.carry_out(partition, partition.shard.forget_topics(names))

    def topics_changed(self) -> None:
        """Topics came, went or got partitions: consumer groups may have something to assign."""
        self._topics.version = self._metadata.applied_offset
        for partition in self._partitions.values():
            partition.shard.topics_changed()

    # -- effects

    def carry_out(self, partition: GroupPartition, effects: Sequence[Effect]) -> None:
        """Do what a group wants, and see when it is to be looked at again."""
        for effect in effects:
            if isinstance(effect, Append):
                self._append(partition, effect)
        self._answer(partition, effects)
        self._arm(partition.shard.check_ms)

    def _answer(self, partition: GroupPartition, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if not isinstance(effect, Append):
                cast(Reply, effect.ticket)(effect.response)

    def _append(self, partition: GroupPartition, append: Append) -> None:
        """The decisions of one turn go into the log together, at the turn's end."""
        partition.gathered.append(append)
        if len(partition.gathered) == 1:
            self._turn.before_writes(lambda: self._write_gathered(partition))

    def _write_gathered(self, partition: GroupPartition) -> None:
        appends, partition.gathered = partition.gathered, []
        hosted = partition.hosted
        if self._partitions.get(hosted.index) is not partition or hosted.leader is None or hosted.stale:
            # Lost since; or lost and led again, and then what it has is read anew, without this.
            _Batch(self, partition, appends).settle(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        self._write(partition, hosted.leader, appends)

    def _write(self, partition: GroupPartition, leader: LeaderState, appends: Sequence[Append]) -> None:
        hosted = partition.hosted
        batch = _Batch(self, partition, appends)
        now_ms, wall_ms = self._context.clock.now_ms(), self._context.clock.wall_ms()
        records = _records_of(appends, wall_ms)
        if not records:
            # But earlier decisions are not answered before they are committed, either.
            if leader.high_watermark >= partition.written_end:
                batch.settle(0, ErrorCode.NONE)
            else:
                self._wait(partition, batch, now_ms)
            return
        error = leader.check_before_append(-1)
        if error:
            batch.settle(0, error)
            return
        encoded = memoryview(encode_batch(records))
        if len(encoded) > hosted.log.config.max_message_bytes:
            if len(appends) == 1:
                batch.settle(0, ErrorCode.MESSAGE_TOO_LARGE)
                return
            half = len(appends) // 2
            self._write(partition, leader, appends[:half])
            self._write(partition, leader, appends[half:])
            return
        appended = hosted.log.append_as_leader(encoded, hosted.leader_epoch, now_ms, wall_ms, internal=True)
        if appended.error:
            batch.settle(0, appended.error)
            return
        partition.written_end = appended.last_offset + 1
        self._turn.mark_dirty(hosted)
        self._wait(partition, batch, now_ms)
        self._effects.leader_has_appended(hosted, leader, now_ms)

    def _wait(self, partition: GroupPartition, batch: _Batch, now_ms: int) -> None:
        """Until all that this coordinator has written is committed, or time is up."""
        partition.hosted.ack_waiters.append((partition.written_end, batch, 0))
        self._purgatory.add(now_ms + self._context.config.offsets_commit_timeout_ms, batch)

    def written(self, partition: GroupPartition, append: Append, error: int) -> None:
        """Records of a group are committed, or it is time to say that they may not be."""
        self.carry_out(partition, partition.shard.written(append, error, self._context.clock.now_ms()))

    # -- time

    def _arm(self, check_ms: int) -> None:
        """Look again at this time, if not before."""
        if self._closed or check_ms >= self._armed_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_ms = check_ms
        self._timer = self._context.clock.call_at(check_ms, self._tick)

    def _tick(self) -> None:
        self._timer, self._armed_ms = None, NEVER_MS
        now_ms = self._context.clock.now_ms()
        for partition in list(self._partitions.values()):
            if partition.shard.check_ms <= now_ms:
                self.carry_out(partition, partition.shard.tick(now_ms))
        self._arm(min((each.shard.check_ms for each in self._partitions.values()), default=NEVER_MS))

    def _expire(self) -> None:
        """Look for offsets that nobody has used for too long."""
        clock, config = self._context.clock, self._context.config
        self._expiry = clock.call_at(clock.now_ms() + config.offsets_retention_check_interval_ms, self._expire)
        retention_ms = config.offsets_retention_minutes * _MINUTE_MS
        for partition in list(self._partitions.values()):
            if partition.ready:
                self.carry_out(partition, partition.shard.expire(clock.wall_ms(), retention_ms))

    def close(self) -> None:
        """The broker is going down; its connections close with it."""
        self._closed = True
        self._partitions.clear()
        self._loader.close()
        for timer in (self._timer, self._expiry):
            if timer is not None:
                timer.cancel()

    # -- requests

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


def _records_of(appends: Iterable[Append], wall_ms: int) -> list[NewRecord]:
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

"""One partition of `__consumer_offsets`: its groups, and what they have committed.

Owns the tables that the partition's records make. They are replayed twice over: from the log when this broker takes the
partition over, and one by one as what is decided here is committed. So offsets that a consumer is told are always
committed ones, and never go back when the coordinator moves. Members are ahead of the log until their group settles.

It must not know of leaders or high watermarks; whoever holds it calls it only while its broker leads the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Final, NamedTuple
from uuid import UUID

from tanist.coordinator.consumer.group import ConsumerGroup
from tanist.coordinator.consumer.groups import ConsumerGroups
from tanist.coordinator.consumer.tables import CONSUMER_KEYS
from tanist.coordinator.consumer.topics import Topics
from tanist.coordinator.effects import (
    Answer,
    Append,
    ConsumerGroupChanged,
    Effect,
    GroupDeleted,
    GroupRecord,
    OffsetsDeleted,
    OffsetsStored,
    group_error,
)
from tanist.coordinator.group import Asker, Group
from tanist.coordinator.membership import GroupState
from tanist.coordinator.rebalance import NEVER_MS, GroupSettings, join_refused, sync_refused
from tanist.wire.errors import ErrorCode
from tanist.wire.group_record import GroupRecordKey, GroupRecordValue
from tanist.wire.group_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.delete_groups_response import DeletableGroupResult
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.heartbeat_response import HeartbeatResponse
from tanist.wire.messages.join_group_request import JoinGroupRequest
from tanist.wire.messages.leave_group_request import MemberIdentity
from tanist.wire.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from tanist.wire.messages.offset_commit_request import OffsetCommitRequest
from tanist.wire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tanist.wire.messages.offset_delete_request import OffsetDeleteRequest
from tanist.wire.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from tanist.wire.messages.sync_group_request import SyncGroupRequest
from tanist.wire.schema import ZERO_UUID

_NO_ERROR: Final = int(ErrorCode.NONE)


class Committed(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = -1
    topic_id: UUID = ZERO_UUID
    expire_timestamp: int = -1
    """Of commits by clients that asked for a retention of their own (before Kafka 2.1)."""


class Shard:
    """The groups of one partition."""

    def __init__(self, settings: GroupSettings, topics: Topics) -> None:
        self._settings = settings
        self.groups: dict[str, Group] = {}
        """Of the classic protocol."""
        self.consumers = ConsumerGroups(settings, topics, self.groups)
        """Those of the consumer protocol (KIP-848). A group is in one of the two."""
        self.offsets: dict[str, dict[tuple[str, int], Committed]] = {}
        """By group, then by topic and partition."""
        # When to look at groups: (time, number, group id). A group has one entry that counts, noted in `_queued_ms`.
        self._wakes: list[tuple[int, int, str]] = []
        self._queued_ms: dict[str, int] = {}
        self._wake_number = 0

    # -- records

    def replay(self, key: GroupRecordKey, value: GroupRecordValue | None) -> None:
        """A record of the log, while the partition is taken over."""
        if isinstance(key, GroupMetadataKey) and isinstance(value, GroupMetadataValue):
            group = self.groups[key.group] = Group(key.group, self._settings)
            group.restore(value)
        else:
            self._apply(key, value)

    def loaded(self, now_ms: int) -> list[Effect]:
        """All records were replayed: from now on members have their session timeouts to be heard of."""
        effects: list[Effect] = []
        for group in self.groups.values():
            effects += group.loaded(now_ms)
            self._queue(group)
        self.consumers.loaded(now_ms)
        for consumer_group in self.consumers.groups.values():
            self._queue(consumer_group)
        return effects

    def apply(self, append: Append) -> None:
        """What was decided here is committed."""
        ahead = isinstance(append.purpose, ConsumerGroupChanged)
        for key, value in append.records:
            if not ahead or isinstance(key, OffsetCommitKey):  # all else has been so since it was decided
                self._apply(key, value)

    def _apply(self, key: GroupRecordKey, value: GroupRecordValue | None) -> None:
        if isinstance(key, OffsetCommitKey):
            place = (key.topic, key.partition)
            if isinstance(value, OffsetCommitValue):
                if key.group not in self.consumers.groups:
                    self._group(key.group)
                self.offsets.setdefault(key.group, {})[place] = Committed(
                    value.offset,
                    value.leader_epoch,
                    value.metadata,
                    value.commit_timestamp,
                    value.topic_id,
                    value.expire_timestamp,
                )
            elif key.group in self.offsets:
                self.offsets[key.group].pop(place, None)
                if not self.offsets[key.group]:
                    del self.offsets[key.group]
        elif isinstance(key, GroupMetadataKey) and value is None:
            self.groups.pop(key.group, None)
            self._queued_ms.pop(key.group, None)
            if key.group in self.offsets and key.group not in self.consumers.groups:
                self._group(key.group)
        elif isinstance(key, GroupMetadataKey) and isinstance(value, GroupMetadataValue):
            if key.group in self.groups:
                self.groups[key.group].state_timestamp_ms = value.current_state_timestamp
        elif isinstance(key, CONSUMER_KEYS):
            self.consumers.replay(key, key.group, value)
        # Other records of a group are of what the living group knows already.

    def written(self, append: Append, error: int, now_ms: int) -> list[Effect]:
        """An append is committed (and was applied), or was refused, or has taken too long: answer, once."""
        purpose = append.purpose
        if isinstance(purpose, ConsumerGroupChanged):
            answers = self.consumers.written(purpose, error, now_ms)
            self._requeue(append.group_id)
            return answers
        if isinstance(purpose, OffsetsStored):
            error = group_error(error, too_large=ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
            return [Answer(purpose.ticket, _with_error(purpose.response, error) if error else purpose.response)]
        if isinstance(purpose, OffsetsDeleted):
            if purpose.ticket is None:
                return []  # nobody asked
            if error:
                purpose.response.error_code = group_error(error)
                purpose.response.topics = ()
            return [Answer(purpose.ticket, purpose.response)]
        group = self.groups.get(append.group_id)
        if isinstance(purpose, GroupDeleted):
            if error and error != ErrorCode.REQUEST_TIMED_OUT and group is not None:
                group.state = GroupState.EMPTY  # nothing was appended
            if purpose.ticket is None:
                return []  # nobody asked
            result = DeletableGroupResult(group_id=append.group_id, error_code=group_error(error))
            return [Answer(purpose.ticket, result)]
        if group is None:
            return []
        effects = group.written(purpose, error, now_ms)
        self._settle(group)
        return effects

    def dismiss(self, error: int) -> list[Effect]:
        """Another broker has the partition: nobody who waits is answered by this one any more."""
        return [
            effect
            for group in self.groups.values()
            for member in group.members.values()
            for effect in group.refuse_waiting(member, error)
        ]

    # -- members

    def join(self, request: JoinGroupRequest, asker: Asker, now_ms: int) -> list[Effect]:
        error = self._join_error(request)
        if error:
            return [join_refused(error, asker.ticket, request.member_id)]
        if request.group_id in self.consumers.groups:
            return self._of_consumers(request.group_id, self.consumers.join(request, asker, now_ms))
        group = self._group(request.group_id)
        effects = group.join(request, asker, now_ms)
        self._settle(group)
        return effects

    def _join_error(self, request: JoinGroupRequest) -> int:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        settings = self._settings
        if not settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if request.member_id and not self.has(request.group_id):
            return ErrorCode.UNKNOWN_MEMBER_ID
        return _NO_ERROR

    def sync(self, request: SyncGroupRequest, ticket: object, now_ms: int) -> list[Effect]:
        if request.group_id in self.consumers.groups:
            return self._of_consumers(request.group_id, self.consumers.sync(request, ticket, now_ms))
        group = self.groups.get(request.group_id)
        if group is None:
            return [sync_refused(_unknown_member(request.group_id), ticket)]
        effects = group.sync(request, ticket, now_ms)
        self._settle(group)
        return effects

    def heartbeat(self, request: HeartbeatRequest, ticket: object, now_ms: int) -> list[Effect]:
        if request.group_id in self.consumers.groups:
            return self._of_consumers(request.group_id, self.consumers.classic_heartbeat(request, ticket, now_ms))
        group = self.groups.get(request.group_id)
        if group is None:
            return [Answer(ticket, HeartbeatResponse(error_code=_unknown_member(request.group_id)))]
        return [Answer(ticket, group.heartbeat(request, now_ms))]

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: tuple[str, str], ticket: object, now_ms: int
    ) -> list[Effect]:
        """A member of the consumer protocol; `client` is its id and its host."""
        return self._of_consumers(request.group_id, self.consumers.heartbeat(request, client, ticket, now_ms))

    def _of_consumers(self, group_id: str, effects: list[Effect]) -> list[Effect]:
        self._requeue(group_id)
        return effects

    def has(self, group_id: str) -> bool:
        """Whether there is such a group, of either protocol."""
        return group_id in self.groups or group_id in self.consumers.groups

    def leave(self, group_id: str, identities: tuple[MemberIdentity, ...], ticket: object, now_ms: int) -> list[Effect]:
        if group_id in self.consumers.groups:
            return self._of_consumers(group_id, self.consumers.leave(group_id, identities, ticket, now_ms))
        group = self.groups.get(group_id)
        if group is None:
            unknown = tuple(
                MemberResponse(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                )
                for each in identities
            )
            error = _NO_ERROR if group_id else ErrorCode.INVALID_GROUP_ID
            return [Answer(ticket, LeaveGroupResponse(error_code=error, members=unknown))]
        effects = group.leave(identities, ticket, now_ms)
        self._settle(group)
        return effects

    # -- offsets

    def commit(self, request: OffsetCommitRequest, ticket: object, now_ms: int) -> list[Effect]:
        """Remember up to where a group has come. Topics are named by name and, where known, by id."""
        generation_id = request.generation_id_or_member_epoch
        group = self.groups.get(request.group_id)
        consumers = self.consumers.groups.get(request.group_id)
        if consumers is not None:
            error = consumers.commit_error(request.member_id, generation_id)
        elif group is None:
            error = _NO_ERROR if generation_id < 0 else int(ErrorCode.ILLEGAL_GENERATION)
        else:
            error = group.commit_error(request.member_id, request.group_instance_id, generation_id)
        records: list[GroupRecord] = []
        topics: list[OffsetCommitResponseTopic] = []
        for topic in request.topics:
            results: list[OffsetCommitResponsePartition] = []
            for each in topic.partitions:
                metadata = each.committed_metadata or ""
                fault = error
                if not fault and len(metadata.encode()) > self._settings.offset_metadata_max_bytes:
                    fault = ErrorCode.OFFSET_METADATA_TOO_LARGE
                if (
                    not fault
                    and consumers is not None
                    and not consumers.may_commit(request.member_id, generation_id, topic.topic_id, each.partition_index)
                ):
                    fault = ErrorCode.STALE_MEMBER_EPOCH
                results.append(OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=fault))
                if not fault:
                    key = OffsetCommitKey(group=request.group_id, topic=topic.name, partition=each.partition_index)
                    value = OffsetCommitValue(
                        offset=each.committed_offset,
                        leader_epoch=each.committed_leader_epoch,
                        metadata=metadata,
                        topic_id=topic.topic_id,
                    )
                    records.append((key, value))
            topics.append(
                OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(results))
            )
        if group is not None and not error and request.member_id in group.members:
            group.heard_of(request.member_id, now_ms)
        response = OffsetCommitResponse(topics=tuple(topics))
        if not records:
            return [Answer(ticket, response)]
        return [Append(request.group_id, tuple(records), OffsetsStored(ticket, response))]

    def committed(self, group_id: str) -> dict[tuple[str, int], Committed]:
        """What the group has committed: nothing, if nobody knows it. Not to be changed."""
        return self.offsets.get(group_id, {})

    def forget_topics(self, names: Iterable[str]) -> list[Effect]:
        """Topics were deleted: a new one of the same name begins at its beginning."""
        doomed = frozenset(names)
        effects: list[Effect] = []
        for group_id, committed in self.offsets.items():
            places = [place for place in committed if place[0] in doomed]
            if places:
                effects.append(Append(group_id, _tombstones(group_id, places), OffsetsDeleted(None, None)))
        return effects

    # -- operators

    def delete_offsets(self, request: OffsetDeleteRequest, ticket: object) -> list[Effect]:
        """Forget offsets, but not of topics that members of the group read."""
        group, consumers = self.groups.get(request.group_id), self.consumers.groups.get(request.group_id)
        in_use: frozenset[str] | None
        if consumers is not None:
            in_use = consumers.subscribed_topics()
        elif group is None or group.state is GroupState.DEAD:
            return [Answer(ticket, OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))]
        else:
            in_use = frozenset() if group.state is GroupState.EMPTY else group.subscribed_topics()
        if in_use is None:
            return [Answer(ticket, OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP))]
        committed = self.committed(request.group_id)
        places: list[tuple[str, int]] = []
        topics: list[OffsetDeleteResponseTopic] = []
        for topic in request.topics:
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if topic.name in in_use else ErrorCode.NONE
            indexes = [each.partition_index for each in topic.partitions]
            if not error:
                places += [(topic.name, index) for index in indexes if (topic.name, index) in committed]
            results = tuple(OffsetDeleteResponsePartition(partition_index=index, error_code=error) for index in indexes)
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=results))
        response = OffsetDeleteResponse(topics=tuple(topics))
        if not places:
            return [Answer(ticket, response)]
        return [Append(request.group_id, _tombstones(request.group_id, places), OffsetsDeleted(ticket, response))]

    def delete_group(self, group_id: str, ticket: object) -> list[Effect]:
        """Forget a group that has no members, with all that it has committed."""
        if group_id in self.consumers.groups:
            return self.consumers.delete(group_id, _tombstones(group_id, self.committed(group_id)), ticket)
        group = self.groups.get(group_id)
        if group is None or group.state is not GroupState.EMPTY:
            missing = group is None or group.state is GroupState.DEAD
            error = ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.NON_EMPTY_GROUP
            return [Answer(ticket, DeletableGroupResult(group_id=group_id, error_code=error))]
        group.state = GroupState.DEAD
        tombstone: GroupRecord = (GroupMetadataKey(group=group_id), None)
        records = (*_tombstones(group_id, self.committed(group_id)), tombstone)
        return [Append(group_id, records, GroupDeleted(ticket))]

    # -- retention

    def expire(self, wall_ms: int, retention_ms: int) -> list[Effect]:
        """Forget what nobody has used for so long (KIP-211), and groups of which nothing is left."""
        effects: list[Effect] = []
        for group_id in {*self.groups, *self.consumers.groups, *self.offsets}:
            committed = self.committed(group_id)
            old = self._expired(group_id, committed, wall_ms, retention_ms)
            group, consumers = self.groups.get(group_id), self.consumers.groups.get(group_id)
            over = len(old) == len(committed)
            if consumers is not None and over and not consumers.members:
                effects += self.consumers.delete(group_id, _tombstones(group_id, old), None)
                continue
            if group is not None and over and group.state is GroupState.EMPTY and not group.pending_members:
                idle = old or wall_ms - group.state_timestamp_ms >= retention_ms
                if idle and (old or group.generation_id):
                    group.state = GroupState.DEAD
                    tombstone: GroupRecord = (GroupMetadataKey(group=group_id), None)
                    records = (*_tombstones(group_id, old), tombstone)
                    effects.append(Append(group_id, records, GroupDeleted(None)))
                    continue
            if old:
                effects.append(Append(group_id, _tombstones(group_id, old), OffsetsDeleted(None, None)))
        return effects

    def _expired(
        self, group_id: str, committed: Mapping[tuple[str, int], Committed], wall_ms: int, retention_ms: int
    ) -> list[tuple[str, int]]:
        """Committed offsets that have been kept long enough: of an empty group, or of topics that it reads no more."""
        group, consumers = self.groups.get(group_id), self.consumers.groups.get(group_id)
        in_use: frozenset[str] | None = frozenset()
        since_ms = -1
        if consumers is not None:
            in_use = consumers.subscribed_topics()
        elif group is not None and group.state is not GroupState.EMPTY:
            in_use = group.subscribed_topics() if group.state is GroupState.STABLE else None
        elif group is not None and group.protocol_type is not None:
            since_ms = group.state_timestamp_ms
        if in_use is None:
            return []  # who uses what cannot be known now
        old: list[tuple[str, int]] = []
        for place, offset in committed.items():
            last_used_ms = max(since_ms, offset.commit_timestamp)
            expires_ms = offset.expire_timestamp if offset.expire_timestamp >= 0 else last_used_ms + retention_ms
            if place[0] not in in_use and expires_ms <= wall_ms:
                old.append(place)
        return old

    # -- time

    @property
    def check_ms(self) -> int:
        """Before this time nothing happens by itself."""
        return self._wakes[0][0] if self._wakes else NEVER_MS

    def tick(self, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        while self._wakes and self._wakes[0][0] <= now_ms:
            when_ms, _, group_id = heappop(self._wakes)
            group, consumers = self.groups.get(group_id), self.consumers.groups.get(group_id)
            if self._queued_ms.get(group_id) != when_ms:
                continue
            del self._queued_ms[group_id]
            # A heartbeat may have put it off: then this only finds out until when.
            if consumers is not None:
                effects += self.consumers.tick(consumers, now_ms)
                self._requeue(group_id)
            elif group is not None:
                effects += group.tick(now_ms)
                self._settle(group)
        return effects

    def topics_changed(self) -> None:
        """Topics came, went or grew: with their next heartbeats consumer groups look whether that is for them."""
        for group in self.consumers.groups.values():
            group.refresh_wanted = True

    def _settle(self, group: Group) -> None:
        """After an event: see when to look at the group again, or forget that it was ever asked for."""
        if group.is_forgettable and group.group_id not in self.offsets:
            self.groups.pop(group.group_id, None)
            self._queued_ms.pop(group.group_id, None)
            return
        self._queue(group)

    def _requeue(self, group_id: str) -> None:
        """After an event of a group that is one of the consumer protocol, or was."""
        group = self.consumers.groups.get(group_id) or self.groups.get(group_id)
        if group is not None:
            self._queue(group)

    def _queue(self, group: Group | ConsumerGroup) -> None:
        if group.check_ms < self._queued_ms.get(group.group_id, NEVER_MS):
            self._queued_ms[group.group_id] = group.check_ms
            self._wake_number += 1
            heappush(self._wakes, (group.check_ms, self._wake_number, group.group_id))

    def _group(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, self._settings)
        return group


def _tombstones(group_id: str, places: Iterable[tuple[str, int]]) -> tuple[GroupRecord, ...]:
    return tuple((OffsetCommitKey(group=group_id, topic=topic, partition=index), None) for topic, index in places)


def _unknown_member(group_id: str) -> int:
    return ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID


def _with_error(response: OffsetCommitResponse, error: int) -> OffsetCommitResponse:
    for topic in response.topics:
        for partition in topic.partitions:
            partition.error_code = partition.error_code or error
    return response

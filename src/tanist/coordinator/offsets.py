"""The committed offsets of the groups of one partition: commits, removals, and retention.

Owns the requests about offsets. The sender's group checks a commit; answers come from the table alone (`table.py`),
which has only offsets that are committed in the log. It must never change offsets in answer to a request. Rules:
KIP-211 (how long offsets are kept), KIP-496 (who may delete them), KIP-1251 (commits of an older member epoch).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

from tanist.coordinator.consumer.group import ConsumerGroup
from tanist.coordinator.consumer.topics import Topics
from tanist.coordinator.consumer_groups import ConsumerGroups
from tanist.coordinator.effects import (
    Answer,
    Append,
    Effect,
    GroupDeleted,
    GroupRecord,
    OffsetsDeleted,
    OffsetsStored,
    group_error,
)
from tanist.coordinator.group import Group
from tanist.coordinator.membership import GroupState
from tanist.coordinator.rebalance import GroupSettings
from tanist.coordinator.share_groups import ShareGroups
from tanist.coordinator.streams.group import StreamsGroup
from tanist.coordinator.streams_groups import StreamsGroups
from tanist.coordinator.table import Committed, GroupTable
from tanist.wire.consumer_protocol import PROTOCOL_TYPE
from tanist.wire.errors import ErrorCode
from tanist.wire.group_records import GroupMetadataKey, OffsetCommitKey, OffsetCommitValue
from tanist.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
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
from tanist.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tanist.wire.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tanist.wire.schema import ZERO_UUID

_NO_ERROR: Final = int(ErrorCode.NONE)
_NO_TOPIC: Final = (ZERO_UUID, 0)
_CommitResponse = TypeVar("_CommitResponse", OffsetCommitResponse, TxnOffsetCommitResponse)
_PartitionCommit: TypeAlias = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition


class GroupOffsets(GroupTable):
    """The groups of one partition, for the checks of commits, and the offsets."""

    def __init__(self, settings: GroupSettings, topics: Topics) -> None:
        super().__init__(settings, topics)
        self.consumers = ConsumerGroups(settings, self)
        """Requests to those of the consumer protocol."""
        self.shares = ShareGroups(settings, self, topics)
        """Requests to share groups."""
        self.applications = StreamsGroups(self)
        """Requests to Streams groups."""

    def by_epoch(self, group_id: str) -> ConsumerGroup | StreamsGroup | None:
        """The group, if its members commit offsets in their epochs."""
        return self.consumer(group_id) or self.streams(group_id)

    # -- requests

    def commit(self, request: OffsetCommitRequest, ticket: object, now_ms: int, *, exact: bool = False) -> list[Effect]:
        """Commit a group's offsets. Topics are named by name.

        `exact`: the client knows GROUP_ID_NOT_FOUND (version 9 on); others have ILLEGAL_GENERATION.
        """
        group = self.classic(request.group_id)
        error = self._commit_error(request, group, exact=exact)
        records: list[GroupRecord] = []
        topics: list[OffsetCommitResponseTopic] = []
        for topic in request.topics:
            results: list[OffsetCommitResponsePartition] = []
            topic.topic_id, partition_count = self._topics.find(topic.name) or _NO_TOPIC
            for each in topic.partitions:
                fault = _existence_error(each.partition_index, partition_count) or error or self._metadata_error(each)
                results.append(OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=fault))
                if not fault:
                    records.append(_record_of(request.group_id, topic.name, topic.topic_id, each))
            topics.append(
                OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(results))
            )
        if group is not None and not error and request.member_id in group.members:
            group.heard_of(request.member_id, now_ms)
        response = OffsetCommitResponse(topics=tuple(topics))
        if not records:
            return [Answer(ticket, response)]
        return [Append(request.group_id, tuple(records), OffsetsStored(ticket, response))]

    def _commit_error(self, request: OffsetCommitRequest, group: Group | None, *, exact: bool) -> int:
        member_id, generation_id = request.member_id, request.generation_id_or_member_epoch
        if self.share(request.group_id) is not None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        members = self.by_epoch(request.group_id)
        if members is not None:
            if not exact and member_id in members.member_ids() and not members.is_classic(member_id):
                return ErrorCode.UNSUPPORTED_VERSION
            return members.commit_error(member_id, generation_id, self._places(request.topics))
        if group is not None:
            return group.commit_error(member_id, request.group_instance_id, generation_id)
        return _missing_group_error(generation_id, exact=exact)

    def txn_commit(self, request: TxnOffsetCommitRequest, ticket: object, *, exact: bool = False) -> list[Effect]:
        """Commit offsets within a transaction (KIP-447): they count with its marker. Topics are named by name.

        `exact`: the client knows GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-1319); others have ILLEGAL_GENERATION.
        """
        error = self._txn_commit_error(request, exact=exact)
        records: list[GroupRecord] = []
        topics: list[TxnOffsetCommitResponseTopic] = []
        for topic in request.topics:
            results: list[TxnOffsetCommitResponsePartition] = []
            topic_id, partition_count = self._topics.find(topic.name) or _NO_TOPIC
            gone = topic.topic_id not in (ZERO_UUID, topic_id)  # another topic has the name by now
            for each in topic.partitions:
                fault = _existence_error(each.partition_index, partition_count) or error or self._metadata_error(each)
                if gone:
                    fault = ErrorCode.UNKNOWN_TOPIC_ID
                results.append(TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=fault))
                if not fault:
                    records.append(_record_of(request.group_id, topic.name, topic_id, each))
            done = TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(results))
            topics.append(done)
        response = TxnOffsetCommitResponse(topics=tuple(topics))
        if not records:
            return [Answer(ticket, response)]
        producer = (request.producer_id, request.producer_epoch)
        return [Append(request.group_id, tuple(records), OffsetsStored(ticket, response), producer=producer)]

    def _txn_commit_error(self, request: TxnOffsetCommitRequest, *, exact: bool) -> int:
        """A producer that names no member is trusted, as before KIP-447."""
        generation_id = request.generation_id
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if self.share(request.group_id) is not None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        unnamed = generation_id < 0 and not request.member_id and request.group_instance_id is None
        members = self.by_epoch(request.group_id)
        if members is not None:
            error = (
                0 if unnamed else members.commit_error(request.member_id, generation_id, self._places(request.topics))
            )
            return ErrorCode.ILLEGAL_GENERATION if error == ErrorCode.STALE_MEMBER_EPOCH and not exact else error
        group = self.classic(request.group_id)
        if group is None:
            return _missing_group_error(generation_id, exact=exact)
        ids = (request.member_id, request.group_instance_id, generation_id)
        return _NO_ERROR if unnamed else group.commit_error(*ids, transactional=True)

    def _places(
        self, topics: Iterable[OffsetCommitRequestTopic] | Iterable[TxnOffsetCommitRequestTopic]
    ) -> Iterator[tuple[UUID, int]]:
        """The partitions of a commit, by topic id and index: those that are there, and whose offsets can be stored."""
        for topic in topics:
            topic_id, partition_count = self._topics.find(topic.name) or _NO_TOPIC
            for each in topic.partitions:
                if not (_existence_error(each.partition_index, partition_count) or self._metadata_error(each)):
                    yield topic_id, each.partition_index

    def _metadata_error(self, commit: _PartitionCommit) -> int:
        too_large = len((commit.committed_metadata or "").encode()) > self._settings.offset_metadata_max_bytes
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if too_large else ErrorCode.NONE

    def committed(self, group_id: str) -> dict[tuple[str, int], Committed]:
        """The committed offsets of a group, none if it is unknown. The caller must not change them."""
        return self.offsets.get(group_id, {})

    def places(self, group_id: str) -> list[tuple[str, int]]:
        """The partitions of which the group has an offset, of open transactions as well."""
        return list(dict.fromkeys((*self.committed(group_id), *self.pending.of_group(group_id))))

    def forget_topics(self, names: Iterable[str]) -> list[Effect]:
        """Topics were deleted: groups read a new one of the same name from its beginning."""
        deleted = frozenset(names)
        return self._forget(lambda group_id, place: place[0] in deleted)

    def forget_missing(self) -> list[Effect]:
        """The log is loaded: partitions that are not there, or were of another topic of the name, are forgotten."""

        def is_missing(group_id: str, place: tuple[str, int]) -> bool:
            topic_id, partition_count = self._topics.find(place[0]) or _NO_TOPIC
            committed = self.committed(group_id).get(place)
            known_id = ZERO_UUID if committed is None else committed.topic_id
            return not 0 <= place[1] < partition_count or known_id not in (ZERO_UUID, topic_id)

        return self._forget(is_missing) + self.shares.forget_missing()

    def _forget(self, is_gone: Callable[[str, tuple[str, int]], bool]) -> list[Effect]:
        effects: list[Effect] = []
        for group_id in self.groups:
            places = [place for place in self.places(group_id) if is_gone(group_id, place)]
            if places:
                effects.append(Append(group_id, tombstones_of(group_id, places), OffsetsDeleted(None, None)))
        return effects

    def delete_offsets(self, request: OffsetDeleteRequest, ticket: object) -> list[Effect]:
        """Forget offsets, but not of topics that members of the group read."""
        group, members = self.classic(request.group_id), self.by_epoch(request.group_id)
        in_use: frozenset[str] | None
        if not request.group_id:
            return [Answer(ticket, OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID))]
        if members is not None:
            in_use = members.subscribed_topics()
        elif group is None:
            return [Answer(ticket, OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))]
        else:
            in_use = frozenset() if group.state is GroupState.EMPTY else group.subscribed_topics()
            if in_use is None and group.protocol_type != PROTOCOL_TYPE:
                return [Answer(ticket, OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP))]
        known = frozenset(self.places(request.group_id))
        places: list[tuple[str, int]] = []
        topics: list[OffsetDeleteResponseTopic] = []
        for topic in request.topics:
            _, partition_count = self._topics.find(topic.name) or _NO_TOPIC
            # Consumers whose subscription can't be read may read any topic.
            subscribed = in_use is None or topic.name in in_use
            results: list[OffsetDeleteResponsePartition] = []
            for each in topic.partitions:
                index = each.partition_index
                fault = _existence_error(index, partition_count) or (subscribed and ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                if not fault and (topic.name, index) in known:
                    places.append((topic.name, index))
                results.append(OffsetDeleteResponsePartition(partition_index=index, error_code=int(fault)))
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=tuple(results)))
        response = OffsetDeleteResponse(topics=tuple(topics))
        if not places:
            return [Answer(ticket, response)]
        return [Append(request.group_id, tombstones_of(request.group_id, places), OffsetsDeleted(ticket, response))]

    # -- retention

    def expire(self, wall_ms: int, retention_ms: int) -> list[Effect]:
        """Remove expired offsets (KIP-211), and groups without members and offsets."""
        effects: list[Effect] = []
        for group_id in list(self.groups):
            committed = self.committed(group_id)
            self.forget_unused(group_id)
            old = self._expired(group_id, committed, wall_ms, retention_ms)
            group, members = self.classic(group_id), self.by_epoch(group_id)
            over = len(old) == len(committed) and not self.pending.has_group(group_id)
            if members is not None and over and not members.members:
                requests = self.applications if isinstance(members, StreamsGroup) else self.consumers
                effects += requests.delete(group_id, tombstones_of(group_id, old), None)
                continue
            if group is not None and over and group.state is GroupState.EMPTY and not group.pending_members:
                idle = old or wall_ms - group.state_timestamp_ms >= retention_ms
                if idle and (old or group.generation_id):
                    effects += self._deleted(group, tombstones_of(group_id, old), None)
                    continue
            if old:
                effects.append(Append(group_id, tombstones_of(group_id, old), OffsetsDeleted(None, None)))
        return effects

    def _deleted(self, group: Group, offsets: tuple[GroupRecord, ...], ticket: object) -> list[Effect]:
        """Delete a group of the classic protocol, with these tombstones of its offsets."""
        self.decide(GroupMetadataKey(group=group.group_id), None)
        decided = self.decided()
        records = (*offsets, *decided.records)
        return [Append(group.group_id, records, GroupDeleted(ticket), undo=decided.undo, before=group)]

    def _expired(
        self, group_id: str, committed: Mapping[tuple[str, int], Committed], wall_ms: int, retention_ms: int
    ) -> list[tuple[str, int]]:
        """Expired offsets: of an empty group, or of topics outside its subscription."""
        group, members = self.classic(group_id), self.by_epoch(group_id)
        in_use: frozenset[str] | None = frozenset()
        since_ms = -1
        if members is not None:
            in_use = members.subscribed_topics()
        elif group is not None and group.state is not GroupState.EMPTY:
            in_use = group.subscribed_topics() if group.state is GroupState.STABLE else None
        elif group is not None and group.protocol_type is not None:
            since_ms = group.state_timestamp_ms
        if in_use is None:
            return []  # the topics in use are not known now
        old: list[tuple[str, int]] = []
        for place, offset in committed.items():
            last_used_ms = max(since_ms, offset.commit_timestamp)
            expires_ms = offset.expire_timestamp if offset.expire_timestamp >= 0 else last_used_ms + retention_ms
            if place[0] not in in_use and expires_ms <= wall_ms and not self.pending.is_unstable(group_id, place):
                old.append(place)
        return old


def _missing_group_error(generation_id: int, *, exact: bool) -> int:
    """Of a commit to a group that is not there: one that names no generation makes it."""
    if generation_id < 0:
        return _NO_ERROR
    return ErrorCode.GROUP_ID_NOT_FOUND if exact else ErrorCode.ILLEGAL_GENERATION


def _existence_error(index: int, partition_count: int) -> int:
    return ErrorCode.NONE if 0 <= index < partition_count else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _record_of(group_id: str, topic: str, topic_id: UUID, commit: _PartitionCommit) -> GroupRecord:
    return OffsetCommitKey(group=group_id, topic=topic, partition=commit.partition_index), OffsetCommitValue(
        offset=commit.committed_offset,
        leader_epoch=commit.committed_leader_epoch,
        metadata=commit.committed_metadata or "",
        topic_id=topic_id,
    )


def tombstones_of(group_id: str, places: Iterable[tuple[str, int]]) -> tuple[GroupRecord, ...]:
    return tuple((OffsetCommitKey(group=group_id, topic=topic, partition=index), None) for topic, index in places)


def offsets_written(purpose: OffsetsStored | OffsetsDeleted, error: int) -> list[Effect]:
    """Records of offsets are committed (and were applied), or were refused, or have taken too long: answer."""
    if isinstance(purpose, OffsetsStored):
        error = group_error(error, too_large=ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
        return [Answer(purpose.ticket, _with_error(purpose.response, error) if error else purpose.response)]
    if purpose.ticket is None:
        return []  # nobody asked
    if error:
        purpose.response.error_code = group_error(error)
        purpose.response.topics = ()
    return [Answer(purpose.ticket, purpose.response)]


def _with_error(response: _CommitResponse, error: int) -> _CommitResponse:
    for topic in response.topics:
        for partition in topic.partitions:
            partition.error_code = partition.error_code or error
    return response

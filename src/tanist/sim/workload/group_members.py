"""Members of consumer groups, of both protocols: they join, receive assignments, and commit offsets.

Owns the behaviour of a client that keeps the rules of its protocol, as Apache's does: revocation, retries, and joining
again. A member commits one offset at a time, each greater than the offset that it fetched when it got the partition.
The driver of a run calls `leave`, `die` and `start`.

    classic     JoinGroup, SyncGroup, Heartbeat: all partitions are revoked before each JoinGroup; the leader assigns
                ("range")
    consumer    ConsumerGroupHeartbeat (KIP-848): the coordinator assigns; the member revokes, then reports it
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final
from uuid import UUID

from tanist.coordinator.consumer.member import LEAVING_EPOCH
from tanist.sim.workload.group_client import (
    BACKOFF_MS,
    REQUEST_TIMEOUT_MS,
    ClientContext,
    GroupClient,
    Offsets,
    TopicPartition,
)
from tanist.wire.consumer_protocol import decode_assignment, encode_protocol
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from tanist.wire.messages.consumer_group_heartbeat_response import Assignment
from tanist.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from tanist.wire.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from tanist.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from tanist.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from tanist.wire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

_JOIN_GROUP_VERSION = 9
_SYNC_GROUP_VERSION = 5
_HEARTBEAT_VERSION = 4
_LEAVE_GROUP_VERSION = 5
_CONSUMER_HEARTBEAT_VERSION = 1
_PROTOCOL_VERSION = 1
_RANGE: Final = "range"
_CONSUMER: Final = "consumer"
_TOPICS_PAUSE_MS: Final = 1_000
"""Pause between two looks of a classic group's leader at the topics' partition counts."""


class GroupMember(GroupClient):
    """The common part of both protocols: owned partitions, and positions in them."""

    is_classic = False

    def __init__(
        self,
        context: ClientContext,
        name: str,
        group: str,
        topics: Sequence[str],
        *,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        pause_ms: int,
    ) -> None:
        super().__init__(context, name, group, topics)
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.pause_ms = pause_ms
        """Between two commits."""
        self.member_id = ""
        self.epoch = 0
        """Generation, or member epoch."""
        self.owned: dict[TopicPartition, int] = {}
        """Owned partitions, and the number of the ownership: a partition that comes back gets another number."""
        self.positions: dict[TopicPartition, int] = {}
        self.running = False
        self.reported_commits: dict[TopicPartition, int] = {}
        """Number of acknowledged commits of each partition."""
        self._tenures = 0
        self._loading = False

    # -- for the driver of a run

    def start(self) -> None:
        """Join the group."""
        if not self.running:
            self.running = True
            self._begin()
            self._commit_again()

    def leave(self) -> None:
        """Leave the group."""
        if self.running:
            self._lose(list(self.owned))
            self._say_goodbye()
            self._stop()

    def die(self) -> None:
        """Die without leaving the group."""
        if self.running:
            self._lose(list(self.owned))
            self._stop()
            self.end_life()

    def _stop(self) -> None:
        self.running = False
        self.next_life()
        self.member_id, self.epoch = "", 0
        self._loading = False

    # -- its protocol

    def _begin(self) -> None:
        raise NotImplementedError

    def _say_goodbye(self) -> None:
        raise NotImplementedError

    def _refused_commit(self, error: int) -> None:
        raise NotImplementedError

    def _identity(self) -> tuple[str | None, int]:
        """Member id and epoch for its OffsetFetch requests."""
        raise NotImplementedError

    # -- partitions

    def _own(self, partitions: Collection[TopicPartition]) -> None:
        """It received this assignment: these partitions and no others."""
        self._lose([partition for partition in self.owned if partition not in partitions])
        self.context.witness.assigned(
            self.name, self.group, self.member_id, self.epoch, sorted(partitions), classic=self.is_classic
        )
        for partition in sorted(partitions):
            if partition not in self.owned:
                self._tenures += 1
                self.owned[partition] = self._tenures
        self._load_positions()

    def _lose(self, partitions: Collection[TopicPartition]) -> None:
        if not partitions:
            return
        for partition in partitions:
            del self.owned[partition]
            self.positions.pop(partition, None)
        self.context.witness.revoked(self.name, self.group, partitions)

    def _load_positions(self) -> None:
        wanted = {partition: tenure for partition, tenure in self.owned.items() if partition not in self.positions}
        if not wanted or self._loading:
            return
        self._loading = True

        def done(offsets: Offsets | None) -> None:
            self._loading = False
            for partition, tenure in wanted.items():
                if offsets is not None and partition in offsets and self.owned.get(partition) == tenure:
                    self.positions[partition] = max(offsets[partition][0], 0)
            if any(partition not in self.positions for partition in self.owned):
                self.later(BACKOFF_MS, self._load_positions)

        self.fetch_offsets(sorted(wanted), *self._identity(), done)

    # -- commits

    def _commit_again(self) -> None:
        """Commit one at a time, so that a member's commits keep their order."""
        rng = self.context.rng
        pause_ms = self.pause_ms + rng.randint(0, self.pause_ms)
        ready = sorted(self.positions)
        if not ready:
            self.later(max(pause_ms, BACKOFF_MS), self._commit_again)
            return
        partition = ready[rng.randrange(len(ready))]
        tenure = self.owned[partition]
        offset = self.positions[partition] = self.positions[partition] + rng.randint(1, 5)

        def done(error: int | None) -> None:
            if error == 0:
                self.reported_commits[partition] = self.reported_commits.get(partition, 0) + 1
            elif error is not None and self.owned.get(partition) == tenure:
                self._refused_commit(error)
            self.later(pause_ms, self._commit_again)

        self.commit(partition, offset, self.member_id, self.epoch, done)


class ClassicMember(GroupMember):
    """The classic protocol: all members revoke all partitions, join, and receive the leader's assignment."""

    is_classic = True

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._assigned: dict[str, tuple[UUID, int]] | None = None
        """The topics at the time of this member's assignment, if it is the leader."""
        self._joining = False

    def _begin(self) -> None:
        self.learn_topics(self._join)

    def _identity(self) -> tuple[str | None, int]:
        return None, -1

    def _join(self) -> None:
        self._joining = True
        self._lose(list(self.owned))
        self._assigned = None
        subscription = ConsumerProtocolSubscription(topics=self.topics)
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            protocol_type=_CONSUMER,
            protocols=(
                JoinGroupRequestProtocol(name=_RANGE, metadata=encode_protocol(subscription, _PROTOCOL_VERSION)),
            ),
        )
        patience_ms = self.rebalance_timeout_ms + REQUEST_TIMEOUT_MS
        self.ask(request, _JOIN_GROUP_VERSION, self._joined, patience_ms)

    def _joined(self, response: Any | None) -> None:
        error = -1 if response is None else self.note(response.error_code)
        if response is None or error:
            if error == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id if response is not None else ""
                self._join()
                return
            if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                self.member_id = ""
            self.later(BACKOFF_MS, self._join)
            return
        self.member_id, self.epoch = response.member_id, response.generation_id
        if response.leader == response.member_id and not response.skip_assignment:
            members = [each.member_id for each in response.members]
            self.learn_topics(lambda: self._sync(response, self._divided(members)))
        else:
            self._sync(response, {})

    def _divided(self, members: Sequence[str]) -> dict[str, list[TopicPartition]]:
        """All partitions, assigned to the members in turn."""
        self._assigned = dict(self.partitions)
        partitions = [(name, index) for name in sorted(self.partitions) for index in range(self.partitions[name][1])]
        ordered = sorted(members)
        return {
            member_id: partitions[group_partition :: len(ordered)] for group_partition, member_id in enumerate(ordered)
        }

    def _sync(self, joined: Any, divided: dict[str, list[TopicPartition]]) -> None:
        assignments = tuple(
            SyncGroupRequestAssignment(
                member_id=member_id, assignment=encode_protocol(_assignment(partitions), _PROTOCOL_VERSION)
            )
            for member_id, partitions in divided.items()
        )
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=_CONSUMER,
            protocol_name=_RANGE,
            assignments=assignments,
        )
        patience_ms = self.rebalance_timeout_ms + REQUEST_TIMEOUT_MS
        self.ask(request, _SYNC_GROUP_VERSION, self._synced, patience_ms)

    def _synced(self, response: Any | None) -> None:
        error = -1 if response is None else self.note(response.error_code)
        if response is None or error:
            if error == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            self.later(BACKOFF_MS, self._join)
            return
        self._joining = False
        self._own(_partitions_in(bytes(response.assignment)))
        self.later(self._heartbeat_pause_ms, self._heartbeat)
        if self._assigned is not None:
            self._watch_topics(self.epoch)

    @property
    def _heartbeat_pause_ms(self) -> int:
        return self.session_timeout_ms // 10

    def _heartbeat(self) -> None:
        request = HeartbeatRequest(group_id=self.group, generation_id=self.epoch, member_id=self.member_id)
        epoch = self.epoch

        def answered(response: Any | None) -> None:
            if not self._is_in(epoch):
                return
            error = 0 if response is None else self.note(response.error_code)
            if not self._rejoins(error):
                self.later(self._heartbeat_pause_ms, self._heartbeat)

        self.ask(request, _HEARTBEAT_VERSION, answered)

    def _is_in(self, epoch: int) -> bool:
        """Whether it is still in the generation, and not joining the next."""
        return self.epoch == epoch and not self._joining

    def _refused_commit(self, error: int) -> None:
        if not self._joining:
            self._rejoins(error)

    def _rejoins(self, error: int) -> bool:
        """Whether the error means that the member must join again."""
        if error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif error not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            return False
        self._join()
        return True

    def _watch_topics(self, epoch: int) -> None:
        """The leader joins again when a topic has grown."""

        def learnt() -> None:
            if not self._is_in(epoch):
                return
            if self.partitions != self._assigned:
                self._join()
            else:
                self._watch_topics(epoch)

        self.later(_TOPICS_PAUSE_MS, lambda: self.learn_topics(learnt) if self._is_in(epoch) else None)

    def _say_goodbye(self) -> None:
        if self.member_id:
            identity = MemberIdentity(member_id=self.member_id)
            self.ask(
                LeaveGroupRequest(group_id=self.group, members=(identity,)), _LEAVE_GROUP_VERSION, lambda response: None
            )


class ConsumerMember(GroupMember):
    """The consumer protocol: a sequence of heartbeats, which carry everything."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._says_all = True
        """The last heartbeat may not have arrived."""
        self._has_changed = False
        """Its partitions differ from those in its last heartbeat."""
        self._unresolved: Assignment | None = None
        """The last assignment, while it has topics that the member does not know yet."""
        self._ids = 0

    def _begin(self) -> None:
        self._ids += 1
        self.member_id = f"{self.name}-{self._ids}"
        self.epoch = 0
        self._says_all = True
        self.learn_topics(self._heartbeat)

    def _identity(self) -> tuple[str | None, int]:
        return self.member_id, self.epoch

    def _heartbeat(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, topic_partitions=None
        )
        if self._says_all or self.epoch == 0:
            request.rebalance_timeout_ms = self.rebalance_timeout_ms
            request.subscribed_topic_names = self.topics
            request.topic_partitions = self._having()
        elif self._has_changed:
            request.topic_partitions = self._having()
        self._has_changed = False
        self.ask(request, _CONSUMER_HEARTBEAT_VERSION, self._answered)

    def _having(self) -> tuple[TopicPartitions, ...]:
        owned = indexes_by_topic(self.owned)
        return tuple(
            TopicPartitions(topic_id=self.partitions[name][0], partitions=tuple(indexes))
            for name, indexes in owned.items()
        )

    def _answered(self, response: Any | None) -> None:
        error = -1 if response is None else self.note(response.error_code)
        if response is None or error:
            self._says_all = True
            if error in _EXPELLED and self.epoch:
                self._lose(list(self.owned))
                self.epoch = 0
                self._unresolved = None
            self.later(BACKOFF_MS, self._heartbeat)
            return
        self._says_all = False
        self.epoch = response.member_epoch
        pause_ms = response.heartbeat_interval_ms
        if response.assignment is not None and self._assign(response.assignment):
            pause_ms = 0
        self.later(pause_ms, self._heartbeat)

    def _assign(self, assignment: Assignment) -> bool:
        """Take the assigned partitions of known topics. Returns whether that is a change.

        Another broker may have assigned a topic that this client does not know: it asks, as clients do (KIP-848).
        """
        names = {topic_id: name for name, (topic_id, _) in self.partitions.items()}
        partitions = {
            (names[topic.topic_id], index)
            for topic in assignment.topic_partitions
            if topic.topic_id in names
            for index in topic.partitions
        }
        if any(topic.topic_id not in names for topic in assignment.topic_partitions):
            self._unresolved = assignment
            self.later(BACKOFF_MS, lambda: self.learn_topics(lambda: self._assign_again(assignment)))
        else:
            self._unresolved = None
        # It reports revoked and new partitions at once: other members may wait for them.
        changes = partitions != self.owned.keys()
        self._has_changed = self._has_changed or changes
        self._own(partitions)
        return changes

    def _assign_again(self, assignment: Assignment) -> None:
        if self._unresolved is assignment and self.epoch > 0:
            self._assign(assignment)

    def _refused_commit(self, error: int) -> None:
        pass  # its next heartbeat reports the reason

    def _say_goodbye(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=LEAVING_EPOCH, topic_partitions=None
        )
        self.ask(request, _CONSUMER_HEARTBEAT_VERSION, lambda response: None)


_EXPELLED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND})
"""Errors after which a member of the consumer protocol joins again."""


def _assignment(partitions: Sequence[TopicPartition]) -> ConsumerProtocolAssignment:
    topics: dict[str, list[int]] = {}
    for name, index in partitions:
        topics.setdefault(name, []).append(index)
    return ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            AssignedTopic(topic=name, partitions=tuple(indexes)) for name, indexes in topics.items()
        )
    )


def _partitions_in(assignment: bytes) -> set[TopicPartition]:
    if not assignment:
        return set()
    return {
        (topic.topic, index)
        for topic in decode_assignment(assignment).assigned_partitions
        for index in topic.partitions
    }

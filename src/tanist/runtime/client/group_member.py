"""A member of a consumer group, through `Client`: it joins, keeps its membership, commits, and leaves.

Owns both protocols of the client's side. `ConsumerMember` speaks KIP-848's, where the coordinator assigns;
`ClassicMember` the older one, where the member that leads the group does. Either may share its group with other
libraries' members of the same protocol (or of both, where the broker lets a group go over).

There is no thread: the caller calls `poll` between fetches, and that is when heartbeats go out. Who commits what it
has handled before each `poll` loses no record and repeats only what it did not commit: by the time that the group
hears that a partition is free, its offset is there. A member that does not poll for a session is removed; the
next `poll` joins anew.

It never commits by itself, and reads nothing.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar
from uuid import UUID, uuid4

from tanist.client.errors import Meaning, error_in
from tanist.client.offsets import offset_commit
from tanist.client.range_assignor import RANGE, Subscription, assign_range
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.client import Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.groups import ask_coordinator
from tanist.wire.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription, encode_protocol
from tanist.wire.errors import ErrorCode
from tanist.wire.messages import consumer_group_heartbeat_request, consumer_protocol_assignment
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from tanist.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from tanist.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.heartbeat_response import HeartbeatResponse
from tanist.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from tanist.wire.messages.join_group_response import JoinGroupResponse
from tanist.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from tanist.wire.messages.leave_group_response import LeaveGroupResponse
from tanist.wire.messages.offset_commit_response import OffsetCommitResponse
from tanist.wire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from tanist.wire.messages.sync_group_response import SyncGroupResponse
from tanist.wire.schema import Request, Response

R = TypeVar("R", bound=Response)

REBALANCE_TIMEOUT_MS = 60_000
"""How long the group waits for this member to give up what it is to give up."""
SESSION_TIMEOUT_MS = 45_000
_HEARTBEAT_S = 3.0
"""Of the classic protocol; KIP-848's coordinator says how often."""
_LEAVE_WITHIN_S = 5.0
_COMMIT_TRIES = 5
_JOINING = 0
_LEAVING = -1
_SUBSCRIPTION_VERSION = 1
"""Of the classic protocol's messages between members: every library reads it."""

_OF_GROUPS = frozenset({Meaning.JOIN, Meaning.REBALANCE})


class Member(ABC):
    """The part that both protocols share."""

    def __init__(self, client: Client, group: str, topics: Sequence[str]) -> None:
        self.client = client
        self.group = group
        self.topics = tuple(dict.fromkeys(topics))
        self.assigned: frozenset[TopicPartition] = frozenset()
        """The partitions that this member may read and commit."""
        self.member_id = ""
        self._epoch = -1
        self._due = 0.0

    @property
    def idle_s(self) -> float:
        """How long there is nothing to say to the group."""
        return max(0.0, self._due - time.monotonic())

    def poll(self) -> bool:
        """Say to the group what is due; whether `assigned` has changed. The first one joins."""
        if self.idle_s > 0:
            return False
        before = self.assigned
        self._speak()
        return self.assigned != before

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit what was handled; False if the group has gone on without this member, and it will be read again."""
        for _ in range(_COMMIT_TRIES):
            mine = {place: offset for place, offset in offsets.items() if place in self.assigned}
            if not mine:
                return not offsets
            request = offset_commit(self.group, mine, member_id=self.member_id, epoch=self._epoch)
            answer = self._ask(request, OffsetCommitResponse)
            if error_in(answer) != ErrorCode.STALE_MEMBER_EPOCH:
                return error_in(answer) == ErrorCode.NONE and mine.keys() == offsets.keys()
            self._speak()  # the group has a newer epoch for this member
        return False

    @abstractmethod
    def leave(self) -> None:
        """Say goodbye, so that others get the partitions at once. Best effort: a session ends by itself."""

    @abstractmethod
    def _speak(self) -> None:
        """Send the requests that are due, in this protocol."""

    def _ask(self, request: Request, answers: type[R], *, answer_within_s: float | None = None) -> R:
        """The coordinator's answer, which may say that the group is changing, or has gone on without this member."""
        answer, _ = ask_coordinator(
            self.client, self.group, request, answers, expected=_OF_GROUPS, answer_within_s=answer_within_s
        )
        return answer


class ConsumerMember(Member):
    """A member by KIP-848. Each heartbeat says everything, so none depends on whether the last one arrived."""

    def __init__(self, client: Client, group: str, topics: Sequence[str]) -> None:
        super().__init__(client, group, topics)
        self.member_id = str(uuid4())
        self._epoch = _JOINING
        self._ids: dict[UUID, str] = {}

    def leave(self) -> None:
        if self._epoch == _JOINING:
            return
        self._epoch, self.assigned = _LEAVING, frozenset()
        with suppress(KafkaError, Unreachable):
            _briefly(self.client, lambda: self._heartbeat(frozenset()))

    def _speak(self) -> None:
        answer = self._heartbeat(self.assigned)
        if answer.error_code:
            # The same id begins again, with nothing.
            self._epoch, self.assigned = _JOINING, frozenset()
            answer = self._heartbeat(self.assigned)
            if answer.error_code:
                raise KafkaError(answer.error_code, answer.error_message)
        self._epoch = answer.member_epoch
        self._due = time.monotonic() + answer.heartbeat_interval_ms / 1000
        if answer.assignment is None:
            return
        assigned = frozenset(
            (name, index)
            for part in answer.assignment.topic_partitions
            if (name := self._name_of(part.topic_id)) is not None
            for index in part.partitions
        )
        if assigned != self.assigned:
            self.assigned = assigned
            self._due = 0.0  # the group waits to hear that what is not in it is free

    def _heartbeat(self, owned: frozenset[TopicPartition]) -> ConsumerGroupHeartbeatResponse:
        ids = {name: topic_id for topic_id, name in self._ids.items()}
        by_topic: dict[UUID, list[int]] = {}
        for name, index in sorted(owned):
            by_topic.setdefault(ids[name], []).append(index)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self._epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=self.topics,
            topic_partitions=tuple(
                consumer_group_heartbeat_request.TopicPartitions(topic_id=topic_id, partitions=tuple(indexes))
                for topic_id, indexes in by_topic.items()
            ),
        )
        return self._ask(request, ConsumerGroupHeartbeatResponse)

    def _name_of(self, topic_id: UUID) -> str | None:
        """None of a topic that is deleted meanwhile."""
        if topic_id not in self._ids:
            view = self.client.persist(lambda: self.client.metadata(self.topics))
            self._ids |= {topic.topic_id: name for name, topic in view.topics.items() if not topic.error_code}
        return self._ids.get(topic_id)


class ClassicMember(Member):
    """A member by the classic protocol: with each rebalance everybody gives up everything, and joins again."""

    def leave(self) -> None:
        if not self.member_id:
            return
        leaving = MemberIdentity(member_id=self.member_id)
        request = LeaveGroupRequest(group_id=self.group, member_id=self.member_id, members=(leaving,))
        with suppress(KafkaError, Unreachable):
            _briefly(self.client, lambda: self._ask(request, LeaveGroupResponse))
        self.member_id, self.assigned = "", frozenset()

    def _speak(self) -> None:
        if self._epoch >= 0:
            request = HeartbeatRequest(group_id=self.group, generation_id=self._epoch, member_id=self.member_id)
            code = self._ask(request, HeartbeatResponse).error_code
            if code == ErrorCode.NONE:
                self._due = time.monotonic() + _HEARTBEAT_S
                return
            self._lose(code)
        while self._epoch < 0:
            self._join()
        self._due = time.monotonic() + _HEARTBEAT_S

    def _lose(self, code: int) -> None:
        """The generation is over. A member that the group does not know any more joins as a new one."""
        self._epoch, self.assigned = -1, frozenset()
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""

    def _join(self) -> None:
        """One try. The group's answer takes as long as the slowest member needs to come."""
        subscription = encode_protocol(ConsumerProtocolSubscription(topics=self.topics), _SUBSCRIPTION_VERSION)
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=(JoinGroupRequestProtocol(name=RANGE, metadata=subscription),),
        )
        joined = self._ask(
            request,
            JoinGroupResponse,
            answer_within_s=REBALANCE_TIMEOUT_MS / 1000 + self.client.timeout_s,
        )
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            return
        if joined.error_code:
            self._lose(joined.error_code)
            return
        self.member_id = joined.member_id
        assignments = self._assign(joined) if joined.leader == joined.member_id else {}
        synced = self._ask(
            SyncGroupRequest(
                group_id=self.group,
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=joined.protocol_name,
                assignments=tuple(
                    SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                    for member_id, assignment in assignments.items()
                ),
            ),
            SyncGroupResponse,
            answer_within_s=REBALANCE_TIMEOUT_MS / 1000 + self.client.timeout_s,
        )
        if synced.error_code:
            self._lose(synced.error_code)
            return
        self._epoch = joined.generation_id
        parts = decode_assignment(bytes(synced.assignment)).assigned_partitions if synced.assignment else ()
        self.assigned = frozenset((part.topic, index) for part in parts for index in part.partitions)

    def _assign(self, joined: JoinGroupResponse) -> dict[str, bytes]:
        """The assignments that this member makes as the group's leader."""
        subscriptions = {
            each.member_id: Subscription(decode_subscription(bytes(each.metadata)).topics, each.group_instance_id)
            for each in joined.members
        }
        names = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
        view = self.client.persist(lambda: self.client.metadata(names))
        partitions = {name: len(topic.partitions) for name, topic in view.topics.items() if not topic.error_code}
        return {
            member_id: encode_protocol(
                ConsumerProtocolAssignment(
                    assigned_partitions=tuple(
                        consumer_protocol_assignment.TopicPartition(topic=topic, partitions=tuple(indexes))
                        for topic, indexes in assigned.items()
                    )
                ),
                _SUBSCRIPTION_VERSION,
            )
            for member_id, assigned in assign_range(subscriptions, partitions).items()
        }


def new_member(client: Client, group: str, topics: Sequence[str], protocol: str | None) -> Member:
    """A member of this protocol; None: of KIP-848's, and of the classic one where the cluster does not have that."""
    if protocol is not None:
        return PROTOCOLS[protocol](client, group, topics)
    try:
        member = ConsumerMember(client, group, topics)
        member.poll()
    except Unsupported:
        return ClassicMember(client, group, topics)
    return member


PROTOCOLS: dict[str, type[Member]] = {"consumer": ConsumerMember, "classic": ClassicMember}
"""By their names in Kafka's `group.protocol`."""


def _briefly(client: Client, attempt: Callable[[], object]) -> None:
    """With little patience: a member that leaves does not wait for a cluster that is not there."""
    patience_s, client.timeout_s = client.timeout_s, min(client.timeout_s, _LEAVE_WITHIN_S)
    try:
        attempt()
    finally:
        client.timeout_s = patience_s

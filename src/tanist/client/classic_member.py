"""A member of the classic protocol: with each rebalance everybody gives up everything, and joins again.

    JOINING  -- JoinGroup carried out, another leads      --> SYNCING
             -- JoinGroup carried out, this member leads  --> ASSIGNING (it asks for the topics) --> SYNCING
    SYNCING  -- SyncGroup carried out                     --> STABLE (heartbeats; the leader looks whether topics grow)
    any      -- the group goes on without it, or changes  --> JOINING

The leader assigns by range, as all members of this client can.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Final

from tanist.client.errors import Meaning, error_in, meaning_in
from tanist.client.membership import (
    NO_GENERATION,
    Assigned,
    Effect,
    Effects,
    GroupMember,
    LearnTopics,
    Lost,
    MemberSettings,
)
from tanist.client.range_assignor import RANGE, Subscription, assign_range
from tanist.wire.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription, encode_protocol
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from tanist.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from tanist.wire.messages.join_group_response import JoinGroupResponse
from tanist.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from tanist.wire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from tanist.wire.messages.sync_group_response import SyncGroupResponse
from tanist.wire.schema import Response

_MESSAGES_VERSION: Final = 1
"""Of the members' messages to each other: every library reads it."""


class _State(Enum):
    JOINING = auto()
    ASSIGNING = auto()
    SYNCING = auto()
    STABLE = auto()


class ClassicGroupMember(GroupMember):
    """Its id is the coordinator's: it begins without one."""

    def __init__(self, settings: MemberSettings) -> None:
        super().__init__(settings, "")
        self._state = _State.JOINING
        self._joined = JoinGroupResponse()
        self._subscriptions: dict[str, Subscription] = {}
        """Of all members, if this one leads."""
        self._assigned_of: dict[str, int] = {}
        """The number of partitions of each topic when it assigned."""
        self._begun = False

    @property
    def is_in(self) -> bool:
        return self._state is _State.STABLE

    def commit_refused(self, answer: Response) -> list[Effect]:
        return list(self._rejoin(answer)) if self._state is _State.STABLE else []

    def _continue(self) -> Effects:
        if self._state is _State.STABLE:
            request = HeartbeatRequest(group_id=self.settings.group, generation_id=self.epoch, member_id=self.member_id)
            yield from self._ask(request)
        else:
            yield from self._join()

    def _take(self, answer: Response | None) -> Effects:
        meaning = meaning_in(answer)
        if self._state is _State.STABLE:
            if meaning in (Meaning.JOIN, Meaning.REBALANCE):
                yield from self._rejoin(answer)
            elif meaning is Meaning.FINAL:
                yield from self._try_again(answer)
            else:
                yield from self._wait(self.settings.heartbeat_ms)
        elif meaning is Meaning.DONE and isinstance(answer, JoinGroupResponse):
            yield from self._assign_or_sync(answer)
        elif meaning is Meaning.DONE and isinstance(answer, SyncGroupResponse):
            yield from self._synced(answer)
        elif isinstance(answer, JoinGroupResponse) and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            yield from self._join()
        else:
            self._state = _State.JOINING
            self._forget_id(answer)
            yield from self._try_again(answer)

    # -- joining

    def _rejoin(self, answer: Response | None) -> Effects:
        """Join again if the answer says so."""
        if meaning_in(answer) in (Meaning.JOIN, Meaning.REBALANCE):
            self._forget_id(answer)
            yield from self._join()

    def _forget_id(self, answer: Response | None) -> None:
        """A member that the group does not know any more joins as a new one."""
        if answer is not None and error_in(answer) == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""

    def _join(self) -> Effects:
        self._state, self.epoch, self._pause, self._topics_pause = _State.JOINING, NO_GENERATION, None, None
        self._subscriptions = {}
        yield Lost()
        subscription = ConsumerProtocolSubscription(topics=self.settings.topics)
        metadata = encode_protocol(subscription, _MESSAGES_VERSION)
        request = JoinGroupRequest(
            group_id=self.settings.group,
            session_timeout_ms=self.settings.session_timeout_ms,
            rebalance_timeout_ms=self.settings.rebalance_timeout_ms,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=(JoinGroupRequestProtocol(name=RANGE, metadata=metadata),),
        )
        # The answer takes as long as the slowest member needs to come.
        yield from self._ask(request, self.settings.rebalance_timeout_ms)

    def _assign_or_sync(self, joined: JoinGroupResponse) -> Effects:
        self._joined = joined
        self.member_id, self.epoch = joined.member_id, joined.generation_id
        if joined.leader != joined.member_id or joined.skip_assignment:
            yield from self._sync({})
            return
        self._subscriptions = {
            each.member_id: Subscription(decode_subscription(bytes(each.metadata)).topics, each.group_instance_id)
            for each in joined.members
        }
        self._state = _State.ASSIGNING
        yield LearnTopics(self._wanted_topics())

    def _sync(self, assignments: dict[str, bytes]) -> Effects:
        self._state = _State.SYNCING
        request = SyncGroupRequest(
            group_id=self.settings.group,
            generation_id=self.epoch,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._joined.protocol_name or RANGE,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ),
        )
        yield from self._ask(request, self.settings.rebalance_timeout_ms)

    def _synced(self, answer: SyncGroupResponse) -> Effects:
        self._state = _State.STABLE
        parts: Any = decode_assignment(bytes(answer.assignment)).assigned_partitions if answer.assignment else ()
        yield Assigned(frozenset((part.topic, index) for part in parts for index in part.partitions))
        yield from self._wait(self.settings.heartbeat_ms)
        if self._subscriptions:
            yield from self._watch_topics(self.settings.topics_ms)

    # -- leading

    def _wanted_topics(self) -> tuple[str, ...]:
        subscribed = {topic for each in self._subscriptions.values() for topic in each.topics}
        return tuple(sorted(subscribed)) or self.settings.topics

    def _topics_learnt(self) -> Effects:
        if not self._begun:
            self._begun = True
            yield from self._join()
        elif self._state is _State.ASSIGNING:
            self._assigned_of = self._counts()
            yield from self._sync(self._assignments())
        elif self._state is _State.STABLE and self._subscriptions:
            if self._counts() != self._assigned_of:
                yield from self._join()
            else:
                yield from self._watch_topics(self.settings.topics_ms)

    def _counts(self) -> dict[str, int]:
        """The number of partitions of each topic that is there."""
        return {name: len(topic.partitions) for name, topic in self._view.topics.items() if topic.partitions}

    def _assignments(self) -> dict[str, bytes]:
        return {
            member_id: encode_protocol(
                ConsumerProtocolAssignment(
                    assigned_partitions=tuple(
                        TopicPartition(topic=topic, partitions=tuple(indexes)) for topic, indexes in assigned.items()
                    )
                ),
                _MESSAGES_VERSION,
            )
            for member_id, assigned in assign_range(self._subscriptions, self._assigned_of).items()
        }

    def _goodbye(self) -> Effects:
        if self.member_id:
            leaving = MemberIdentity(member_id=self.member_id)
            yield from self._ask(
                LeaveGroupRequest(group_id=self.settings.group, member_id=self.member_id, members=(leaving,))
            )
        self.member_id, self.epoch, self._state = "", NO_GENERATION, _State.JOINING

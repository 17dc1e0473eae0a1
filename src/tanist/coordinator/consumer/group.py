"""One group of the consumer protocol (KIP-848): heartbeats and their effects.

A member sends with each heartbeat its id and epoch, and its subscription and partitions when they have changed. There
are three kinds of epochs: the group's grows when members or topics change; the target assignment has that of the group
for which it was made; each member takes over the target's when it has given up all partitions that are not in it. A
member waits only for partitions of its target.

Decisions are records (`tables`), answered when they are committed. `sessions` has the members' deadlines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from enum import Enum
from uuid import UUID

from tanist.coordinator.consumer.assignors import ASSIGNORS, Subscriber
from tanist.coordinator.consumer.heartbeat_fields import (
    assignment_of,
    has_all_fields,
    is_within,
    merged,
    places_of,
    reported_by,
)
from tanist.coordinator.consumer.member import (
    JOINING_EPOCH,
    LEAVING_STATIC_EPOCH,
    Current,
    MemberState,
    Subscription,
    current_record,
    subscription_record,
    target_record,
)
from tanist.coordinator.consumer.reconciliation import Reported, next_current
from tanist.coordinator.consumer.tables import ConsumerTables
from tanist.coordinator.consumer.topics import Topics, every_topic, hash_of, matching
from tanist.coordinator.effects import Refused
from tanist.coordinator.rebalance import GroupSettings
from tanist.coordinator.regex import InvalidRegex
from tanist.coordinator.sessions import CommittingMembers
from tanist.wire.consumer_group_records import (
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerMemberKey,
    GroupRegexKey,
    GroupRegexValue,
    MemberCurrentKey,
    MemberTargetKey,
    TargetAssignmentKey,
    TargetAssignmentValue,
)
from tanist.wire.consumer_protocol import PROTOCOL_TYPE
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.consumer_group_heartbeat_response import (
    ConsumerGroupHeartbeatResponse,
)

Decide = Callable[[CoordinatorKey, CoordinatorValue | None], None]

DOWNGRADES = frozenset({"downgrade", "bidirectional"})
"""Values of `group.consumer.migration.policy` with which a group goes back to the classic protocol."""


class ConsumerGroupState(Enum):
    """States of a consumer group, by Kafka's names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup(ConsumerTables, CommittingMembers):
    """A consumer group, as its coordinator sees it."""

    kind = "consumer"
    protocol_type = PROTOCOL_TYPE

    def __init__(self, group_id: str, settings: GroupSettings, topics: Topics, decide: Decide) -> None:
        ConsumerTables.__init__(self, group_id)
        CommittingMembers.__init__(self)
        self.emit = decide
        """Decide: apply the record at once, and have it written."""
        self.settings = settings
        self.topics = topics
        self.may_describe: Callable[[str], bool] = every_topic
        """Whether the member that sent the last heartbeat may hear of a topic: expressions match no other."""

    # -- what there is

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        for member_id in self.members:
            current = self.current(member_id)
            if current.state is not MemberState.STABLE or current.epoch != self.target_epoch:
                return ConsumerGroupState.RECONCILING
        return ConsumerGroupState.STABLE

    @property
    def goes_back(self) -> bool:
        """Whether members of the classic protocol alone are left, and it is to be a classic group again."""
        allowed = bool(self.members) and self.settings.migration_policy in DOWNGRADES
        return allowed and all(subscription.classic is not None for subscription in self.members.values())

    def assignor(self) -> str:
        """The one that most members prefer; the first configured one if none has a preference."""
        votes = Counter(each.server_assignor for each in self.members.values() if each.server_assignor is not None)
        usable = [(-count, name) for name, count in votes.items() if name in self.settings.assignors]
        return min(usable)[1] if usable else self.settings.assignors[0]

    # -- sessions and commits

    def member_ids(self) -> Collection[str]:
        return self.members.keys()

    def is_classic(self, member_id: str) -> bool:
        return self.members[member_id].classic is not None

    def time_to_revoke(self, member_id: str) -> int | None:
        revokes = self.current(member_id).state is MemberState.UNREVOKED_PARTITIONS
        return self.members[member_id].rebalance_timeout_ms if revokes else None

    def assigned_since(self, member_id: str, topic_id: UUID, index: int) -> int | None:
        current = self.current(member_id)
        for owned in (current.assigned, current.revoking):
            since = owned.get(topic_id, {}).get(index)
            if since is not None:
                return since
        return None

    def session_timeout_ms(self, member_id: str) -> int:
        classic = self.members[member_id].classic
        if classic is not None:
            return classic.session_timeout_ms
        return self.settings.timing_of(self.group_id).session_timeout_ms

    def topic_names(self, subscription: Subscription) -> frozenset[str]:
        """The topics that a member has subscribed to, by name and by expression."""
        names = frozenset(subscription.topic_names)
        resolved = self.regexes.get(subscription.regex) if subscription.regex is not None else None
        return names if resolved is None else names.union(resolved.topics)

    def subscribed_topics(self) -> frozenset[str]:
        return frozenset(name for each in self.members.values() for name in self.topic_names(each))

    # -- heartbeats

    def heartbeat(
        self, beat: ConsumerGroupHeartbeatRequest, client_id: str, client_host: str, now_ms: int
    ) -> ConsumerGroupHeartbeatResponse:
        """A member joins, or sends a heartbeat. `Refused` if its ids or epoch do not match."""
        member_id, joining = beat.member_id, beat.member_epoch == JOINING_EPOCH
        if joining:
            self.check_size(member_id, beat.instance_id)
        reported = reported_by(beat)
        self._check_identity(beat, reported)
        before = self.members.get(member_id)
        if joining and beat.instance_id is not None:
            before = self.replace_static(beat.instance_id, member_id)
        subscription = merged(before, beat, client_id, client_host)
        if subscription.regex is not None and subscription.regex not in self.regexes:
            self._check_regex(subscription.regex)
        if subscription != before:
            self.emit(ConsumerMemberKey(group=self.group_id, member_id=member_id), subscription_record(subscription))
        changed = before is None or (before.topic_names, before.regex) != (subscription.topic_names, subscription.regex)
        self.update_epoch_and_target(changed, before, now_ms)
        had = self.current(member_id)
        has = self.reconcile(member_id, reported, changed)
        self.heard_of(member_id, now_ms)
        self.be_patient(member_id, now_ms)
        is_news = joining or has_all_fields(beat) or places_of(had.assigned) != places_of(has.assigned)
        return ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=has.epoch,
            heartbeat_interval_ms=self.settings.timing_of(self.group_id).heartbeat_interval_ms,
            assignment=assignment_of(has.assigned) if is_news else None,
        )

    def check_size(self, member_id: str, instance_id: str | None) -> None:
        if instance_id in self.static_members:
            return
        if member_id not in self.members and len(self.members) >= self.settings.consumer_max_size:
            raise Refused(
                ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group has {len(self.members)} members, which is the maximum"
            )

    def _check_identity(self, beat: ConsumerGroupHeartbeatRequest, reported: Reported | None) -> None:
        member_id, epoch = beat.member_id, beat.member_epoch
        self.static_members.check(beat.instance_id, member_id, epoch, self.epoch_of)
        if epoch == JOINING_EPOCH:
            return
        if member_id not in self.members:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"member {member_id} is not in the group")
        current = self.current(member_id)
        if epoch > current.epoch:
            raise Refused(
                ErrorCode.FENCED_MEMBER_EPOCH, f"the member's epoch {epoch} is ahead of {current.epoch}; it must rejoin"
            )
        if epoch < current.epoch and not (
            # The last answer was lost, and it has no partition beyond its assignment.
            epoch == current.previous_epoch and reported is not None and is_within(reported, current.assigned)
        ):
            raise Refused(
                ErrorCode.FENCED_MEMBER_EPOCH, f"the member's epoch {epoch} is behind {current.epoch}; it must rejoin"
            )

    def replace_static(self, instance_id: str, member_id: str) -> Subscription | None:
        """A static member is back under a new id: it takes over its old state, and has no other."""
        old_id = self.static_members.get(instance_id)
        if old_id is None or old_id == member_id:
            return self.members.get(member_id)
        subscription, target, current = self.members[old_id], self.targets.get(old_id), self.current(old_id)
        self.erase(old_id)
        group = self.group_id
        self.emit(ConsumerMemberKey(group=group, member_id=member_id), subscription_record(subscription))
        if target is not None or member_id in self.targets:
            self.emit(MemberTargetKey(group=group, member_id=member_id), target_record(target or {}))
        self.emit(
            MemberCurrentKey(group=group, member_id=member_id),
            current_record(current.back()),
        )
        return subscription

    # -- the three epochs

    def update_epoch_and_target(self, changed: bool, before: Subscription | None, now_ms: int) -> None:
        """After a change of subscription: the group's epoch, and the target assignment."""
        if before is not None and changed and before.regex is not None:
            self._forget_regex(before.regex)
        bump = changed
        metadata_hash = self.metadata_hash
        if changed or self.refresh_requested:
            bump = self._refresh_regexes() or bump
            metadata_hash = hash_of(self._existing_topics())
            bump = bump or metadata_hash != self.metadata_hash
            self.refresh_requested = False
        if bump or not self.exists:
            self.bump(metadata_hash)
        if self.target_epoch < self.epoch:
            self._make_target()

    def bump(self, metadata_hash: int | None = None) -> None:
        self.emit(
            ConsumerGroupKey(group=self.group_id),
            ConsumerGroupValue(
                epoch=self.epoch + 1,
                metadata_hash=self.metadata_hash if metadata_hash is None else metadata_hash,
            ),
        )

    def _existing_topics(self) -> dict[str, tuple[UUID, int]]:
        found = {name: self.topics.find(name) for name in self.subscribed_topics()}
        return {name: topic for name, topic in found.items() if topic is not None}

    def _make_target(self) -> None:
        found = self._existing_topics()
        ids = {name: topic_id for name, (topic_id, _) in found.items()}
        members = {
            member_id: Subscriber(
                topics=frozenset(ids[name] for name in self.topic_names(subscription) if name in ids),
                instance_id=subscription.instance_id,
                target=self.target(member_id),
            )
            for member_id, subscription in self.members.items()
        }
        made = ASSIGNORS[self.assignor()](members, dict(found.values()))
        for member_id, target in made.items():
            if member_id not in self.targets or target != self.targets[member_id]:
                self.emit(MemberTargetKey(group=self.group_id, member_id=member_id), target_record(target))
        self.emit(TargetAssignmentKey(group=self.group_id), TargetAssignmentValue(assignment_epoch=self.epoch))

    def reconcile(self, member_id: str, reported: Reported | None, changed: bool) -> Current[UUID]:
        """Bring a member one step nearer to its target."""
        subscribed: frozenset[UUID] | None = None
        if changed:
            found = (self.topics.find(name) for name in self.topic_names(self.members[member_id]))
            subscribed = frozenset(topic[0] for topic in found if topic is not None)
        current = self.current(member_id)
        has = next_current(
            current,
            self.target_epoch,
            self.target(member_id),
            reported,
            lambda topic_id, index: (topic_id, index) not in self.owners,
            subscribed=subscribed,
        )
        if has != current or member_id not in self.currents:
            self.emit(MemberCurrentKey(group=self.group_id, member_id=member_id), current_record(has))
        return has

    # -- regular expressions

    def _check_regex(self, regex: str) -> None:
        try:
            topics = matching(regex, self.topics.names(), self.may_describe)
        except InvalidRegex as error:
            raise Refused(
                ErrorCode.INVALID_REGULAR_EXPRESSION, f"{regex!r} is no regular expression of RE2: {error}"
            ) from error
        self._put_regex(regex, topics)

    def _put_regex(self, regex: str, topics: tuple[str, ...]) -> None:
        value = GroupRegexValue(topics=topics, version=self.topics.version)
        self.emit(GroupRegexKey(group=self.group_id, regular_expression=regex), value)

    def _refresh_regexes(self) -> bool:
        """Match the regular expressions against the present metadata again; whether any result has changed."""
        new = False
        for regex, resolved in list(self.regexes.items()):
            if resolved.version != self.topics.version:
                topics = matching(regex, self.topics.names(), self.may_describe)
                if topics != resolved.topics:
                    self._put_regex(regex, topics)
                    new = True
        return new

    def _forget_regex(self, regex: str) -> None:
        if regex in self.regexes and all(each.regex != regex for each in self.members.values()):
            self.emit(GroupRegexKey(group=self.group_id, regular_expression=regex), None)

    # -- leaving

    def leave(self, beat: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        """A member leaves: for good, or, if static and with epoch -2, for a while."""
        member_id = beat.member_id
        self.static_members.check(beat.instance_id, member_id, beat.member_epoch, self.epoch_of)
        if member_id not in self.members:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"member {member_id} is not in the group")
        if beat.member_epoch == LEAVING_STATIC_EPOCH:
            away = current_record(self.current(member_id).away())
            self.emit(MemberCurrentKey(group=self.group_id, member_id=member_id), away)
            self.patience.pop(member_id, None)
        else:
            self.remove([member_id])
        return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=beat.member_epoch)

    def remove(self, member_ids: Iterable[str]) -> None:
        """Remove members; their partitions go to others in the next epoch.

        A group that goes back stays in its epoch: that is the generation that its members are in.
        """
        for member_id in member_ids:
            self.erase(member_id)
        if not self.goes_back:
            self.bump()

    def erase(self, member_id: str) -> None:
        group, regex = self.group_id, self.members[member_id].regex
        if member_id in self.currents:
            self.emit(MemberCurrentKey(group=group, member_id=member_id), None)
        if member_id in self.targets:
            self.emit(MemberTargetKey(group=group, member_id=member_id), None)
        self.emit(ConsumerMemberKey(group=group, member_id=member_id), None)
        if regex is not None:
            self._forget_regex(regex)
        self.forget_deadlines(member_id)

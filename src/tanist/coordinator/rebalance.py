"""The course of a rebalance: the awaited members, the deadlines, the start of a generation, and the removal of late
members.

Owns a group's deadlines and its changes of state; `group.py` handles the members' requests. A rebalance begins when
members change. It ends when all have joined, or at the deadline, without the missing ones; the first rebalance of an
empty group waits a little for more members (KIP-134).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from tanist.coordinator.effects import (
    NEVER_MS,
    Answer,
    Append,
    AssignmentStored,
    Effect,
    GroupEmptied,
    StaticMemberStored,
)
from tanist.coordinator.membership import ClassicGroupMember, GroupState, Membership
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from tanist.wire.messages.sync_group_response import SyncGroupResponse

_LEAST_EXTENSION_MS: Final = 1_000
"""The least wait of a rebalance that no member has joined: a timeout of 0 must not make it spin."""

EMPTY, PREPARING, COMPLETING, STABLE = GroupState


class ConsumerTiming(NamedTuple):
    """The session settings of one group of the consumer protocol, or of one share group."""

    session_timeout_ms: int
    heartbeat_interval_ms: int


class StreamsTiming(NamedTuple):
    """The settings of one Streams group (KIP-1071)."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    standby_replicas: int = 0
    initial_rebalance_delay_ms: int = 3_000
    assignment_interval_ms: int = 1_000
    acceptable_recovery_lag: int = 10_000
    task_offset_interval_ms: int = 60_000
    rack_aware_assignment_tags: tuple[str, ...] = ()
    """Keys of tags that each member is to have."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The broker's settings of groups."""

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4_096
    # For groups of the consumer protocol (KIP-848).
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: str = "bidirectional"
    timing: Callable[[str], ConsumerTiming | None] = lambda group_id: None
    """A group's own timing, which its dynamic configuration may have; None: the broker's."""

    # For share groups (KIP-932).
    share_session_timeout_ms: int = 45_000
    share_heartbeat_interval_ms: int = 5_000
    share_max_size: int = 200
    share_initialize_retry_ms: int = 30_000
    share_timing: Callable[[str], ConsumerTiming | None] = lambda group_id: None

    # For Streams groups (KIP-1071).
    streams_max_size: int = 2**31 - 1
    streams_timing: Callable[[str], StreamsTiming] = lambda group_id: StreamsTiming()

    def share_timing_of(self, group_id: str) -> ConsumerTiming:
        """The present settings of one share group."""
        own = self.share_timing(group_id)
        return own or ConsumerTiming(self.share_session_timeout_ms, self.share_heartbeat_interval_ms)

    def timing_of(self, group_id: str) -> ConsumerTiming:
        """The present settings of one group."""
        own = self.timing(group_id)
        if own is not None:
            return own
        return ConsumerTiming(self.consumer_session_timeout_ms, self.consumer_heartbeat_interval_ms)


def join_refused(error: int, ticket: object, member_id: str = "") -> Answer:
    return Answer(ticket, JoinGroupResponse(error_code=error, protocol_name=None, member_id=member_id))


def sync_refused(error: int, ticket: object) -> Answer:
    return Answer(ticket, SyncGroupResponse(error_code=error))


class Rebalancing(Membership):
    """A group between its generations."""

    def __init__(self, group_id: str, settings: GroupSettings) -> None:
        super().__init__(group_id)
        self._settings = settings
        self.check_ms = NEVER_MS
        """The next deadline. A heartbeat only postpones deadlines, so it leaves this as it is."""
        self._rebalance_deadline_ms = NEVER_MS
        self._sync_deadline_ms = NEVER_MS
        self._awaited_syncs: set[str] = set()
        # While an empty group waits for its first members: how much longer it may wait, and whether one has come.
        self._initial_left_ms: int | None = None
        self._newcomer = False

    # -- the rebalance

    def rebalance(self, now_ms: int) -> list[Effect]:
        """Members have changed: begin a rebalance, or continue the one under way."""
        return self._complete_join_if_all(now_ms) if self.state is PREPARING else self.prepare_rebalance(now_ms)

    def go_on(self, now_ms: int) -> list[Effect]:
        """An awaited member will not join: end the rebalance if all others have."""
        return self._complete_join_if_all(now_ms) if self.state is PREPARING else []

    def prepare_rebalance(self, now_ms: int) -> list[Effect]:
        """Begin a rebalance: each member learns of it by its next heartbeat, or from its SyncGroup."""
        effects = self.refuse_syncs(ErrorCode.REBALANCE_IN_PROGRESS) if self.state is COMPLETING else []
        is_initial = self.state is EMPTY
        delay_ms = self._settings.initial_rebalance_delay_ms if is_initial else 0
        self._sync_deadline_ms = NEVER_MS
        self._awaited_syncs.clear()
        self._newcomer = False
        self._initial_left_ms = None
        patience_ms = self.rebalance_timeout_ms
        if delay_ms > 0:
            self._initial_left_ms = max(patience_ms - delay_ms, 0)
            patience_ms = delay_ms
        self._rebalance_deadline_ms = now_ms + patience_ms
        self.state = PREPARING
        if is_initial and not delay_ms:
            return effects + self._complete_join(now_ms)  # without those that have an id only
        return effects + self._complete_join_if_all(now_ms)

    def _complete_join_if_all(self, now_ms: int) -> list[Effect]:
        if self._initial_left_ms is None and self.all_have_joined():
            return self._complete_join(now_ms)
        return []

    def _rebalance_deadline(self, now_ms: int) -> list[Effect]:
        left_ms = self._initial_left_ms
        if left_ms and self._newcomer:
            delay_ms = min(self._settings.initial_rebalance_delay_ms, left_ms)
            self._newcomer = False
            self._initial_left_ms = left_ms - delay_ms
            self._rebalance_deadline_ms = now_ms + delay_ms
            return []
        return self._complete_join(now_ms)

    def _complete_join(self, now_ms: int) -> list[Effect]:
        """Members that have joined are in the next generation; the others leave the group unless they are static."""
        for member in [m for m in self.members.values() if m.join_ticket is None and m.group_instance_id is None]:
            self.remove(member)
        if self.members and not self.elect_joined_leader():
            # Static members only, and none has joined yet.
            self._rebalance_deadline_ms = now_ms + max(self.rebalance_timeout_ms, _LEAST_EXTENSION_MS)
            return []
        self._initial_left_ms = None
        self._rebalance_deadline_ms = NEVER_MS
        self.generation_id += 1
        if not self.members:
            self.protocol_name = None
            self.state = EMPTY
            return [self.store(GroupEmptied())]
        self.protocol_name = self.select_protocol()
        self.state = COMPLETING
        self._awaited_syncs = set(self.members)
        self._sync_deadline_ms = now_ms + self.rebalance_timeout_ms
        effects: list[Effect] = []
        for member in self.members.values():
            if member.join_ticket is not None:
                effects.append(self.join_answer(member, member.join_ticket))
                member.join_ticket = None
                member.deadline_ms = now_ms + member.session_timeout_ms
            member.is_new = False
        return effects

    def store(self, purpose: AssignmentStored | StaticMemberStored | GroupEmptied) -> Append:
        """Decide on the group's record as it is now."""
        (key, value), before = self.record(), self.stored
        self.stored = value
        return Append(self.group_id, ((key, value),), purpose, undo=((key, before),), before=self)

    # -- answers

    def join_answer(self, member: ClassicGroupMember, ticket: object) -> Answer:
        leads = member.member_id == self.leader_id
        return Answer(
            ticket,
            JoinGroupResponse(
                generation_id=self.generation_id,
                protocol_type=self.protocol_type,
                protocol_name=self.protocol_name,
                leader=self.leader_id or "",
                member_id=member.member_id,
                members=tuple(
                    JoinGroupResponseMember(
                        member_id=each.member_id,
                        group_instance_id=each.group_instance_id,
                        metadata=each.metadata_for(self.protocol_name),
                    )
                    for each in (self.members.values() if leads else ())
                ),
            ),
        )

    def sync_answer(self, member: ClassicGroupMember, ticket: object) -> Answer:
        return Answer(
            ticket,
            SyncGroupResponse(
                protocol_type=self.protocol_type, protocol_name=self.protocol_name, assignment=member.assignment
            ),
        )

    def refuse_syncs(self, error: int) -> list[Effect]:
        """The generation ends before its assignment was sent."""
        effects: list[Effect] = []
        for member in self.members.values():
            member.assignment = b""
            if member.sync_ticket is not None:
                effects.append(sync_refused(error, member.sync_ticket))
                member.sync_ticket = None
        return effects

    def drop(self, member: ClassicGroupMember) -> list[Effect]:
        """Remove the member. The caller begins a rebalance, once for all that leave."""
        effects = self.refuse_waiting(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self._awaited_syncs.discard(member.member_id)
        self.remove(member)
        return effects

    def refuse_waiting(self, member: ClassicGroupMember, error: int) -> list[Effect]:
        """End the member's waiting requests; it may send new ones."""
        effects: list[Effect] = []
        if member.join_ticket is not None:
            effects.append(join_refused(error, member.join_ticket))
        if member.sync_ticket is not None:
            effects.append(sync_refused(error, member.sync_ticket))
        member.join_ticket = member.sync_ticket = None
        return effects

    def dismiss(self, error: int) -> list[Effect]:
        """End all waiting requests."""
        return [effect for member in self.members.values() for effect in self.refuse_waiting(member, error)]

    def rename_static(self, instance_id: str, new_id: str) -> ClassicGroupMember:
        old_id = self.static_members[instance_id]
        if old_id in self._awaited_syncs:
            self._awaited_syncs.remove(old_id)
            self._awaited_syncs.add(new_id)
        return super().rename_static(instance_id, new_id)

    # -- time

    def tick(self, now_ms: int) -> list[Effect]:
        """Remove members that sent nothing in time, and end waits whose deadline has passed."""
        effects: list[Effect] = []
        left = False
        for member_id in [m for m, deadline_ms in self.pending_members.items() if deadline_ms <= now_ms]:
            del self.pending_members[member_id]
        for member in [m for m in self.members.values() if m.deadline_ms <= now_ms]:
            if (member.join_ticket is not None and not member.is_new) or member.sync_ticket is not None:
                # It waits for an answer of ours, and does not send heartbeats meanwhile.
                member.deadline_ms = now_ms + member.session_timeout_ms
                continue
            effects += self.drop(member)
            left = True
        effects += self.rebalance(now_ms) if left else self.go_on(now_ms)
        if self.state is PREPARING and self._rebalance_deadline_ms <= now_ms:
            effects += self._rebalance_deadline(now_ms)
        if self.state in (COMPLETING, STABLE) and self._sync_deadline_ms <= now_ms:
            # They have joined and never sent SyncGroup.
            for member_id in sorted(self._awaited_syncs):
                effects += self.drop(self.members[member_id])
            effects += self.prepare_rebalance(now_ms)
        self.rescan()
        return effects

    def rescan(self) -> None:
        """Compute the next deadline again."""
        deadlines = [self._rebalance_deadline_ms, self._sync_deadline_ms, *self.pending_members.values()]
        deadlines += [member.deadline_ms for member in self.members.values()]
        self.check_ms = min(deadlines)

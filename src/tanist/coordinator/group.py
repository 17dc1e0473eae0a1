"""One group of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and the right to commit.

Owns the members' requests, and the guarantee of a generation: all members get the same assignment, after it was stored.
A rebalance gathers all members (PreparingRebalance), has their leader assign (CompletingRebalance), stores the
assignment, and only then answers them (Stable); so the next coordinator of the group knows what its members know.

Rules: KIP-394 (a member id is given out first, and used in a second request), KIP-345 (static members keep their
assignment and fence their doubles), KIP-814 (a static leader that returns assigns nothing). The coordinator never reads
a subscription or an assignment, so cooperative rebalancing (KIP-429) is up to the clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tanist.coordinator.effects import (
    NEVER_MS,
    Answer,
    AssignmentStored,
    Effect,
    GroupEmptied,
    StaticMemberStored,
    group_error,
)
from tanist.coordinator.membership import ClassicGroupMember, Protocols
from tanist.coordinator.rebalance import (
    COMPLETING,
    EMPTY,
    PREPARING,
    STABLE,
    GroupSettings,
    Rebalancing,
    join_refused,
    sync_refused,
)
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.heartbeat_response import HeartbeatResponse
from tanist.wire.messages.join_group_request import JoinGroupRequest
from tanist.wire.messages.leave_group_request import MemberIdentity
from tanist.wire.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from tanist.wire.messages.sync_group_request import SyncGroupRequest

_NEW_MEMBER_PATIENCE_MS: Final = 5 * 60 * 1000
"""The longest wait of a member before its first generation: the end of its connection is not seen here."""


@dataclass(frozen=True, slots=True)
class JoinContext:
    """The client of a JoinGroup: fields beyond the request."""

    ticket: object
    client_id: str
    client_host: str
    new_member_id: str
    """Its id, if it gets a new one: the caller has the rng."""
    needs_known_id: bool
    """Its version of JoinGroup knows MEMBER_ID_REQUIRED."""
    may_skip_assignment: bool
    """Its version of JoinGroup can tell a leader to assign nothing."""


class Group(Rebalancing):
    """A group, as its coordinator sees it."""

    kind = "classic"

    def __init__(self, group_id: str, settings: GroupSettings) -> None:
        super().__init__(group_id, settings)
        self._assignment_number = 0

    @property
    def is_forgettable(self) -> bool:
        """It never had a generation, and nobody is about to join."""
        return self.state is EMPTY and self.stored is None and not self.generation_id and not self.pending_members

    def loaded(self, now_ms: int) -> list[Effect]:
        """Be what the record says; each member has a session timeout for its next heartbeat.

        Members without a leader were members of a consumer group until then, and are to join again.
        """
        if self.stored is not None:
            self.restore(self.stored)
        for member in self.members.values():
            member.deadline_ms = now_ms + member.session_timeout_ms
        joins = len(self.members) > self._settings.max_size or (bool(self.members) and self.leader_id is None)
        effects = self.prepare_rebalance(now_ms) if joins else []
        self.rescan()
        return effects

    # -- JoinGroup

    def join(self, request: JoinGroupRequest, context: JoinContext, now_ms: int) -> list[Effect]:
        """A member joins, or joins again."""
        effects = self._join(request, context, now_ms)
        self.rescan()
        return effects

    def _join(self, request: JoinGroupRequest, context: JoinContext, now_ms: int) -> list[Effect]:
        member_id, instance_id = request.member_id, request.group_instance_id
        protocols = tuple((each.name, each.metadata) for each in request.protocols)
        if not self._accepts(member_id):
            return [join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, context.ticket, member_id)]
        if not self.supports(request.protocol_type, protocols):
            return [join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, context.ticket, member_id)]
        if not member_id:
            if instance_id is not None and instance_id in self.static_members:
                return self._static_member_returns(request, context, protocols, now_ms)
            if instance_id is None and context.needs_known_id:
                self.pending_members[context.new_member_id] = now_ms + request.session_timeout_ms
                return [join_refused(ErrorCode.MEMBER_ID_REQUIRED, context.ticket, context.new_member_id)]
            return self._add(context.new_member_id, request, context, protocols, now_ms)
        if member_id in self.pending_members:
            if instance_id is not None:
                return [join_refused(ErrorCode.UNKNOWN_MEMBER_ID, context.ticket, member_id)]
            return self._add(member_id, request, context, protocols, now_ms)
        error = self._member_error(member_id, instance_id)
        if error:
            return [join_refused(error, context.ticket, member_id)]
        member = self.members[member_id]
        if self.state is COMPLETING and member.protocols == protocols:
            # The answer to its first request was lost: the generation is the same.
            return [self.join_answer(member, context.ticket)]
        if self.state is STABLE and member_id != self.leader_id and member.protocols == protocols:
            return [self.join_answer(member, context.ticket)]
        effects = self._await_join(member, request, context, protocols)
        return effects + self.rebalance(now_ms)

    def _accepts(self, member_id: str) -> bool:
        if self.state is EMPTY:
            return True
        member = self.members.get(member_id)
        if self.state is PREPARING:
            awaiting = sum(1 for each in self.members.values() if each.join_ticket is not None)
            return (member is not None and member.join_ticket is not None) or awaiting < self._settings.max_size
        return member is not None or len(self.members) < self._settings.max_size

    def _add(
        self, member_id: str, request: JoinGroupRequest, context: JoinContext, protocols: Protocols, now_ms: int
    ) -> list[Effect]:
        self.pending_members.pop(member_id, None)
        if self.state is PREPARING and self._initial_left_ms is not None:
            self._newcomer = True
        member = ClassicGroupMember(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=context.client_id,
            client_host=context.client_host,
            rebalance_timeout_ms=_rebalance_timeout_ms(request),
            session_timeout_ms=request.session_timeout_ms,
            protocols=protocols,
            deadline_ms=now_ms + _NEW_MEMBER_PATIENCE_MS,
            join_ticket=context.ticket,
        )
        self.add(member, request.protocol_type)
        return self.rebalance(now_ms)

    def _await_join(
        self, member: ClassicGroupMember, request: JoinGroupRequest, context: JoinContext, protocols: Protocols
    ) -> list[Effect]:
        """The member has joined the coming generation. An older request of its own is over."""
        effects: list[Effect] = []
        if member.join_ticket is not None:
            effects.append(join_refused(ErrorCode.REBALANCE_IN_PROGRESS, member.join_ticket, member.member_id))
        self._take_over(member, request, context, protocols)
        member.join_ticket = context.ticket
        return effects

    def _take_over(
        self, member: ClassicGroupMember, request: JoinGroupRequest, context: JoinContext, protocols: Protocols
    ) -> None:
        member.client_id, member.client_host = context.client_id, context.client_host
        member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
        member.session_timeout_ms = request.session_timeout_ms
        member.protocols = protocols

    def _static_member_returns(
        self, request: JoinGroupRequest, context: JoinContext, protocols: Protocols, now_ms: int
    ) -> list[Effect]:
        """A static member was restarted: it takes its place again, and another process in that place is fenced."""
        former_leader_id = self.leader_id
        member = self.rename_static(request.group_instance_id or "", context.new_member_id)
        effects = self.refuse_waiting(member, ErrorCode.FENCED_INSTANCE_ID)
        self._take_over(member, request, context, protocols)
        member.deadline_ms = now_ms + member.session_timeout_ms
        if self.state is STABLE and self.select_protocol() == self.protocol_name:
            leads = member.member_id == self.leader_id
            response = self.join_answer(member, None).response
            if not context.may_skip_assignment:
                # It must not get the leader's role, or it would assign without a rebalance.
                response.leader, response.members = former_leader_id or "", ()
            else:
                response.skip_assignment = leads
            stored = StaticMemberStored(context.ticket, response)
            return [*effects, self.store(stored)]
        member.join_ticket = context.ticket
        return effects + self.rebalance(now_ms)

    # -- SyncGroup

    def sync(self, request: SyncGroupRequest, ticket: object, now_ms: int) -> list[Effect]:
        """A member asks for its assignment; the leader sends all assignments."""
        effects = self._sync(request, ticket, now_ms)
        self.rescan()
        return effects

    def _sync(self, request: SyncGroupRequest, ticket: object, now_ms: int) -> list[Effect]:
        error = self._generation_error(request.member_id, request.group_instance_id, request.generation_id)
        if not error and (
            request.protocol_type not in (None, self.protocol_type)
            or request.protocol_name not in (None, self.protocol_name)
        ):
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if not error and self.state is PREPARING:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error:
            return [sync_refused(error, ticket)]
        member = self.members[request.member_id]
        member.deadline_ms = now_ms + member.session_timeout_ms
        self._awaited_syncs.discard(member.member_id)
        if not self._awaited_syncs:
            self._sync_deadline_ms = NEVER_MS
        if self.state is STABLE:
            return [self.sync_answer(member, ticket)]
        effects: list[Effect] = []
        if member.sync_ticket is not None:
            effects.append(sync_refused(ErrorCode.REBALANCE_IN_PROGRESS, member.sync_ticket))
        member.sync_ticket = ticket
        if member.member_id == self.leader_id:
            assignments = {each.member_id: each.assignment for each in request.assignments}
            for each in self.members.values():
                each.assignment = assignments.get(each.member_id, b"")
            self._assignment_number += 1
            effects.append(self.store(AssignmentStored(self.generation_id, self._assignment_number)))
        return effects

    def written(
        self, purpose: AssignmentStored | StaticMemberStored | GroupEmptied, error: int, now_ms: int
    ) -> list[Effect]:
        """A record of this group is committed, or (by `error`) perhaps not."""
        if isinstance(purpose, StaticMemberStored):
            if error:
                return [join_refused(group_error(error), purpose.ticket)]
            return [Answer(purpose.ticket, purpose.response)]
        if not isinstance(purpose, AssignmentStored):
            return []
        latest = AssignmentStored(self.generation_id, self._assignment_number)
        if self.state is not COMPLETING or purpose != latest:
            return []  # waiting members were answered that the generation is over, or wait for a later one
        if error:
            effects = self.refuse_syncs(group_error(error)) + self.prepare_rebalance(now_ms)
        else:
            self.state = STABLE
            effects = []
            for member in self.members.values():
                if member.sync_ticket is not None:
                    effects.append(self.sync_answer(member, member.sync_ticket))
                    member.sync_ticket = None
                    member.deadline_ms = now_ms + member.session_timeout_ms
        self.rescan()
        return effects

    # -- Heartbeat and LeaveGroup

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> HeartbeatResponse:
        """A member's heartbeat. The answer says whether the group is rebalancing."""
        error = self._generation_error(request.member_id, request.group_instance_id, request.generation_id)
        if not error:
            self.heard_of(request.member_id, now_ms)
            error = ErrorCode.REBALANCE_IN_PROGRESS if self.state is PREPARING else ErrorCode.NONE
        return HeartbeatResponse(error_code=error)

    def heard_of(self, member_id: str, now_ms: int) -> None:
        """Extend a member's session."""
        member = self.members[member_id]
        member.deadline_ms = max(member.deadline_ms, now_ms + member.session_timeout_ms)

    def leave(self, identities: tuple[MemberIdentity, ...], ticket: object, now_ms: int) -> list[Effect]:
        """Members leave, by their own request or an operator's."""
        effects: list[Effect] = []
        results: list[MemberResponse] = []
        left = gone = False
        for identity in identities:
            member_id, instance_id = identity.member_id, identity.group_instance_id
            error: int = ErrorCode.NONE
            if self.pending_members.pop(member_id, None) is not None:
                gone = True  # whatever instance it is said to be
            else:
                if instance_id is not None and not member_id:
                    member_id = self.static_members.get(instance_id, "")
                error = self._member_error(member_id, instance_id)
                if not error:
                    effects += self.drop(self.members[member_id])
                    left = True
            results.append(
                MemberResponse(member_id=identity.member_id, group_instance_id=instance_id, error_code=error)
            )
        effects.append(Answer(ticket, LeaveGroupResponse(members=tuple(results))))
        if left or (gone and self.state is not EMPTY):
            effects += self.rebalance(now_ms)
        self.rescan()
        return effects

    # -- rules

    def _member_error(self, member_id: str, instance_id: str | None) -> int:
        """Whether a member's ids match (KIP-345)."""
        if instance_id is not None:
            current_id = self.static_members.get(instance_id)
            if current_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def _generation_error(self, member_id: str, instance_id: str | None, generation_id: int) -> int:
        error = ErrorCode.UNKNOWN_MEMBER_ID if self.state is EMPTY else self._member_error(member_id, instance_id)
        return error or (ErrorCode.NONE if generation_id == self.generation_id else ErrorCode.ILLEGAL_GENERATION)

    def commit_error(
        self, member_id: str, instance_id: str | None, generation_id: int, *, transactional: bool = False
    ) -> int:
        """The error of a commit: only members of this generation may commit, or any client if there are no members."""
        if generation_id < 0 and self.state is EMPTY:
            return ErrorCode.NONE
        if generation_id < 0 and not member_id and instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = self._member_error(member_id, instance_id)
        if not error and generation_id != self.generation_id:
            error = ErrorCode.ILLEGAL_GENERATION
        if not error and self.state is COMPLETING and not transactional:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        return error


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """Version 0 has no such field: a session's length it is."""
    return request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms

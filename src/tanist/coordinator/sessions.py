"""What groups of member epochs have in common (KIP-848, KIP-932, KIP-1071): sessions, deadlines, and who may commit.

A member that sends no heartbeat for a session is removed, and so is one that does not give up in time what it must.
Deadlines are of this coordinator alone: the log does not know them, and after a failover each session begins anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol
from uuid import UUID

from tanist.coordinator.effects import NEVER_MS, Effect
from tanist.wire.errors import ErrorCode


class _HasEpoch(Protocol):
    @property
    def epoch(self) -> int:
        """The member's epoch."""


class MemberSessions:
    """The members of a group, as far as time and epochs go."""

    def __init__(self) -> None:
        self.check_ms = NEVER_MS
        """The next deadline. A heartbeat only postpones deadlines, so it leaves this as it is."""
        self.deadlines: dict[str, int] = {}
        """When a member's session ends, unless a heartbeat comes before."""
        self.patience: dict[str, tuple[int, int]] = {}
        """Members that must give something up or join: the epoch in which, and the deadline."""
        self.refresh_requested = True
        """Topics may have changed since the target was made."""

    # -- what the kind of group says

    def member_ids(self) -> Collection[str]:
        raise NotImplementedError

    def current(self, member_id: str) -> _HasEpoch:
        raise NotImplementedError

    def session_timeout_ms(self, member_id: str) -> int:
        raise NotImplementedError

    def time_to_revoke(self, member_id: str) -> int | None:
        """The rebalance timeout of a member that has something to give up; None of one that has not."""
        return None

    # -- deadlines

    def heard_of(self, member_id: str, now_ms: int) -> None:
        """A member has sent a heartbeat: its session begins anew."""
        self.deadlines[member_id] = now_ms + self.session_timeout_ms(member_id)
        self.check_ms = min(self.check_ms, self.deadlines[member_id])

    def be_patient(self, member_id: str, now_ms: int) -> None:
        """A member that must give something up has its rebalance timeout for it, from the first request on."""
        timeout_ms = self.time_to_revoke(member_id)
        if timeout_ms is None:
            self.patience.pop(member_id, None)
            return
        known, epoch = self.patience.get(member_id), self.current(member_id).epoch
        if known is None or known[0] != epoch:
            self.patience[member_id] = (epoch, now_ms + max(timeout_ms, 0))
            self.check_ms = min(self.check_ms, self.patience[member_id][1])

    def forget_deadlines(self, member_id: str) -> None:
        """It is no member any more."""
        self.deadlines.pop(member_id, None)
        self.patience.pop(member_id, None)

    def overdue(self, now_ms: int) -> list[str]:
        """Members whose session has ended, or that kept others waiting for too long."""
        late = {member_id for member_id, deadline_ms in self.deadlines.items() if deadline_ms <= now_ms}
        late |= {member_id for member_id, (_, deadline_ms) in self.patience.items() if deadline_ms <= now_ms}
        return sorted(late.intersection(self.member_ids()))

    def rescan(self) -> None:
        """Compute the next deadline again."""
        waits = [deadline_ms for _, deadline_ms in self.patience.values()]
        self.check_ms = min([*self.deadlines.values(), *waits], default=NEVER_MS)

    def loaded(self, now_ms: int) -> list[Effect]:
        """All records were replayed: each member has a session for its next heartbeat."""
        self.refresh_requested = True
        for member_id in self.member_ids():
            self.deadlines[member_id] = now_ms + self.session_timeout_ms(member_id)
            self.be_patient(member_id, now_ms)
        self.rescan()
        return []

    def taken_back(self, now_ms: int) -> None:
        """A decision was refused, and its records are undone: see to the deadlines."""
        self.refresh_requested = True
        members = frozenset(self.member_ids())
        for member_id in (self.deadlines.keys() | self.patience.keys()) - members:
            self.forget_deadlines(member_id)  # its join was undone: it is no member and never overdue
        for member_id in members:
            if self.deadlines.get(member_id, 0) <= now_ms:
                self.deadlines[member_id] = now_ms + self.session_timeout_ms(member_id)
        self.rescan()


class CommittingMembers(MemberSessions):
    """Members that commit offsets, in their epochs."""

    def epoch_of(self, member_id: str) -> int:
        """The member's epoch."""
        return self.current(member_id).epoch

    def is_classic(self, member_id: str) -> bool:
        """Whether the member speaks the classic protocol."""
        return False

    def assigned_since(self, member_id: str, topic_id: UUID, index: int) -> int | None:
        """The member's epoch when it got this partition; None if it does not have it, nor has it to give it up."""
        raise NotImplementedError

    def commit_error(self, member_id: str, epoch: int, places: Iterable[tuple[UUID, int]]) -> int:
        """Whether a member of this epoch may commit offsets of these partitions, given by topic id and index.

        It may have sent the commit before it learned of its new epoch: then it must have had them all since the older
        one (KIP-1251).
        """
        if epoch < 0 and not self.member_ids():
            return ErrorCode.NONE  # an operator
        if member_id not in self.member_ids():
            return ErrorCode.UNKNOWN_MEMBER_ID
        own_epoch = self.current(member_id).epoch
        if epoch == own_epoch or (epoch < own_epoch and all(self._has_since(member_id, epoch, *at) for at in places)):
            return ErrorCode.NONE
        return self._former_epoch(member_id)

    def _has_since(self, member_id: str, epoch: int, topic_id: UUID, index: int) -> bool:
        since = self.assigned_since(member_id, topic_id, index)
        return since is not None and since <= epoch

    def _former_epoch(self, member_id: str) -> int:
        """The error of a member that is in another epoch, which a classic one takes for a generation."""
        return ErrorCode.ILLEGAL_GENERATION if self.is_classic(member_id) else ErrorCode.STALE_MEMBER_EPOCH

    def fetch_error(self, member_id: str | None, epoch: int) -> int:
        """Whether a client may read the committed offsets."""
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        if member_id is None or member_id not in self.member_ids():
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == self.current(member_id).epoch else self._former_epoch(member_id)

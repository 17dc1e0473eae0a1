"""Static members (KIP-345) of groups with member epochs: whose an instance id is, and who may speak for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tanist.coordinator.consumer.member import JOINING_EPOCH, LEAVING_STATIC_EPOCH
from tanist.coordinator.effects import Refused
from tanist.wire.errors import ErrorCode


class _Member(Protocol):
    @property
    def instance_id(self) -> str | None:
        """None: it is not static."""


class StaticMembers(dict[str, str]):
    """Member id by group instance id."""

    def replayed(self, member_id: str, before: _Member | None, after: _Member | None) -> None:
        """A member's record was this before, and is that; None: it has none."""
        if before is not None and before.instance_id is not None and self.get(before.instance_id) == member_id:
            del self[before.instance_id]
        if after is not None and after.instance_id is not None:
            self[after.instance_id] = member_id

    def check(self, instance_id: str | None, member_id: str, epoch: int, epoch_of: Callable[[str], int]) -> None:
        """`Refused` if the member may not speak for the instance. By joining it takes the place of another, which must
        have left for a while. A member that joins again under its own id has not heard the answer.
        """
        if instance_id is None:
            return
        if epoch != JOINING_EPOCH:
            self.check_holder(instance_id, member_id)
            return
        holder = self.get(instance_id)
        if holder not in (None, member_id) and epoch_of(holder) != LEAVING_STATIC_EPOCH:
            raise Refused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
                f"id is owned by {holder} member.",
            )

    def check_holder(self, instance_id: str, member_id: str) -> None:
        """`Refused` if the instance is not this member."""
        holder = self.get(instance_id)
        if holder is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if holder != member_id:
            raise Refused(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} was fenced by member {holder}.",
            )

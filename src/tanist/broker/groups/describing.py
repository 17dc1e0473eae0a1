"""What the Describe requests of consumer, share and Streams groups have in common: who may hear of which group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tanist.broker.groups.service import Groups
from tanist.broker.network.call import Call
from tanist.security.requirements import Row
from tanist.wire.errors import ErrorCode

if TYPE_CHECKING:
    from tanist.coordinator.consumer.group import ConsumerGroup
    from tanist.coordinator.share.group import ShareGroup
    from tanist.coordinator.streams.group import StreamsGroup

G = TypeVar("G", "ConsumerGroup", "ShareGroup", "StreamsGroup")


class Undescribed(NamedTuple):
    """Why a group is not described."""

    error: int
    message: str | None = None


def find_group(groups: Groups, call: Call, row: Row, group_id: str, kind: type[G]) -> G | Undescribed:
    """The group, if it is of this kind, and the client may hear of it."""
    if not call.may(row, group_id):
        return Undescribed(row.code)
    if not group_id:
        return Undescribed(ErrorCode.INVALID_GROUP_ID)
    found = groups.coordinator().find(group_id)
    if isinstance(found, int):
        return Undescribed(found)
    group = found.shard.groups.get(group_id)
    if isinstance(group, kind):
        return group
    what = "not found" if group is None else f"is not a {kind.kind} group"
    return Undescribed(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")


def topics_refusal(call: Call, row: Row, names: Iterable[str]) -> Undescribed | None:
    """Set if there is a topic of which the client may not hear: then it hears nothing of the group."""
    if all(call.may(row, name) for name in sorted(names)):
        return None
    return Undescribed(row.code, "The group has described topic(s) that the client is not authorized to describe.")

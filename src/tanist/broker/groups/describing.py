"""What the Describe requests of consumer, share and Streams groups have in common: who may hear of which group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tanist.broker.groups.service import Groups
from tanist.broker.network.call import Call
from tanist.security.requirements import Row
from tanist.wire.errors import ErrorCode
from tanist.wire.schema import Response

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


def reply_when_committed(
    groups: Groups, call: Call, described: Sequence[Any], response: Callable[[tuple[Any, ...]], Response]
) -> None:
    """Answer when all is committed that the descriptions say: a decision that is not may be gone with its coordinator.

    `described`: structs with a group id and an error code.
    """

    def reply(errors: Mapping[str, int]) -> None:
        call.reply(
            response(
                tuple(
                    type(each)(group_id=each.group_id, error_code=errors[each.group_id])
                    if each.group_id in errors
                    else each
                    for each in described
                )
            )
        )

    group_ids = [each.group_id for each in described if not each.error_code]
    if group_ids:
        groups.coordinator().when_committed(group_ids, call.later(reply))
    else:
        reply({})


def topics_refusal(call: Call, row: Row, names: Iterable[str]) -> Undescribed | None:
    """Set if there is a topic of which the client may not hear: then it hears nothing of the group."""
    if all(call.may(row, name) for name in sorted(names)):
        return None
    return Undescribed(row.code, "The group has described topic(s) that the client is not authorized to describe.")

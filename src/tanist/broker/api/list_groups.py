"""ListGroups (key 16), versions 0-5: the groups whose coordinator this broker is, by state and type."""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.groups.service import Groups
from tanist.broker.network.call import Call, Handler
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.list_groups_request import ListGroupsRequest
from tanist.wire.messages.list_groups_response import ListedGroup, ListGroupsResponse


@dataclass(frozen=True, slots=True)
class ListGroups:
    """The handler of ListGroups."""

    groups: Groups

    def handle(self, request: ListGroupsRequest, call: Call) -> None:
        """List them all; an error says that some are still being loaded."""
        states = {state.lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        error = ErrorCode.NONE
        groups: list[ListedGroup] = []
        for partition in self.groups.coordinator().partitions():
            if not partition.ready:
                error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                continue
            for group in partition.shard.groups.values():
                state = group.state.value
                if (states and state.lower() not in states) or (types and group.kind not in types):
                    continue
                if not call.may(rows.LIST_GROUPS_GROUP, group.group_id):
                    continue
                groups.append(
                    ListedGroup(
                        group_id=group.group_id,
                        protocol_type=group.protocol_type or "",
                        group_state=state,
                        group_type=group.kind,
                    )
                )
        call.reply(ListGroupsResponse(error_code=error, groups=tuple(groups)))


def build(components: NodeComponents) -> Handler:
    return ListGroups(components.groups).handle

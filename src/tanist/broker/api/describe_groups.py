"""DescribeGroups (key 15), versions 0-6: state, protocol, members and their assignments."""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.api.authorized_operations import NOT_ASKED
from tanist.broker.components import NodeComponents
from tanist.broker.groups.service import Groups
from tanist.broker.network.call import Call, Handler
from tanist.coordinator.membership import GroupState
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_groups_request import DescribeGroupsRequest
from tanist.wire.messages.describe_groups_response import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse

_NOT_FOUND_VERSION = 6
_DEAD = "Dead"
"""What Kafka calls the state of a group that is not there."""


@dataclass(frozen=True, slots=True)
class DescribeGroups:
    """The handler of DescribeGroups."""

    groups: Groups

    def handle(self, request: DescribeGroupsRequest, call: Call) -> None:
        """Describe each group that is asked for."""
        asked = request.include_authorized_operations
        groups = []
        for each in request.groups:
            if call.may(rows.DESCRIBE_GROUPS_GROUP, each):
                operations = call.operations(rows.DESCRIBE_GROUPS_BITS, each) if asked else NOT_ASKED
                groups.append(self._describe(each, call.version, operations))
            else:
                groups.append(DescribedGroup(group_id=each, error_code=rows.DESCRIBE_GROUPS_GROUP.code))
        call.reply(DescribeGroupsResponse(groups=tuple(groups)))

    def _describe(self, group_id: str, version: int, operations: int) -> DescribedGroup:
        found = self.groups.coordinator().find(group_id)
        if isinstance(found, int):
            return DescribedGroup(group_id=group_id, error_code=found)
        group = found.shard.classic(group_id)
        if group is None:
            if version < _NOT_FOUND_VERSION:
                return DescribedGroup(group_id=group_id, group_state=_DEAD, authorized_operations=operations)
            what = "is not a classic group" if group_id in found.shard.groups else "not found"
            return DescribedGroup(
                group_id=group_id,
                group_state=_DEAD,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"Group {group_id} {what}.",
            )
        stable = group.state is GroupState.STABLE
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol_name or "") if stable else "",
            members=tuple(
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    # An assignment belongs to a generation, and only a stable group has one.
                    member_metadata=member.metadata_for(group.protocol_name) if stable else b"",
                    member_assignment=member.assignment if stable else b"",
                )
                for member in group.members.values()
            ),
            authorized_operations=operations,
        )


def build(components: NodeComponents) -> Handler:
    return DescribeGroups(components.groups).handle

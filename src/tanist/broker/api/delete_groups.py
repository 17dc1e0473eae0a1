"""DeleteGroups (key 42), versions 0-3: groups without members, with all that they have committed.

Version 3 has a message, which is null here: Apache Kafka has one for Streams groups only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.groups.service import Groups
from tanist.broker.network.call import Call, Handler
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.delete_groups_request import DeleteGroupsRequest
from tanist.wire.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse


@dataclass(frozen=True, slots=True)
class DeleteGroups:
    """The handler of DeleteGroups."""

    groups: Groups

    def handle(self, request: DeleteGroupsRequest, call: Call) -> None:
        """Delete each; the answer waits until all are settled."""
        coordinator = self.groups.coordinator()
        names = tuple(dict.fromkeys(request.groups_names))
        results: dict[str, DeletableGroupResult] = {}

        def add_result(result: DeletableGroupResult) -> None:
            results[result.group_id] = result
            if len(results) == len(names):
                call.reply(DeleteGroupsResponse(results=tuple(results[name] for name in names)))

        if not names:
            call.reply(DeleteGroupsResponse())
        then = call.later(add_result)
        for name in names:
            allowed = call.may(rows.DELETE_GROUPS_GROUP, name)
            found = coordinator.find(name) if allowed else int(rows.DELETE_GROUPS_GROUP.code)
            if isinstance(found, int):
                then(DeletableGroupResult(group_id=name, error_code=found))
            else:
                unknown = DeletableGroupResult(group_id=name, error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
                decide = partial(found.shard.delete_group, name, then)
                coordinator.carry_out(found, decide, partial(then, unknown))


def build(components: NodeComponents) -> Handler:
    return DeleteGroups(components.groups).handle

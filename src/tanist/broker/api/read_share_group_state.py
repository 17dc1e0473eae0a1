"""ReadShareGroupState (key 84), version 0; InitializeShareGroupState (key 83), version 0; DeleteShareGroupState (key
86), version 0; WriteShareGroupState (key 85), versions 0-1; ReadShareGroupStateSummary (key 87), versions 0-1.

Brokers send them about the state of share partitions, to its coordinator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from tanist.broker.components import NodeComponents
from tanist.broker.context import NodeContext
from tanist.broker.network.call import Call, Handler
from tanist.broker.share.persister import coordinator_key
from tanist.broker.share.service import Shares
from tanist.broker.share.state_requests import asked_in, response_of
from tanist.coordinator.share.state_shard import Outcome, SharePartitionId
from tanist.wire.apis import ApiKey
from tanist.wire.codec import WireError
from tanist.wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class ShareGroupState:
    """The handler of all five."""

    context: NodeContext
    shares: Shares

    def handle(self, request: Any, call: Call) -> None:
        """The answer waits until each part is committed, or refused."""
        key = ApiKey(request.API_KEY)
        try:
            asked = asked_in(request)
        except ValueError as error:
            raise WireError(str(error)) from error
        outcomes: dict[SharePartitionId, Outcome] = {}

        def answered(where: SharePartitionId, outcome: Outcome) -> None:
            outcomes[where] = outcome
            if len(outcomes) == len(asked):
                call.reply(response_of(key, outcomes))

        if not asked:
            call.reply(response_of(key, {}))
        then = call.later(answered)
        coordinator = self.shares.coordinator()
        for where, each in asked.items():
            found = coordinator.find(coordinator_key(where)) if where.group_id else int(ErrorCode.INVALID_REQUEST)
            if isinstance(found, int):
                then(where, Outcome(found))
                continue
            ticket = partial(then, where)
            decide = partial(each.decide, found.shard, where, ticket, self.context.clock.wall_ms())
            coordinator.carry_out(found, decide, partial(ticket, Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)))


def build(components: NodeComponents) -> Handler:
    return ShareGroupState(components.context, components.shares).handle

"""EndTxn (key 26), versions 0-5: commit or abort a transaction.

`TransactionShard.end` decides, and fences producers of another epoch (`coordinator.transactions.fencing`). The answer
comes when the decision is in the log; the markers follow. From version 5 on it carries the producer's next
epoch (KIP-890). Before version 2 the error of a fenced producer is INVALID_PRODUCER_EPOCH (KIP-588).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.coordinator_runtime.partition import CoordinatorPartition
from tanist.broker.network.call import Call, Handler
from tanist.broker.transactions.service import Transactions
from tanist.coordinator.transactions.effects import ProducerAnswer
from tanist.coordinator.transactions.fencing import fenced_error
from tanist.coordinator.transactions.state import EPOCH_BUMP_VERSION, NO_BUMP_VERSION
from tanist.coordinator.transactions.transaction_shard import TransactionShard
from tanist.ports import Clock
from tanist.wire.messages.end_txn_request import EndTxnRequest
from tanist.wire.messages.end_txn_response import EndTxnResponse

_FENCED_VERSION = 2
_BUMPING_VERSION = 5


@dataclass(frozen=True, slots=True)
class EndTxn:
    """The handler of EndTxn."""

    clock: Clock
    transactions: Transactions

    def handle(self, request: EndTxnRequest, call: Call) -> None:
        """Decide, and answer once the decision is committed."""
        coordinator = self.transactions.coordinator()
        bumps = call.version >= _BUMPING_VERSION

        def reply_with(answer: ProducerAnswer) -> None:
            error = fenced_error(answer.error, knows_fenced=call.version >= _FENCED_VERSION)
            response = EndTxnResponse(error_code=int(error))
            if bumps:
                response.producer_id, response.producer_epoch = answer.producer_id, answer.producer_epoch
            call.reply(response)

        reply = call.later(reply_with)

        def handle_coordinator(partition: CoordinatorPartition[TransactionShard] | int, producer_id: int) -> None:
            if isinstance(partition, int):
                reply(ProducerAnswer(partition))
                return
            decide = partial(
                partition.shard.end,
                request.transactional_id,
                (request.producer_id, request.producer_epoch),
                EPOCH_BUMP_VERSION if bumps else NO_BUMP_VERSION,
                producer_id,
                reply,
                self.clock.wall_ms(),
                committed=request.committed,
            )
            coordinator.carry_out(partition, decide, call.refuse)

        if bumps:
            coordinator.with_producer_id(request.transactional_id, call.later(handle_coordinator))
        else:
            handle_coordinator(coordinator.find(request.transactional_id), -1)


def build(components: NodeComponents) -> Handler:
    return EndTxn(components.context.clock, components.transactions).handle

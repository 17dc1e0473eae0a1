"""InitProducerId (key 22), versions 0-5: an id for an idempotent producer, or the epoch of a transactional one.

With a transactional id it fences all producers that have had it (KIP-98); a producer that goes on after an error names
its id and epoch (KIP-360). Before version 4 the error of a fenced producer is INVALID_PRODUCER_EPOCH (KIP-588). The
next version, for two-phase commit (KIP-939), is served where unstable versions are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.coordinator_runtime.partition import CoordinatorPartition
from tanist.broker.metadata.producer_ids import ProducerIds
from tanist.broker.network.call import Call, Handler
from tanist.broker.transactions.service import Transactions
from tanist.coordinator.transactions.effects import ProducerAnswer
from tanist.coordinator.transactions.fencing import fenced_error
from tanist.coordinator.transactions.transaction_shard import TransactionShard
from tanist.ports import Clock
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse

_FENCED_VERSION = 4


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """The handler of InitProducerId."""

    clock: Clock
    producer_ids: ProducerIds
    transactions: Transactions

    def handle(self, request: InitProducerIdRequest, call: Call) -> None:
        """Give the next id of this broker's block, or ask the coordinator of a transactional id."""
        if (request.producer_id == -1) != (request.producer_epoch == -1):  # one without the other
            invalid = ErrorCode.INVALID_REQUEST
            call.reply(InitProducerIdResponse(error_code=invalid, producer_id=-1, producer_epoch=-1))
            return
        if request.transactional_id is not None:
            self._initialize(request.transactional_id, request, call)
            return

        def given(producer_id: int | None) -> None:
            if producer_id is None:
                # Retriable, and what Kafka says while its controller cannot be reached.
                call.reply(InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=-1))
            else:
                call.reply(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))

        self.producer_ids.next(call.later(given))

    def _initialize(self, transactional_id: str, request: InitProducerIdRequest, call: Call) -> None:
        coordinator = self.transactions.coordinator()
        expected: tuple[int, int] | None = None
        if request.producer_id >= 0 or request.producer_epoch >= 0:
            expected = (request.producer_id, request.producer_epoch)

        def reply_with(answer: ProducerAnswer) -> None:
            error = fenced_error(answer.error, knows_fenced=call.version >= _FENCED_VERSION)
            call.reply(
                InitProducerIdResponse(
                    error_code=error, producer_id=answer.producer_id, producer_epoch=answer.producer_epoch
                )
            )

        reply = call.later(reply_with)

        def handle_coordinator(partition: CoordinatorPartition[TransactionShard] | int, producer_id: int) -> None:
            if isinstance(partition, int):
                reply(ProducerAnswer(partition))
                return
            decide = partial(
                partition.shard.init_producer_id,
                transactional_id,
                request.transaction_timeout_ms,
                expected,
                producer_id,
                reply,
                self.clock.wall_ms(),
                two_phase=request.enable2_pc,
                keeps_prepared=request.keep_prepared_txn,
            )
            coordinator.carry_out(partition, decide, call.refuse)

        coordinator.with_producer_id(transactional_id, call.later(handle_coordinator))


def build(components: NodeComponents) -> Handler:
    return InitProducerId(components.context.clock, components.producer_ids, components.transactions).handle

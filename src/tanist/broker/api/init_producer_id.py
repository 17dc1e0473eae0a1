"""InitProducerId (key 22), versions 0-5: an id for an idempotent producer. Transactions are not there yet."""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.metadata.producer_ids import ProducerIds
from tanist.broker.network.client_connection import Call, Handler
from tanist.broker.network.connections import Connections
from tanist.broker.parts import BrokerParts
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """The handler of InitProducerId."""

    producer_ids: ProducerIds
    connections: Connections

    def handle(self, request: InitProducerIdRequest, call: Call) -> None:
        """Give the next id of this broker's block; fetch a block from the controller when there is none."""
        if request.transactional_id is not None:
            self.connections.transaction_refused(call, request.transactional_id)
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED  # as FindCoordinator does
            call.reply(InitProducerIdResponse(error_code=error, producer_epoch=-1))
            return
        call.wait()

        def given(producer_id: int | None) -> None:
            if producer_id is None:
                # Retriable, and what Kafka says while its controller cannot be reached.
                call.reply(InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=-1))
            else:
                call.reply(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))

        self.producer_ids.next(given)


def build(parts: BrokerParts) -> Handler:
    return InitProducerId(parts.producer_ids, parts.connections).handle

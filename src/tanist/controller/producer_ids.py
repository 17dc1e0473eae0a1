"""Producer ids, handed to brokers in blocks.

Owns AllocateProducerIds: one ProducerIdsRecord moves the cluster's next id past the block before the broker gets it, so
no id is ever given out twice, whatever fails in between. Must never give out less than a whole block.
"""

from __future__ import annotations

from tanist.controller.decision import Decision
from tanist.controller.image.image import MetadataImage
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from tanist.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from tanist.wire.metadata import ProducerIdsRecord

BLOCK_SIZE = 1000
_LAST_ID = (1 << 63) - 1


def allocate_producer_ids(image: MetadataImage, request: AllocateProducerIdsRequest) -> Decision:
    """The next block, for a broker that is registered with the epoch it names."""
    broker = image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return Decision(response=AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    first = image.next_producer_id
    if first > _LAST_ID - BLOCK_SIZE:
        return Decision(response=AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    return Decision(
        (
            ProducerIdsRecord(
                broker_id=request.broker_id,
                broker_epoch=request.broker_epoch,
                next_producer_id=first + BLOCK_SIZE,
            ),
        ),
        AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE),
    )

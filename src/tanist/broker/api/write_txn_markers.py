"""WriteTxnMarkers (key 27), versions 1-2: a coordinator ends transactions in the partitions that this broker leads.

Version 2 says by which `transaction.version` the client acts (KIP-1228). Operators end hanging transactions with it
(KIP-664).
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.broker.transactions.marker_writes import Marker
from tanist.broker.transactions.service import Transactions
from tanist.coordinator.transactions.state import TopicIndex
from tanist.wire.messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from tanist.wire.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)


@dataclass(frozen=True, slots=True)
class WriteTxnMarkers:
    """The handler of WriteTxnMarkers."""

    transactions: Transactions

    def handle(self, request: WriteTxnMarkersRequest, call: Call) -> None:
        """Write each marker; the answer waits until all are committed."""
        results: list[WritableTxnMarkerResult] = []
        if not request.markers:
            call.reply(WriteTxnMarkersResponse())
        writes = self.transactions.marker_writes()
        for marker in request.markers:

            def written(errors: dict[TopicIndex, int], marker: WritableTxnMarker = marker) -> None:
                results.append(_result_of(marker, errors))
                if len(results) == len(request.markers):
                    call.reply(WriteTxnMarkersResponse(markers=tuple(results)))

            writes.write(
                Marker(
                    marker.producer_id,
                    marker.producer_epoch,
                    marker.coordinator_epoch,
                    marker.transaction_result,
                    marker.transaction_version,
                ),
                [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes],
                call.later(written),
            )


def build(components: NodeComponents) -> Handler:
    return WriteTxnMarkers(components.transactions).handle


def _result_of(marker: WritableTxnMarker, errors: dict[TopicIndex, int]) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=tuple(
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=tuple(
                    WritableTxnMarkerPartitionResult(partition_index=index, error_code=errors[topic.name, index])
                    for index in topic.partition_indexes
                ),
            )
            for topic in marker.topics
        ),
    )

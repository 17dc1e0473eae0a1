"""AddOffsetsToTxn (key 25), versions 0-4: a transaction will commit offsets of a group.

The partition of `__consumer_offsets` that has the group becomes part of the transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.internal_topics import InternalTopics
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.broker.transactions.service import Transactions
from tanist.coordinator.transactions.fencing import fenced_error
from tanist.coordinator.transactions.state import NO_BUMP_VERSION
from tanist.ports import Clock
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC, partition_of
from tanist.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from tanist.wire.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse

_FENCED_VERSION = 2


@dataclass(frozen=True, slots=True)
class AddOffsetsToTxn:
    """The handler of AddOffsetsToTxn."""

    clock: Clock
    metadata: MetadataView
    transactions: Transactions
    internal_topics: InternalTopics

    def handle(self, request: AddOffsetsToTxnRequest, call: Call) -> None:
        """Add the group's partition; the answer waits until that is in the log."""

        def reply(error: int) -> None:
            known = fenced_error(error, knows_fenced=call.version >= _FENCED_VERSION)
            call.reply(AddOffsetsToTxnResponse(error_code=int(known)))

        if self.metadata.image.topic(OFFSETS_TOPIC) is None:
            # kafka-python looks for the group's coordinator, which would make the topic, only after this.
            self.internal_topics.create(OFFSETS_TOPIC, call.later(partial(self._add, request, call.later(reply))))
            return
        self._add(request, call.later(reply))

    def _add(self, request: AddOffsetsToTxnRequest, reply: Callable[[int], None]) -> None:
        topic = self.metadata.image.topic(OFFSETS_TOPIC)
        if topic is None:
            reply(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        coordinator = self.transactions.coordinator()
        found = coordinator.find(request.transactional_id)
        if isinstance(found, int):
            reply(found)
            return
        decide = partial(
            found.shard.add_partitions,
            request.transactional_id,
            (request.producer_id, request.producer_epoch),
            frozenset({(OFFSETS_TOPIC, partition_of(request.group_id, len(topic.partitions)))}),
            NO_BUMP_VERSION,
            reply,
            self.clock.wall_ms(),
        )
        coordinator.carry_out(found, decide, partial(reply, ErrorCode.UNKNOWN_SERVER_ERROR))


def build(components: NodeComponents) -> Handler:
    return AddOffsetsToTxn(
        components.context.clock, components.metadata, components.transactions, components.internal_topics
    ).handle

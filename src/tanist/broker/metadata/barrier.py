"""Whether this broker's metadata holds all that was committed before some time.

A broker's metadata may be behind: that it does not know a topic is no proof that there is none. The proof is a write:
the controller's answer to AllocateProducerIds comes when a record is committed, so by a leader of the quorum, and with
that record in the image the image has everything before it. (A read would not do: a controller that was deposed and
does not know it yet answers as well.)
"""

from __future__ import annotations

from typing import Final

from tanist.broker.context import NodeContext
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.lifecycle import Lifecycle
from tanist.broker.metadata.view import MetadataView
from tanist.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from tanist.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse

_VERSION: Final = 0
_TIMEOUT_MS: Final = 5_000


class MetadataBarrier:
    """The question, asked of the controller at most once at a time, and only when there is need."""

    def __init__(
        self, context: NodeContext, metadata: MetadataView, controller_channel: ControllerChannel, lifecycle: Lifecycle
    ) -> None:
        self._context = context
        self._metadata = metadata
        self._controller_channel = controller_channel
        self._lifecycle = lifecycle
        self._asked_ms = -1
        """When the question under way, or the last one, was asked."""
        self._under_way = False
        self._written_end = -1
        """The next producer id after the write that was answered last; -1 if there is none."""

    def up_to_date_since(self, since_ms: int) -> bool:
        """Whether the image has all that was committed before `since_ms`; if it is unknown, the controller is asked."""
        if self._under_way:
            return False
        if self._written_end >= 0 and self._asked_ms >= since_ms:
            return self._metadata.image.next_producer_id >= self._written_end
        self._under_way = True
        self._asked_ms = self._context.clock.now_ms()
        request = AllocateProducerIdsRequest(broker_id=self._context.node_id, broker_epoch=self._lifecycle.broker_epoch)
        self._controller_channel.call(request, _VERSION, _TIMEOUT_MS, self._handle_response)
        return False

    def _handle_response(self, response: AllocateProducerIdsResponse | None) -> None:
        self._under_way = False
        if response is None or response.error_code:
            self._written_end = -1
        else:
            self._written_end = response.producer_id_start + response.producer_id_len

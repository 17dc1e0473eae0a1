"""Producer ids: this broker's current block, and the next one from the controller (AllocateProducerIds)."""

from __future__ import annotations

from collections import deque

from tanist.broker.context import NodeContext
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.lifecycle import Lifecycle
from tanist.broker.network.call import Continuation
from tanist.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from tanist.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse

_VERSION = 0
_TIMEOUT_MS = 5_000
_RETRY_MS = 50
_PATIENCE = 100
"""Attempts before waiting requests fail with a retriable error."""
_MAX_WAITING = 10_000


class ProducerIds:
    """Gives out ids, each once in the life of the cluster."""

    def __init__(self, context: NodeContext, controller_channel: ControllerChannel, lifecycle: Lifecycle) -> None:
        self._context = context
        self._controller_channel = controller_channel
        self._lifecycle = lifecycle
        self._next = 0
        self._end = 0
        self._waiting: deque[Continuation[[int | None]]] = deque()
        self._asking = False
        self._attempts = 0

    def next(self, given: Continuation[[int | None]]) -> None:
        """Call `given` with an id, at once if the block has one; with None when the controller cannot be reached."""
        if self._next < self._end:
            self._next += 1
            given(self._next - 1)
            return
        if len(self._waiting) >= _MAX_WAITING:
            given(None)
            return
        self._waiting.append(given)
        if not self._asking:
            self._attempts = 0
            self._ask()

    def _ask(self) -> None:
        self._asking = True
        self._attempts += 1
        request = AllocateProducerIdsRequest(broker_id=self._context.node_id, broker_epoch=self._lifecycle.broker_epoch)
        self._controller_channel.call(request, _VERSION, _TIMEOUT_MS, self._received)

    def _received(self, response: AllocateProducerIdsResponse | None) -> None:
        waiting = list(self._waiting)
        try:
            self._handle_response(response)
        except Exception as error:
            self._asking = False
            self._waiting.clear()
            for given in waiting:
                given.fail(error)

    def _handle_response(self, response: AllocateProducerIdsResponse | None) -> None:
        if response is None or response.error_code or response.producer_id_len <= 0:
            if self._attempts < _PATIENCE and not self._context.stopping:
                self._context.clock.call_at(self._context.clock.now_ms() + _RETRY_MS, self._ask)
                return
            self._asking = False
            waiting, self._waiting = self._waiting, deque()
            for given in waiting:
                given(None)
            return
        self._asking = False
        self._next = response.producer_id_start
        self._end = self._next + response.producer_id_len
        waiting, self._waiting = self._waiting, deque()
        for given in waiting:
            self.next(given)

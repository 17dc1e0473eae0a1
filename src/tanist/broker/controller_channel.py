"""The broker's way to the active controller: wherever it is now, its own node included.

Requests go to the quorum's leader over one connection. When there is no leader, or it changes under way, the asker
hears None and decides whether to ask again. `forward` passes a client's request on unread, in an Envelope (KIP-590),
and asks again until the client's patience is over: to a client, a controller's failover is a slow answer, not an
error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tanist.broker.channel import Answer, Channel
from tanist.broker.connection import Call
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.envelope_request import EnvelopeRequest
from tanist.wire.messages.envelope_response import EnvelopeResponse

if TYPE_CHECKING:
    from tanist.broker.node import Node

_RETRY_MS = 25
_RETRY_MAX_MS = 400
_FORWARD_PATIENCE_MS = 25_000
_ENVELOPE_VERSION = 0


class ControllerChannel:
    """RPCs to the active controller."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._channel: Channel | None = None
        self._leader_id: int | None = None
        self._closed = False

    def call(self, request: Any, version: int, timeout_ms: int, on_answer: Answer) -> None:
        """Ask the active controller; None when there is none, or it did not answer in time."""
        channel = self._current()
        if channel is None:
            self._node.clock.call_soon(lambda: on_answer(None))
            return
        channel.call(request, version, timeout_ms, on_answer)

    def forward(self, call: Call, request: Any) -> None:
        """Have the active controller answer a client's request; `request` is its decoded form, for a refusal."""
        body = bytes(call.frame)
        call.wait()
        _Forward(self._node, self, call, request, body).attempt()

    @property
    def requests_under_way(self) -> int:
        return 0 if self._channel is None else self._channel.requests_under_way

    def leader_changed(self) -> None:
        """Drop the connection to a controller that is none any more; what was under way is answered by None."""
        if self._channel is not None and self._leader_id != self._node.quorum.leader_id:
            channel, self._channel = self._channel, None
            channel.close()

    def close(self) -> None:
        self._closed = True
        if self._channel is not None:
            self._channel.close()

    def _current(self) -> Channel | None:
        leader_id = self._node.quorum.leader_id
        if self._closed or leader_id is None:
            return None
        if self._channel is None or leader_id != self._leader_id:
            endpoint = self._node.quorum.endpoint(leader_id)
            if endpoint is None:
                return None
            if self._channel is not None:
                self._channel.close()
            self._leader_id = leader_id
            self._channel = Channel(
                self._node.clock,
                self._node.network,
                *endpoint,
                client_id=f"broker-{self._node.node_id}-to-controller",
                max_frame_bytes=self._node.config.socket_request_max_bytes,
            )
        return self._channel


class _Forward:
    """One client request on its way to the controller and back."""

    def __init__(self, node: Node, channel: ControllerChannel, call: Call, request: Any, body: bytes) -> None:
        self._node = node
        self._channel = channel
        self._call = call
        self._request = request
        self._envelope = EnvelopeRequest(request_data=body, request_principal=b"", client_host_address=b"\x7f\0\0\1")
        self._retry_ms = _RETRY_MS
        self._deadline_ms = node.clock.now_ms() + _FORWARD_PATIENCE_MS

    def attempt(self) -> None:
        if self._call.connection.closed:
            return
        remaining_ms = max(1, self._deadline_ms - self._node.clock.now_ms())
        self._channel.call(self._envelope, _ENVELOPE_VERSION, remaining_ms, self._answered)

    def _answered(self, response: EnvelopeResponse | None) -> None:
        if response is not None and response.error_code == 0 and response.response_data is not None:
            data = response.response_data
            self._call.reply_chunks([len(data).to_bytes(4, "big"), data])
            return
        if response is not None and response.error_code != ErrorCode.NOT_CONTROLLER:
            self._node.report(
                "WARN", f"the controller refuses a forwarded request: {ErrorCode(response.error_code).name}"
            )
            self._call.connection.close()
            return
        now_ms = self._node.clock.now_ms()
        if now_ms + self._retry_ms >= self._deadline_ms:
            # Nobody to ask: the connection closes, and the client asks another broker (as Kafka does on a timeout).
            self._call.connection.close()
            return
        self._node.clock.call_at(now_ms + self._retry_ms, self.attempt)
        self._retry_ms = min(self._retry_ms * 2, _RETRY_MAX_MS)

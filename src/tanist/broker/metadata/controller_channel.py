"""The broker's requests to the active controller, wherever that is now, its own node included.

Requests go to the quorum's leader. When there is no leader, or it changes under way, the caller gets None and decides
whether to ask again. `forward` passes a client's request on unread, in an Envelope (KIP-590), and asks again until the
client's patience is over: to a client, a controller's failover is a slow answer, not an error. Then the answer is
REQUEST_TIMED_OUT, as Apache Kafka's is, with whether anything may have been done. One thing is not passed on: that a
repeated request is refused because of what the first one may have done ("the topic exists"). That is a timeout, too.

A client asks the broker that has reported a change about it next. So the answer to a change waits until this broker's
metadata has what was committed when the controller gave it, for as long as the request says.

Answers come in the order of the requests on a connection, so what may be slow must not stand before what may not. The
broker's own requests (heartbeats!) have a connection, clients' requests another, and an election that waits for
replicas to return (KIP-966) has one to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ParamSpec

from tanist.broker.context import NodeContext
from tanist.broker.metadata.awaited_metadata import AwaitedMetadata
from tanist.broker.metadata.envelopes import envelope
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.network.call import Call, Continuation
from tanist.broker.network.channel import Answer, Channel
from tanist.controller.refusals import refusal
from tanist.events.metadata import ForwardingRefused
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.frames import decode_request, decode_response, encode_response, parse_request_header, throttle_time_of
from tanist.wire.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from tanist.wire.messages.create_partitions_response import CreatePartitionsResponse
from tanist.wire.messages.create_topics_response import CreateTopicsResponse
from tanist.wire.messages.delete_topics_response import DeleteTopicsResponse
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest
from tanist.wire.messages.envelope_response import EnvelopeResponse

P = ParamSpec("P")

_RETRY_MS = 25
_RETRY_MAX_MS = 400
_FORWARD_PATIENCE_MS = 25_000
_FORWARD_PATIENCE_MAX_MS = 600_000
_ANSWER_SLACK_MS = 5_000
"""How much longer than the request says the controller may take is waited for its answer, which says so."""
_APART_MAX = 16
"""Slow requests that have connections of their own; more of them wait for each other."""
_LAST_QUICK_ELECTION = 1
"""Preferred and unclean elections are decided at once; KIP-966's types may take as long as the client says."""
_ENVELOPE_VERSION = 0
_BY_THE_FIRST: dict[int, frozenset[int]] = {
    ApiKey.CREATE_TOPICS: frozenset({ErrorCode.TOPIC_ALREADY_EXISTS}),
    ApiKey.DELETE_TOPICS: frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}),
    ApiKey.CREATE_PARTITIONS: frozenset({ErrorCode.INVALID_PARTITIONS}),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: frozenset({ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}),
}
"""The errors of a repeated request that the first one may have caused."""
_CHANGE_NOTHING = frozenset({ApiKey.DESCRIBE_QUORUM, ApiKey.LIST_PARTITION_REASSIGNMENTS})
_NOT_DONE = "No controller is active: there is no quorum. Nothing was done."
_MAY_BE_DONE = "The controller's answer was lost: this may have been done."


class ControllerChannel:
    """RPCs to the active controller."""

    def __init__(self, context: NodeContext, quorum: MetadataQuorum, awaited_metadata: AwaitedMetadata) -> None:
        self._context = context
        self._quorum = quorum
        self._awaited_metadata = awaited_metadata
        self._own = _Route(context, quorum, "to-controller")
        self._clients = _Route(context, quorum, "forwarding")
        self._apart: list[_Route] = []

    def call(self, request: Any, version: int, timeout_ms: int, on_answer: Answer) -> None:
        """Ask the active controller; None when there is none, or it did not answer in time."""
        self._own.call(request, version, timeout_ms, on_answer)

    def forward(
        self, call: Call, request: Any, *, body: bytes | None = None, amend: Callable[[bytes], bytes] | None = None
    ) -> None:
        """Have the active controller answer a client's request; `request` is its decoded form.

        `body` is sent instead of what the client sent, if it is not None, and `amend` makes the client's answer of the
        controller's (both without their length).
        """
        body = bytes(call.frame) if body is None else body
        route = self._clients
        asked_ms: int | None = getattr(request, "timeout_ms", None)
        if (
            isinstance(request, ElectLeadersRequest)
            and request.election_type > _LAST_QUICK_ELECTION
            and len(self._apart) < _APART_MAX
        ):
            route = _Route(self._context, self._quorum, "electing")
            self._apart.append(route)
        _Forward(self._context, self, route, call, body, asked_ms, amend).attempt()

    def forwarded(self, route: _Route) -> None:
        """A request has come to its end, and with it the connection that it may have had to itself."""
        if route in self._apart:
            self._apart.remove(route)
            route.close()

    def when_applied(self, offset: int, deadline_ms: int, then: Callable[[], None]) -> None:
        """Call `then` once this broker has the metadata up to `offset`, or at the deadline."""
        self._awaited_metadata.when_applied(offset, deadline_ms, then)

    @property
    def requests_under_way(self) -> int:
        """On the connection that has most."""
        return max(route.requests_under_way for route in self._routes)

    def leader_changed(self) -> None:
        """Drop connections to a controller that is none any more; what was under way is answered by None."""
        for route in self._routes:
            route.leader_changed()

    def close(self) -> None:
        for route in self._routes:
            route.close()

    @property
    def _routes(self) -> list[_Route]:
        return [self._own, self._clients, *self._apart]


class _Route:
    """One connection to the active controller, made when needed."""

    def __init__(self, context: NodeContext, quorum: MetadataQuorum, name: str) -> None:
        self._context = context
        self._quorum = quorum
        self._name = name
        self._channel: Channel | None = None
        self._leader: tuple[int, tuple[str, int]] | None = None
        self._closed = False
        self.may_have_arrived = False
        """Whether the request that has just been answered by None was perhaps received."""

    @property
    def requests_under_way(self) -> int:
        return 0 if self._channel is None else self._channel.requests_under_way

    def call(self, request: Any, version: int, timeout_ms: int, on_answer: Answer) -> None:
        channel = self._current()
        if channel is None:
            self.may_have_arrived = False
            self._context.clock.call_soon(lambda: on_answer(None))
            return

        def handle_response(response: Any | None) -> None:
            self.may_have_arrived = response is None and channel.lost_open
            on_answer(response)

        channel.call(request, version, timeout_ms, handle_response)

    def leader_changed(self) -> None:
        if self._channel is not None and (self._leader is None or self._leader[0] != self._quorum.leader_id):
            channel, self._channel = self._channel, None
            channel.close()

    def close(self) -> None:
        self._closed = True
        if self._channel is not None:
            self._channel.close()

    def _current(self) -> Channel | None:
        leader_id = self._quorum.leader_id
        if self._closed or leader_id is None:
            return None
        endpoint = self._quorum.endpoint(leader_id)
        if endpoint is None:
            return None
        if self._channel is None or (leader_id, endpoint) != self._leader:
            if self._channel is not None:
                self._channel.close()
            self._leader = (leader_id, endpoint)
            self._channel = Channel(
                self._context.clock,
                self._context.network,
                *endpoint,
                client_id=f"broker-{self._context.node_id}-{self._name}",
                max_frame_bytes=self._context.config.socket_request_max_bytes,
                login=self._context.logins.to_controllers,
                tls=self._context.config.tls.to_controllers,
            )
        return self._channel


class _Forward:
    """One client request on its way to the controller and back."""

    def __init__(
        self,
        context: NodeContext,
        channel: ControllerChannel,
        route: _Route,
        call: Call,
        body: bytes,
        asked_ms: int | None,
        amend: Callable[[bytes], bytes] | None,
    ) -> None:
        self._context = context
        self._channel = channel
        self._route = route
        self._call = call
        self._amend = amend
        self._envelope = envelope(body, call.session)
        self._retry_ms = _RETRY_MS
        self._may_be_done = False
        now_ms = context.clock.now_ms()
        patience_ms = max(_FORWARD_PATIENCE_MS, min(asked_ms or 0, _FORWARD_PATIENCE_MAX_MS) + _ANSWER_SLACK_MS)
        self._deadline_ms = now_ms + patience_ms
        self._on_response: Continuation[[EnvelopeResponse | None]] = self._part(self._handle_response)
        self.attempt = self._part(self._attempt)
        self._known_by_ms = self._deadline_ms if asked_ms is None else now_ms + asked_ms
        """What is done is answered then, though this broker may not know it yet."""

    def _part(self, step: Callable[P, None]) -> Continuation[P]:
        """A part of the way; if it raises, the way ends there."""

        def taken(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                step(*args, **kwargs)
            except Exception:
                self._channel.forwarded(self._route)
                raise

        return self._call.later(taken)

    def _attempt(self) -> None:
        if self._call.connection.closed:
            self._channel.forwarded(self._route)
            return
        remaining_ms = max(1, self._deadline_ms - self._context.clock.now_ms())
        self._route.call(self._envelope, _ENVELOPE_VERSION, remaining_ms, self._on_response)

    def _handle_response(self, response: EnvelopeResponse | None) -> None:
        if response is not None and response.error_code == 0 and response.response_data is not None:
            data = response.response_data
            if self._may_be_done and self._refused_by_the_first(data):
                self._refuse(ErrorCode.REQUEST_TIMED_OUT, _MAY_BE_DONE)
                return
            answer = bytes(data)
            if self._call.header.api_key in _CHANGE_NOTHING:
                self._reply(answer)
                return
            # A controller of Apache Kafka's names no offset (-1).
            known = self._part(partial(self._reply, answer))
            self._channel.when_applied(response.committed_offset, self._known_by_ms, known)
            return
        if response is not None and response.error_code != ErrorCode.NOT_CONTROLLER:
            self._context.events.emit(ForwardingRefused(ErrorCode.name_of(response.error_code)))
            self._refuse(ErrorCode.UNKNOWN_SERVER_ERROR, "The controller refuses the request.")
            return
        if response is None and self._route.may_have_arrived:
            self._may_be_done = True
        now_ms = self._context.clock.now_ms()
        if now_ms + self._retry_ms >= self._deadline_ms:
            self._refuse(ErrorCode.REQUEST_TIMED_OUT, _MAY_BE_DONE if self._may_be_done else _NOT_DONE)
            return
        self._context.clock.call_at(now_ms + self._retry_ms, self.attempt)
        self._retry_ms = min(self._retry_ms * 2, _RETRY_MAX_MS)

    def _refused_by_the_first(self, data: bytes | memoryview) -> bool:
        codes = _BY_THE_FIRST.get(self._call.header.api_key)
        if codes is None:
            return False
        try:
            answer = decode_response(self._call.header.api_key, self._call.version, memoryview(data))
        except WireError:
            return True  # the controller's bytes, not the client's: what they say is not known
        return not codes.isdisjoint(_error_codes(answer))

    def _refuse(self, code: ErrorCode, message: str) -> None:
        """Answer in the controller's place."""
        frame = memoryview(self._envelope.request_data)
        header = parse_request_header(frame)
        answer = refusal(decode_request(header, frame), code, message)
        self._reply(encode_response(answer, header.api_version, header.correlation_id)[4:])

    def _reply(self, data: bytes) -> None:
        if self._amend is not None:
            data = self._amend(data)
        call, frame = self._call, len(data).to_bytes(4, "big") + data
        call.throttle_ms = throttle_time_of(call.header.api_key, call.version, frame)
        call.reply_chunks([frame])
        self._channel.forwarded(self._route)


def _error_codes(answer: Any) -> Iterator[int]:
    match answer:
        case CreateTopicsResponse():
            yield from (topic.error_code for topic in answer.topics)
        case DeleteTopicsResponse():
            yield from (topic.error_code for topic in answer.responses)
        case CreatePartitionsResponse():
            yield from (topic.error_code for topic in answer.results)
        case AlterPartitionReassignmentsResponse():
            yield from (each.error_code for topic in answer.responses for each in topic.partitions)

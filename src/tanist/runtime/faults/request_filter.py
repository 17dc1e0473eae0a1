"""Faults by request in a running node: between an accepted connection and its handler.

While rules are set, the handler of each accepted connection is a `RequestFilter` around the node's own, and the
connection is of a class that gives its filter what the node sends. Without rules both are as ever, so a node without
such a fault pays nothing.

A request of a blackholed client is dropped before the node sees it. In place of one that is refused the node sees a
question for its versions, so that the refusal has the place of that answer among the node's others. Any other request
is carried out; its answer, found by the correlation id, is changed, held back, or the connection ends in its place.
Answers keep their order: what follows one that is held back waits with it.
"""

from __future__ import annotations

import os
import random
import struct
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tanist.ports import Chunk, Connection, ConnectionHandler, FileRange
from tanist.runtime.faults import request_counts
from tanist.runtime.faults.request_rules import RequestFault
from tanist.runtime.ports.connection import SocketConnection
from tanist.runtime.ports.files import disk_file
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.network import SocketNetwork
from tanist.wire.apis import ApiKey
from tanist.wire.error_responses import refusal, stamped
from tanist.wire.errors import WireError
from tanist.wire.frames import decode_request, parse_request_header

_HEADER = struct.Struct(">hhih")
_LENGTH_AND_ID = struct.Struct(">ii")
_UNANSWERED_MAX = 10_000
_REASON = "injected by a fault of the test"


class RequestFilters:
    """All rules of one node."""

    def __init__(self, loop: Loop, network: SocketNetwork, folder: Path) -> None:
        self.loop = loop
        self.rules: tuple[RequestFault, ...] = ()
        self.rng = random.Random()
        self._network = network
        self._folder = folder

    def apply(self, rules: Sequence[RequestFault]) -> None:
        """From now on these rules hold, and no others."""
        self.rules = tuple(rules)
        self._network.wrap_accepted = self._wrap if rules else None
        for connection in self._network.connections:
            handler = connection.handler
            if isinstance(handler, RequestFilter):
                if not rules:
                    handler.retire()
            elif rules and connection.accepted and handler is not None:
                connection.handler = self._wrap(connection, handler)

    def hit(self, rule: RequestFault) -> bool:
        """Count a call, and say whether the rule happens to it."""
        return request_counts.call(self._folder, rule.rule_id, lambda number: rule.hits_call(number, self.rng.random()))

    def _wrap(self, connection: SocketConnection, handler: ConnectionHandler) -> ConnectionHandler:
        return RequestFilter(self, _filtered(connection), handler)


class _Asked(NamedTuple):
    """A request whose answer is looked for."""

    api_key: int
    version: int
    client_id: str
    refusal: bytes | None
    """What answers it, if the node has not seen it."""


class RequestFilter:
    """The handler of one connection, around the node's."""

    def __init__(self, filters: RequestFilters, connection: _Filtered, inner: ConnectionHandler) -> None:
        self._filters = filters
        self._connection = connection
        self._inner = inner
        self._asked: dict[int, _Asked] = {}
        """By correlation id."""
        self._held: deque[tuple[int, list[Chunk]]] = deque()
        """Answers that wait, with the times when they may go."""
        self._timed = False
        self._retired = False

    # -- requests

    def on_open(self, connection: Connection) -> None:
        self._inner.on_open(connection)

    def on_frame(self, frame: memoryview) -> None:
        seen = frame if self._retired else self._seen(frame)
        if seen is not None:
            self._inner.on_frame(seen)

    def on_close(self, reason: str) -> None:
        self._held.clear()
        self._inner.on_close(reason)

    def _seen(self, frame: memoryview) -> memoryview | None:
        """Note a request that a rule is about; what the node sees of it, if anything."""
        try:
            api_key, version, correlation_id, length = _HEADER.unpack_from(frame)
            client_id = str(frame[10 : 10 + max(0, length)], "utf-8")
        except (struct.error, UnicodeDecodeError):
            return frame
        rules = [rule for rule in self._filters.rules if rule.concerns(api_key, client_id)]
        if any(rule.kind == "blackhole" and self._filters.hit(rule) for rule in rules):
            return None
        rules = [rule for rule in rules if rule.kind != "blackhole"]
        if not rules or len(self._asked) >= _UNANSWERED_MAX or _is_unanswered(api_key, frame):
            return frame
        refused = self._refused(rules, frame)
        self._asked[correlation_id] = _Asked(api_key, version, client_id, refused)
        if refused is None:
            return frame
        return memoryview(_HEADER.pack(ApiKey.API_VERSIONS, 0, correlation_id, -1))

    def _refused(self, rules: Sequence[RequestFault], frame: memoryview) -> bytes | None:
        """The answer to a request that a rule refuses; of several rules that hit it, the last one's."""
        found = None
        for rule in rules:
            if rule.refuses:
                answer = refusal(frame, rule.error_code, _REASON)
                if answer is not None and self._filters.hit(rule):
                    found = answer
        return found

    # -- answers

    def outgoing(self, chunks: Sequence[Chunk]) -> None:
        """What the node sends: whole frames, one or several."""
        if not self._asked and not self._held:
            self._connection.send_now(chunks)
            return
        for frame in _frames(chunks):
            if not self._pass(frame):
                return

    def retire(self) -> None:
        """No rule holds any more: what is held back goes, and the connection is as it was."""
        self._retired = True
        self._asked.clear()
        while self._held:
            self._connection.send_now(self._held.popleft()[1])
        connection: SocketConnection = self._connection
        connection.handler = self._inner
        connection.__class__ = type(connection).__bases__[1]

    def _pass(self, frame: list[Chunk]) -> bool:
        """Send one answer, now or later, as the rules say; False: the connection has ended in its place."""
        _, correlation_id = _LENGTH_AND_ID.unpack(_head(frame))
        asked = self._asked.pop(correlation_id, None)
        if asked is not None and asked.refusal is not None:
            frame = [asked.refusal]
        wait_ms = 0
        for rule in self._filters.rules if asked is not None else ():
            if asked is None or rule.kind == "blackhole" or not rule.concerns(asked.api_key, asked.client_id):
                continue
            if rule.kind == "error":
                if rule.refuses or asked.refusal is not None:
                    continue
                whole = _bytes_of(frame)
                changed = stamped(asked.api_key, asked.version, whole[4:], rule.error_code, _REASON)
                frame = [whole]
                if changed is not None and self._filters.hit(rule):
                    frame = [changed]
            elif self._filters.hit(rule):
                if rule.kind == "disconnect":
                    self._end_after_held()
                    return False
                wait_ms = max(wait_ms, rule.delay_ms)
        if wait_ms or self._held:
            now_ms = self._filters.loop.now_ms()
            before_ms = self._held[-1][0] if self._held else now_ms
            self._held.append((max(before_ms, now_ms + wait_ms), [_bytes_of(frame)]))
            self._arm()
        else:
            self._connection.send_now(frame)
        return True

    def _end_after_held(self) -> None:
        """Answers that stand before it are not the fault's business: those that wait go first."""
        while self._held:
            self._connection.send_now(self._held.popleft()[1])
        self._connection.end("ended by a fault, in place of an answer")

    def _arm(self) -> None:
        if not self._timed and self._held:
            self._timed = True
            self._filters.loop.call_at(self._held[0][0], self._due)

    def _due(self) -> None:
        self._timed = False
        now_ms = self._filters.loop.now_ms()
        while self._held and self._held[0][0] <= now_ms:
            self._connection.send_now(self._held.popleft()[1])
        self._arm()


if TYPE_CHECKING:
    _AnyConnection = SocketConnection
else:
    _AnyConnection = object


class _Filtered(_AnyConnection):
    """A connection whose answers its filter sees first. It stands before the class that the connection had."""

    __slots__ = ()

    def send(self, chunks: Sequence[Chunk]) -> None:
        handler = self.handler
        if isinstance(handler, RequestFilter):
            handler.outgoing(chunks)
        else:
            super().send(chunks)

    def send_now(self, chunks: Sequence[Chunk]) -> None:
        """Past the filter."""
        super().send(chunks)


def _filtered(connection: SocketConnection) -> _Filtered:
    """The connection, with its filter in it from now on."""
    kind = type(connection)
    connection.__class__ = _with_filter(kind)
    if not isinstance(connection, _Filtered):
        raise TypeError(f"a {kind.__name__} cannot be filtered")
    return connection


_with_filter: Callable[[Any], Any] = cache(
    lambda kind: type(f"Filtered{kind.__name__}", (_Filtered, kind), {"__slots__": ()})
)
"""The class of a filtered connection, by the class that it had."""


def _is_unanswered(api_key: int, frame: memoryview) -> bool:
    """Produce with acks=0."""
    if api_key != ApiKey.PRODUCE:
        return False
    try:
        request = decode_request(parse_request_header(frame), frame)
    except WireError:
        return False
    return getattr(request, "acks", -1) == 0


def _frames(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """The chunks of each frame; a chunk in which one frame ends and another begins is divided."""
    found: list[list[Chunk]] = []
    left = 0
    head = b""
    for chunk in chunks:
        position, size = 0, _size_of(chunk)
        while position < size:
            if not left:
                # A frame's length stands in its first chunk, whole: an encoder never divides it.
                head = bytes(_part(chunk, position, 4))  # type: ignore[arg-type]
                left = 4 + int.from_bytes(head, "big")
                found.append([])
            taken = min(left, size - position)
            found[-1].append(_part(chunk, position, taken))
            position += taken
            left -= taken
    return found


def _size_of(chunk: Chunk) -> int:
    return chunk.length if isinstance(chunk, FileRange) else len(chunk)


def _part(chunk: Chunk, start: int, length: int) -> Chunk:
    if start == 0 and length == _size_of(chunk):
        return chunk
    if isinstance(chunk, FileRange):
        return FileRange(chunk.file, chunk.offset + start, length)
    return memoryview(chunk)[start : start + length]


def _head(frame: Sequence[Chunk]) -> bytes:
    """The length and the correlation id."""
    head = b""
    for chunk in frame:
        if isinstance(chunk, FileRange) or len(head) >= _LENGTH_AND_ID.size:
            break
        head += bytes(chunk[: _LENGTH_AND_ID.size - len(head)])
    return head


def _bytes_of(frame: Sequence[Chunk]) -> bytes:
    """A frame in memory of its own."""
    return b"".join(
        os.pread(disk_file(chunk).fd, chunk.length, chunk.offset) if isinstance(chunk, FileRange) else chunk
        for chunk in frame
    )

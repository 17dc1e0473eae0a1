"""Fetching a partition from its leader while what came before is decoded.

Owns one connection and two buffers. The next request is sent as soon as it is known where it begins, so that the broker
works, and the socket fills, while a task decodes; an answer is read straight into the buffer that it is decoded from.
Whatever is not as usual (an error, another leader, a connection that breaks) ends the short way, and the next fetch
goes the general way, by `Client` with its patience. No more than one answer is in flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tanist.client.errors import error_in
from tanist.client.positions import FETCH_VERSION_MAX, fetch_request
from tanist.runtime.client.client import BrokerConnection, Client, KafkaError, Unreachable, Unsupported
from tanist.spark.segments.record_columns import PADDING_BYTES
from tanist.spark.topic.plan import OffsetRange
from tanist.wire.errors import WireError
from tanist.wire.frames import correlation_id_of, decode_response
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.fetch_response import FetchResponse, PartitionData

_MAX_WAIT_MS: Final = 500
_ROOM_BYTES: Final = 1 << 16
"""For what stands around the records in an answer."""
_RESPONSE_BYTES_MAX: Final = 1 << 30
_BUFFERS: Final = 2


@dataclass(frozen=True, slots=True)
class Fetched:
    """The records of an answer lie at [start, end) of `arena`, which is padded, until the fetch after the next."""

    data: PartitionData
    arena: Any
    start: int
    end: int


class Fetching:
    def __init__(self, client: Client, wanted: OffsetRange, *, fetch_bytes: int, read_committed: bool) -> None:
        self._client = client
        self._wanted = wanted
        self._fetch_bytes = fetch_bytes
        self._read_committed = read_committed
        self._connection: _Connection | None = None
        self._ahead: int | None = None
        """The offset that has been asked for and not been answered."""
        self._buffers: list[Any] = [np.empty(0, np.uint8)] * _BUFFERS

    def close(self) -> None:
        self._break()

    def begin(self, offset: int) -> None:
        """Ask for what is at `offset`; the answer is `fetch`'s. Only where a fetch has succeeded before."""
        if self._ahead is not None or self._connection is None:
            return
        try:
            self._connection.begin(self._request(offset))
        except OSError:
            self._break()
        else:
            self._ahead = offset

    def fetch(self, offset: int) -> Fetched:
        """The records at `offset`. Raises `KafkaError` for a lasting error."""
        if self._ahead == offset and self._connection is not None:
            self._ahead = None
            try:
                fetched = self._answer(self._connection)
            except (OSError, WireError, KafkaError):
                # The general way asks again, and knows which of them passes.
                self._break()
            else:
                return fetched
        return self._client.persist(lambda: self._attempt(offset))

    def _attempt(self, offset: int) -> Fetched:
        client, wanted = self._client, self._wanted
        try:
            connection = self._connection
            if connection is None or self._ahead is not None:
                self._break()
                leader = client.leader_of(wanted.topic, wanted.partition)
                broker = client.view.brokers.get(leader)
                if broker is None:
                    raise Unreachable(f"broker {leader} is not among those alive")
                connection = self._connection = _Connection(
                    (broker.host, broker.port), client.client_id, min(client.timeout_s, 10.0), client.security
                )
            connection.begin(self._request(offset))
            return self._answer(connection)
        except (OSError, WireError, Unreachable) as error:
            self._break()
            client.forget(wanted.topic)
            raise Unreachable(f"{wanted.topic}-{wanted.partition}: {error}") from error
        except KafkaError as error:
            self._break()
            client.forget(wanted.topic)
            raise KafkaError(error.code, f"{wanted.topic}-{wanted.partition} at offset {offset}") from None

    def _request(self, offset: int) -> FetchRequest:
        where = self._wanted.topic, self._wanted.partition
        return fetch_request(
            where,
            offset,
            max_bytes=self._fetch_bytes,
            max_wait_ms=_MAX_WAIT_MS,
            read_committed=self._read_committed,
        )

    def _answer(self, connection: _Connection) -> Fetched:
        # The one that was filled before the last: what is decoded from the last may still be in use.
        arena = self._buffers.pop(0)
        try:
            arena, answer = connection.finish(arena, self._fetch_bytes + _ROOM_BYTES, self._client.timeout_s)
        finally:
            self._buffers.append(arena)
        partition = answer.responses[0].partitions[0] if answer.responses else PartitionData()
        if code := error_in(answer):
            raise KafkaError(code)
        if not partition.records:
            return Fetched(partition, arena, 0, 0)
        records = np.frombuffer(partition.records, np.uint8)
        start = records.__array_interface__["data"][0] - arena.__array_interface__["data"][0]
        return Fetched(partition, arena, start, start + len(records))

    def _break(self) -> None:
        self._ahead = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _Connection(BrokerConnection):
    """A connection whose request and answer are two steps."""

    def begin(self, request: FetchRequest) -> None:
        try:
            self._version = self.version_for(FetchRequest, FETCH_VERSION_MAX)
        except Unsupported as error:
            raise WireError(str(error)) from error
        timeout_s = self._sock.gettimeout() or 10.0
        self._authenticate_again(timeout_s)
        self._send(request, self._version, timeout_s)

    def finish(self, arena: Any, usual_bytes: int, timeout_s: float) -> tuple[Any, FetchResponse]:
        """The answer, which lies in the arena that is given back: the given one if it is large enough."""
        self._sock.settimeout(timeout_s)
        length = int.from_bytes(self._receive_exactly(4), "big", signed=True)
        if not 4 <= length <= _RESPONSE_BYTES_MAX:
            raise WireError(f"a response of {length} bytes: is {self} a Kafka broker?")
        # The length that was asked for is believed at once; of an answer that claims more, as much as has come.
        wanted_bytes = min(length, usual_bytes)
        if len(arena) < wanted_bytes + PADDING_BYTES:
            arena = np.empty(wanted_bytes + PADDING_BYTES, np.uint8)
        filled = 0
        while filled < length:
            if filled == len(arena) - PADDING_BYTES:
                larger = np.empty(min(length, 2 * filled) + PADDING_BYTES, np.uint8)
                larger[:filled] = arena[:filled]
                arena = larger
            count = self._sock.recv_into(memoryview(arena)[filled : min(length, len(arena) - PADDING_BYTES)])
            if count == 0:
                raise ConnectionResetError(f"{self} closed the connection")
            filled += count
        frame = memoryview(arena)[:length]
        if correlation_id_of(frame) != self._correlation_id:
            raise WireError(f"answer {correlation_id_of(frame)} to request {self._correlation_id}")
        answer = decode_response(FetchRequest.API_KEY, self._version, frame)
        if not isinstance(answer, FetchResponse):
            raise WireError(f"a {type(answer).__name__} in answer to Fetch")
        return arena, answer

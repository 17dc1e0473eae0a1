"""One task's idempotent producer: several batches on their way to each leader, each of them in the log once.

Owns the order of batches. While all goes well the leaders are sent batch after batch and their answers are read as the
window asks for it. At the first trouble the connections are given up, and everything that has no answer is sent again,
one batch after another in the order it was made, with the same sequence numbers: a leader that had it already says so,
and one that had not takes it. Whatever a leader says for good ends the task. acks is always all.
"""

from __future__ import annotations

import socket
from collections import deque
from dataclasses import dataclass
from struct import Struct as Layout
from typing import Any, Final

from tanist.client.errors import Meaning, meaning_in, refusal_in
from tanist.client.sequences import VERSION_MAX, Sequences, produce_request
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.asking import ask_leader
from tanist.runtime.client.client import BrokerConnection, Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.records import new_producer
from tanist.spark.sink.encoding import Sealed, Sealing
from tanist.wire.codec import chunk_encoder
from tanist.wire.errors import WireError
from tanist.wire.frames import correlation_id_of, decode_response
from tanist.wire.messages.produce_request import ProduceRequest
from tanist.wire.messages.produce_response import ProduceResponse

IN_FLIGHT: Final = 5
"""Batches without an answer for each leader: of so many a broker remembers that it has them (KIP-679)."""
_WAIT_MS: Final = 10_000
"""How long a leader waits for the other replicas, each time it is asked."""
_HEAD: Final = Layout(">hhih")
"""A request's header: key, version, correlation id, and the length of the client id, which follows."""


class ProduceFailed(RuntimeError):
    """A batch that is not in the log, or of which it is not known."""


class _Placeholder:
    """Stands in a request for a batch that is sent in two pieces: it is as long."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    where: TopicPartition
    sealed: Sealed
    transactional_id: str | None
    max_version: int

    def request(self, records: Any) -> ProduceRequest:
        return produce_request(self.where, records, timeout_ms=_WAIT_MS, transactional_id=self.transactional_id)


class TaskProducer:
    def __init__(
        self,
        client: Client,
        producer_id: int,
        producer_epoch: int,
        transactional_id: str | None = None,
        max_version: int = VERSION_MAX,
    ) -> None:
        """`transactional_id`: the batches are sealed as transactional, and their partitions are in the transaction."""
        self.sequences = Sequences()
        self.sequences.begin((producer_id, producer_epoch))
        self._transactional_id = transactional_id
        self._max_version = max_version
        self._client = client
        self._connections: dict[int, _Connection] = {}
        self._unanswered: dict[int, deque[_Batch]] = {}
        self._order: deque[_Batch] = deque()
        """All that have no answer, in the order they were made."""

    @classmethod
    def fresh(cls, client: Client) -> TaskProducer:
        """With an id from the cluster."""
        return cls(client, *new_producer(client))

    def sealing(self, where: TopicPartition) -> Sealing:
        """How the next batch to a partition is sealed."""
        return Sealing(*self.sequences.producer, self.sequences.next_of(where))

    def send(self, where: TopicPartition, batch: Sealed) -> None:
        """Send a batch that was sealed with `sealing`. Returns as soon as it is on its way."""
        topic, partition = where
        made = _Batch(where, batch, self._transactional_id, self._max_version)
        self.sequences.advance(where, batch.count)
        self._order.append(made)
        try:
            leader = self._client.leader_of(topic, partition)
            waiting = self._unanswered.setdefault(leader, deque())
            connection = self._connected(leader)
            while len(waiting) >= IN_FLIGHT or (waiting and connection.must_authenticate):
                self._finish_oldest(leader)
            connection.begin(made)
            waiting.append(made)
        except (OSError, WireError, KafkaError, Unreachable):
            self._send_again()

    def flush(self) -> None:
        """Until every batch is acknowledged."""
        try:
            for leader, waiting in self._unanswered.items():
                while waiting:
                    self._finish_oldest(leader)
        except (OSError, WireError, KafkaError):
            self._send_again()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._unanswered.clear()

    def _finish_oldest(self, leader: int) -> None:
        """The answer to the oldest batch that this leader was sent."""
        oldest = self._unanswered[leader][0]
        answer = self._connections[leader].finish(self._client.timeout_s)
        if meaning_in(answer) is not Meaning.DONE:
            raise KafkaError(*refusal_in(answer))
        self._unanswered[leader].popleft()
        self._order.remove(oldest)

    def _send_again(self) -> None:
        self.close()
        producer_id, producer_epoch = self.sequences.producer
        while self._order:
            batch = self._order[0]
            topic, partition = batch.where
            self._client.forget(topic)
            try:
                self._client.persist(lambda batch=batch: self._attempt(batch))  # type: ignore[misc]
            except (KafkaError, Unreachable, Unsupported) as error:
                raise ProduceFailed(
                    f"{topic}-{partition}: a batch of producer {producer_id}, epoch {producer_epoch}, was not"
                    f" acknowledged: {error}"
                ) from error
            self._order.popleft()

    def _attempt(self, batch: _Batch) -> None:
        request = batch.request(memoryview(batch.sealed.joined()))
        ask_leader(self._client, *batch.where, request, ProduceResponse, max_version=batch.max_version)

    def _connected(self, leader: int) -> _Connection:
        connection = self._connections.get(leader)
        if connection is None:
            broker = self._client.view.brokers.get(leader)
            if broker is None:
                raise Unreachable(f"broker {leader} is not among those alive")
            patience_s = min(self._client.timeout_s, 10.0)
            connection = _Connection(broker.address, self._client.client_id, patience_s, self._client.security)
            self._connections[leader] = connection
        return connection


class _Connection(BrokerConnection):
    """A connection with several requests on their way. Answers come in the order of requests."""

    _asked = 0
    _version = -1

    def begin(self, batch: _Batch) -> None:
        try:
            version = self._version = self.version_for(ProduceRequest, batch.max_version)
        except Unsupported as error:
            raise WireError(str(error)) from error
        self._authenticate_again(self._sock.gettimeout() or 10.0)
        self._correlation_id += 1
        name = self._client_id.encode()
        head = _HEAD.pack(ProduceRequest.API_KEY, version, self._correlation_id, len(name)) + name
        place = _Placeholder(len(batch.sealed))
        pieces: list[Any] = [b"", head + b"\0" if ProduceRequest.is_flexible(version) else head]
        chunk_encoder(ProduceRequest, version)(batch.request(place), pieces)
        at = next(number for number, each in enumerate(pieces) if each is place)
        pieces[at : at + 1] = batch.sealed.header, batch.sealed.records
        pieces[0] = sum(map(len, pieces)).to_bytes(4, "big")
        self._send_pieces(pieces)
        self._asked += 1

    def _send_pieces(self, pieces: list[Any]) -> None:
        """All of them, without making one of them first: a batch is copied by the kernel alone, unless TLS has to."""
        if type(self._sock) is not socket.socket:
            self._sock.sendall(b"".join(pieces))
            return
        left = [memoryview(each) for each in pieces]
        while left:
            sent = self._sock.sendmsg(left)
            while left and sent >= len(left[0]):
                sent -= len(left.pop(0))
            if sent:
                left[0] = left[0][sent:]

    def finish(self, timeout_s: float) -> ProduceResponse:
        self._sock.settimeout(timeout_s)
        frame = self._receive()
        wanted = self._correlation_id - self._asked + 1
        if correlation_id_of(frame) != wanted:
            raise WireError(f"answer {correlation_id_of(frame)} to request {wanted}")
        self._asked -= 1
        answer = decode_response(ProduceRequest.API_KEY, self._version, frame)
        if not isinstance(answer, ProduceResponse):
            raise WireError(f"a {type(answer).__name__} in answer to Produce")
        return answer

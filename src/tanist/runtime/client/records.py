"""Records to and from any Kafka cluster, through `Client`: one batch at a time, one partition at a time.

`Producer` is idempotent by default: a batch whose answer was lost is sent again with the same sequence
numbers, so it is in the log once. A batch that it has to give up on may or may not be in the log; the producer then
takes a new producer id, because its next sequence number is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tanist.client import positions
from tanist.client.positions import Fetched, list_offsets_request, partition_in, read_from
from tanist.client.sequences import NO_PRODUCER, ProducerEpoch, Sequences, new_producer_id, produce_request
from tanist.client.sequences import VERSION_MAX as PRODUCE_VERSION_MAX
from tanist.runtime.client.asking import ask_leader
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.wire.batch import NewRecord, Record
from tanist.wire.compression import Compression
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.list_offsets_response import ListOffsetsResponse
from tanist.wire.messages.produce_request import ProduceRequest
from tanist.wire.messages.produce_response import ProduceResponse

_REQUEST_TIMEOUT_MS = 10_000


class Producer:
    """Sends batches, each until it is acknowledged."""

    def __init__(
        self,
        client: Client,
        *,
        acks: int = -1,
        idempotent: bool = True,
        request_timeout_ms: int = _REQUEST_TIMEOUT_MS,
    ) -> None:
        """`request_timeout_ms`: how long the leader may wait for the other replicas, each time it is asked."""
        if idempotent and acks != -1:
            raise ValueError("an idempotent producer needs acks=all")
        self._client = client
        self._acks = acks
        self._request_timeout_ms = request_timeout_ms
        self._idempotent = idempotent
        self._sequences = Sequences()

    def send(
        self,
        topic: str,
        partition: int,
        records: Sequence[NewRecord],
        *,
        compression: int = Compression.NONE,
        timeout_s: float | None = None,
    ) -> int:
        """Send one batch; gives the offset of its first record.

        -1 if the broker does not say: with acks=0, and for a batch that turns out to have been in the log already.
        """
        sequences = self._sequences
        if self._idempotent and sequences.producer == NO_PRODUCER:
            sequences.begin(new_producer(self._client, timeout_s))
        batch = sequences.batch((topic, partition), records, compression=compression)
        request = produce_request((topic, partition), batch, acks=self._acks, timeout_ms=self._request_timeout_ms)
        try:
            offset = self._client.persist(lambda: self._attempt(request, topic, partition), timeout_s=timeout_s)
        except (KafkaError, Unreachable):
            sequences.begin(NO_PRODUCER)
            raise
        sequences.advance((topic, partition), len(records))
        return offset

    def _attempt(self, request: ProduceRequest, topic: str, partition: int) -> int:
        if self._acks:
            return produce(self._client, topic, partition, request, max_version=PRODUCE_VERSION_MAX)
        client = self._client
        try:
            client.tell(request, client.leader_of(topic, partition), max_version=PRODUCE_VERSION_MAX)
        except Unreachable:
            client.forget(topic)
            raise
        return -1


def new_producer(client: Client, timeout_s: float | None = None) -> ProducerEpoch:
    """The id and epoch of a new producer without transactions."""

    def attempt() -> ProducerEpoch:
        answer = client.ask(new_producer_id(), InitProducerIdResponse)
        if answer.error_code:
            raise KafkaError(answer.error_code, "InitProducerId")
        return answer.producer_id, answer.producer_epoch

    return client.persist(attempt, timeout_s=timeout_s)


def produce(
    client: Client,
    topic: str,
    partition: int,
    request: ProduceRequest,
    *,
    max_version: int,
    timeout_s: float | None = None,
) -> int:
    """Ask the leader once to append the one batch of a request; gives its offset.

    -1 for a batch that is in the log already. `KafkaError` and `Unreachable` as of `ask_leader`.
    """
    answer = ask_leader(
        client, topic, partition, request, ProduceResponse, timeout_s=timeout_s, max_version=max_version
    )
    found = answer.responses[0].partition_responses[0]
    return -1 if found.error_code else found.base_offset


def fetch(
    client: Client,
    topic: str,
    partition: int,
    offset: int,
    *,
    max_wait_ms: int = 500,
    max_bytes: int = 1 << 20,
    timeout_s: float | None = None,
    answer_within_s: float | None = None,
    read_committed: bool = False,
) -> Fetched:
    """The records below the high watermark from `offset` on, as many as the leader gives at once.

    `timeout_s` is for all attempts, `answer_within_s` for each. `read_committed` leaves out the records of transactions
    that were aborted, and ends before the first one that is open.
    """
    request = positions.fetch_request(
        (topic, partition), offset, max_bytes=max_bytes, max_wait_ms=max_wait_ms, read_committed=read_committed
    )
    about = f"{topic}-{partition} at offset {offset}"

    def attempt() -> Fetched:
        version, within_s = positions.FETCH_VERSION_MAX, answer_within_s
        answer = ask_leader(
            client, topic, partition, request, FetchResponse, timeout_s=within_s, max_version=version, about=about
        )
        found = read_from(partition_in(answer), offset, read_committed=read_committed)
        if found.is_corrupt and found.next_offset == offset:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, about)
        return found

    return client.persist(attempt, timeout_s=timeout_s)


def read(
    client: Client, topic: str, partition: int, start: int, end: int, *, read_committed: bool = False
) -> Iterator[Record]:
    """The records of [start, end), which waits for those that are above the high watermark, or in open transactions."""
    position = start
    while position < end:
        fetched = fetch(client, topic, partition, position, max_bytes=8 << 20, read_committed=read_committed)
        position = fetched.next_offset
        yield from (record for record in fetched.records if record.offset < end)


def partition_for(key: bytes, partitions: int) -> int:
    """Where Kafka's own clients put a record of this key: murmur2, as Java's default partitioner computes it."""
    mask, multiplier = 0xFFFFFFFF, 0x5BD1E995
    whole = len(key) & ~3
    value = 0x9747B28C ^ len(key)
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        value = (value * multiplier & mask) ^ word
    if whole < len(key):
        value = (value ^ int.from_bytes(key[whole:], "little")) * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return ((value ^ value >> 15) & 0x7FFFFFFF) % partitions


def list_offset(client: Client, topic: str, partition: int, timestamp: int, *, read_committed: bool = False) -> int:
    """The offset for a timestamp, `EARLIEST` or `LATEST`; -1 if all records are older.

    With `read_committed` `LATEST` is where the first open transaction begins.
    """
    request = list_offsets_request(
        {(topic, partition): timestamp}, read_committed=read_committed, timeout_ms=_REQUEST_TIMEOUT_MS
    )

    def attempt() -> int:
        answer = ask_leader(client, topic, partition, request, ListOffsetsResponse)
        return int(partition_in(answer).offset)

    return client.persist(attempt)

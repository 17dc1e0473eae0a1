"""What ends a consumer's long poll: Apache Kafka's broker and ours answer the same fetches for the same reasons.

Both rules are those of Apache's DelayedFetch. Nothing here waits for a time: the polls outlast the test.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tanist.replica.reads import READ_COMMITTED, READ_UNCOMMITTED
from tanist.wire.batch import NewRecord, encode_batch, iterate_headers
from tanist.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tanist.wire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from tanist.wire.messages.end_txn_request import EndTxnRequest
from tanist.wire.messages.end_txn_response import EndTxnResponse
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.find_coordinator_response import FindCoordinatorResponse
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tanist.wire.messages.produce_response import ProduceResponse
from tests.interop.pair import Asker, Pair, pair
from tests.interop.raw import RawClient
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

WAIT_MS = 25_000
"""An `Asker` waits for thirty seconds."""
PLAIN = 20
SIDES = ("apache", "tanist")


@pytest.fixture(scope="module")
def nodes(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("waits")
    single = {
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    with pair(folder, single) as both:
        yield both


def _record(value: bytes) -> NewRecord:
    """A record of now: a marker, which is one too, would begin another segment after one that is old."""
    return NewRecord(time.time_ns() // 1_000_000, None, value)


class Writer:
    """Writes to one topic, within a transaction and beside it."""

    def __init__(self, asker: Asker, topic: str) -> None:
        self._asker, self._topic = asker, topic
        self._producer = (-1, -1)

    def plain(self, value: bytes = b"plain") -> None:
        self._produce(encode_batch([_record(value)]), None)

    def begin(self, value: bytes) -> None:
        """Begin a transaction by a record."""
        name = f"of {self._topic}"

        def initialized() -> InitProducerIdResponse | None:
            self._asker.ask(FindCoordinatorRequest(key=name, key_type=1), 3, FindCoordinatorResponse)
            request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
            answer = self._asker.ask(request, 4, InitProducerIdResponse)
            return None if answer.error_code else answer

        answer = wait_for(initialized, "a producer id")
        self._producer = (answer.producer_id, answer.producer_epoch)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=self._topic, partitions=(0,)),),
        )
        added = self._asker.ask(request, 3, AddPartitionsToTxnResponse)
        assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
        producer_id, epoch = self._producer
        batch = encode_batch(
            [_record(value)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            transactional=True,
        )
        self._produce(batch, name)

    def end(self) -> None:
        request = EndTxnRequest(
            transactional_id=f"of {self._topic}",
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            committed=True,
        )
        assert self._asker.ask(request, 3, EndTxnResponse).error_code == 0

    def _produce(self, batch: bytes | bytearray, transactional_id: str | None) -> None:
        data = TopicProduceData(name=self._topic, partition_data=(PartitionProduceData(index=0, records=bytes(batch)),))
        request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=(data,))
        answer = self._asker.ask(request, 9, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == 0


@contextmanager
def _a_topic(nodes: Pair, side: str, name: str) -> Iterator[tuple[Writer, Asker, ThreadPoolExecutor]]:
    address: tuple[str, int] = getattr(nodes, side)
    with RawClient(*address) as client:
        client.create_topic(name, 1, 1, {})
    with Asker(address) as writes, Asker(address) as reads, ThreadPoolExecutor(1) as pool:
        yield Writer(writes, name), reads, pool


def _poll(
    reads: Asker, topic: str, isolation_level: int, *, offset: int = 0, min_bytes: int = 1, of_each: int = 1 << 20
) -> int:
    """A long poll: how many whole batches its answer has."""
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=WAIT_MS,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        isolation_level=isolation_level,
        session_epoch=-1,
        topics=(
            FetchTopic(
                topic=topic,
                partitions=(
                    FetchPartition(
                        partition=0,
                        current_leader_epoch=-1,
                        fetch_offset=offset,
                        last_fetched_epoch=-1,
                        partition_max_bytes=of_each,
                    ),
                ),
            ),
        ),
    )
    (answer,) = reads.ask(request, 12, FetchResponse).responses[0].partitions
    assert answer.error_code == 0
    return sum(1 for _ in iterate_headers(memoryview(answer.records or b"")))


@pytest.mark.parametrize("side", SIDES)
def test_a_reader_of_what_is_committed_waits_for_the_end_of_the_transaction(nodes: Pair, side: str) -> None:
    with _a_topic(nodes, side, "behind") as (writer, reads, pool):
        writer.begin(b"in the transaction")
        poll: Future[int] = pool.submit(_poll, reads, "behind", READ_COMMITTED)
        for _ in range(PLAIN):
            writer.plain()
        assert not poll.done()
        writer.end()
        assert poll.result() == 1 + PLAIN + 1


@pytest.mark.parametrize("side", SIDES)
def test_the_bytes_that_a_reader_waits_for_are_those_that_it_may_have(nodes: Pair, side: str) -> None:
    with _a_topic(nodes, side, "bytes") as (writer, reads, pool):
        writer.plain()
        writer.begin(bytes(100))
        poll: Future[int] = pool.submit(_poll, reads, "bytes", READ_COMMITTED, min_bytes=200)
        for _ in range(PLAIN):
            writer.plain()
        assert not poll.done()
        assert _poll_beside(nodes, side, "bytes") == 2 + PLAIN
        writer.end()
        assert poll.result() == 2 + PLAIN + 1


def _poll_beside(nodes: Pair, side: str, topic: str) -> int:
    with Asker(getattr(nodes, side)) as reads:
        return _poll(reads, topic, READ_UNCOMMITTED, min_bytes=200)


@pytest.mark.parametrize("side", SIDES)
def test_a_fetch_does_not_wait_for_more_than_its_answer_may_hold(nodes: Pair, side: str) -> None:
    """Apache cuts the third batch off in the middle; we send whole batches. Neither waits for more bytes."""
    with _a_topic(nodes, side, "share") as (writer, reads, pool):
        for _ in range(3):
            writer.plain()
        poll: Future[int] = pool.submit(_poll, reads, "share", READ_UNCOMMITTED, min_bytes=200, of_each=200)
        assert poll.result(timeout=WAIT_MS / 2_000) == 2

"""What a waiting fetch is answered for: what its reader may have, up to the last stable offset or high watermark."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tanist.replica.reads import READ_COMMITTED, READ_UNCOMMITTED
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.fetch_response import FetchResponse
from tests.broker.cluster_rig import Cluster
from tests.broker.transactions_rig import TransactionalProducer

WAIT_MS = 600_000
"""Longer than a test: what is answered is answered by an event."""
ONE_NODE = {
    "min.insync.replicas": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
SESSION = 8
"""So many partitions, and a consumer gets a session."""


class Reader:
    """A consumer on a connection of its own that asks again as soon as it is answered, from where it was."""

    def __init__(
        self, cluster: Cluster, isolation_level: int, *, at: int, partitions: int = 1, min_bytes: int = 1, to: int = 1
    ) -> None:
        self.sizes: list[int] = []
        """Bytes of records in each answer, of the partition 0."""
        self._offset, self._partitions = at, partitions
        self._isolation_level, self._min_bytes = isolation_level, min_bytes
        self._session_id = 0
        client = cluster.new_client(f"reader {isolation_level} {min_bytes} {partitions} {to}")
        self._send = partial(cluster.send, version=12, to=to, timeout_ms=2 * WAIT_MS, client=client)
        self._ask(0)
        cluster.run(100)

    def _ask(self, session_epoch: int) -> None:
        named = range(self._partitions if not session_epoch else 0)
        partitions = tuple(
            FetchPartition(
                partition=index,
                current_leader_epoch=-1,
                fetch_offset=0 if index else self._offset,
                last_fetched_epoch=-1,
                partition_max_bytes=1 << 20,
            )
            for index in named
        )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=0 if self._begins_session(session_epoch) else WAIT_MS,
            min_bytes=self._min_bytes,
            max_bytes=1 << 20,
            isolation_level=self._isolation_level,
            session_id=self._session_id,
            session_epoch=session_epoch,
            topics=(FetchTopic(topic="t", partitions=partitions),) if partitions else (),
        )
        self._send(request, heard=partial(self._handle_response, session_epoch))

    def _begins_session(self, session_epoch: int) -> bool:
        return self._partitions >= SESSION and not session_epoch

    def _handle_response(self, session_epoch: int, response: FetchResponse) -> None:
        parts: dict[int, Any] = {
            each.partition_index: each for topic in response.responses for each in topic.partitions
        }
        assert all(not each.error_code for each in parts.values())
        size = len(parts[0].records or b"") if 0 in parts else 0
        if not self._begins_session(session_epoch):
            self.sizes.append(size)
        self._session_id = response.session_id
        if not size:
            self._ask(session_epoch + 1 if response.session_id else 0)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(nodes=1, config=ONE_NODE)
    cluster.create_topic("t", factor=1, partitions=SESSION)
    return cluster


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("partitions", [1, SESSION])
def test_records_behind_an_open_transaction_answer_nobody_who_reads_what_is_committed(
    cluster: Cluster, partitions: int, *, committed: bool
) -> None:
    producer = TransactionalProducer(cluster)
    producer.begin()
    offset = producer.write("t", [b"in the transaction"])
    reader = Reader(cluster, READ_COMMITTED, at=offset, partitions=partitions)
    records = 50
    for number in range(records):
        assert cluster.produce("t", [b"%d" % number]).error_code == 0
    cluster.run(100)
    assert reader.sizes == []
    producer.end(committed=committed)
    cluster.run(100)
    (size,) = reader.sizes  # and its end answers them, with all that it held back
    assert size > records * 60


def test_records_behind_an_open_transaction_answer_those_who_read_all(cluster: Cluster) -> None:
    producer = TransactionalProducer(cluster)
    producer.begin()
    offset = producer.write("t", [b"in the transaction"])
    reader = Reader(cluster, READ_UNCOMMITTED, at=offset + 1)
    assert reader.sizes == []
    assert cluster.produce("t", [b"plain"]).error_code == 0
    cluster.run(100)
    (size,) = reader.sizes
    assert size > 60


def test_the_bytes_that_a_reader_waits_for_are_those_that_it_may_have(cluster: Cluster) -> None:
    """Below the last stable offset there is one batch, of fewer bytes than are asked for."""
    producer = TransactionalProducer(cluster)
    producer.begin()
    reader = Reader(cluster, READ_COMMITTED, at=0, min_bytes=200)
    everything = Reader(cluster, READ_UNCOMMITTED, at=0, min_bytes=200)
    assert cluster.produce("t", [b"plain"]).error_code == 0
    producer.write("t", [bytes(100)])
    cluster.run(100)
    assert len(everything.sizes) == 1
    assert everything.sizes[0] >= 200
    assert cluster.produce("t", [b"plain"]).error_code == 0
    cluster.run(100)
    assert reader.sizes == []
    producer.end()
    cluster.run(100)
    (size,) = reader.sizes
    assert size > everything.sizes[0]


def test_a_follower_that_serves_a_reader_counts_to_its_own_last_stable_offset() -> None:
    cluster = Cluster(config={"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"})
    cluster.create_topic("t")
    producer = TransactionalProducer(cluster)
    producer.begin()
    offset = producer.write("t", [b"in the transaction"])
    cluster.run(100)  # until followers know the high watermark
    follower = next(node_id for node_id in (1, 2, 3) if node_id != cluster.leader("t"))
    reader = Reader(cluster, READ_COMMITTED, at=offset, to=follower)
    for number in range(10):
        assert cluster.produce("t", [b"%d" % number]).error_code == 0
        cluster.run(20)
    assert reader.sizes == []
    producer.end()
    cluster.run(100)
    (size,) = reader.sizes
    assert size > 10 * 60

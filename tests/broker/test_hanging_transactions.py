"""An unclean election takes a marker away (KAFKA-20716): the last stable offset goes on, and it is reported."""

from __future__ import annotations

import pytest

from tanist.broker.metrics.scrape import scrape
from tanist.client.admin import TOPIC_RESOURCE, ElectionType, elect_request
from tanist.events.coordination import HangingMarkerRefused, HangingTransactionEnded
from tanist.log.producers import ProducerEntry
from tanist.wire.batch import decode_batch, iterate_headers
from tanist.wire.control import ControlKind, control_kind
from tanist.wire.errors import ErrorCode
from tests.broker.cluster_rig import Cluster
from tests.broker.transactions_rig import TransactionalProducer

DESIGNATION = 4
LOOK_MS = 1_000
SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "5",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(LOOK_MS),
    "min.insync.replicas": "1",
}


def cluster_of_five(**settings: str) -> Cluster:
    """A topic with two partitions: one on the nodes 1 and 2, one on the others."""
    cluster = Cluster(nodes=5, config={**SETTINGS, **settings})
    cluster.create_topic("t", assignment=[[1, 2], [3, 4]], config={"unclean.recovery.strategy": "None"})
    cluster.until(lambda: cluster.leader("t", 1) is not None)
    return cluster


def leave_out_2(cluster: Cluster) -> None:
    """From here on node 1 alone has what is written."""
    cluster.host(2).kill()
    cluster.until(lambda: cluster.partition("t").isr == (1,))


def elect_2(cluster: Cluster) -> None:
    """Node 1 loses its power, and an operator elects node 2."""
    hosts = cluster.world.hosts
    hosts[1].lose_power()
    cluster.until(lambda: not cluster.partition("t").has_leader)
    hosts[1].start()
    hosts[2].start()
    cluster.until(cluster.world.ready)
    cluster.until(lambda: not cluster.partition("t").isr and not cluster.partition("t").elr)
    request = elect_request(ElectionType.DESIGNATION, "t", desired=(2,))
    answer = cluster.ask(request, 3, to=5)
    assert answer.replica_election_results[0].partition_result[0].error_code == 0, answer
    cluster.until(lambda: cluster.leader("t") == 2)


def entry(cluster: Cluster, producer: TransactionalProducer, partition: int = 0) -> ProducerEntry:
    hosted = cluster.hosted("t", partition)[cluster.leader("t", partition) or 0]
    return hosted.log.producers.entries[producer.producer[0]]


def is_stable(cluster: Cluster) -> bool:
    hosted = cluster.hosted("t")[2]
    assert hosted.leader is not None
    high_watermark = hosted.leader.high_watermark
    return hosted.log.producers.last_stable_offset(high_watermark) == high_watermark == hosted.log.log_end_offset


def markers(cluster: Cluster) -> list[int]:
    log = cluster.hosted("t")[2].log
    piece = log.read(0, 1 << 20, log.log_end_offset)
    assert piece is not None
    view = memoryview(piece.chunk.file.read(piece.chunk.offset, piece.chunk.length))
    return [
        control_kind(decode_batch(view[at : at + header.size_bytes])[0])
        for at, header in iterate_headers(view)
        if header.is_control
    ]


def ended(cluster: Cluster) -> list[HangingTransactionEnded]:
    return cluster.seen(HangingTransactionEnded)


def lose_a_marker(cluster: Cluster, producer: TransactionalProducer, *, committed: bool) -> None:
    producer.begin()
    producer.write("t", [b"one", b"two"])
    leave_out_2(cluster)
    producer.end(committed=committed)
    assert entry(cluster, producer).transaction_first_offset < 0


@pytest.mark.parametrize("committed", [True, False])
def test_the_last_outcome_is_known_of_clients_that_bump_their_epoch(committed: bool) -> None:
    cluster = cluster_of_five()
    producer = TransactionalProducer(cluster)
    lose_a_marker(cluster, producer, committed=committed)
    elect_2(cluster)
    assert entry(cluster, producer).transaction_first_offset == 0
    cluster.until(lambda: is_stable(cluster))
    assert markers(cluster) == [ControlKind.COMMIT if committed else ControlKind.ABORT]
    reason = f"its coordinator had {'committed' if committed else 'aborted'} it"
    assert ended(cluster) == [HangingTransactionEnded("t-0", producer.producer[0], 0, committed, reason, 0, 1)]
    assert "tanist_hanging_transactions_total 1" in scrape(cluster.node(2).components).render()


def test_an_old_client_does_not_say_which_transaction_was_committed() -> None:
    cluster = cluster_of_five()
    producer = TransactionalProducer(cluster, bumps=False)
    lose_a_marker(cluster, producer, committed=True)
    elect_2(cluster)
    cluster.until(lambda: is_stable(cluster))
    assert markers(cluster) == [ControlKind.ABORT]
    assert (ended(cluster)[0].reason, ended(cluster)[0].committed) == (
        "whether it had been committed is not known",
        False,
    )


def test_a_later_transaction_does_not_end_it() -> None:
    cluster = cluster_of_five()
    producer = TransactionalProducer(cluster)
    lose_a_marker(cluster, producer, committed=False)
    producer.write("t", [b"elsewhere"], partition=1)
    elect_2(cluster)
    assert producer.write("t", [b"three"]) == 3  # after the marker of the first
    producer.end(committed=True)
    assert markers(cluster) == [ControlKind.ABORT, ControlKind.COMMIT]
    cluster.until(lambda: is_stable(cluster))
    assert len(ended(cluster)) == 1


def test_the_marker_of_a_later_one_does_not_end_it() -> None:
    cluster = cluster_of_five(**{"transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000"})
    producer = TransactionalProducer(cluster)
    lose_a_marker(cluster, producer, committed=True)
    producer.write("t", [b"elsewhere"], partition=1)
    producer.end(committed=True)
    elect_2(cluster)
    assert producer.write("t", [b"three"], patient=False) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert not ended(cluster)
    producer.end(committed=False)
    assert markers(cluster) == [ControlKind.ABORT, ControlKind.ABORT]
    assert ended(cluster)[0].producer_epoch == 0
    cluster.until(lambda: is_stable(cluster))


def test_a_transaction_that_goes_on_is_left_alone() -> None:
    cluster = cluster_of_five()
    producer = TransactionalProducer(cluster)
    producer.begin()
    producer.write("t", [b"one"])
    leave_out_2(cluster)
    elect_2(cluster)
    cluster.run(10 * LOOK_MS)
    assert entry(cluster, producer).transaction_first_offset == 0
    assert not ended(cluster)
    producer.end(committed=True)
    cluster.until(lambda: is_stable(cluster))
    assert markers(cluster) == [ControlKind.COMMIT]


def test_nothing_is_ended_while_a_coordinator_is_silent() -> None:
    cluster = cluster_of_five()
    producer = TransactionalProducer(cluster)
    lose_a_marker(cluster, producer, committed=True)
    elect_2(cluster)
    silent = next(
        node_id
        for node_id in (cluster.leader("__transaction_state", index) for index in range(3))
        if node_id not in (None, 2)
    )
    cluster.host(silent or 0).freeze()
    cluster.run(3 * LOOK_MS)
    assert not ended(cluster)
    assert not is_stable(cluster)
    cluster.host(silent or 0).thaw()
    cluster.until(lambda: is_stable(cluster), within_ms=60_000)
    assert markers(cluster) == [ControlKind.COMMIT]


def test_a_late_transaction_is_counted_and_looked_up() -> None:
    cluster = Cluster(
        config={
            **SETTINGS,
            "transaction.max.timeout.ms": "60000",
            "log.retention.check.interval.ms": "5000",
            "transaction.state.log.replication.factor": "3",
        }
    )
    cluster.create_topic("t")
    producer = TransactionalProducer(cluster)
    producer.begin()
    producer.write("t", [b"one"])
    hosted = cluster.hosted("t")[cluster.leader("t") or 0]
    # As if its coordinator had ended it before KIP-890: the transaction is gone there, and open here.
    for node in cluster.world.nodes():
        coordinator = node.components.transactions.loaded
        for partition in coordinator.partitions() if coordinator is not None else ():
            partition.shard.transactions.pop("tx", None)
    late = "kafka_server_replicamanager_partitionswithlatetransactionscount"
    parts = cluster.node(cluster.leader("t") or 0).components
    cluster.run(300_000)
    assert f"{late} 0" in scrape(parts).render()
    assert not ended(cluster)
    cluster.run(59_000)
    cluster.until(lambda: f"{late} 1" in scrape(parts).render())
    cluster.until(lambda: not hosted.log.producers.open_transactions)
    assert ended(cluster)[0].reason == "whether it had been committed is not known"
    assert f"{late} 0" in scrape(parts).render()


def test_a_marker_that_is_refused_has_ended_nothing() -> None:
    cluster = cluster_of_five()
    producer = TransactionalProducer(cluster)
    lose_a_marker(cluster, producer, committed=True)
    elect_2(cluster)
    cluster.host(1).kill()
    cluster.configure(TOPIC_RESOURCE, "t", {"min.insync.replicas": "2"})
    cluster.until(lambda: bool(cluster.seen(HangingMarkerRefused)))
    assert cluster.seen(HangingMarkerRefused)[0] == HangingMarkerRefused("t-0", ErrorCode.NOT_ENOUGH_REPLICAS)
    cluster.run(5 * LOOK_MS)
    assert ended(cluster) == []
    assert "tanist_hanging_transactions_total 0" in scrape(cluster.node(2).components).render()
    cluster.configure(TOPIC_RESOURCE, "t", {"min.insync.replicas": "1"})
    cluster.until(lambda: is_stable(cluster))
    assert len(ended(cluster)) == 1

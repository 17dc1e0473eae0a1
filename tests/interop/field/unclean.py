"""KAFKA-20716 on three nodes of Apache Kafka: an unclean election takes a transaction's marker away.

Broker 3 is away when the transaction of the partition's two replicas is committed, and is elected when 2 has gone.
"""

from __future__ import annotations

from pathlib import Path

from tanist.client.admin import create_topics_request, new_topic
from tanist.client.errors import Meaning
from tanist.client.requests import Ask, Coordinator
from tanist.client.transactions import Transactions
from tanist.runtime.client.client import Client
from tanist.runtime.client.coordinators import coordinator_of
from tanist.runtime.client.transactions import describe_producers, describe_transaction
from tanist.wire.messages.create_topics_response import CreateTopicsResponse
from tests.interop.apache import ApacheCluster
from tests.interop.cluster import metadata
from tests.interop.field.node import record
from tests.interop.field.transactional import ANSWERS
from tests.interop.waiting import wait_for

TOPIC, ID = "field", "field"
PROPERTIES = {"transaction.state.log.num.partitions": "1", "broker.session.timeout.ms": "6000"}


def an_unclean_election_leaves_a_transaction_open(folder: Path) -> bool:
    cluster = ApacheCluster(folder, properties=PROPERTIES, heap="256m")
    cluster.start()
    try:
        with Client([cluster.address(node_id) for node_id in cluster.node_ids]) as client:
            _lose_a_marker(cluster, client)
            wait_for(lambda: _leader(cluster) == 3, "broker 3 is elected")
            assert describe_transaction(client, ID).state == "CompleteCommit"
            (producer,) = describe_producers(client, TOPIC, 0)
            return producer.start_offset >= 0
    finally:
        cluster.stop()


def _lose_a_marker(cluster: ApacheCluster, client: Client) -> None:
    unclean = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    request = create_topics_request(new_topic(TOPIC, assignment=[[2, 3]], configs=unclean))
    assert client.ask(request, CreateTopicsResponse).topics[0].error_code == 0
    transactions = Transactions(ID, timeout_ms=60_000, adds_itself=True)
    _carry_out(client, transactions, transactions.initialize())
    _carry_out(client, transactions, transactions.batch((TOPIC, 0), [record(b"value")], timeout_ms=5_000))
    cluster.kill_node(3)
    wait_for(lambda: _isr(cluster, asked=1) == (2,), "broker 3 has left the ISR")
    _carry_out(client, transactions, transactions.end(committed=True))
    wait_for(lambda: describe_transaction(client, ID).state == "CompleteCommit", "the marker is written")
    cluster.kill_node(2)
    cluster.start_node(3)


def _carry_out(client: Client, transactions: Transactions, asked: Ask) -> None:
    def succeeded() -> bool:
        to = asked.to
        if isinstance(to, Coordinator):
            node_id = client.persist(lambda: coordinator_of(client, to.kind, to.key))
        else:
            node_id = client.persist(lambda: client.leader_of(to.topic, to.partition))
        answer = client.ask(
            asked.request, ANSWERS[asked.request.API_KEY], node_id=node_id, max_version=asked.version_max
        )
        meaning = transactions.handle_response(answer)
        assert meaning is Meaning.DONE or meaning.is_retriable, answer
        return meaning is Meaning.DONE

    wait_for(succeeded, f"{type(asked.request).__name__} succeeds")


def _isr(cluster: ApacheCluster, *, asked: int) -> tuple[int, ...]:
    return metadata(cluster, asked, (TOPIC,)).topics[TOPIC][0].isr


def _leader(cluster: ApacheCluster) -> int:
    return metadata(cluster, 1, (TOPIC,)).topics[TOPIC][0].leader

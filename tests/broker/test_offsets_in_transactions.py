"""Offsets of a group within a transaction, on a cluster that has had no group yet."""

from __future__ import annotations

from tanist.wire.internal_topics import OFFSETS_TOPIC
from tests.broker.cluster_rig import Cluster
from tests.broker.transactions_rig import TransactionalProducer


def test_the_topic_of_offsets_is_made_by_the_first_transaction_that_needs_it() -> None:
    """kafka-python asks for the group's coordinator, which makes the topic as well, only after AddOffsetsToTxn."""
    cluster = Cluster(config={"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"})
    cluster.create_topic("t")
    producer = TransactionalProducer(cluster, bumps=False)
    producer.begin()
    producer.write("t", [b"value"])
    assert cluster.leader(OFFSETS_TOPIC) is None
    producer.add_offsets("group")
    assert cluster.leader(OFFSETS_TOPIC) is not None
    producer.end()

"""Offsets of a group within a transaction, on a cluster that has had no group yet."""

from __future__ import annotations

from uuid import UUID

from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC
from tests.broker.cluster_rig import Cluster
from tests.broker.groups_rig import Client
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


def test_a_topic_goes_by_its_id() -> None:
    """KIP-1319. What has no topic is refused by itself, and the rest is committed."""
    cluster = Cluster(config={"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"})
    cluster.create_topic("t")
    producer = TransactionalProducer(cluster)
    producer.begin()
    producer.write("t", [b"value"])
    known = next(each for each in cluster.node(1).components.metadata.image.topics.values() if each.name == "t")
    ids = {"t": known.topic_id, "gone": UUID(int=9)}
    errors = producer.commit_offsets("group", {("t", 0): 1, ("gone", 0): 1}, ids=ids)
    assert errors == {("t", 0): 0, ("gone", 0): ErrorCode.UNKNOWN_TOPIC_ID}
    assert producer.commit_offsets("group", {("gone", 0): 1}, ids=ids) == {("gone", 0): ErrorCode.UNKNOWN_TOPIC_ID}
    producer.end()
    assert Client(cluster, "group").committed() == 1

"""A transactional producer of an old client, by single requests: begin, add a partition, write."""

from __future__ import annotations

from tanist.runtime.client.client import Client
from tanist.runtime.client.transactional import TransactionalProducer
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tanist.wire.messages.produce_response import ProduceResponse

FEW_TRANSACTIONS = [
    "--config",
    "transaction.state.log.num.partitions=1",
    "--config",
    "transaction.partition.verification.enable=false",
]
"""As brokers were before KIP-890: a transaction can hang."""


def begin(client: Client, transactional_id: str) -> tuple[int, int]:
    producer = TransactionalProducer(client, transactional_id)
    producer.initialize()
    return producer.producer_id, producer.producer_epoch


def write(
    client: Client, transactional_id: str, producer: tuple[int, int], partition: int, topic: str = "orders"
) -> int:
    """Gives the offset."""
    records = encode_batch(
        [NewRecord(0, None, b"value")],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
        transactional=True,
    )
    data = PartitionProduceData(index=partition, records=bytes(records))
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
    )
    answer = client.ask(request, ProduceResponse, node_id=client.leader_of(topic, partition), max_version=9)
    written = answer.responses[0].partition_responses[0]
    assert written.error_code == 0
    return written.base_offset


def add(
    client: Client, transactional_id: str, producer: tuple[int, int], partition: int, topic: str = "orders"
) -> None:
    begun = TransactionalProducer(client, transactional_id)
    begun.producer_id, begun.producer_epoch = producer
    begun.add_partitions([(topic, partition)])

"""A transactional producer of an old client, by single requests: begin, add a partition, write."""

from __future__ import annotations

from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.coordinators import CoordinatorKind, coordinator_of
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tanist.wire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
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
    def attempt() -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        node_id = coordinator_of(client, CoordinatorKind.TRANSACTION, transactional_id)
        answer = client.ask(request, InitProducerIdResponse, node_id=node_id, max_version=4)
        if answer.error_code:
            raise KafkaError(answer.error_code)
        return answer.producer_id, answer.producer_epoch

    return client.persist(attempt)


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
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic, partitions=(partition,)),),
    )
    node_id = coordinator_of(client, CoordinatorKind.TRANSACTION, transactional_id)
    answer = client.ask(request, AddPartitionsToTxnResponse, node_id=node_id, max_version=3)
    assert answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0

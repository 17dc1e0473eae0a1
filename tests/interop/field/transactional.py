"""Bugs of transactions and of their producers, played to Apache Kafka's node request by request (`shows`)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from tanist.client.admin import create_topics_request, new_topic
from tanist.client.errors import Meaning, error_in
from tanist.client.requests import Ask
from tanist.client.sequences import new_producer_id
from tanist.client.transactions import Transactions
from tanist.coordinator.transactions.state import MAX_EPOCH
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from tanist.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tanist.wire.messages.delete_records_response import DeleteRecordsResponse
from tanist.wire.messages.end_txn_response import EndTxnResponse
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.produce_response import ProduceResponse
from tanist.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tanist.wire.messages.write_txn_markers_response import WriteTxnMarkersResponse
from tanist.wire.schema import Response
from tests.interop import apache
from tests.interop.field.node import REAL, FieldNode, record
from tests.interop.pair import Asker
from tests.interop.waiting import wait_for

JUDGE = Path(__file__).with_name("TransactionLogJudge.java")
ROUNDS = 300
BUMPS = 2
ANSWERS: Mapping[int, type[Response]] = {
    response.API_KEY: response
    for response in (AddPartitionsToTxnResponse, EndTxnResponse, InitProducerIdResponse, ProduceResponse)
}
_ids = count(1)


class Producer:
    """A transactional id. `bumps`: a client of `transaction.version` 2; else one from before."""

    def __init__(self, node: FieldNode, *, bumps: bool = False) -> None:
        self._node = node
        self.name = f"field-{next(_ids)}"
        self.transactions = Transactions(self.name, timeout_ms=60_000, adds_itself=bumps)
        self.carry_out(self.transactions.initialize())

    def once(self, asked: Ask) -> Any:
        return self._node.ask(asked.request, asked.newest, ANSWERS[asked.request.API_KEY])

    def carry_out(self, asked: Ask | None) -> None:
        """Again, as long as the answer says so."""
        if asked is None:
            return

        def succeeded() -> bool:
            answer = self.once(asked)
            meaning = self.transactions.handle_response(answer)
            assert meaning is Meaning.DONE or meaning.is_retriable, answer
            return meaning is Meaning.DONE

        wait_for(succeeded, f"{type(asked.request).__name__} succeeds")

    def write(self, topic: str, partition: int = 0) -> None:
        self.carry_out(self.transactions.add_partitions([(topic, partition)]))
        self.carry_out(self.batch(topic, partition))
        self.transactions.written((topic, partition), 1)

    def batch(self, topic: str, partition: int = 0) -> Ask:
        return self.transactions.batch((topic, partition), [record(b"value")], timeout_ms=5_000)

    def end(self) -> None:
        self.carry_out(self.transactions.end(committed=True))


def takes_a_late_end(node: FieldNode) -> bool:
    topic = node.topic(REAL)
    producer = Producer(node)
    producer.write(topic)
    late = producer.transactions.end(committed=False)
    producer.end()
    producer.write(topic)
    return error_in(producer.once(late)) == 0


def refuses_a_repeated_marker(node: FieldNode) -> bool:
    topic = node.topic(REAL)
    producer = Producer(node, bumps=True)
    producer.write(topic)
    producer_id, producer_epoch = producer.transactions.producer
    producer.end()
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch + 1,
        transaction_result=True,
        transaction_version=BUMPS,
        topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=(0,)),),
    )

    def error() -> int:
        answer = node.ask(WriteTxnMarkersRequest(markers=(marker,)), 2, WriteTxnMarkersResponse)
        return answer.markers[0].topics[0].partitions[0].error_code

    return ErrorCode.INVALID_PRODUCER_EPOCH in (error(), error())


def _new_producer_id(node: FieldNode) -> int | None:
    """None if the broker has none yet."""
    answer = node.ask(new_producer_id(), 4, InitProducerIdResponse)
    assert answer.error_code in (0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), answer
    return None if answer.error_code else answer.producer_id


def forgets_producers_with_their_records(node: FieldNode) -> bool:
    topic = node.topic(REAL)
    producer = {"producer_id": wait_for(lambda: _new_producer_id(node), "a producer id"), "producer_epoch": 0}
    first = node.produce(topic, [b"value"] * 3, base_sequence=0, **producer)
    part = DeleteRecordsPartition(partition_index=0, offset=3)
    request = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(part,)),), timeout_ms=5_000)
    assert node.ask(request, 2, DeleteRecordsResponse).topics[0].partitions[0].error_code == 0
    again = node.produce(topic, [b"value"] * 3, base_sequence=0, **producer)
    following = node.produce(topic, [b"value"], base_sequence=3, **producer)
    assert (first.error_code, first.base_offset) == (0, 0), first
    return (again.error_code, again.base_offset, following.error_code, following.base_offset) != (0, 0, 0, 3)


def answers_that_replicas_lack(node: FieldNode) -> bool:
    """Two requests of a producer at once, for two partitions that are in its transaction. The only replica is there."""
    topic = node.topic(REAL, partitions=2)
    producer = Producer(node)
    errors: set[int] = set()
    with ExitStack() as stack:
        askers = [stack.enter_context(Asker(node.address)) for _ in range(2)]
        pool = stack.enter_context(ThreadPoolExecutor(2))
        for _ in range(ROUNDS):
            producer.carry_out(producer.transactions.add_partitions([(topic, 0), (topic, 1)]))
            asked = [producer.batch(topic, partition) for partition in (0, 1)]
            answers = [
                pool.submit(asker.ask, each.request, each.newest, ProduceResponse)
                for asker, each in zip(askers, asked, strict=True)
            ]
            for partition, answer in enumerate(answers):
                error = error_in(answer.result())
                errors.add(error)
                if not error:
                    producer.transactions.written((topic, partition), 1)
            producer.end()
            if ErrorCode.NOT_ENOUGH_REPLICAS in errors:
                return True
    assert errors == {0}, errors
    return False


def resigns_over_a_large_request(node: FieldNode) -> bool:
    throttled = {f"{side}.replication.throttled.replicas": ",".join(["0:1"] * 8_000) for side in ("leader", "follower")}
    topics = [new_topic(f"large-{number}", assignment=[[REAL]], configs=throttled) for number in range(140)]
    before = node.side.last_epoch
    answer = node.side.ask(create_topics_request(*topics))
    node.topic(REAL)
    assert all(topic.error_code for topic in answer.topics), "it was refused"
    return node.side.last_epoch != before


def writes_no_other_producer_ids(_: FieldNode) -> bool:
    return _written()[:2] != ["5", "9"]


def writes_no_last_epoch(_: FieldNode) -> bool:
    return _written()[2] != str(MAX_EPOCH - 1)


def _written() -> list[str]:
    """What `JUDGE` reads back."""
    command = ["java", *apache.TOOL_FLAGS, "-cp", f"{apache.jars()}/*", str(JUDGE), "5", "9"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split()

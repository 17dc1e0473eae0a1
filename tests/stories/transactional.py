"""The transactional clients of stories: one as before KIP-890, one with its epoch bumps. A request can be held back.

    old-client begin | write TOPIC PARTITION VALUE... | commit | abort | deliver
    new-client ...

With `--held` a request of `write` or `commit` stays in the network until `deliver`; the client gives up waiting for it,
as after a timeout. Each verb prints what the cluster answered, and ends when the transaction has its markers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.coordinators import CoordinatorKind, coordinator_of
from tanist.runtime.client.transactional import PRODUCE_VERSION_MAX, TransactionalProducer
from tanist.runtime.client.transactions import describe_transaction
from tanist.text import counted
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.end_txn_request import EndTxnRequest
from tanist.wire.messages.end_txn_response import EndTxnResponse
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tanist.wire.messages.produce_response import ProduceResponse
from tests.interop.waiting import wait_for

_PRODUCE_VERSION: Final = {False: PRODUCE_VERSION_MAX, True: 12}
_END_VERSION: Final = {False: 4, True: 5}
HELD: Final = "--held"


class TransactionalClient:
    """One client with one transactional id."""

    def __init__(self, client: Client, name: str, *, bumps: bool) -> None:
        """`bumps`: by the rules of `transaction.version` 2 (KIP-890)."""
        self._client = client
        self._bumps = bumps
        self._producer = TransactionalProducer(client, name)
        self._sequences: dict[tuple[str, int], int] = {}
        self._held: list[Callable[[], str]] = []

    def run(self, words: Sequence[str]) -> str:
        """Carry out one verb; what it prints."""
        held = HELD in words
        verb, *rest = (word for word in words if word != HELD)
        match verb:
            case "begin":
                if self._producer.producer_epoch < 0:
                    self._producer.initialize()
                return f"a transaction begins; the producer's epoch is {self._producer.producer_epoch}"
            case "write":
                return self._send(self._write(rest[0], int(rest[1]), rest[2:]), held=held)
            case "commit" | "abort":
                return self._send(self._end(committed=verb == "commit"), held=held)
            case "deliver":
                (request,) = self._held
                self._held = []
                return request()
        raise ValueError(f"{verb} is no verb of a client")

    def _send(self, request: Callable[[], str], *, held: bool) -> str:
        if not held:
            return request()
        self._held.append(request)
        return "the network holds the request; the client has no answer"

    def _write(self, topic: str, partition: int, values: Sequence[str]) -> Callable[[], str]:
        producer = self._producer
        place = topic, partition
        if not self._bumps:
            producer.add_partitions([place])
        now_ms = time.time_ns() // 1_000_000
        batch = encode_batch(
            [NewRecord(now_ms, value=value.encode()) for value in values],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=self._sequences.get(place, 0),
            transactional=True,
        )
        self._sequences[place] = self._sequences.get(place, 0) + len(values)
        data = PartitionProduceData(index=partition, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=producer.transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
        )

        def attempt() -> int:
            leader = self._client.leader_of(topic, partition)
            version = _PRODUCE_VERSION[self._bumps]
            answer = self._client.ask(request, ProduceResponse, node_id=leader, max_version=version)
            return _checked(answer.responses[0].partition_responses[0].error_code)

        return lambda: self._outcome(attempt, f"{counted(len(values), 'record')} written to {topic}-{partition}")

    def _end(self, *, committed: bool) -> Callable[[], str]:
        producer = self._producer
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=committed,
        )

        def attempt() -> int:
            node_id = coordinator_of(self._client, CoordinatorKind.TRANSACTION, producer.transactional_id)
            version = _END_VERSION[self._bumps]
            answer = self._client.ask(request, EndTxnResponse, node_id=node_id, max_version=version)
            _checked(answer.error_code)
            if self._bumps and (answer.producer_id, answer.producer_epoch) != (
                producer.producer_id,
                producer.producer_epoch,
            ):
                producer.producer_id, producer.producer_epoch = answer.producer_id, answer.producer_epoch
                self._sequences.clear()
            name = producer.transactional_id
            wait_for(lambda: describe_transaction(self._client, name).state.startswith("Complete"), "all markers")
            return 0

        return lambda: self._outcome(attempt, "committed" if committed else "aborted")

    def _outcome(self, attempt: Callable[[], int], done: str) -> str:
        try:
            self._client.persist(attempt)
        except KafkaError as error:
            return f"refused: {error.name}"
        return done


def _checked(code: int) -> int:
    if code and code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        raise KafkaError(code)
    return 0

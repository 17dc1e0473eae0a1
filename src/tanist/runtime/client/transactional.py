"""The transactions of one transactional id, through `Client`: what `tanist.client.transactions` decides, carried out.

Owns the driving alone. Errors that may pass are tried again until `Client.timeout_s` is over. The producer is one of
before KIP-890, which every Kafka knows: use one `initialize` for each transaction, for its new epoch is what tells a
late request from one of the next transaction.

`KafkaError` with PRODUCER_FENCED or INVALID_PRODUCER_EPOCH: another producer has this transactional id now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tanist.client.errors import Meaning, refusal_in
from tanist.client.offsets import offsets_in
from tanist.client.requests import Ask
from tanist.client.topic_partition import TopicPartition
from tanist.client.transactions import Transactions
from tanist.runtime.client.asking import attempt
from tanist.runtime.client.client import Client, KafkaError
from tanist.wire.batch import NewRecord
from tanist.wire.errors import ErrorCode
from tanist.wire.schema import Response


class TransactionalProducer:
    """One transactional id. A transaction is `initialize`, `add_partitions`, the writes, `commit_offsets`, `end`."""

    def __init__(self, client: Client, transactional_id: str, *, timeout_ms: int = 60_000) -> None:
        """`timeout_ms`: after so long the coordinator aborts a transaction that is not ended."""
        self.transactions = Transactions(transactional_id, timeout_ms=timeout_ms)
        self._client = client

    def initialize(self) -> None:
        """Get an epoch: earlier producers are fenced, and the transaction that they had open is ended."""
        self._carry_out(self.transactions.initialize())

    def add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions to which the transaction will write."""
        self._carry_out(self.transactions.add_partitions(partitions))

    def write(
        self,
        topic: str,
        partition: int,
        records: Sequence[NewRecord],
        *,
        request_timeout_ms: int = 10_000,
        answer_within_s: float | None = None,
    ) -> int:
        """Append one batch to the open transaction; gives the offset of its first record.

        -1: it was in the log already. The leader may wait for the other replicas for `request_timeout_ms`, each time
        that it is asked; `answer_within_s` is for each answer.
        """
        where = topic, partition
        asked = self.transactions.batch(where, records, timeout_ms=request_timeout_ms)
        answer: Any = self._carry_out(asked, answer_within_s)
        self.transactions.written(where, len(records))
        found = answer.responses[0].partition_responses[0]
        return -1 if found.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER else int(found.base_offset)

    def committed_offsets(self, group: str) -> dict[TopicPartition, int]:
        """What the group has committed, once no transaction is open that may change it (KIP-447)."""
        answer = self._carry_out(self.transactions.stable_offsets(group))
        return {where: offset for where, (offset, _) in offsets_in(answer).items() if offset >= 0}

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets of a group that has no members: they count if the transaction is committed."""
        self._carry_out(self.transactions.add_offsets(group))
        self._carry_out(self.transactions.commit_offsets(group, offsets))

    def end(self, *, committed: bool) -> None:
        """Commit or abort. If this raises `Unreachable`, the outcome is known after the next `initialize`."""
        self._carry_out(self.transactions.end(committed=committed))

    def _carry_out(self, asked: Ask | None, answer_within_s: float | None = None) -> Response | None:
        if asked is None:
            return None

        def once() -> Response:
            answer = attempt(self._client, asked, Response, timeout_s=answer_within_s)
            if self.transactions.handle_response(answer) is not Meaning.DONE:
                code, message = refusal_in(answer)
                name = type(asked.request).__name__.removesuffix("Request")
                raise KafkaError(code, message or f"{name} of {self.transactions.transactional_id}")
            return answer

        return self._client.persist(once)

"""DescribeTransactions (key 65), version 0: the state of transactional ids (KIP-664)."""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.broker.transactions.service import Transactions
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages.describe_transactions_request import DescribeTransactionsRequest
from tanist.wire.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


@dataclass(frozen=True, slots=True)
class DescribeTransactions:
    """The handler of DescribeTransactions."""

    transactions: Transactions

    def handle(self, request: DescribeTransactionsRequest, call: Call) -> None:
        """Answer from what is committed, once it is sure that no other broker coordinates the ids by now."""

        def answer(errors: dict[str, int]) -> None:
            states = tuple(self._describe(each, errors, call) for each in request.transactional_ids)
            call.reply(DescribeTransactionsResponse(transaction_states=states))

        self.transactions.coordinator().when_sure(
            [each for each in request.transactional_ids if each], call.later(answer)
        )

    def _describe(self, transactional_id: str, errors: dict[str, int], call: Call) -> TransactionState:
        if not call.may(rows.DESCRIBE_TRANSACTIONS_ID, transactional_id):
            return _refused(transactional_id, rows.DESCRIBE_TRANSACTIONS_ID.code)
        found = errors.get(transactional_id) or self.transactions.coordinator().find(transactional_id)
        if not transactional_id:
            return _refused(transactional_id, ErrorCode.INVALID_REQUEST)
        if isinstance(found, int):
            return _refused(transactional_id, found)
        values = found.shard.find(transactional_id)
        if values is None:
            return _refused(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        topics = indexes_by_topic(values.partitions)
        return TransactionState(
            transactional_id=transactional_id,
            transaction_state=values.state.title,
            transaction_timeout_ms=values.timeout_ms,
            transaction_start_time_ms=values.start_ms,
            producer_id=values.producer_id,
            producer_epoch=values.producer_epoch,
            topics=tuple(
                TopicData(topic=name, partitions=tuple(indexes))
                for name, indexes in topics.items()
                if call.may(rows.DESCRIBE_TRANSACTIONS_TOPIC, name)
            ),
            client_transaction_version=values.client_version,
        )


def build(components: NodeComponents) -> Handler:
    return DescribeTransactions(components.transactions).handle


def _refused(transactional_id: str, error: int) -> TransactionState:
    return TransactionState(error_code=int(error), transactional_id=transactional_id)

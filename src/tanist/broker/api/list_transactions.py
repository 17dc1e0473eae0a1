"""ListTransactions (key 66), versions 0-2: the transactional ids that this broker coordinates (KIP-664).

Filters: states and producer ids; since version 1 how long a transaction has been open (KIP-994), since version 2 a
regular expression for the whole id (KIP-1152).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.broker.transactions.service import Transactions
from tanist.coordinator.regex import InvalidRegex, full_matcher
from tanist.coordinator.transactions.state import TransactionState, TransactionValues
from tanist.ports import Clock
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.list_transactions_request import ListTransactionsRequest
from tanist.wire.messages.list_transactions_response import ListTransactionsResponse
from tanist.wire.messages.list_transactions_response import TransactionState as ListedTransaction

_BY_TITLE = {state.title: state for state in TransactionState}


@dataclass(frozen=True, slots=True)
class ListTransactions:
    """The handler of ListTransactions."""

    clock: Clock
    transactions: Transactions

    def handle(self, request: ListTransactionsRequest, call: Call) -> None:
        """Answer with the ids of all partitions that are led here."""
        partitions = list(self.transactions.coordinator().partitions())
        if not all(partition.ready for partition in partitions):
            call.reply(ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            return
        try:
            wanted = self._filter(request)
        except InvalidRegex:
            call.reply(ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION))
            return
        call.reply(
            ListTransactionsResponse(
                unknown_state_filters=tuple(each for each in request.state_filters if each not in _BY_TITLE),
                transaction_states=tuple(
                    ListedTransaction(
                        transactional_id=transactional_id,
                        producer_id=values.producer_id,
                        transaction_state=values.state.title,
                    )
                    for partition in partitions
                    for transactional_id, values in partition.shard.described()
                    if wanted(transactional_id, values) and call.may(rows.LIST_TRANSACTIONS_ID, transactional_id)
                ),
            )
        )

    def _filter(self, request: ListTransactionsRequest) -> Callable[[str, TransactionValues], bool]:
        """`InvalidRegex` if the pattern is none."""
        states = {_BY_TITLE[each] for each in request.state_filters if each in _BY_TITLE}
        pattern = request.transactional_id_pattern
        matches = full_matcher(pattern) if pattern else None
        wall_ms = self.clock.wall_ms()

        def wanted(transactional_id: str, values: TransactionValues) -> bool:
            if request.state_filters and values.state not in states:
                return False
            if request.producer_id_filters and values.producer_id not in request.producer_id_filters:
                return False
            open_ms = wall_ms - values.start_ms if values.start_ms >= 0 else -1
            if request.duration_filter >= 0 and open_ms <= request.duration_filter:
                return False
            return matches is None or matches(transactional_id)

        return wanted


def build(components: NodeComponents) -> Handler:
    return ListTransactions(components.context.clock, components.transactions).handle

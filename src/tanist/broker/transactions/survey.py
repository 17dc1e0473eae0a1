"""What the coordinators of all transactional ids know of some producers.

A partition knows transactions by their producer ids, and a coordinator is found by a transactional id. So all
coordinators are asked, by Kafka's requests. "Nobody has this producer" must be sure: each partition of
`__transaction_state` is asked for an id of its own (DescribeTransactions, which only its leader answers), its leader
lists its ids (ListTransactions), and `confirm` makes sure that no partition has moved meanwhile.

Owns the questions and the connections by which they are asked. It never takes silence for an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final

from tanist.broker.context import NodeContext
from tanist.broker.metadata.barrier import MetadataBarrier
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.channel import Channels
from tanist.coordinator.transactions.hanging import KnownTransaction
from tanist.coordinator.transactions.state import TransactionState
from tanist.ports import Timer
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import TRANSACTIONS_TOPIC, partition_of
from tanist.wire.messages.describe_transactions_request import DescribeTransactionsRequest
from tanist.wire.messages.describe_transactions_response import DescribeTransactionsResponse
from tanist.wire.messages.describe_transactions_response import TransactionState as Described
from tanist.wire.messages.list_transactions_request import ListTransactionsRequest
from tanist.wire.messages.list_transactions_response import ListTransactionsResponse

_TIMEOUT_MS: Final = 10_000
_CONFIRM_PAUSE_MS: Final = 100
_CONFIRM_MS: Final = 10_000
_MAX_FRAME_BYTES: Final = 16 << 20
_ANSWERED: Final = frozenset({ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND})
"""Errors of a broker that has the partition of the id. Others are those of a broker that has not."""
_BY_TITLE: Final = {state.title: state for state in TransactionState}

Leaders = dict[int, tuple[int, int]]
"""Leader and leader epoch of each partition of `__transaction_state`."""


@dataclass(slots=True)
class Findings:
    """The answers of all coordinators."""

    leaders: Leaders
    known: dict[int, KnownTransaction] = field(default_factory=dict)
    """By producer id. A producer that is missing has no coordinator, if that is confirmed."""
    answered_ms: int = 0


OnFindings = Callable[["Findings | None"], None]
"""Gets None if not all coordinators could be asked."""


class CoordinatorSurvey:
    """The questions, one survey at a time."""

    def __init__(self, context: NodeContext, metadata: MetadataView, barrier: Callable[[], MetadataBarrier]) -> None:
        self._context = context
        self._metadata = metadata
        self._barrier = barrier
        self._channels = Channels(
            context.clock,
            context.network,
            client_id=f"broker-{context.node_id}-transactions",
            max_frame_bytes=_MAX_FRAME_BYTES,
            login=context.logins.to_brokers,
            tls=context.config.tls.to_brokers,
        )
        self._timer: Timer | None = None

    def ask(self, producer_ids: Collection[int], then: OnFindings) -> None:
        """Ask all coordinators for these producers."""
        leaders = self._leaders()
        if not leaders or any(leader < 0 for leader, _ in leaders.values()):
            then(None)
            return
        _Survey(self, Findings(leaders), frozenset(producer_ids), then).begin()

    def confirm(self, findings: Findings, then: Callable[[bool], None]) -> None:
        """Whether the findings are of all coordinators: none has taken over a partition while they were asked."""
        deadline_ms = self._context.clock.now_ms() + _CONFIRM_MS

        def check_barrier() -> None:
            self._timer = None
            if self._barrier().up_to_date_since(findings.answered_ms):
                then(self._leaders() == findings.leaders)
            elif self._context.clock.now_ms() >= deadline_ms or self._context.stopping:
                then(False)
            else:
                now_ms = self._context.clock.now_ms()
                self._timer = self._context.clock.call_at(now_ms + _CONFIRM_PAUSE_MS, check_barrier)

        check_barrier()

    def close(self) -> None:
        """The broker is going down."""
        if self._timer is not None:
            self._timer.cancel()
        self._channels.close()

    def _leaders(self) -> Leaders:
        topic = self._metadata.image.topic(TRANSACTIONS_TOPIC)
        if topic is None:
            return {}
        return {index: (state.leader, state.leader_epoch) for index, state in topic.partitions.items()}

    def call(self, broker_id: int, request: Any, version: int, on_response: Callable[[Any], None]) -> None:
        """Ask a broker; None if no answer comes."""
        endpoint = self._metadata.inter_broker_endpoint(broker_id)
        if endpoint is None:
            on_response(None)
            return
        self._channels.to(endpoint).call(request, version, _TIMEOUT_MS, on_response)

    def now_ms(self) -> int:
        return self._context.clock.now_ms()


class _Survey:
    """One round of questions: each coordinator for its partitions, then for its ids; then for the ids themselves."""

    def __init__(
        self, survey: CoordinatorSurvey, findings: Findings, producer_ids: frozenset[int], then: OnFindings
    ) -> None:
        self._survey = survey
        self._findings = findings
        self._producer_ids = producer_ids
        self._then: OnFindings | None = then
        self._left: set[int] = set()
        self._listed: set[str] = set()

    def begin(self) -> None:
        by_leader: dict[int, list[str]] = {}
        count = len(self._findings.leaders)
        for index, (leader, _) in self._findings.leaders.items():
            by_leader.setdefault(leader, []).append(id_in(index, count))
        self._left = set(by_leader)
        for leader, ids in by_leader.items():
            self._describe(leader, ids, partial(self._has_its_partitions, leader))

    def _has_its_partitions(self, leader: int, _: Iterable[Described]) -> None:
        request = ListTransactionsRequest(producer_id_filters=tuple(sorted(self._producer_ids)))
        self._survey.call(leader, request, 0, partial(self._lists, leader))

    def _lists(self, leader: int, response: ListTransactionsResponse | None) -> None:
        if response is None or response.error_code:
            self._end(None)
            return
        self._listed.update(
            each.transactional_id for each in response.transaction_states if each.producer_id in self._producer_ids
        )
        self._left.discard(leader)
        if not self._left and self._then is not None:
            self._describe_listed()

    def _describe_listed(self) -> None:
        by_leader: dict[int, list[str]] = {}
        leaders = self._findings.leaders
        for transactional_id in sorted(self._listed):
            by_leader.setdefault(leaders[partition_of(transactional_id, len(leaders))][0], []).append(transactional_id)
        self._left = set(by_leader)
        if not by_leader:
            self._end(self._findings)
        for leader, ids in by_leader.items():
            self._describe(leader, ids, partial(self._describes, leader))

    def _describes(self, leader: int, described: Iterable[Described]) -> None:
        for each in described:
            state = _BY_TITLE.get(each.transaction_state)
            if not each.error_code and state is not None:
                self._findings.known[each.producer_id] = KnownTransaction(
                    each.transactional_id,
                    state,
                    each.producer_epoch,
                    each.client_transaction_version,
                    frozenset((topic.topic, index) for topic in each.topics for index in topic.partitions),
                )
        self._left.discard(leader)
        if not self._left:
            self._end(self._findings)

    def _describe(self, leader: int, ids: list[str], then: Callable[[Iterable[Described]], None]) -> None:
        def handle_response(response: DescribeTransactionsResponse | None) -> None:
            if self._then is None:
                return
            states = () if response is None else response.transaction_states
            if len(states) != len(ids) or any(each.error_code not in _ANSWERED for each in states):
                self._end(None)
            else:
                then(states)

        self._survey.call(leader, DescribeTransactionsRequest(transactional_ids=tuple(ids)), 0, handle_response)

    def _end(self, findings: Findings | None) -> None:
        then, self._then = self._then, None
        if then is not None:
            if findings is not None:
                findings.answered_ms = self._survey.now_ms()
            then(findings)


@lru_cache(maxsize=256)
def id_in(index: int, count: int) -> str:
    """A transactional id that belongs to a partition of `__transaction_state`."""
    number = 0
    while partition_of(f"tanist-{number}", count) != index:
        number += 1
    return f"tanist-{number}"

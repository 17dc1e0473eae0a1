"""Transactions that partitions led here have open, and that nobody will end: they get a marker, and are reported.

An unclean election can take a marker away that had been written (KAFKA-20716). The transaction is open then in the
log of the new leader, its coordinator has ended it, and the last stable offset would stand still for ever. So each
transaction that a leadership finds open, and each that is later than any coordinator would allow, is looked up with the
coordinators (`survey`), and ended if none of them will (`coordinator.transactions.hanging`): as committed where the
coordinator still knows that it was, as aborted otherwise, which loses its records to readers of committed records.

Owns which transactions are looked up, and when. Nothing of it is imported before there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from tanist.broker.context import NodeContext
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.replicas import Replicas
from tanist.broker.transactions.marker_writes import MarkerWrites, open_transaction
from tanist.broker.transactions.survey import CoordinatorSurvey, Findings
from tanist.coordinator.transactions import hanging
from tanist.coordinator.transactions.hanging import Ending, OpenTransaction
from tanist.ports import Timer

_LOOKED_UP_MAX: Final = 1_000
"""Producers in one survey."""


class OpenTransactions:
    """The transactions that are looked up."""

    def __init__(
        self,
        context: NodeContext,
        replicas: Replicas,
        survey: CoordinatorSurvey,
        marker_writes: Callable[[], MarkerWrites],
    ) -> None:
        self._context = context
        self._replicas = replicas
        self._survey = survey
        self._marker_writes = marker_writes
        self._pause_ms = context.config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        self._suspects: dict[HostedPartition, set[int]] = {}
        """First offsets of open transactions, until they have ended."""
        self._under_way = False
        self._timer: Timer | None = None
        self._closed = False

    def suspect(self, hosted: HostedPartition) -> None:
        """Look up all transactions that are open in this partition now."""
        self._suspects.setdefault(hosted, set()).update(hosted.log.producers.open_transactions)
        self._arm()

    def close(self) -> None:
        """The broker is going down."""
        self._closed = True
        self._survey.close()
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        if self._timer is None and not self._under_way and not self._closed and self._suspects:
            self._timer = self._context.clock.call_at(
                self._context.clock.now_ms() + self._pause_ms, self._ask_coordinators
            )

    def _ask_coordinators(self) -> None:
        self._timer = None
        found = [each for hosted in list(self._suspects) for each in self._still_open(hosted)][:_LOOKED_UP_MAX]
        if found:
            self._under_way = True
            self._survey.ask({each.producer_id for each in found}, partial(self._handle_findings, found))
        self._arm()

    def _still_open(self, hosted: HostedPartition) -> list[OpenTransaction]:
        """Those of a partition's suspects that are open yet; others are no suspects any more."""
        producers = hosted.log.producers
        if hosted.leader is None or hosted.stale:
            del self._suspects[hosted]
            return []
        found: list[OpenTransaction] = []
        first_offsets = self._suspects[hosted]
        first_offsets.intersection_update(producers.open_transactions)
        for first_offset in sorted(first_offsets):
            transaction = open_transaction(hosted, producers.open_transactions[first_offset])
            if transaction is not None:
                found.append(transaction)
        if not found:
            del self._suspects[hosted]
        return found

    def _handle_findings(self, asked: list[OpenTransaction], findings: Findings | None) -> None:
        self._under_way = False
        if findings is not None and (endings := self._endings(asked, findings)):
            self._under_way = True
            self._survey.confirm(findings, partial(self._confirmed, endings))
        self._arm()

    @staticmethod
    def _endings(asked: Iterable[OpenTransaction], findings: Findings) -> dict[OpenTransaction, Ending]:
        endings = {each: hanging.ending_of(each, findings.known.get(each.producer_id)) for each in asked}
        return {each: ending for each, ending in endings.items() if ending is not None}

    def _confirmed(self, endings: dict[OpenTransaction, Ending], sure: bool) -> None:
        self._under_way = False
        for transaction, ending in endings.items() if sure and not self._closed else ():
            hosted = self._replicas.get(*transaction.partition)
            # Only if nothing was written to it since it was looked up: that would be a later transaction's.
            if hosted is not None and hosted in self._suspects and transaction in self._still_open(hosted):
                self._marker_writes().end_hanging(hosted, transaction, ending)
        self._arm()

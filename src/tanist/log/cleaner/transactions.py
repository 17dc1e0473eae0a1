"""Which batches and markers of transactions a cleaning may drop, and what goes into the cleaned `.txnindex`.

Owns Kafka's rules: the records of an aborted transaction go at once, its ABORT marker when no batch of it is left, and
a COMMIT marker when no batch of its transaction was met. Batches are reported in order of offset, each once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from tanist.log.markers import parse_marker
from tanist.log.transaction_index import AbortedTransaction
from tanist.wire.batch import BatchHeader
from tanist.wire.primitives import Buffer


class CleanedTransactions:
    """The state of the transactions during a walk over a log."""

    __slots__ = ("_aborting", "_coming", "_committing", "keep")

    def __init__(self) -> None:
        self._coming: deque[AbortedTransaction] = deque()
        """Aborted transactions that the walk has not reached, by first offset."""
        self._aborting: dict[int, tuple[AbortedTransaction, bool]] = {}
        """Producer id -> its aborted transaction that the walk is in, and whether a batch of it was met."""
        self._committing: set[int] = set()
        """Producers with transactional batches that were not aborted. Only asked whether one is in it."""
        self.keep: Callable[[AbortedTransaction], None] | None = None
        """Called with each transaction that belongs in the index of the segment being written."""

    def expect(self, aborted: Iterable[AbortedTransaction]) -> None:
        """These aborted transactions reach into the segment that comes next."""
        self._coming = deque(sorted([*self._coming, *aborted], key=lambda each: each.first_offset))

    def drops_batch(self, header: BatchHeader) -> bool:
        """A batch of records was met: is it an aborted transaction's?"""
        self._reach(header.last_offset)
        if not header.is_transactional:
            return False
        known = self._aborting.get(header.producer_id)
        if known is None:
            self._committing.add(header.producer_id)
            return False
        self._aborting[header.producer_id] = (known[0], True)
        return True

    def may_drop_marker(self, header: BatchHeader, batch: Buffer) -> bool:
        """A control batch was met: is nothing left that it speaks of? (Then it goes after its delete horizon.)"""
        self._reach(header.last_offset)
        if header.record_count == 0:
            return True
        marker = parse_marker(batch)
        if marker is None:
            return False
        producer_id = header.producer_id
        if not marker.aborted:
            spoken_of = producer_id in self._committing
            self._committing.discard(producer_id)
            return not spoken_of
        transaction, met = self._aborting.pop(producer_id, (None, False))
        if transaction is None or not met:
            return True
        if self.keep is not None:
            self.keep(transaction)
        return False

    def _reach(self, offset: int) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            transaction = self._coming.popleft()
            self._aborting.setdefault(transaction.producer_id, (transaction, False))

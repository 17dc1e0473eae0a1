"""The producers of a partition: their state is enough to refuse a gap, recognise a retry, and find undecided records.

Owns, per producer id, the epoch and the last five batches (KIP-98, KIP-360), the table of ongoing transactions, and the
transactions whose marker may not be replicated yet: together they give the last stable offset. The checks are Apache
Kafka 4's: an unknown producer may begin with any sequence, so UNKNOWN_PRODUCER_ID is never the answer.

It never touches a disk (`producer_snapshots` does), and a check changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from tanist.invariants import InvariantError
from tanist.wire.errors import ErrorCode

NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_COORDINATOR_EPOCH: Final = -1
WINDOW: Final = 5
_SEQUENCE_MASK: Final = 2**31 - 1

_tuple = tuple.__new__
"""Makes a named tuple without calling its `__new__`, which is Python."""


def sequence_after(sequence: int, increment: int) -> int:
    """Sequences count from 0 to 2^31 - 1 and start over."""
    return (sequence + increment) & _SEQUENCE_MASK


class BatchMetadata(NamedTuple):
    """One batch that a producer has written, with the fields that identify a retry of it."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return sequence_after(self.last_sequence, -self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """The state of one producer id. Mutable: it is looked up and updated for every idempotent batch."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "idle_since_ms",
        "last_timestamp",
        "next_sequence",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int, epoch: int = NO_PRODUCER_EPOCH) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.last_timestamp = -1
        """Of its last batch, or of its last marker. Producers give batches any timestamp."""
        self.idle_since_ms = -1
        """Since when nothing came of it, as `expire` has seen it (monotonic clock); -1: something came since then."""
        self.transaction_first_offset = -1
        """First offset of the ongoing transaction, -1 when there is none."""
        self.next_sequence = 0
        self.batches: deque[BatchMetadata] = deque(maxlen=WINDOW)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    @property
    def last_offset_delta(self) -> int:
        return self.batches[-1].offset_delta if self.batches else 0

    def copy(self) -> ProducerEntry:
        twin = ProducerEntry(self.producer_id, self.epoch)
        twin.coordinator_epoch = self.coordinator_epoch
        twin.last_timestamp = self.last_timestamp
        twin.idle_since_ms = self.idle_since_ms
        twin.transaction_first_offset = self.transaction_first_offset
        twin.next_sequence = self.next_sequence
        twin.batches = self.batches.copy()
        return twin

    def duplicate_of(self, epoch: int, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        """The remembered batch with exactly these sequences: the offered batch is its retry."""
        if epoch == self.epoch:
            for batch in self.batches:
                if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                    return batch
        return None

    def enter_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
            self.next_sequence = 0

    def add(self, epoch: int, last_sequence: int, last_offset: int, offset_delta: int, timestamp: int) -> None:
        if epoch != self.epoch:
            self.enter_epoch(epoch)
        self.batches.append(_tuple(BatchMetadata, (last_sequence, last_offset, offset_delta, timestamp)))
        self.next_sequence = (last_sequence + 1) & _SEQUENCE_MASK
        self.last_timestamp = timestamp
        self.idle_since_ms = -1


class Verification:
    """A transaction that is being verified before its first batch in this partition."""

    __slots__ = ("begins_anew", "epoch", "lowest_sequence", "recent")

    def __init__(self, epoch: int, sequence: int, *, begins_anew: bool = False) -> None:
        self.epoch = epoch
        self.begins_anew = begins_anew
        """Each of the producer's transactions has an epoch, and so sequences of its own (`transaction.version` 2)."""
        self.lowest_sequence = sequence
        """Of the batches that wait, or were refused for now."""
        self.recent = True


class Verdict(NamedTuple):
    """`error` 0 and no `duplicate`: append it."""

    error: int = 0
    duplicate: BatchMetadata | None = None
    message: str | None = None


class CompletedTransaction(NamedTuple):
    """A marker has ended a transaction that wrote to this partition."""

    producer_id: int
    first_offset: int
    last_offset: int
    """The marker's own offset."""
    aborted: bool


_APPEND: Final = Verdict()


class ProducerStates:
    """All producers of one partition, and its transactions."""

    __slots__ = ("_verifications", "entries", "open_transactions", "unreplicated")

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.open_transactions: dict[int, int] = {}
        """First offset -> producer id, in ascending order of offset. Only this class changes it."""
        self.unreplicated: deque[CompletedTransaction] = deque()
        """Decided at or above the high watermark, as far as that is known: in ascending order of their markers. Only
        this class changes it.
        """
        self._verifications: dict[int, Verification] = {}
        """Producers whose transactions are being verified, until their first append, or a marker (KIP-890)."""

    def has_late_transaction(self, wall_ms: int, limit_ms: int) -> bool:
        """Whether a transaction is open to which nothing was written for `limit_ms`."""
        return any(
            wall_ms - self.entries[producer_id].last_timestamp > limit_ms
            for producer_id in self.open_transactions.values()
        )

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, begins_anew: bool = False
    ) -> Verification:
        """The coordinator is asked whether this partition is in the producer's transaction.

        `sequence` is the first one of the batch that waits.
        """
        verification = self._verifications.get(producer_id)
        if verification is None or verification.epoch != epoch:
            verification = Verification(epoch, sequence, begins_anew=begins_anew)
            self._verifications[producer_id] = verification
        verification.lowest_sequence = min(verification.lowest_sequence, sequence)
        verification.recent = True
        return verification

    def is_verified(self, producer_id: int, verification: Verification) -> bool:
        """Whether its answer still counts: no marker has ended the transaction since it was asked."""
        return self._verifications.get(producer_id) is verification

    def skips_batches(self, producer_id: int, epoch: int, sequence: int) -> bool:
        """Whether a verified batch comes before an earlier one, which was refused for now.

        Of a producer that is not known here any sequence may come first, so the order is kept by this.
        """
        verification = self._verifications.get(producer_id)
        known = self.entries.get(producer_id)
        if verification is None or verification.epoch != epoch or (known is not None and known.epoch == epoch):
            return False
        return verification.lowest_sequence < sequence or (verification.begins_anew and sequence > 0)

    def is_beyond_verification(self, producer_id: int, sequence: int) -> bool:
        """Whether a batch outside of the transaction that is being verified comes later than that one's first."""
        verification = self._verifications.get(producer_id)
        if verification is None:
            return False
        known = self.entries.get(producer_id)
        begins = verification.begins_anew and (known is None or not known.batches)
        return verification.lowest_sequence < sequence or (begins and sequence > 0)

    def forget_verifications(self) -> None:
        """Drop those that are not recent: their producers have given up."""
        self._verifications = {each: known for each, known in self._verifications.items() if known.recent}
        for known in self._verifications.values():
            known.recent = False

    def is_open(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has a transaction open here, in this epoch."""
        entry = self.entries.get(producer_id)
        return entry is not None and entry.transaction_first_offset >= 0 and entry.epoch == epoch

    def check(
        self,
        entry: ProducerEntry | None,
        epoch: int,
        base_sequence: int,
        last_offset_delta: int,
        *,
        transactional: bool,
    ) -> Verdict:
        """May a client's batch be appended? `entry` is the producer's, None if it is unknown here."""
        if entry is None:
            return _APPEND
        duplicate = entry.duplicate_of(epoch, base_sequence, sequence_after(base_sequence, last_offset_delta))
        if duplicate is not None:
            return Verdict(0, duplicate)
        if entry.epoch == NO_PRODUCER_EPOCH:
            return _APPEND
        who = f"producer {entry.producer_id}"
        if epoch < entry.epoch:
            return Verdict(
                ErrorCode.INVALID_PRODUCER_EPOCH, None, f"{who} has epoch {entry.epoch}, the batch has {epoch}"
            )
        if epoch != entry.epoch:
            if base_sequence != 0:
                return Verdict(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    None,
                    f"{who} enters epoch {epoch} with sequence {base_sequence}, expected 0",
                )
            if entry.transaction_first_offset >= 0 and transactional:
                # The one before would get this one's marker. It has lost its own, and gets another first (KAFKA-20716).
                return Verdict(
                    ErrorCode.NOT_ENOUGH_REPLICAS,
                    None,
                    f"{who} has a transaction of epoch {entry.epoch} open, and begins one in epoch {epoch}",
                )
        elif base_sequence != entry.next_sequence:
            return Verdict(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                None,
                f"{who} sent sequence {base_sequence}, expected {entry.next_sequence}",
            )
        if entry.transaction_first_offset >= 0 and not transactional:
            return Verdict(
                ErrorCode.INVALID_TXN_STATE,
                None,
                f"{who} has a transaction open since offset {entry.transaction_first_offset}",
            )
        return _APPEND

    def check_epoch(self, entry: ProducerEntry | None, epoch: int) -> Verdict:
        """May a coordinator's batch be appended? Its producer epoch counts, its sequences do not."""
        if entry is not None and epoch < entry.epoch:
            return Verdict(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                None,
                f"producer {entry.producer_id} has epoch {entry.epoch}, the batch has {epoch}",
            )
        return _APPEND

    def append(
        self,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        *,
        transactional: bool,
    ) -> None:
        """A data batch is in the log."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        delta = last_offset - first_offset
        last_sequence = NO_SEQUENCE if base_sequence < 0 else sequence_after(base_sequence, delta)
        entry.add(epoch, last_sequence, last_offset, delta, timestamp)
        if transactional and entry.transaction_first_offset < 0:
            latest = next(reversed(self.open_transactions), -1)
            if first_offset <= latest:
                raise InvariantError(
                    "transactions begin in the order of their offsets", first_offset=first_offset, latest=latest
                )
            entry.transaction_first_offset = first_offset
            self.open_transactions[first_offset] = producer_id
            self._verifications.pop(producer_id, None)

    def check_marker(self, entry: ProducerEntry | None, epoch: int, coordinator_epoch: int) -> Verdict:
        """May a coordinator's marker be appended by the leader?"""
        verdict = self.check_epoch(entry, epoch)
        if verdict.error:
            return verdict
        if entry is not None and coordinator_epoch < entry.coordinator_epoch:
            return Verdict(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                None,
                f"coordinator epoch {coordinator_epoch} is older than {entry.coordinator_epoch}",
            )
        return _APPEND

    def append_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, offset: int, timestamp: int, *, aborted: bool
    ) -> CompletedTransaction | None:
        """A COMMIT or ABORT marker is in the log: the transaction that it ended, if that wrote here."""
        self._verifications.pop(producer_id, None)
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        entry.enter_epoch(epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        entry.idle_since_ms = -1
        first_offset, entry.transaction_first_offset = entry.transaction_first_offset, -1
        if first_offset < 0:
            return None
        completed = CompletedTransaction(producer_id, first_offset, offset, aborted)
        if self.open_transactions.pop(first_offset, None) != producer_id:
            raise InvariantError(
                "a marker ends a transaction that is open", producer_id=producer_id, first_offset=first_offset
            )
        self.unreplicated.append(completed)
        return completed

    def stable_offset_after(self, completed: CompletedTransaction) -> int:
        """The last stable offset once `completed` is replicated, for its `.txnindex` entry."""
        return next(iter(self.open_transactions), completed.last_offset + 1)

    def last_stable_offset(self, high_watermark: int) -> int:
        """The start of the first transaction that is undecided, or decided at or above the high watermark; else the
        high watermark itself.
        """
        self.replicated(high_watermark)
        stable = min(high_watermark, next(iter(self.open_transactions), high_watermark))
        for txn in self.unreplicated:
            stable = min(stable, txn.first_offset)
        return stable

    def replicated(self, high_watermark: int) -> None:
        """Markers below the high watermark hold nothing back any more."""
        unreplicated = self.unreplicated
        while unreplicated and unreplicated[0].last_offset < high_watermark:
            unreplicated.popleft()

    def expire(self, wall_ms: int, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that have been idle for `expiration_ms` and have no transaction open; how many that were.

        Their last timestamp is so old, and nothing came of them for so long since the log was opened. By the timestamp
        alone, as in Apache Kafka, a producer of old events would be forgotten between two of its batches, and a
        retry be appended twice.
        """
        self.forget_verifications()
        gone = []
        for producer_id, entry in self.entries.items():
            if entry.transaction_first_offset >= 0 or wall_ms - entry.last_timestamp < expiration_ms:
                continue
            if entry.idle_since_ms < 0:
                entry.idle_since_ms = now_ms
            elif now_ms - entry.idle_since_ms >= expiration_ms:
                gone.append(producer_id)
        for producer_id in gone:
            del self.entries[producer_id]
        return len(gone)

    def forget_below(self, log_start_offset: int) -> None:
        """Decided transactions below the log's start hold nothing back."""
        self.replicated(log_start_offset)

    def load(self, entries: Iterable[ProducerEntry], unreplicated: Iterable[CompletedTransaction]) -> None:
        """Replace everything by the content of a snapshot."""
        self.clear()
        for entry in entries:
            self.entries[entry.producer_id] = entry
        ongoing = [(e.transaction_first_offset, e.producer_id) for e in self.entries.values()]
        self.open_transactions = {offset: producer_id for offset, producer_id in sorted(ongoing) if offset >= 0}
        self.unreplicated.extend(unreplicated)

    def clear(self) -> None:
        self.entries.clear()
        self.open_transactions.clear()
        self.unreplicated.clear()
        self._verifications.clear()

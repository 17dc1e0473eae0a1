"""One partition of `__transaction_state`: its transactional ids, and the requests of their producers.

Owns which request is allowed when, and the next values that it leads to. An id has at most one transition under way:
its values change when the record is committed, not before, and until then other requests get CONCURRENT_TRANSACTIONS.
So the table is always the replay of the log, and a coordinator that takes over goes on where the log ends. `fencing`
compares the epochs of producers. Rules: KIP-98, KIP-360 (recovery after errors), KIP-890 (verification; a bumped epoch
at each end), and Kafka's error codes.

It must not know of leaders or high watermarks; it is called only while its broker leads the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tanist.coordinator.effects import NEVER_MS, Answer, group_error
from tanist.coordinator.transactions.effects import (
    ProducerAnswer,
    TransactionAppend,
    TransactionEffect,
    WriteMarkers,
)
from tanist.coordinator.transactions.fencing import end_error, may_initialize_again, partitions_error
from tanist.coordinator.transactions.state import (
    COMPLETED,
    EMPTY,
    EPOCH_BUMP_VERSION,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ONGOING,
    PREPARE_COMMIT,
    PREPARED,
    TopicIndex,
    TransactionState,
    TransactionValues,
    values_of,
)
from tanist.events.coordination import TransactionEnded
from tanist.events.stream import NOBODY, Events
from tanist.invariants import InvariantError
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.transaction_records import TransactionKey, TransactionValue

_RETRY_MS: Final = 100
"""A completion that the log has refused is tried again after this."""
_RETRIED: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
_TWO_PHASE_TIMEOUT_MS: Final = 2**31 - 1
"""A transaction with this timeout has none (KIP-939)."""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The broker's settings of transactions."""

    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    two_phase_commit: bool = False
    """Whether producers may ask for it."""
    first_epoch: int = 0
    """Of a new id's first producer; simulations begin where epochs run out."""


@dataclass(slots=True)
class Transaction:
    """One transactional id."""

    values: TransactionValues
    """As committed in the log."""
    pending: TransactionAppend | None = None
    """The transition under way."""
    markers: WriteMarkers | None = None
    """Those of a prepared transaction."""
    markers_left: set[TopicIndex] = field(default_factory=set)
    """Partitions that have no marker yet."""

    @property
    def stored(self) -> bool:
        """Whether the log has it; if not, it is about to get its first record."""
        return self.values.producer_epoch != NO_PRODUCER_EPOCH


class TransactionShard:
    """The transactional ids of one partition."""

    def __init__(self, settings: TransactionSettings, coordinator_epoch: int, events: Events = NOBODY) -> None:
        self._settings = settings
        self._events = events
        self.coordinator_epoch = coordinator_epoch
        """The leader epoch of the partition: markers carry it, and an older one is fenced."""
        self.transactions: dict[str, Transaction] = {}
        self._unfinished: dict[str, int] = {}
        """Ids whose completion has to be tried again, and when."""

    # -- records

    def replay(self, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
        """A record of the log, while the partition is loaded. `WireError` if it makes no sense."""
        if isinstance(key, TransactionKey):
            self._put(key.transactional_id, values_of(value) if isinstance(value, TransactionValue) else None)

    def _put(self, transactional_id: str, values: TransactionValues | None) -> None:
        """Apply committed values, this coordinator's own and those of a log that is loaded; None: it is forgotten."""
        if values is None:
            self.transactions.pop(transactional_id, None)
            return
        transaction = self.transactions.setdefault(transactional_id, Transaction(values))
        transaction.values, transaction.pending = values, None

    def replay_pending(self, producer_id: int, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
        """No transaction writes to this topic."""
        raise WireError(f"a record of producer {producer_id}'s transaction")

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """No transaction ends here."""

    def loaded(self, now_ms: int) -> list[TransactionEffect]:
        """All records were replayed: transactions that were prepared are completed."""
        effects: list[TransactionEffect] = []
        for transactional_id, transaction in self.transactions.items():
            if transaction.values.state in PREPARED:
                effects += self._complete(transactional_id, transaction)
        return effects

    def apply(self, append: TransactionAppend) -> list[TransactionEffect]:
        """An append is committed: its values count, and a prepared transaction gets its markers."""
        transactional_id, values = append.transactional_id, append.values
        transaction = self.transactions.get(transactional_id)
        if transaction is None or transaction.pending is not append:
            raise InvariantError(
                "what is committed of a transaction is its transition under way",
                transactional_id=transactional_id,
                under_way=None if transaction is None else transaction.pending,
                committed=values,
            )
        prepared = transaction.values
        self._put(transactional_id, values)
        if values is not None and values.state in COMPLETED and self._events.fine:
            # The completion may have another producer id, as the epochs of this one are used up.
            committed = values.state is TransactionState.COMPLETE_COMMIT
            ended = TransactionEnded(transactional_id, prepared.producer_id, prepared.producer_epoch, committed)
            self._events.emit(ended)
        if values is not None and values.state in PREPARED:
            return self._complete(transactional_id, self.transactions[transactional_id])
        return []

    def written(self, append: TransactionAppend, error: int, now_ms: int) -> list[TransactionEffect]:
        """An append is committed (and was applied), or was refused, or has taken too long: answer, once."""
        if error and error != ErrorCode.REQUEST_TIMED_OUT:
            # It is not in the log, and never will be. One that takes long may still be committed, and stays pending.
            self._refused(append, now_ms)
        if append.ticket is None:
            return []
        response = append.response
        if error:
            failure = _error_of_append(error)
            response = ProducerAnswer(failure) if isinstance(response, ProducerAnswer) else failure
        return [Answer(append.ticket, response)]

    def _refused(self, append: TransactionAppend, now_ms: int) -> None:
        transaction = self.transactions.get(append.transactional_id)
        if transaction is None or transaction.pending is not append:
            return
        transaction.pending = None
        if not transaction.stored:
            del self.transactions[append.transactional_id]
        elif transaction.values.state in PREPARED:
            self._unfinished[append.transactional_id] = now_ms + _RETRY_MS

    def dismiss(self, error: int) -> list[TransactionEffect]:
        """Another broker has the partition. Clients that wait hear it of their appends."""
        return []

    # -- time

    @property
    def check_ms(self) -> int:
        """The next deadline."""
        return min(self._unfinished.values(), default=NEVER_MS)

    def tick(self, now_ms: int) -> list[TransactionEffect]:
        """Completions that the log has refused are tried again."""
        effects: list[TransactionEffect] = []
        for transactional_id in [each for each, due_ms in self._unfinished.items() if due_ms <= now_ms]:
            del self._unfinished[transactional_id]
            transaction = self.transactions.get(transactional_id)
            if transaction is not None and transaction.values.state in PREPARED and transaction.pending is None:
                effects += self._append(
                    transactional_id, transaction, transaction.values.completed(transaction.values.update_ms)
                )
        return effects

    def abort_timed_out(self, wall_ms: int) -> list[TransactionEffect]:
        """Abort transactions that take longer than their timeout, and fence their producers."""
        effects: list[TransactionEffect] = []
        for transactional_id, transaction in self.transactions.items():
            values = transaction.values
            if (
                values.state is ONGOING
                and transaction.pending is None
                and values.timeout_ms != _TWO_PHASE_TIMEOUT_MS
                and values.start_ms + values.timeout_ms < wall_ms
            ):
                effects += self._append(transactional_id, transaction, values.fenced(wall_ms))
        return effects

    def expire(self, wall_ms: int) -> list[TransactionEffect]:
        """Forget ids that have not been used for `transactional.id.expiration.ms`."""
        effects: list[TransactionEffect] = []
        for transactional_id, transaction in self.transactions.items():
            values = transaction.values
            idle = values.state is EMPTY or values.state in COMPLETED
            if (
                idle
                and transaction.stored
                and transaction.pending is None
                and values.update_ms + self._settings.id_expiration_ms <= wall_ms
            ):
                effects += self._append(transactional_id, transaction, None)
        return effects

    # -- requests

    def needs_producer_id(self, transactional_id: str) -> bool:
        """Whether the request will need a new producer id: it is new, or its epochs are used up."""
        transaction = self.transactions.get(transactional_id)
        return transaction is None or transaction.values.epoch_exhausted

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: tuple[int, int] | None,
        new_producer_id: int,
        ticket: object,
        wall_ms: int,
        *,
        two_phase: bool = False,
        keeps_prepared: bool = False,
    ) -> list[TransactionEffect]:
        """A producer begins, or goes on after an error with the id and epoch that it `expected` to have (KIP-360).

        `new_producer_id` is used if `needs_producer_id`. A `two_phase` transaction has no timeout (KIP-939). As in
        Apache Kafka, a prepared one cannot be kept yet.
        """
        if not transactional_id:
            return _producer_refused(ticket, ErrorCode.INVALID_REQUEST)
        if two_phase and not self._settings.two_phase_commit:
            return _producer_refused(ticket, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if keeps_prepared:
            return _producer_refused(ticket, ErrorCode.UNSUPPORTED_VERSION)
        if timeout_ms <= 0 or (timeout_ms > self._settings.max_timeout_ms and not two_phase):
            return _producer_refused(ticket, ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        if two_phase:
            timeout_ms = _TWO_PHASE_TIMEOUT_MS
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            transaction = self.transactions[transactional_id] = Transaction(TransactionValues(new_producer_id))
        values = transaction.values
        if transaction.pending is not None or values.state in PREPARED:
            return _producer_refused(ticket, ErrorCode.CONCURRENT_TRANSACTIONS)
        if expected is not None and not may_initialize_again(values, expected):
            return _producer_refused(ticket, ErrorCode.PRODUCER_FENCED)
        if values.state is ONGOING:
            # The producer asks again, and gets an epoch of its own once this transaction has ended.
            answer = ProducerAnswer(ErrorCode.CONCURRENT_TRANSACTIONS)
            return self._append(transactional_id, transaction, values.fenced(wall_ms), ticket, answer)
        expected_epoch = None if expected is None else expected[1]
        if values.epoch_exhausted and expected_epoch in (None, values.producer_epoch):
            last_epoch = NO_PRODUCER_EPOCH if expected is None else values.producer_epoch
            after = values.rotated(new_producer_id, timeout_ms, wall_ms, last_epoch=last_epoch)
        elif expected_epoch is None or values.producer_epoch in (NO_PRODUCER_EPOCH, expected_epoch):
            epoch = values.producer_epoch + 1 if transaction.stored else self._settings.first_epoch
            last_epoch = NO_PRODUCER_EPOCH if expected_epoch is None else values.producer_epoch
            after = values.next_epoch(timeout_ms, wall_ms, epoch=epoch, last_epoch=last_epoch)
        elif expected_epoch == values.last_epoch:
            after = values.repeated(timeout_ms, wall_ms)
        else:
            return _producer_refused(ticket, ErrorCode.PRODUCER_FENCED)
        answer = ProducerAnswer(0, after.producer_id, after.producer_epoch)
        return self._append(transactional_id, transaction, after, ticket, answer)

    def add_partitions(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: frozenset[TopicIndex],
        client_version: int,
        ticket: object,
        wall_ms: int,
    ) -> list[TransactionEffect]:
        """Partitions to which the transaction will write. The answer is an error code."""
        transaction = self.transactions.get(transactional_id)
        error = self._producer_error(transactional_id, transaction, producer)
        if error or transaction is None:
            return [Answer(ticket, error)]
        values = transaction.values
        if transaction.pending is not None or values.state in PREPARED:
            return [Answer(ticket, int(ErrorCode.CONCURRENT_TRANSACTIONS))]
        if values.state is ONGOING and partitions <= values.partitions:
            return [Answer(ticket, 0)]
        after = values.with_partitions(partitions, wall_ms, client_version)
        return self._append(transactional_id, transaction, after, ticket, 0)

    def verify(
        self, transactional_id: str, producer: tuple[int, int], partitions: Iterable[TopicIndex]
    ) -> dict[TopicIndex, int]:
        """Whether the partitions are in the producer's transaction: the error of each (KIP-890)."""
        transaction = self.transactions.get(transactional_id)
        error = self._producer_error(transactional_id, transaction, producer)
        if error or transaction is None:
            return dict.fromkeys(partitions, error)
        values = transaction.values
        if values.state in PREPARED:
            return dict.fromkeys(partitions, int(ErrorCode.CONCURRENT_TRANSACTIONS))
        return {
            each: int(ErrorCode.NONE if each in values.partitions else ErrorCode.TRANSACTION_ABORTABLE)
            for each in partitions
        }

    def end(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        client_version: int,
        new_producer_id: int,
        ticket: object,
        wall_ms: int,
        *,
        committed: bool,
    ) -> list[TransactionEffect]:
        """Commit or abort. The answer is a `ProducerAnswer`, with the bumped epoch for version 2."""
        if not transactional_id:
            return _producer_refused(ticket, ErrorCode.INVALID_REQUEST)
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return _producer_refused(ticket, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        bumps = client_version >= EPOCH_BUMP_VERSION
        values = transaction.values
        error, retried = end_error(values, producer, bumps=bumps)
        if error:
            return _producer_refused(ticket, error)
        if transaction.pending is not None:
            return _producer_refused(ticket, ErrorCode.CONCURRENT_TRANSACTIONS)
        outcome = values.outcome_of_end(committed=committed, bumps=bumps, retried=retried)
        if outcome is None:
            next_producer_id = NO_PRODUCER_ID
            if bumps and values.epoch_exhausted:
                if new_producer_id < 0:
                    return _producer_refused(ticket, ErrorCode.COORDINATOR_NOT_AVAILABLE)
                next_producer_id = new_producer_id
            after = values.prepared(wall_ms, client_version, committed=committed, next_producer_id=next_producer_id)
            answer = ProducerAnswer()
            if bumps:
                rotates = next_producer_id >= 0
                answer = ProducerAnswer(
                    0,
                    next_producer_id if rotates else after.producer_id,
                    0 if rotates else after.producer_epoch,
                )
            return self._append(transactional_id, transaction, after, ticket, answer)
        if outcome == ErrorCode.NONE and bumps:
            return [Answer(ticket, ProducerAnswer(0, values.producer_id, values.producer_epoch))]
        return _producer_refused(ticket, outcome)

    def marker_written(
        self, markers: WriteMarkers, partitions: Iterable[TopicIndex], wall_ms: int
    ) -> list[TransactionEffect]:
        """These partitions have the marker; with the last one the transaction is complete."""
        transaction = self.transactions.get(markers.transactional_id)
        if transaction is None or transaction.markers is not markers:
            return []  # of an earlier transaction
        transaction.markers_left.difference_update(partitions)
        if transaction.markers_left:
            return []
        transaction.markers = None
        return self._append(markers.transactional_id, transaction, transaction.values.completed(wall_ms))

    # -- operators

    def described(self) -> Iterator[tuple[str, TransactionValues]]:
        """The ids that the log has, with their values."""
        return ((each, known.values) for each, known in self.transactions.items() if known.stored)

    def find(self, transactional_id: str) -> TransactionValues | None:
        """The values of an id; None if it is unknown, or about to expire."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None or not transaction.stored:
            return None
        pending = transaction.pending
        return None if pending is not None and pending.values is None else transaction.values

    # -- inner

    def _producer_error(self, transactional_id: str, transaction: Transaction | None, producer: tuple[int, int]) -> int:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        return partitions_error(None if transaction is None else transaction.values, producer)

    def _append(
        self,
        transactional_id: str,
        transaction: Transaction,
        values: TransactionValues | None,
        ticket: object | None = None,
        response: object = None,
    ) -> list[TransactionEffect]:
        append = TransactionAppend(transactional_id, values, ticket, response)
        if transaction.pending is not None:
            raise InvariantError(
                "a transaction has one transition under way",
                transactional_id=transactional_id,
                under_way=transaction.pending.values,
                wanted=values,
            )
        transaction.pending = append
        return [append]

    def _complete(self, transactional_id: str, transaction: Transaction) -> list[TransactionEffect]:
        """The transaction is prepared: write its markers, or complete it at once if it has none."""
        values = transaction.values
        if not values.partitions:
            return self._append(transactional_id, transaction, values.completed(values.update_ms))
        transaction.markers_left = set(values.partitions)
        transaction.markers = WriteMarkers(
            transactional_id,
            values.producer_id,
            values.producer_epoch,
            self.coordinator_epoch,
            values.state is PREPARE_COMMIT,
            values.partitions,
            values.client_version,
        )
        return [transaction.markers]


def _error_of_append(append_error: int) -> int:
    """The error for a producer when the log refused a record: it retries, here or elsewhere, or gives up."""
    error = group_error(append_error)
    return error if error in _RETRIED else ErrorCode.UNKNOWN_SERVER_ERROR


def _producer_refused(ticket: object, error: int) -> list[TransactionEffect]:
    return [Answer(ticket, ProducerAnswer(int(error)))]

"""The state of one transactional id, as it stands in the log.

Owns the values, how they become a record and are read from one, and each transition as a function of the values.
`transaction_shard` decides which transition a request makes, `fencing` whether its producer may. Rules: KIP-98
(states), KIP-360 (last epoch), KIP-890 (the epoch is bumped at each end of a transaction of version 2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, TypeAlias

from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.ids import indexes_by_topic
from tanist.wire.transaction_records import TransactionKey, TransactionPartitions, TransactionValue

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
MAX_EPOCH: Final = 2**15 - 1
NO_BUMP_VERSION: Final = 0
EPOCH_BUMP_VERSION: Final = 2
"""`transaction.version` from which each end of a transaction bumps the epoch."""

TopicIndex: TypeAlias = tuple[str, int]
"""A partition by the name of its topic."""


class TransactionState(IntEnum):
    """Numbered as in the log. PREPARE_EPOCH_FENCE is never written, and here never entered."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """As Kafka's tools print it: "PrepareCommit"."""
        return "".join(word.capitalize() for word in self.name.split("_"))


EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD = list(TransactionState)[:7]
PREPARED: Final = (PREPARE_COMMIT, PREPARE_ABORT)
COMPLETED: Final = (COMPLETE_COMMIT, COMPLETE_ABORT)


@dataclass(frozen=True, slots=True)
class TransactionValues:
    """The values of one transactional id. Times are wall clock milliseconds, -1 is none."""

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_epoch: int = NO_PRODUCER_EPOCH
    """The epoch before the last bump: of a client that may not have the answer yet."""
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id that the completion changes to, when the epochs of this one are used up."""
    timeout_ms: int = 0
    state: TransactionState = EMPTY
    partitions: frozenset[TopicIndex] = frozenset()
    start_ms: int = -1
    update_ms: int = -1
    client_version: int = 0
    """The `transaction.version` by which the client acts."""

    @property
    def epoch_exhausted(self) -> bool:
        """The last epoch is kept for fencing; no client gets it."""
        return self.producer_epoch >= MAX_EPOCH - 1

    @property
    def bumps_epoch(self) -> bool:
        return self.client_version >= EPOCH_BUMP_VERSION

    # -- transitions

    def _to(self, wall_ms: int, **changes: object) -> TransactionValues:
        # The clock of another coordinator may have been ahead: the last update never goes back.
        return replace(
            self,
            previous_producer_id=self.producer_id,
            update_ms=max(wall_ms, self.update_ms),
            **changes,  # type: ignore[arg-type]
        )

    def next_epoch(self, timeout_ms: int, wall_ms: int, *, epoch: int, last_epoch: int) -> TransactionValues:
        """EMPTY, for the producer that has initialized."""
        return self._to(
            wall_ms,
            producer_epoch=epoch,
            last_epoch=last_epoch,
            timeout_ms=timeout_ms,
            state=EMPTY,
            partitions=frozenset(),
            start_ms=-1,
        )

    def repeated(self, timeout_ms: int, wall_ms: int) -> TransactionValues:
        """EMPTY, for a producer that initializes again because it has no answer, and may have to once more."""
        again = self.next_epoch(timeout_ms, wall_ms, epoch=self.producer_epoch, last_epoch=self.last_epoch)
        return replace(again, previous_producer_id=self.previous_producer_id)

    def rotated(self, producer_id: int, timeout_ms: int, wall_ms: int, *, last_epoch: int) -> TransactionValues:
        """EMPTY, with a new producer id and epoch 0: the epochs of the old one are used up."""
        return replace(
            self.next_epoch(timeout_ms, wall_ms, epoch=0, last_epoch=last_epoch),
            producer_id=producer_id,
        )

    def with_partitions(self, added: frozenset[TopicIndex], wall_ms: int, client_version: int) -> TransactionValues:
        """ONGOING, with more partitions."""
        return self._to(
            wall_ms,
            state=ONGOING,
            partitions=self.partitions | added,
            start_ms=self.start_ms if self.state is ONGOING else wall_ms,
            client_version=client_version,
        )

    def prepared(
        self, wall_ms: int, client_version: int, *, committed: bool, next_producer_id: int = NO_PRODUCER_ID
    ) -> TransactionValues:
        """PREPARE_COMMIT or PREPARE_ABORT, as the client has asked for. Without a transaction it begins now."""
        bumps = client_version >= EPOCH_BUMP_VERSION
        return self._to(
            wall_ms,
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH) if bumps else self.producer_epoch,
            last_epoch=self.producer_epoch if bumps else self.last_epoch,
            next_producer_id=next_producer_id,
            state=PREPARE_COMMIT if committed else PREPARE_ABORT,
            start_ms=self.start_ms if self.state is ONGOING else wall_ms,
            client_version=client_version,
        )

    def fenced(self, wall_ms: int) -> TransactionValues:
        """PREPARE_ABORT with the next epoch: for a timeout, or another producer that initializes.

        With `transaction.version` 2 it is as if the client had aborted, and one that does so later goes on
        (KAFKA-19367). The last epoch is nobody's.
        """
        epoch = min(self.producer_epoch + 1, MAX_EPOCH)
        return self._to(
            wall_ms,
            producer_epoch=epoch,
            last_epoch=self.producer_epoch if self.bumps_epoch and epoch < MAX_EPOCH else NO_PRODUCER_EPOCH,
            next_producer_id=NO_PRODUCER_ID,
            state=PREPARE_ABORT,
        )

    def completed(self, wall_ms: int) -> TransactionValues:
        """COMPLETE_COMMIT or COMPLETE_ABORT: all markers are written."""
        rotates = self.bumps_epoch and self.next_producer_id >= 0
        return self._to(
            wall_ms,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            producer_epoch=0 if rotates else self.producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            state=COMPLETE_COMMIT if self.state is PREPARE_COMMIT else COMPLETE_ABORT,
            partitions=frozenset(),
        )

    def outcome_of_end(self, *, committed: bool, bumps: bool, retried: bool) -> int | None:
        """The answer to an EndTxn of the right producer; None: the transaction is to end now.

        With epoch bumps the same epoch is another transaction's, not a retry: an abort of nothing is allowed, for a
        client may not know whether it has begun (KIP-890).
        """
        if self.state is ONGOING:
            return None
        if self.state in PREPARED:
            same = committed is (self.state is PREPARE_COMMIT)
            return ErrorCode.CONCURRENT_TRANSACTIONS if same else ErrorCode.INVALID_TXN_STATE
        if self.state in COMPLETED:
            same = committed is (self.state is TransactionState.COMPLETE_COMMIT)
            if not bumps or retried:
                return ErrorCode.NONE if same else ErrorCode.INVALID_TXN_STATE
        elif self.state is DEAD or not bumps:
            return ErrorCode.INVALID_TXN_STATE
        return ErrorCode.INVALID_TXN_STATE if committed else None


def record_of(
    transactional_id: str, values: TransactionValues | None
) -> tuple[TransactionKey, TransactionValue | None]:
    """The record that stores the values; None: the id has expired."""
    key = TransactionKey(transactional_id=transactional_id)
    if values is None:
        return key, None
    topics = indexes_by_topic(values.partitions)
    partitions = tuple(
        TransactionPartitions(topic=topic, partition_ids=tuple(indexes)) for topic, indexes in topics.items()
    )
    return key, TransactionValue(
        producer_id=values.producer_id,
        previous_producer_id=values.previous_producer_id,
        next_producer_id=values.next_producer_id,
        producer_epoch=values.producer_epoch,
        transaction_timeout_ms=values.timeout_ms,
        transaction_status=int(values.state),
        transaction_partitions=None if values.state is EMPTY else partitions,
        transaction_last_update_timestamp_ms=values.update_ms,
        transaction_start_timestamp_ms=values.start_ms,
        client_transaction_version=values.client_version,
        last_producer_epoch=values.last_epoch,
    )


def values_of(record: TransactionValue) -> TransactionValues:
    """The values in a record. `WireError` for a state that is not known."""
    try:
        state = TransactionState(record.transaction_status)
    except ValueError:
        raise WireError(f"transaction state {record.transaction_status} is not known") from None
    return TransactionValues(
        producer_id=record.producer_id,
        producer_epoch=record.producer_epoch,
        last_epoch=record.last_producer_epoch,
        previous_producer_id=record.previous_producer_id,
        next_producer_id=record.next_producer_id,
        timeout_ms=record.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            (topic.topic, index) for topic in record.transaction_partitions or () for index in topic.partition_ids
        ),
        start_ms=record.transaction_start_timestamp_ms,
        update_ms=record.transaction_last_update_timestamp_ms,
        client_version=record.client_transaction_version,
    )

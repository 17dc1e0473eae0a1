"""A Produce request with a transactional id: the first batch of a transaction in a partition waits for its coordinator.

Owns which partitions of the request have to be verified, or added for a client of `transaction.version` 2 (version 12
on), and the errors that clients understand (KIP-890). Meanwhile no more is read from the connection, so that batches
keep their order, and one request of it is held in memory at most. Requests of open transactions do not come here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final
from uuid import UUID

from tanist.broker.network.client_connection import ClientConnection
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.transactions.service import Transactions
from tanist.coordinator.transactions.fencing import verification_error
from tanist.coordinator.transactions.state import TopicIndex
from tanist.log.append import AppendResult, examine
from tanist.log.producers import ProducerStates, Verification
from tanist.wire.apis import ApiKey
from tanist.wire.batch import HEADER, BatchHeader
from tanist.wire.errors import ErrorCode
from tanist.wire.produce import ProduceCall, is_one_batch

ADDING_VERSION: Final = 12
_ABORTABLE_VERSION: Final = 11
_RETRIABLE: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)

Batches = list[tuple[HostedPartition, "memoryview"]]
"""The batches of a request that may be appended, if their transactions allow it."""
Append = Callable[[memoryview, "dict[TopicIndex, int]"], None]
"""Carries the request out: its frame, and the error of each partition that was asked about, 0 if it may be written."""


class MixedProducers(Exception):
    """A request has batches of several producers."""


def unverified(batches: Batches) -> dict[HostedPartition, BatchHeader]:
    """The partitions where a transaction would begin, with the batch."""
    found: dict[HostedPartition, BatchHeader] = {}
    for hosted, batch in batches:
        header = BatchHeader(*HEADER.unpack_from(batch))
        is_open = hosted.log.producers.is_open(header.producer_id, header.producer_epoch)
        if header.is_transactional and not is_open:
            found[hosted] = header
    return found


def led(
    by_topic: Mapping[str | UUID, Mapping[int, HostedPartition]],
    may_write: Callable[[str | UUID], bool],
    frame: memoryview,
    call: ProduceCall,
) -> Batches:
    """The batches of a request for partitions that are led here, and that the client may write to."""
    found: Batches = []
    for topic, parts in call.topics:
        hosted_parts = by_topic.get(topic) if may_write(topic) else None
        for index, start, end in parts:
            hosted = None if hosted_parts is None else hosted_parts.get(index)
            if (
                hosted is not None
                and hosted.leader is not None
                and not hosted.is_internal
                and is_one_batch(frame, start, end)
            ):
                found.append((hosted, frame[start:end]))
    return found


def transaction_error(
    hosted: HostedPartition, batch: memoryview, verified: Mapping[TopicIndex, int], wall_ms: int
) -> int:
    """The error of a batch of a transaction: it must be open here, or verified (KIP-890). What is wrong with the batch
    itself comes first.
    """
    error = verified.get((hosted.topic, hosted.index))
    header = BatchHeader(*HEADER.unpack_from(batch))
    producers = hosted.log.producers
    if error is None and not producers.is_open(header.producer_id, header.producer_epoch):
        error = ErrorCode.INVALID_TXN_STATE
    elif error or producers.skips_batches(header.producer_id, header.producer_epoch, header.base_sequence):
        older = producers.check_epoch(producers.entries.get(header.producer_id), header.producer_epoch).error
        if error:
            return older or error
        if older:
            return ErrorCode.NONE  # the append finds it
        error = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    else:
        return ErrorCode.NONE
    found = examine(batch, hosted.log.config, wall_ms, internal=False)
    return found.error if isinstance(found, AppendResult) else error


class TransactionalProduce:
    """Requests that wait for the coordinators of their transactions."""

    def __init__(self, transactions: Transactions, *, verifies: bool) -> None:
        """`verifies`: `transaction.partition.verification.enable`."""
        self._transactions = transactions
        self._verifies = verifies

    def verify(
        self,
        connection: ClientConnection,
        frame: memoryview,
        version: int,
        transactional_id: str,
        batches: Batches,
        append: Append,
    ) -> None:
        """Call `append` when it is known which partitions are in the transaction: at once, if none has to be asked for.

        `MixedProducers` if the batches are not of one producer.
        """
        partitions = unverified(batches)
        adds = version >= ADDING_VERSION
        if not partitions or not (adds or self._verifies):
            append(frame, dict.fromkeys(((each.topic, each.index) for each in partitions), 0))
            return
        producers = {(header.producer_id, header.producer_epoch) for header in partitions.values()}
        if len(producers) > 1:
            raise MixedProducers
        producer = producers.pop()
        guards = {
            (hosted.topic, hosted.index): (
                hosted.log.producers,
                hosted.log.producers.begin_verification(*producer, header.base_sequence, begins_anew=adds),
            )
            for hosted, header in partitions.items()
        }
        held = memoryview(bytearray(frame))  # the frame's memory is valid until the end of the turn
        connection.hold()

        def on_verified(errors: dict[TopicIndex, int]) -> None:
            step = partial(_verified, connection, held, version, producer[0], guards, append, errors)
            connection.go_on(ApiKey.PRODUCE, held, step)
            connection.release()

        self._transactions.verifier().verify(transactional_id, producer, list(guards), on_verified, adds=adds)


def _verified(
    connection: ClientConnection,
    frame: memoryview,
    version: int,
    producer_id: int,
    guards: dict[TopicIndex, tuple[ProducerStates, Verification]],
    append: Append,
    errors: dict[TopicIndex, int],
) -> None:
    results: dict[TopicIndex, int] = {}
    for partition, (states, guard) in guards.items():
        error = errors[partition]
        if not error and not states.is_verified(producer_id, guard):
            # A marker has come meanwhile; or another request of the producer has begun the transaction.
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        results[partition] = _error_for(error, version)
    if connection.closed:
        return  # the client asks again on another connection, perhaps it has already
    append(frame, results)


def _error_for(error: int, version: int) -> int:
    """The coordinator's error, as a client of this version can act on it."""
    if error in _RETRIABLE or (error == ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDING_VERSION):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return verification_error(error, knows_abortable=version >= _ABORTABLE_VERSION)

"""The effects of a transaction shard, besides answers: records to append, and markers to write.

Answers have values of this module, not messages of a version: the handlers of the APIs make those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tanist.coordinator.effects import Answer, LogAppend
from tanist.coordinator.transactions.state import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicIndex, TransactionValues


class ProducerAnswer(NamedTuple):
    """The answer to InitProducerId and EndTxn."""

    error: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class TransactionAppend(LogAppend):
    """Append the next values of a transactional id. Once they are committed: `TransactionShard.apply`."""

    transactional_id: str
    values: TransactionValues | None
    """None: the id is forgotten."""
    ticket: object | None
    """The client that waits, if one does."""
    response: object
    """Its answer, once the values are committed."""


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """Write the markers of a transaction, until `TransactionShard.marker_written` has each partition."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    partitions: frozenset[TopicIndex]
    client_version: int


TransactionEffect: TypeAlias = Answer | TransactionAppend | WriteMarkers

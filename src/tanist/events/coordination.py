"""Events of the coordinators of groups and transactions, and of the markers that their partitions get."""

from __future__ import annotations

from tanist.events.event import Event


class CoordinatorLoaded(Event):
    """A partition of an internal topic was read, and its coordinator serves it."""

    partition: str
    kind: str
    """groups, or transactional ids."""
    entries: int
    """How many of them."""
    records: int
    took_ms: int
    """Since the election."""


class CoordinatorGivenUp(Event):
    """A coordinator's state may be torn by an exception: it is read anew from its log."""

    partition: str


class CoordinatorUnreadable(Event):
    """A partition of an internal topic cannot be served: its log cannot be read."""

    partition: str
    problem: str


class CoordinatorRecordUnreadable(Event):
    """A record of an internal topic makes no sense, and is left out."""

    partition: str
    offset: int
    problem: str


class TransactionEnded(Event):
    """A transaction has all its markers, and that is committed; emitted by its coordinator. Fine."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    """That of the markers."""
    committed: bool


class HangingTransactionEnded(Event):
    """The leader of a partition has ended a transaction that no coordinator will end (KAFKA-20716)."""

    partition: str
    producer_id: int
    producer_epoch: int
    committed: bool
    reason: str
    """What is known of its outcome."""
    first_offset: int
    last_offset: int


class HangingMarkerRefused(Event):
    """The marker of such a transaction was not written: it stays open until that is tried again."""

    partition: str
    error: int

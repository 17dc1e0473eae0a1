"""Events of the coordinators of groups and transactions, of the markers that their partitions get, and of share groups.

Those of share groups come from the leader of the partition, and are fine but for the states that it reads and for dead
letters that it cannot write.
"""

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


class ShareStateRead(Event):
    """The leader of a partition has a share group's state of it: it delivers from here on."""

    group: str
    partition: str
    leader_epoch: int
    state_epoch: int
    start_offset: int
    reset: bool
    """The group had no start offset there: this one is by its configuration."""


class ShareStateRefused(Event):
    """The coordinator of that state refuses this leader: it does not deliver any more. Fine."""

    group: str
    partition: str
    leader_epoch: int
    error: int


class ShareRecordsAcquired(Event):
    """A member gets these records. Fine."""

    group: str
    partition: str
    leader_epoch: int
    member_id: str
    first_offset: int
    last_offset: int
    delivery_count: int


class ShareRecordsStored(Event):
    """What a member has said of these records is stored, or what the end of its session says. Fine."""

    group: str
    partition: str
    leader_epoch: int
    first_offset: int
    last_offset: int
    state: int
    """Kafka's number: 0 available again, 2 acknowledged, 3 on its way to a dead letter topic, 4 archived."""


class ShareLockExpired(Event):
    """Nothing was said of these records in time. Fine."""

    group: str
    partition: str
    leader_epoch: int
    first_offset: int
    last_offset: int
    archived: bool
    """They were delivered as often as they may be."""


class DeadLettersWritten(Event):
    """Records that nobody could process are in the group's dead letter topic (KIP-1191). Fine."""

    group: str
    partition: str
    first_offset: int
    last_offset: int
    topic: str


class DeadLettersLeftOut(Event):
    """Such records could not be written there, or may not be: they are archived without. Fine."""

    group: str
    partition: str
    first_offset: int
    last_offset: int
    reason: str


class DeadLettersNotWritten(Event):
    """A share group's records that nobody could process are archived, and are not in its dead letter topic."""

    group: str
    partition: str
    reason: str
    left_out: int
    """Events like this one since the last, which are not reported one by one."""


class ShareSessionEnded(Event):
    """A member's session is over. Fine."""

    group: str
    member_id: str


class ShareSessionRefused(Event):
    """A request is not of the member's session, or there are too many sessions. Fine."""

    group: str
    member_id: str
    error: int

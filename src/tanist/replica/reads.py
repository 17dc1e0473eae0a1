"""A replica's answers to readers: how far they may read, from which offset, and when it has no answer.

Owns the checks of a reader's leader epoch (rule 112, KIP-320) and of its history (rule 113, KIP-595), which a leader
makes of followers too; the bounds of a consumer's fetch, ListOffsets, OffsetForLeaderEpoch and the redirection to a
nearer replica (KIP-392).
It must never show a consumer uncommitted records (S18), nor call an offset the end of the partition while a new leader
does not yet know how far its predecessor had committed (S19). Nothing here changes anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from tanist.replica.metadata import NO_EPOCH, UNKNOWN_OFFSET
from tanist.replica.ports import ReadableLog, ReplicaLog
from tanist.replica.read_replica import ReadReplica, nearest_replica
from tanist.wire.errors import ErrorCode

_NONE: Final = int(ErrorCode.NONE)
_NOT_LEADER_OR_FOLLOWER: Final = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_LEADER_NOT_AVAILABLE: Final = int(ErrorCode.LEADER_NOT_AVAILABLE)
_OFFSET_NOT_AVAILABLE: Final = int(ErrorCode.OFFSET_NOT_AVAILABLE)
_OFFSET_OUT_OF_RANGE: Final = int(ErrorCode.OFFSET_OUT_OF_RANGE)
_FENCED_LEADER_EPOCH: Final = int(ErrorCode.FENCED_LEADER_EPOCH)
_UNKNOWN_LEADER_EPOCH: Final = int(ErrorCode.UNKNOWN_LEADER_EPOCH)

_AGREES: Final = (_NONE, None)

_tuple = tuple.__new__
"""Makes a named tuple without calling its `__new__`, which is Python."""

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
AS_REPLICA: Final = -1
"""Instead of an isolation level: a replica reads to the end of the log, and so does a tool that may replicate. On the
wire it is none, and must not be taken for this one."""
LOCAL_READER: Final = -3
"""Apache Kafka's id of a replica that a broker copies from one of its disks to another. Tools read whole logs by it."""

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6

TIMESTAMP_SINCE: Final = {
    LATEST_TIMESTAMP: 1,
    EARLIEST_TIMESTAMP: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
"""The first version of ListOffsets that has each of them."""

NO_REDIRECT: Final = -1
"""Read here: no other replica is nearer."""


class ReadRole(Protocol):
    """What a reader asks of a replica's role."""

    @property
    def leader_epoch(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...


class ReadLeader(Protocol):
    """What a reader asks of a leader (`leader.LeaderState`)."""

    @property
    def broker_id(self) -> int: ...

    def knows_what_is_committed(self) -> bool: ...

    def own_read_replica(self) -> ReadReplica: ...

    def read_replicas(self, fetch_offset: int, now_ms: int) -> Sequence[ReadReplica]: ...


class ReadPartition(Protocol):
    """What a reader asks of a replica (`partition.Partition`)."""

    @property
    def role(self) -> ReadRole | None: ...

    @property
    def leader(self) -> ReadLeader | None: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def log(self) -> ReplicaLog: ...


# ---- leader epochs and histories, of followers and of consumers


def check_epoch(given: int, own: int) -> int:
    """The error for a request that names leader epoch `given`, -1 for none, at a replica in epoch `own` (rule 112)."""
    if given in (own, NO_EPOCH):
        return _NONE
    return _FENCED_LEADER_EPOCH if given < own else _UNKNOWN_LEADER_EPOCH


def divergence(
    log: ReplicaLog, latest_epoch: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, tuple[int, int] | None]:
    """(error, None), or (0, (epoch, end offset)) if a reader's history is no prefix of `log` beyond there (rule 113).

    `latest_epoch` is the log's: a reader whose last epoch it is, and who is not beyond the end, needs no look-up.
    """
    end = log.log_end_offset
    if last_fetched_epoch != NO_EPOCH and not (last_fetched_epoch == latest_epoch and fetch_offset <= end):
        epoch, end_of_epoch = log.epochs.end_offset_for(last_fetched_epoch, end)
        if epoch == NO_EPOCH or end_of_epoch == UNKNOWN_OFFSET or fetch_offset < log.log_start_offset:
            return _OFFSET_OUT_OF_RANGE, None
        if epoch < last_fetched_epoch or end_of_epoch < fetch_offset:
            return _NONE, (epoch, end_of_epoch)
    if fetch_offset > end or fetch_offset < log.log_start_offset:
        return _OFFSET_OUT_OF_RANGE, None
    return _AGREES


# ---- Fetch by consumers


class ConsumerRead(NamedTuple):
    """How to answer a consumer's fetch: with an error, with a divergence, or with records below `upper_offset`."""

    error: int
    diverging: tuple[int, int] | None
    upper_offset: int


def consumer_fetch_bounds(isolation_level: int, high_watermark: int, last_stable_offset: int) -> int:
    """The offset below which a consumer may read (S18)."""
    if isolation_level == READ_COMMITTED:
        return min(high_watermark, last_stable_offset)
    return high_watermark


def consumer_read(
    partition: ReadPartition,
    fetch_offset: int,
    current_leader_epoch: int,
    last_fetched_epoch: int,
    isolation_level: int,
    last_stable_offset: int,
    leader_only: bool,
) -> ConsumerRead:
    """Check a consumer's fetch against this replica.

    A fetch between the high watermark and the end is in range and finds nothing; beyond the end it is out of range.
    That also sends a consumer which is ahead of this follower back to the leader. `leader_only`: a client from before
    KIP-392 asks.
    """
    role = partition.role
    if role is None:
        return ConsumerRead(_NOT_LEADER_OR_FOLLOWER, None, UNKNOWN_OFFSET)
    error = _NONE
    if current_leader_epoch >= 0:
        error = check_epoch(current_leader_epoch, role.leader_epoch)
    if not error and leader_only and partition.leader is None:
        error = _NOT_LEADER_OR_FOLLOWER
    if error:
        return ConsumerRead(error, None, UNKNOWN_OFFSET)
    log = partition.log
    latest_epoch = NO_EPOCH if last_fetched_epoch == NO_EPOCH else log.latest_epoch
    error, diverging = divergence(log, latest_epoch, fetch_offset, last_fetched_epoch)
    if isolation_level == AS_REPLICA:
        upper_offset = log.log_end_offset
    else:
        upper_offset = consumer_fetch_bounds(isolation_level, role.high_watermark, last_stable_offset)
    return _tuple(ConsumerRead, (error, diverging, upper_offset))


# ---- ListOffsets


class ListedOffset(NamedTuple):
    """One partition's answer to ListOffsets. Without error and with offset -1: there is no such record."""

    error: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


def list_offsets(
    partition: ReadPartition,
    log: ReadableLog,
    *,
    timestamp: int,
    isolation_level: int,
    last_stable_offset: int,
    current_leader_epoch: int = NO_EPOCH,
    version: int = 11,
    leader_only: bool = True,
) -> ListedOffset:
    """Answer ListOffsets for `timestamp`, a time or one of the negative constants above; as a rule only a leader does.

    `isolation_level` is `AS_REPLICA` for a replica that asks, and for a debugging client, whose "latest" is the end of
    the log. Only the latter asks any replica (`leader_only`). `log` is the partition's, as one that can be searched by
    time.
    """
    role = partition.role
    error = check_epoch(current_leader_epoch, partition.leader_epoch)
    leader = partition.leader
    if error or role is None or (leader is None and leader_only):
        return ListedOffset(error or _NOT_LEADER_OR_FOLLOWER)
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        return ListedOffset(offset=log.log_start_offset, leader_epoch=log.epochs.epoch_at(log.log_start_offset))
    if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return ListedOffset()  # nothing is tiered
    if isolation_level == AS_REPLICA:
        end, knows_end = log.log_end_offset, True
    else:
        end = consumer_fetch_bounds(isolation_level, role.high_watermark, last_stable_offset)
        knows_end = leader is not None and leader.knows_what_is_committed()
    if timestamp == LATEST_TIMESTAMP:
        if not knows_end:
            return ListedOffset(_not_available(version))
        return ListedOffset(offset=end, leader_epoch=role.leader_epoch)
    found = log.max_timestamp() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    if found is not None and found.offset < end:
        return ListedOffset(timestamp=found.timestamp, offset=found.offset, leader_epoch=found.leader_epoch)
    return ListedOffset() if knows_end else ListedOffset(_not_available(version))


def _not_available(version: int) -> int:
    """ "Ask again soon", as an error that old clients know (KIP-207)."""
    return _OFFSET_NOT_AVAILABLE if version >= 5 else _LEADER_NOT_AVAILABLE


# ---- OffsetForLeaderEpoch


class EpochEnd(NamedTuple):
    """One partition's answer to OffsetForLeaderEpoch; (-1, -1) without error when the epoch is not known."""

    error: int
    leader_epoch: int = NO_EPOCH
    end_offset: int = UNKNOWN_OFFSET


def offsets_for_leader_epoch(partition: ReadPartition, current_leader_epoch: int, leader_epoch: int) -> EpochEnd:
    """Where `leader_epoch` ended, in the log of a leader (rule 112; the epoch is checked first)."""
    error = check_epoch(current_leader_epoch, partition.leader_epoch)
    if error or partition.leader is None:
        return EpochEnd(error or _NOT_LEADER_OR_FOLLOWER)
    epoch, end_offset = partition.log.epochs.end_offset_for(leader_epoch, partition.log.log_end_offset)
    return EpochEnd(_NONE, epoch, end_offset)


# ---- Fetch from a nearer replica


def preferred_read_replica(client_rack: str | None, fetch_offset: int, leader: ReadLeader, now_ms: int) -> int:
    """The replica to which the leader sends a consumer that gave its rack: a broker's id, or `NO_REDIRECT`.

    Only ISR members that hold `fetch_offset` qualify; a lagging one would send the consumer straight back.
    """
    if not client_rack:
        return NO_REDIRECT
    chosen = nearest_replica(client_rack, leader.own_read_replica(), leader.read_replicas(fetch_offset, now_ms))
    return NO_REDIRECT if chosen == leader.broker_id else chosen

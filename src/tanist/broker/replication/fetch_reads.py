"""Reading one partition for a Fetch: what a follower may have of a leader's log, and a consumer of any replica's.

Record data is never touched: a read gives a range of a segment file. A fault is an error in the answer; a disk
that fails is the node's affair, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.quotas import Quota
from tanist.broker.replication.replica_effects import ReplicaEffects
from tanist.log.log import OffsetOutOfRange
from tanist.replica.leader import FollowerFetch
from tanist.replica.reads import READ_COMMITTED, consumer_read, preferred_read_replica
from tanist.wire.errors import ErrorCode
from tanist.wire.fetch import FetchCall, FetchedPartition, FetchTarget

_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_OUT_OF_RANGE = int(ErrorCode.OFFSET_OUT_OF_RANGE)
_FOLLOWER_READS_VERSION = 11  # KIP-392: older consumers are served by leaders only


class PartitionReads:
    """Reads for Fetch. `rack_aware`: consumers are sent to a replica in their rack (KIP-392)."""

    __slots__ = ("_effects", "_quota", "_rack_aware")

    def __init__(self, effects: ReplicaEffects, quota: Quota, *, rack_aware: bool) -> None:
        """`quota`: of the bytes that go to followers."""
        self._effects = effects
        self._quota = quota
        self._rack_aware = rack_aware

    def throttled(self, hosted: HostedPartition, replica_id: int) -> bool:
        """Whether the quota leaves a follower, not a consumer, nothing of the partition at this moment (KIP-73)."""
        quota = self._quota
        return quota.active and replica_id >= 0 and quota.holds_for(hosted, replica_id) and quota.exceeded

    def has_enough(
        self, call: FetchCall, partitions: Iterable[tuple[HostedPartition, FetchTarget, int | None]]
    ) -> bool:
        """Whether there is as much as is asked for, or as one answer may hold; or a role has changed.

        `partitions`: each that is asked for, with the offset up to which the client may read, or None if it is to hear
        that the role is another one. By the bytes in the logs, and not in an answer: that has whole batches, of one
        segment of a partition, so it may be smaller though no waiting would make it larger.
        """
        missing = min(call.min_bytes, call.max_bytes)
        for hosted, target, upper_offset in partitions:
            if upper_offset is None:
                return True
            if upper_offset > target.fetch_offset and not self.throttled(hosted, call.replica_id):
                missing -= min(target.max_bytes, hosted.log.bytes_available(target.fetch_offset, upper_offset))
                if missing <= 0:
                    return True
        return False

    def for_follower(
        self,
        hosted: HostedPartition,
        call: FetchCall,
        target: FetchTarget,
        left: int,
        first: bool,
        arriving: bool,
        now_ms: int,
    ) -> FetchedPartition:
        """Read for a follower, and take note of what its asking says. `first`: nothing is in the answer yet.

        `arriving`: the request is new. A held one that is answered now says nothing new about its follower (rule 13).
        """
        leader = hosted.leader
        index = target.partition
        if leader is None:
            error = ErrorCode.KAFKA_STORAGE_ERROR if hosted.stale else _NOT_LEADER
            return FetchedPartition(index, error, -1, -1, -1, None)
        log = hosted.log
        start = log.log_start_offset
        if arriving or hosted.leader_epoch != target.current_leader_epoch:
            try:
                decision = leader.follower_fetch(
                    FollowerFetch(
                        call.replica_id,
                        call.replica_epoch,
                        target.fetch_offset,
                        target.last_fetched_epoch,
                        target.current_leader_epoch,
                        target.log_start_offset,
                    ),
                    now_ms,
                )
            except Exception as error:
                hosted.failed_by(error)
                return FetchedPartition(index, ErrorCode.KAFKA_STORAGE_ERROR, -1, -1, -1, None)
            if decision.error:
                return FetchedPartition(index, decision.error, -1, -1, start, None)
            if hosted.low_watermark_waiters:
                hosted.complete_low_watermark_waits()
            if decision.effects:
                self._effects.apply(hosted, decision.effects)
            high_watermark = decision.high_watermark
            if decision.diverging is not None:
                return FetchedPartition(
                    index, 0, high_watermark, high_watermark, start, None, diverging_epoch=decision.diverging
                )
        else:
            high_watermark = leader.high_watermark
        records = None
        counts = self._quota.active and self._quota.holds_for(hosted, call.replica_id)
        if (left > 0 or first) and not (counts and self._quota.exceeded):
            limit = target.max_bytes if target.max_bytes < left else left
            try:
                piece = log.read(target.fetch_offset, limit, log.log_end_offset, first)
            except OffsetOutOfRange:
                return FetchedPartition(index, _OUT_OF_RANGE, -1, -1, start, None)
            except OSError as failure:
                hosted.disk_failed(failure)
                return FetchedPartition(index, ErrorCode.KAFKA_STORAGE_ERROR, -1, -1, -1, None)
            if piece is not None:
                records = piece.chunk
                if counts:
                    self._quota.record(records.length)
        return FetchedPartition(index, 0, high_watermark, high_watermark, start, records)

    def for_consumer(
        self,
        hosted: HostedPartition,
        call: FetchCall,
        target: FetchTarget,
        left: int,
        first: bool,
        version: int,
        now_ms: int,
    ) -> FetchedPartition:
        """Read what is committed, or stable, for a consumer. `left`: how many bytes more the answer may have."""
        index = target.partition
        leader = hosted.leader
        if hosted.stale:
            return FetchedPartition(index, ErrorCode.KAFKA_STORAGE_ERROR, -1, -1, -1, None)
        log = hosted.log
        start = log.log_start_offset
        high_watermark = hosted.replica.high_watermark if leader is None else leader.high_watermark
        stable_offset = log.last_stable_offset(high_watermark)
        error, diverging, upper_offset = consumer_read(
            hosted.replica,
            target.fetch_offset,
            target.current_leader_epoch,
            target.last_fetched_epoch,
            call.isolation_level,
            stable_offset,
            version < _FOLLOWER_READS_VERSION,
        )
        if error:
            return FetchedPartition(index, error, -1, -1, -1, None)
        if call.rack_id and leader is not None and self._rack_aware:
            preferred = preferred_read_replica(call.rack_id, target.fetch_offset, leader, now_ms)
            if preferred >= 0:
                return FetchedPartition(
                    index, 0, high_watermark, stable_offset, start, None, preferred_read_replica=preferred
                )
        if diverging is not None:
            return FetchedPartition(index, 0, high_watermark, stable_offset, start, None, diverging_epoch=diverging)
        records = None
        aborted = None
        if target.fetch_offset < upper_offset and (left > 0 or first):
            limit = target.max_bytes if target.max_bytes < left else left
            try:
                piece = log.read(target.fetch_offset, limit, upper_offset, first)
                if piece is not None:
                    records = piece.chunk
                    if call.isolation_level == READ_COMMITTED:
                        aborted = [
                            (each.producer_id, each.first_offset)
                            for each in log.aborted_within(piece, target.fetch_offset, upper_offset)
                        ]
            except OffsetOutOfRange:
                return FetchedPartition(index, _OUT_OF_RANGE, -1, -1, -1, None)
            except OSError as failure:
                hosted.disk_failed(failure)
                return FetchedPartition(index, ErrorCode.KAFKA_STORAGE_ERROR, -1, -1, -1, None)
        return FetchedPartition(index, 0, high_watermark, stable_offset, start, records, aborted)

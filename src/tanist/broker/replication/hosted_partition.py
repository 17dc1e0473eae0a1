"""One partition as this node hosts it: its log, its replica's state machine, and who waits for it.

The replica (`replica.Partition`) decides; this is where the node keeps the context of its decisions: the
produce requests waiting for the high watermark, the fetches waiting for data, the requests waiting for the low
watermark, and whether the turn has touched it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from tanist.invariants import InvariantError
from tanist.log.directory import LogDirectory
from tanist.log.log import Log
from tanist.log.torn import as_failure
from tanist.replica.follower import FollowerState
from tanist.replica.leader import LeaderState
from tanist.replica.partition import Partition
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import INTERNAL_TOPICS

_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)


class WatermarkWaiter(Protocol):
    """A request that waits for a watermark: for the high one a produce with acks=all, or a group's records; for the
    low one a DeleteRecords.
    """

    done: bool

    def complete(self, ticket: int, error: int) -> None:
        """The watermark is there, or (by `error`) nobody here will see that."""


class FetchWaiter(Protocol):
    """A request that waits for data: a fetch that could not be answered with enough records."""

    done: bool

    def try_complete(self, changed: HostedPartition) -> None:
        """The partition has more data, a higher high watermark, or another role."""

    def expire(self) -> None:
        """Answer with what there is."""


class FollowerWatch(Protocol):
    """A follower's session that has the partition, and hears of its changes for as long as it lasts."""

    def activate(self) -> None:
        """The log has grown, or another thing has changed that a follower is to know."""

    def partition_changed(self) -> None:
        """As `activate`, at the end of the turn: what was appended is written."""

    def role_changed(self) -> None:
        """The partition has another leader epoch, or is gone."""


class HostedPartition:
    """A replica hosted by this broker."""

    __slots__ = (
        "_directory_failed",
        "ack_waiters",
        "directory",
        "dirty",
        "fetch_waiters",
        "follower",
        "followers",
        "grown",
        "index",
        "is_internal",
        "leader",
        "leader_epoch",
        "leader_high_watermark",
        "leads_from",
        "log",
        "low_watermark_waiters",
        "replica",
        "shown_high_watermark",
        "stale",
        "topic",
        "topic_id",
        "upkeep_ms",
    )

    # Waiters that are done stay in the list until it is next walked; past this size adding one sweeps the list.
    SWEEP_WAITERS = 64

    def __init__(
        self,
        topic: str,
        topic_id: UUID,
        index: int,
        replica: Partition,
        log: Log,
        directory: LogDirectory,
        directory_failed: Callable[[LogDirectory, OSError], None],
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.is_internal = topic in INTERNAL_TOPICS
        self.replica = replica
        self.log = log
        self.directory = directory
        self._directory_failed = directory_failed
        # The role, copied out of the replica after each metadata change, so that the fast path asks no questions.
        self.leader: LeaderState | None = None
        self.follower: FollowerState | None = None
        self.leader_epoch = -1
        # For the metrics: the end offset with which the present leadership began, and, of a follower, what its leader
        # last said to be committed.
        self.leads_from = -1
        self.leader_high_watermark = -1
        # What waited below it has been answered: of one leadership it never goes back.
        self.shown_high_watermark = -1
        # Touched in this turn: pending writes, or waiters to look at.
        self.dirty = False
        # Appended to in this turn, as its leader: the leader has not counted it yet.
        self.grown = False
        # True once the partition was deleted or its directory failed: no I/O any more.
        self.stale = False
        # acks=all produces and groups' records, by the offset that the high watermark must reach, ascending:
        # `wait_for_high_watermark` adds to them.
        self.ack_waiters: deque[tuple[int, WatermarkWaiter, int]] = deque()
        # By the offset that the low watermark must reach, in no order.
        self.low_watermark_waiters: list[tuple[int, WatermarkWaiter, int]] = []
        self.fetch_waiters: list[FetchWaiter] = []
        self.followers: list[FollowerWatch] = []
        # Before this time nothing is due for the log, unless it is appended to (`storage/housekeeping.py`).
        self.upkeep_ms = 0

    def wait_for_data(self, waiter: FetchWaiter) -> None:
        waiters = self.fetch_waiters
        if len(waiters) >= self.SWEEP_WAITERS and len(waiters) & (len(waiters) - 1) == 0:
            self.fetch_waiters = waiters = [w for w in waiters if not w.done]
        waiters.append(waiter)

    def wait_for_high_watermark(self, required_offset: int, waiter: WatermarkWaiter, ticket: int = 0) -> None:
        """Call `waiter.complete(ticket, ...)` once the high watermark is there, or never will be (rule 119).

        Nearly all come in order, for they wait for what they have appended. A producer's retry waits for what its
        first try has appended, and a coordinator that had nothing to write for what it wrote last: before others.
        """
        waiters = self.ack_waiters
        if not waiters or waiters[-1][0] <= required_offset:
            waiters.append((required_offset, waiter, ticket))
            return
        place = len(waiters) - 1
        while place and waiters[place - 1][0] > required_offset:
            place -= 1
        waiters.insert(place, (required_offset, waiter, ticket))

    def high_watermark_advanced(self) -> None:
        """Settle what waits for a high watermark that is reached now (rule 119)."""
        leader = self.leader
        if leader is None:
            return
        waiters = self.ack_waiters
        high_watermark = leader.high_watermark
        if high_watermark < self.shown_high_watermark:
            raise InvariantError(
                "a leader's high watermark never goes back",
                high_watermark=high_watermark,
                before=self.shown_high_watermark,
            )
        self.shown_high_watermark = high_watermark
        settled = -1
        while waiters and waiters[0][0] <= high_watermark:
            required_offset, waiter, ticket = waiters.popleft()
            if required_offset < settled:
                raise InvariantError(
                    "acknowledgements are in the order of offsets", required_offset=required_offset, before=settled
                )
            settled = required_offset
            if not waiter.done:
                waiter.complete(ticket, leader.acks_status(required_offset).error)

    def wait_for_low_watermark(self, required_offset: int, waiter: WatermarkWaiter, ticket: int) -> None:
        """Call `waiter.complete(ticket, ...)` once the logs of all live replicas begin there or later."""
        if self.leader is None:
            waiter.complete(ticket, _STORAGE_ERROR if self.stale else _NOT_LEADER)
            return
        self.low_watermark_waiters.append((required_offset, waiter, ticket))
        self.complete_low_watermark_waits()

    def complete_low_watermark_waits(self) -> None:
        """The log of a replica may begin elsewhere, or a replica not count any more: complete what waited for that."""
        if self.leader is None:
            return
        waiters, self.low_watermark_waiters = self.low_watermark_waiters, []
        low_watermark = self.leader.low_watermark
        for required_offset, waiter, ticket in waiters:
            if waiter.done:
                continue
            if required_offset <= low_watermark:
                waiter.complete(ticket, 0)
            else:
                self.low_watermark_waiters.append((required_offset, waiter, ticket))

    def leadership_lost(self, error: int = _NOT_LEADER) -> None:
        """Another broker leads, or the log is gone: this one will not see the watermarks move."""
        waiters = (*self.ack_waiters, *self.low_watermark_waiters)
        self.ack_waiters = deque()
        self.low_watermark_waiters = []
        for _, waiter, ticket in waiters:
            waiter.complete(ticket, error)

    def disk_failed(self, failure: OSError) -> None:
        """I/O on the log failed: its whole directory goes offline."""
        self._directory_failed(self.directory, failure)

    def failed_by(self, error: Exception) -> None:
        """`error` was met while the replica decided, or its decision was carried out: as if its disk had failed.

        What the replica remembers belongs to its log, and neither is to be trusted now. A restart derives both anew.
        """
        self.disk_failed(as_failure(error))

    def append_refused(self) -> None:
        """The log has refused an append. If its disk was the reason, do not wait for the next read to notice."""
        if self.log.failed is not None:
            self.disk_failed(self.log.failed)

    def move_to(self, directory: LogDirectory, log: Log) -> None:
        """The same records lie in this log of another directory from now on; nobody else needs to know."""
        self.log, self.directory = log, directory
        self.replica.replace_log(log)
        self.upkeep_ms = 0

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def records_in(self) -> int:
        """Records that producers have appended since the present leadership began; 0 of a follower."""
        return max(0, self.log.log_end_offset - self.leads_from) if self.leads_from >= 0 else 0

    def take_role(self) -> None:
        """Copy the replica's role after a metadata change."""
        self.upkeep_ms = 0
        role = self.replica.role
        if role is not self.leader:
            self.shown_high_watermark = -1
        self.leader = role if isinstance(role, LeaderState) else None
        self.follower = role if isinstance(role, FollowerState) else None
        metadata = self.replica.metadata
        self.leader_epoch = -1 if metadata is None else metadata.leader_epoch

    def __repr__(self) -> str:
        role = "leader" if self.leader else "follower" if self.follower else "offline"
        return f"<{self.name} {role} epoch {self.leader_epoch}>"

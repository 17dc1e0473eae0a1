"""A leader's state of one follower: its end offset, and when it was last caught up.

Owns the bookkeeping of fetches (rules 12-14, 16). `LeaderState` uses it to decide about the ISR.
"""

from __future__ import annotations

from tanist.replica.metadata import NO_EPOCH, UNKNOWN_OFFSET

NEVER_MS = -(1 << 62)
"""A time before all others. Not 0: `now_ms` is monotonic and may itself be near 0."""


class RemoteReplica:
    """One follower, as of its last accepted fetch. All offsets are what it has confirmed by asking for more."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "last_caught_up_ms",
        "last_fetch_leader_end_offset",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch: int | None = None
        """Epoch given in its last fetch; None before the first one. -1 when it gave none."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_caught_up_ms = NEVER_MS
        self.last_fetch_ms = NEVER_MS
        self.last_fetch_leader_end_offset = UNKNOWN_OFFSET

    @property
    def broker_epoch_or_unknown(self) -> int:
        return NO_EPOCH if self.broker_epoch is None else self.broker_epoch

    def fetched(
        self, fetch_offset: int, log_start_offset: int, broker_epoch: int, leader_end_offset: int, now_ms: int
    ) -> None:
        """Record an accepted fetch.

        A follower that asks for the leader's end has caught up now; one that asks for what was the end when it last
        fetched had caught up then. So a follower that keeps pace with a busy leader counts as caught up, although each
        of its fetches finds new records (rule 13).
        """
        if fetch_offset >= leader_end_offset:
            caught_up_ms = now_ms
        elif fetch_offset >= self.last_fetch_leader_end_offset:
            caught_up_ms = self.last_fetch_ms
        else:
            caught_up_ms = NEVER_MS
        if caught_up_ms > self.last_caught_up_ms:
            self.last_caught_up_ms = caught_up_ms
        if leader_end_offset > self.last_fetch_leader_end_offset:
            self.last_fetch_leader_end_offset = leader_end_offset
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def was_there(self, at_ms: int) -> None:
        """It had the leader's end then, and asked for what comes next."""
        self.last_caught_up_ms = max(self.last_caught_up_ms, at_ms)
        self.last_fetch_ms = max(self.last_fetch_ms, at_ms)

    def forget(self, now_ms: int, *, in_sync: bool) -> None:
        """The leader knows nothing of it yet; a member of the ISR counts as caught up until now (rule 14)."""
        self.broker_epoch = None
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_fetch_leader_end_offset = UNKNOWN_OFFSET
        self.last_fetch_ms = NEVER_MS
        self.last_caught_up_ms = now_ms if in_sync else NEVER_MS

    def restart_clock(self, leader_end_offset: int, now_ms: int, *, in_sync: bool) -> None:
        """The same leader in a new epoch: its end offset still counts, its caught-up time does not (rule 14)."""
        self.last_fetch_leader_end_offset = leader_end_offset
        self.last_fetch_ms = now_ms if in_sync else NEVER_MS
        self.last_caught_up_ms = now_ms if in_sync else NEVER_MS

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        """At the leader's end, or was there not longer than `replica.lag.time.max.ms` ago (rule 12)."""
        return self.log_end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= lag_ms_max

    def snapshot(self) -> tuple[int | None, ...]:
        """All state as a tuple."""
        return tuple(getattr(self, name) for name in self.__slots__)

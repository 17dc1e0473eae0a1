"""Carrying out what a replica's state machine wants: the one interpreter of `replica.effects` on a broker.

Owns which part of the broker an effect goes to, and nothing else: the replica has decided, the parts act. An effect
that is an event is emitted as well. Requests that wait on a partition hear of it here: produces when the high watermark
moves, fetches at the end of the turn or when the role changes, a coordinator when the leadership of a partition of its
topic comes or goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tanist.broker.counters import Metrics
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.events.event import Event
from tanist.events.replication import IsrChanged, IsrUpdateFailed, LogTruncated
from tanist.events.stream import Events
from tanist.replica.effects import Effect, HighWatermarkAdvanced, HighWatermarkSet, ProposeIsr, SalvageFirst
from tanist.replica.leader import LeaderState
from tanist.wire.errors import ErrorCode


class IsrProposals(Protocol):
    """Where a leader's proposals go (`isr_changes.IsrChanges`)."""

    def propose(self, hosted: HostedPartition, leader: LeaderState, proposal: ProposeIsr) -> None:
        """Take a proposal to the controller."""


class SalvageQueue(Protocol):
    """The copier of records that a follower is about to drop (`salvage.Salvage`)."""

    def begin(self, hosted: HostedPartition, effect: SalvageFirst) -> None:
        """Copy, then let the follower cut."""


class ReplicaEffects:
    """The interpreter. Its public attributes are set while the node is assembled."""

    __slots__ = (
        "_events",
        "_mark_dirty",
        "_metrics",
        "coordinators",
        "has_open_transactions",
        "isr_changes",
        "salvage",
    )

    isr_changes: IsrProposals
    salvage: SalvageQueue
    coordinators: Mapping[str, Callable[[HostedPartition], None]]
    """By the internal topic that they keep: they hear of each change of role."""
    has_open_transactions: Callable[[HostedPartition], None]
    """Hears of partitions whose leadership has come, or goes on in another epoch, with transactions open."""

    def __init__(self, mark_dirty: Callable[[HostedPartition], None], metrics: Metrics, events: Events) -> None:
        self._mark_dirty = mark_dirty
        self._metrics = metrics
        self._events = events

    def leader_has_appended(self, hosted: HostedPartition, leader: LeaderState, now_ms: int) -> None:
        """The leader's log has grown, and the partition is marked for the end of the turn."""
        try:
            effects = leader.appended(now_ms)
        except Exception as error:
            hosted.failed_by(error)
            return
        if effects and (hosted.ack_waiters or type(effects[0]) is not HighWatermarkAdvanced):
            # A lone replica's append advances the high watermark by itself, and mostly nobody waits for it.
            self.apply(hosted, effects)

    def carry_out(self, hosted: HostedPartition, decide: Callable[[], Sequence[Effect]]) -> bool:
        """Let the replica decide, and carry that out. False if its log was given up for what it has met."""
        try:
            self._apply(hosted, decide())
        except Exception as error:
            hosted.failed_by(error)
            return False
        return True

    def apply(self, hosted: HostedPartition, effects: Sequence[Effect]) -> None:
        """Carry out the effects in order."""
        try:
            self._apply(hosted, effects)
        except Exception as error:
            hosted.failed_by(error)

    def _apply(self, hosted: HostedPartition, effects: Sequence[Effect]) -> None:
        for effect in effects:
            kind = type(effect)
            if kind is HighWatermarkAdvanced:
                hosted.high_watermark_advanced()
                self._mark_dirty(hosted)
            elif isinstance(effect, HighWatermarkSet):
                hosted.log.producers.replicated(effect.high_watermark)
                self._mark_dirty(hosted)
            elif isinstance(effect, ProposeIsr):
                if hosted.leader is not None:
                    self.isr_changes.propose(hosted, hosted.leader, effect)
            elif isinstance(effect, SalvageFirst):
                self.salvage.begin(hosted, effect)
            elif isinstance(effect, Event):
                self._events.emit(effect)
                if isinstance(effect, IsrChanged):
                    hosted.high_watermark_advanced()
                    self._isr_changed(hosted)
                elif isinstance(effect, IsrUpdateFailed):
                    self._isr_changed(hosted)
                elif isinstance(effect, LogTruncated):
                    self._mark_dirty(hosted)

    def role_changed(self, hosted: HostedPartition, before: LeaderState | None) -> None:
        """The partition has a new leader epoch, or is gone: what waits on it must look elsewhere."""
        self._count_records(hosted, before)
        if before is not None and hosted.leader is None:
            hosted.leadership_lost(ErrorCode.KAFKA_STORAGE_ERROR if hosted.stale else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        waiters, hosted.fetch_waiters = hosted.fetch_waiters, []
        for waiter in waiters:
            waiter.expire()
        for follower in tuple(hosted.followers):
            follower.role_changed()
        if hosted.is_internal and (coordinator := self.coordinators.get(hosted.topic)) is not None:
            coordinator(hosted)
        if hosted.leader is not None and hosted.log.producers.open_transactions:
            self.has_open_transactions(hosted)

    def _isr_changed(self, hosted: HostedPartition) -> None:
        """Followers that are not in the ISR are looked at with each of their requests: they may join it.

        A fetch that waits because of a throttle is looked at again: a member of the ISR is not throttled (KIP-73).
        """
        for follower in hosted.followers:
            follower.activate()
        self._mark_dirty(hosted)

    def _count_records(self, hosted: HostedPartition, before: LeaderState | None) -> None:
        """A log grows by what producers append while it is led from here: so records need not be counted one by one."""
        leader = hosted.leader
        if before is None and leader is not None:
            hosted.leads_from = leader.leader_epoch_start_offset
        elif before is not None and leader is None:
            self._metrics.records_in_before += hosted.records_in
            hosted.leads_from = -1

"""The share partitions of the partitions that this broker leads.

Owns their life: the state is read when a member first asks, by a leader epoch that fences the leader before; what
members say is written in order, several of their words at once if there is a write under way; a share partition goes
when the leadership does, when its coordinator fences it, and when no member of the group has a session here. It also
lets locks expire. What may be delivered to whom is decided in `coordinator.share.partition`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from tanist.broker.alarm import Alarm
from tanist.broker.context import NodeContext
from tanist.broker.metadata.image_queries import GroupValues
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.share.dead_letters import DeadLetters
from tanist.broker.share.persister import NO_COORDINATOR, Persister
from tanist.broker.share.start_offset import start_offset
from tanist.broker.share.state_requests import Initialize, Read, Write
from tanist.coordinator.share.partition import Change, Limits, SharePartition
from tanist.coordinator.share.records import UNINITIALIZED
from tanist.coordinator.share.runs import Acquired, RecordState, combined
from tanist.coordinator.share.state_shard import Outcome, SharePartitionId, ShareState
from tanist.events.coordination import (
    ShareLockExpired,
    ShareRecordsAcquired,
    ShareRecordsStored,
    ShareStateRead,
    ShareStateRefused,
)
from tanist.wire.errors import ErrorCode

_PASSED_ON: Final = frozenset(
    {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}
)
_FENCED: Final = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})

OnStored = Callable[[int], None]
"""Gets the error, 0 if all is stored."""


def client_error(error: int) -> int:
    """The coordinator's error, as a member is to understand it (Apache Kafka's)."""
    if error in _FENCED:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if error in NO_COORDINATOR:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error if not error or error in _PASSED_ON else ErrorCode.UNKNOWN_SERVER_ERROR


class ShareWaiter(Protocol):
    """A fetch that waits for records of a share partition."""

    done: bool

    def wake(self) -> None:
        """There may be some, or the share partition is not here any more."""


@dataclass(slots=True, eq=False)
class _Queued:
    change: Change
    then: OnStored | None


class LedShare:
    """A share partition, as its leader has it."""

    def __init__(self, where: SharePartitionId, hosted: HostedPartition) -> None:
        self.where = where
        self.hosted = hosted
        self.leader = hosted.leader
        self.leader_epoch = hosted.leader_epoch
        self.state_epoch = -1
        self.delivery: SharePartition | None = None
        """None until it is read."""
        self.error = 0
        """It could not be read, or is not here any more."""
        self.waiters: list[ShareWaiter] = []
        self.queue: list[_Queued] = []
        self.writing = False
        self.letters = 0
        """Dead letters that are being written."""

    @property
    def named(self) -> tuple[str, str, int]:
        """As events have it: the group, the partition and the leader epoch."""
        return self.where.group_id, self.hosted.name, self.leader_epoch

    @property
    def is_busy(self) -> bool:
        """Whether something is being written."""
        return self.writing or bool(self.queue) or self.letters > 0

    @property
    def is_led(self) -> bool:
        """Whether the leadership in which it was read still lasts."""
        hosted = self.hosted
        return not hosted.stale and hosted.leader is self.leader and hosted.leader_epoch == self.leader_epoch

    def wait(self, waiter: ShareWaiter) -> None:
        self.waiters = [each for each in self.waiters if not each.done]
        self.waiters.append(waiter)

    def wake(self) -> None:
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            if not waiter.done:
                waiter.wake()
        self.waiters += [each for each in waiters if not each.done]


class LedShares:
    """All share partitions of this broker."""

    def __init__(
        self,
        context: NodeContext,
        values: GroupValues,
        persister: Persister,
        dead_letters: DeadLetters,
        is_wanted: Callable[[str], bool],
    ) -> None:
        """`is_wanted`: whether a member of the group has a session here."""
        self._context = context
        self._is_wanted = is_wanted
        self._values = values
        self._persister = persister
        self._dead_letters = dead_letters
        self._led: dict[SharePartitionId, LedShare] = {}
        self._alarm = Alarm(context.clock, self._tick)

    def __iter__(self) -> Iterator[LedShare]:
        return iter(self._led.values())

    def limits(self, group_id: str) -> Limits:
        """The group's present settings."""
        number = partial(self._values.number, group_id)
        return Limits(
            delivery_count=number("share.delivery.count.limit"),
            record_locks=number("share.partition.max.record.locks"),
            lock_ms=number("share.record.lock.duration.ms"),
            may_renew=self._values.text(group_id, "share.renew.acknowledge.enable") == "true",
            dead_letters=self._dead_letters.has_group(group_id),
        )

    def find(self, where: SharePartitionId) -> LedShare | None:
        """The share partition, if it is here; else it is forgotten."""
        found = self._led.get(where)
        if found is not None and not found.is_led:
            self._drop(found, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return None
        return found

    def open(self, where: SharePartitionId, hosted: HostedPartition) -> LedShare:
        """The share partition of a partition that is led here; if it is new, its state is being read."""
        found = self.find(where)
        if found is None:
            found = self._led[where] = LedShare(where, hosted)
            self._read(found)
        return found

    # -- reading the state

    def _read(self, share: LedShare) -> None:
        self._persister.ask(share.where, Read(share.leader_epoch), partial(self._is_read, share))

    def _is_read(self, share: LedShare, outcome: Outcome) -> None:
        state = outcome.state
        if share.error or not share.is_led:
            self._drop(share, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        if outcome.error or state is None:
            self._refused(share, outcome.error)
            self._drop(share, client_error(outcome.error or ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        log_end = share.hosted.log.log_end_offset
        if state.start_offset > log_end or (state.batches and state.batches[-1].last >= log_end):
            self._cut(share, state, log_end)
            return
        start: int | None = state.start_offset
        if start == UNINITIALIZED:
            where_to = self._values.text(share.where.group_id, "share.auto.offset.reset")
            start = start_offset(share.hosted, where_to, self._context.clock.wall_ms())
        if start is None:
            self._drop(share, ErrorCode.OFFSET_NOT_AVAILABLE)
            return
        share.state_epoch = state.state_epoch
        share.delivery = SharePartition(start, combined(state.batches, (), start))
        share.delivery.log_start_moved(share.hosted.log.log_start_offset)
        reset = state.start_offset == UNINITIALIZED
        self._context.events.emit(ShareStateRead(*share.named, state.state_epoch, share.delivery.start_offset, reset))
        self._write_dead_letters(share)
        share.wake()

    def _cut(self, share: LedShare, state: ShareState, log_end: int) -> None:
        """An unclean election has taken records that were acquired: others will have their offsets, and are new."""
        start = min(state.start_offset, log_end)
        kept = tuple(each._replace(last=min(each.last, log_end - 1)) for each in state.batches if each.first < log_end)

        def written(outcome: Outcome) -> None:
            if outcome.error or not share.is_led:
                self._drop(share, client_error(outcome.error) or ErrorCode.NOT_LEADER_OR_FOLLOWER)
            else:
                self._read(share)

        def made(outcome: Outcome) -> None:
            if outcome.error:
                written(outcome)
                return
            write = Write(state.state_epoch, share.leader_epoch, start, -1, kept)
            self._persister.ask(share.where, write, written)

        self._persister.ask(share.where, Initialize(state.state_epoch, start), made)

    # -- what members say

    def store(self, share: LedShare, change: Change, then: OnStored | None = None) -> None:
        """Have a change written; `then` hears when it is, or that it could not be."""
        if change.is_empty:
            if then is not None:
                then(0)
            return
        share.queue.append(_Queued(change, then))
        self._write(share)

    def _write(self, share: LedShare) -> None:
        if share.writing:
            return
        queue, share.queue = share.queue, []
        delivery = share.delivery
        if not queue or delivery is None:
            return
        share.writing = True
        request = Write(
            share.state_epoch,
            share.leader_epoch,
            delivery.start_offset,
            delivery.delivery_complete_count,
            tuple(batch for each in queue for batch in each.change.batches),
        )
        self._persister.ask(share.where, request, partial(self._written, share, queue))

    def _written(self, share: LedShare, queue: list[_Queued], outcome: Outcome) -> None:
        share.writing = False
        now_ms = self._context.clock.now_ms()
        delivery = share.delivery
        if delivery is not None:
            limits = self.limits(share.where.group_id)
            for each in queue:
                delivery.stored(each.change, limits, now_ms, failed=outcome.error != 0)
                if self._context.events.fine and not outcome.error:
                    self._tell_stored(share, each.change)
        error = client_error(outcome.error)
        is_over = outcome.error in _FENCED or error in _PASSED_ON
        if not is_over:  # at first: who hears of it may end the last session
            self._write_dead_letters(share)
        for each in queue:
            if each.then is not None:
                each.then(error)
        if is_over:
            self._refused(share, outcome.error)
            self._drop(share, error)
        self._write(share)
        self._drop_if_unwanted(share)
        share.wake()
        self.arm(share)

    # -- dead letters

    def _write_dead_letters(self, share: LedShare) -> None:
        """Those that are stored as such; when they are written, or cannot be, they are archived."""
        if share.error or share.delivery is None:
            return
        for letter, change in share.delivery.dead_letters():
            share.letters += 1
            self._dead_letters.write(
                share.where.group_id, share.hosted, letter, partial(self._dead_letter_written, share, change)
            )

    def _dead_letter_written(self, share: LedShare, change: Change) -> None:
        share.letters -= 1
        if not share.error:
            self.store(share, change)

    # -- events

    def tell_acquired(self, share: LedShare, member_id: str, acquired: Iterable[Acquired]) -> None:
        """A member gets these records."""
        if self._context.events.fine:
            for each in acquired:
                self._context.events.emit(ShareRecordsAcquired(*share.named, member_id, *each))

    def _tell_stored(self, share: LedShare, change: Change) -> None:
        """Of what members have said. Locks that have expired have events of their own."""
        for each in change.batches if change.runs else ():
            self._context.events.emit(ShareRecordsStored(*share.named, each.first, each.last, int(each.state)))

    def _tell_expired(self, share: LedShare, change: Change) -> None:
        for each in change.batches:
            event = ShareLockExpired(*share.named, each.first, each.last, each.state is not RecordState.AVAILABLE)
            self._context.events.emit(event)

    def _refused(self, share: LedShare, error: int) -> None:
        if self._context.events.fine:
            self._context.events.emit(ShareStateRefused(*share.named, error))

    # -- the end of a share partition

    def forget_group(self, group_id: str) -> None:
        """No member has a session here. What is being written is not disturbed."""
        for share in [each for each in self if each.where.group_id == group_id]:
            self._drop_if_unwanted(share)

    def _drop_if_unwanted(self, share: LedShare) -> None:
        if not share.is_busy and not self._is_wanted(share.where.group_id):
            self._drop(share, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _drop(self, share: LedShare, error: int) -> None:
        if self._led.get(share.where) is share:
            del self._led[share.where]
        share.error = share.error or int(error)
        share.wake()

    # -- time

    def arm(self, share: LedShare) -> None:
        """Look at it again when its next lock expires."""
        if share.delivery is not None and not share.error:
            self._alarm.set(share.delivery.check_ms)

    def _tick(self) -> None:
        now_ms = self._context.clock.now_ms()
        for share in list(self):
            if not share.is_led:
                self._drop(share, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif share.delivery is not None and share.delivery.check_ms <= now_ms:
                change = share.delivery.expire(self.limits(share.where.group_id), now_ms)
                if self._context.events.fine:
                    self._tell_expired(share, change)
                self.store(share, change)
                share.wake()
            self.arm(share)

    def close(self) -> None:
        """The broker is going down."""
        self._led.clear()
        self._alarm.cancel()

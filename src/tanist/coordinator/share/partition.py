"""One share partition: which records of a partition a share group may get, has got, and is done with (KIP-932).

Owns the records between the share-partition start offset and the end of what was ever acquired. A record is available,
acquired by one member until its lock expires, or done: acknowledged, or archived (rejected, delivered too often, or not
there). On its way to a dead letter topic it is archiving (KIP-1191). Members acknowledge; what they say counts when it
is stored, so a change is pending until the caller says that its batches are (`stored`), and is taken back if they are
not. The start offset follows the records that are done.

It must never deliver a record to two members at once, nor one that is done; and not more often than the limit, but for
deliveries that a crash has made forgotten. It reads no log and no clock, and stores nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tanist.coordinator.effects import NEVER_MS, Refused
from tanist.coordinator.share.portions import (
    Acknowledgement,
    FetchedBatch,
    Wanted,
    add,
    by_type,
    end_of,
    portion_of,
    without,
)
from tanist.coordinator.share.runs import Acquired, RecordState, StateBatch
from tanist.wire.errors import ErrorCode

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""Kinds of acknowledgement. A gap: the client has found no record there."""
_STATE_OF: Final[Mapping[int, RecordState]] = {
    GAP: ARCHIVED,
    ACCEPT: ACKNOWLEDGED,
    RELEASE: AVAILABLE,
    REJECT: ARCHIVED,
}
_NOBODY: Final = ""


class Limits(NamedTuple):
    """The group's settings, as of now."""

    delivery_count: int = 5
    record_locks: int = 2000
    lock_ms: int = 30_000
    may_renew: bool = True
    dead_letters: bool = False
    """Records that nobody could process go to a topic (KIP-1191)."""

    @property
    def given_up(self) -> RecordState:
        """The state of such records."""
        return ARCHIVING if self.dead_letters else ARCHIVED


class DeadLetter(NamedTuple):
    """Records that are to go to the dead letter topic."""

    first: int
    last: int
    delivery_count: int
    rejected: bool
    """By a member; else they were delivered as often as they may be."""


@dataclass(slots=True, eq=False)
class _Run:
    """Consecutive records in one state."""

    first: int
    last: int
    state: RecordState
    delivery_count: int
    member_id: str = _NOBODY
    lock_until_ms: int = NEVER_MS
    pending: RecordState | None = None
    """The state that is being stored."""
    rejected: bool = False
    """A member has rejected it."""

    def __len__(self) -> int:
        return self.last - self.first + 1

    def stored_as(self, state: RecordState) -> StateBatch:
        return StateBatch(self.first, self.last, state, self.delivery_count)


class Change:
    """Batches to store; the records of an acknowledgement are in between until that is done."""

    __slots__ = ("batches", "is_late", "runs")

    def __init__(self, runs: Sequence[_Run], batches: Sequence[StateBatch], *, is_late: bool = False) -> None:
        """`is_late`: it speaks of records below the start offset, which may not be stored so yet."""
        self.runs = runs
        self.batches = batches
        self.is_late = is_late

    @property
    def is_empty(self) -> bool:
        """There is nothing to store, the start offset included."""
        return not self.runs and not self.batches and not self.is_late


class SharePartition:
    """The delivery of one partition's records to one share group."""

    def __init__(self, start_offset: int, batches: Iterable[StateBatch] = ()) -> None:
        """From what is stored. Records between its batches were acquired and not spoken of: they are available."""
        self.start_offset = start_offset
        self.end_offset = start_offset
        """Offsets from here on were never acquired."""
        self._runs: list[_Run] = []
        for batch in sorted(batches):
            if batch.first < self.end_offset or batch.last < batch.first:
                raise ValueError(f"stored batches overlap, or are below {start_offset}: {batch}")
            if batch.first > self.end_offset:
                self._runs.append(_Run(self.end_offset, batch.first - 1, AVAILABLE, 0))
            self._runs.append(_Run(batch.first, batch.last, batch.state, batch.delivery_count))
            self.end_offset = batch.last + 1
        self._advance()

    # -- what there is

    @property
    def next_fetch_offset(self) -> int:
        """Where to read next: the first record that is available, or the first that was never acquired."""
        return next((run.first for run in self._runs if run.state is AVAILABLE), self.end_offset)

    @property
    def in_flight(self) -> int:
        """Records from the start offset to the end of what was acquired."""
        return self.end_offset - self.start_offset

    def can_acquire(self, limits: Limits) -> bool:
        """Whether there may be records for a member."""
        return self.next_fetch_offset < self.end_offset or self.in_flight < limits.record_locks

    @property
    def delivery_complete_count(self) -> int:
        """How many records from the start offset on are done."""
        return sum(
            run.last - max(run.first, self.start_offset) + 1
            for run in self._runs
            if run.last >= self.start_offset and (run.pending or run.state).is_terminal
        )

    @property
    def check_ms(self) -> int:
        """When the next lock expires."""
        return min((run.lock_until_ms for run in self._runs if run.pending is None), default=NEVER_MS)

    def runs(self) -> Iterable[tuple[int, int, RecordState, int, str]]:
        """All runs, for tests and pictures: first, last, state, delivery count, member."""
        return [(run.first, run.last, run.state, run.delivery_count, run.member_id) for run in self._runs]

    # -- acquiring

    def acquire(
        self, wanted: Wanted, fetch_offset: int, batches: Sequence[FetchedBatch], limits: Limits, now_ms: int
    ) -> list[Acquired]:
        """Give records of the batches to a member. They were read at `fetch_offset`, in order."""
        if not batches or batches[-1].last < self.start_offset or wanted.max_records <= 0:
            return []
        # Records below the first batch were available and are not there any more.
        self._archive(fetch_offset, batches[0].first - 1, AVAILABLE)
        taken, left, throttled = self._take_again(wanted, batches, limits, now_ms)
        unlocked = min(left, limits.record_locks - self.in_flight)
        if not throttled and batches[-1].last >= self.end_offset and unlocked > 0:
            taken += self._take_new(wanted, unlocked, batches, limits, now_ms)
        for batch in batches:
            if batch.aborted:
                self._archive(batch.first, batch.last, ACQUIRED, wanted.member_id)
                taken = [piece for each in taken for piece in without(each, batch)]
        return taken

    def _take_again(
        self, wanted: Wanted, batches: Sequence[FetchedBatch], limits: Limits, now_ms: int
    ) -> tuple[list[Acquired], int, bool]:
        """Records that were acquired before; how many more may be; whether no others may go with these."""
        taken: list[Acquired] = []
        left = wanted.max_records
        for run in [run for run in self._runs if run.state is AVAILABLE and run.last >= batches[0].first]:
            first, last = max(run.first, batches[0].first), min(run.last, batches[-1].last)
            if first > last or left <= 0:
                break
            portion = portion_of(last - first + 1, run.delivery_count, limits.delivery_count)
            if portion is not None and taken:
                return taken, left, True
            last = min(
                last, end_of(first, min(portion or left, left), batches, exact=wanted.exact or portion is not None)
            )
            mine = self._split(run, first, last)
            self._lock(mine, wanted.member_id, limits, now_ms)
            add(taken, Acquired(first, last, mine.delivery_count))
            left -= len(mine)
            if portion is not None:
                return taken, left, True
        return taken, left, False

    def _take_new(
        self, wanted: Wanted, count: int, batches: Sequence[FetchedBatch], limits: Limits, now_ms: int
    ) -> list[Acquired]:
        """Records that nobody has had yet: of whole batches, unless the member wants no more than it says."""
        first = max(self.end_offset, batches[0].first) if not self._runs else self.end_offset
        last = min(batches[-1].last, end_of(first, count, batches, exact=wanted.exact))
        taken: list[Acquired] = []
        begin = first
        if not wanted.exact and last - first + 1 > wanted.batch_size:
            for batch in batches:
                if begin < batch.first <= last and batch.first - begin >= wanted.batch_size:
                    taken.append(Acquired(begin, batch.first - 1, 1))
                    begin = batch.first
        taken.append(Acquired(begin, last, 1))
        if not self._runs:
            self.start_offset = first
        for each in taken:
            run = _Run(each.first, each.last, AVAILABLE, 0)
            self._lock(run, wanted.member_id, limits, now_ms)
            self._runs.append(run)
        self.end_offset = last + 1
        return taken

    def _lock(self, run: _Run, member_id: str, limits: Limits, now_ms: int) -> None:
        run.state, run.member_id, run.rejected = ACQUIRED, member_id, False
        run.delivery_count += 1
        run.lock_until_ms = now_ms + limits.lock_ms

    # -- acknowledging

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], limits: Limits, now_ms: int
    ) -> Change:
        """A member's word on records that it has, in their order.

        `Refused`, and nothing has changed, if it has not all of them, or speaks twice of one.
        """
        done_to = -1
        for each in acknowledgements:
            self._check(member_id, each, limits)
            if each.first <= done_to:
                raise Refused(ErrorCode.INVALID_RECORD_STATE, "The records are acknowledged twice.")
            done_to = each.last
        runs: list[_Run] = []
        for each in acknowledgements:
            for first, last, kind in by_type(each, self.start_offset):
                for run in self._isolated(first, last):
                    if kind == RENEW:
                        run.lock_until_ms = now_ms + limits.lock_ms
                    else:
                        run.rejected = kind == REJECT
                        self._pend(run, limits.given_up if run.rejected else _STATE_OF[kind], limits)
                        runs.append(run)
        return self._change(runs, is_late=any(each.first < self.start_offset for each in acknowledgements))

    def release(self, member_id: str, limits: Limits) -> Change:
        """The member is gone: others may have its records."""
        runs = [run for run in self._runs if run.member_id == member_id and self._is_held(run)]
        for run in runs:
            self._pend(run, AVAILABLE, limits)
        return self._change(runs)

    def expire(self, limits: Limits, now_ms: int) -> Change:
        """Locks have expired: others may have the records, at once. The batches tell how often they were delivered.

        Those that are dead letters by that become so when it is stored.
        """
        runs = [run for run in self._runs if run.lock_until_ms <= now_ms and self._is_held(run)]
        for run in runs:
            if limits.dead_letters and run.delivery_count >= limits.delivery_count:
                run.pending = ARCHIVING
            else:
                self._let_go(run, limits)
        change = Change(
            [run for run in runs if run.pending is not None], [run.stored_as(run.pending or run.state) for run in runs]
        )
        self._advance()
        return change

    def dead_letters(self) -> list[tuple[DeadLetter, Change]]:
        """What is to go to the dead letter topic from now on: each once. The change is to be stored when it is there,
        or cannot be."""
        runs = [run for run in self._runs if run.state is ARCHIVING and run.pending is None]
        for run in runs:
            run.pending = ARCHIVED
        return [
            (DeadLetter(run.first, run.last, run.delivery_count, run.rejected), self._change([run])) for run in runs
        ]

    def stored(self, change: Change, limits: Limits, now_ms: int, *, failed: bool = False) -> None:
        """The batches of a change are stored, or (`failed`) may not be: then the members have their records still."""
        for run in change.runs:
            pending, run.pending = run.pending, None
            if pending is None:
                raise ValueError("the change was settled before")
            if not failed or run.state is ARCHIVING:  # what was done with dead letters is done
                run.state, run.member_id, run.lock_until_ms = pending, _NOBODY, NEVER_MS
            elif run.lock_until_ms <= now_ms:
                self._let_go(run, limits)
        self._advance()

    @staticmethod
    def _is_held(run: _Run) -> bool:
        return run.state is ACQUIRED and run.pending is None

    def _check(self, member_id: str, acknowledgement: Acknowledgement, limits: Limits) -> None:
        first, last = max(acknowledgement.first, self.start_offset), acknowledgement.last
        if last < self.start_offset:
            return  # what is below the start offset is done
        if last >= self.end_offset:
            error = ErrorCode.INVALID_REQUEST if self._runs else ErrorCode.INVALID_RECORD_STATE
            raise Refused(error, "The last offset in the request is past acquired records.")
        for run in self._runs:
            if run.last < first or run.first > last:
                continue
            if not self._is_held(run):
                raise Refused(ErrorCode.INVALID_RECORD_STATE, "The records are not in the acquired state.")
            if run.member_id != member_id:
                raise Refused(ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of the records.")
        if RENEW in acknowledgement.types and not limits.may_renew:
            raise Refused(ErrorCode.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group.")

    def _pend(self, run: _Run, state: RecordState, limits: Limits) -> None:
        if state is AVAILABLE and run.delivery_count >= limits.delivery_count:
            state = limits.given_up
        run.pending = state

    def _change(self, runs: Sequence[_Run], *, is_late: bool = False) -> Change:
        batches = [run.stored_as(run.pending) for run in runs if run.pending is not None]
        return Change(runs, batches, is_late=is_late)

    def _let_go(self, run: _Run, limits: Limits) -> None:
        run.state = limits.given_up if run.delivery_count >= limits.delivery_count else AVAILABLE
        run.member_id, run.lock_until_ms = _NOBODY, NEVER_MS

    # -- the start offset

    def log_start_moved(self, log_start_offset: int) -> None:
        """Records below are gone from the log."""
        if log_start_offset <= self.start_offset:
            return
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)
        self._advance()

    def _advance(self) -> None:
        """Go on to the first record that is not done, and forget what is below. What is being stored keeps its place.

        Neighbours that nobody has, in one state, become one.
        """
        start = self.start_offset
        for run in self._runs:
            if run.last < start:
                continue  # it is being stored
            if run.first > start or run.pending is not None or not run.state.is_terminal:
                break
            start = max(start, run.last + 1)
        self.start_offset = start
        kept: list[_Run] = []
        for run in self._runs:
            if run.pending is None:
                if run.last < start:
                    continue
                run.first = max(run.first, start)
            before = kept[-1] if kept else None
            if (
                before is not None
                and before.pending is None
                and run.pending is None
                and not before.member_id
                and before.last + 1 == run.first
                and (before.state, before.delivery_count, run.member_id, before.rejected)
                == (run.state, run.delivery_count, before.member_id, run.rejected)
            ):
                before.last = run.last
            else:
                kept.append(run)
        self._runs = kept

    def _archive(self, first: int, last: int, state: RecordState, member_id: str = _NOBODY) -> None:
        """Records of this range that stand in this state are not to be had."""
        for run in [run for run in self._runs if run.last >= first and run.first <= last]:
            if run.state is state and run.pending is None and run.member_id == member_id:
                gone = self._split(run, max(run.first, first), min(run.last, last))
                gone.state, gone.member_id, gone.lock_until_ms = ARCHIVED, _NOBODY, NEVER_MS

    # -- runs

    def _isolated(self, first: int, last: int) -> list[_Run]:
        """The runs of a range, cut at its ends."""
        found = [run for run in self._runs if run.last >= first and run.first <= last]
        return [self._split(run, max(run.first, first), min(run.last, last)) for run in found]

    def _split(self, run: _Run, first: int, last: int) -> _Run:
        """Cut a run so that one has exactly this range, and return that."""
        if (first, last) == (run.first, run.last):
            return run
        index = self._runs.index(run)
        pieces = [
            _Run(begin, end, run.state, run.delivery_count, run.member_id, run.lock_until_ms, rejected=run.rejected)
            for begin, end in ((run.first, first - 1), (first, last), (last + 1, run.last))
            if begin <= end
        ]
        self._runs[index : index + 1] = pieces
        return next(piece for piece in pieces if piece.first == first)

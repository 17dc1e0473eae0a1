"""A share partition (KIP-932): examples of each rule, and random histories against a model that knows each record."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tanist.coordinator.effects import NEVER_MS, Refused
from tanist.coordinator.share.partition import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Change,
    DeadLetter,
    Limits,
    SharePartition,
)
from tanist.coordinator.share.portions import Acknowledgement, FetchedBatch, Wanted
from tanist.coordinator.share.runs import Acquired, RecordState, StateBatch, combined
from tanist.wire.errors import ErrorCode

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState
LIMITS = Limits(delivery_count=5, record_locks=200, lock_ms=1_000)


def batches(*ends: int, first: int = 0) -> list[FetchedBatch]:
    """Batches that follow each other and end before these offsets."""
    found = []
    for end in ends:
        found.append(FetchedBatch(first, end - 1))
        first = end
    return found


def take(
    partition: SharePartition,
    *ends: int,
    member: str = "a",
    records: int = 500,
    first: int = 0,
    exact: bool = False,
    limits: Limits = LIMITS,
    batch_size: int = 500,
) -> list[Acquired]:
    wanted = Wanted(member, records, batch_size, exact)
    return partition.acquire(wanted, partition.next_fetch_offset, batches(*ends, first=first), limits, 0)


def acknowledge(partition: SharePartition, first: int, last: int, *types: int, member: str = "a",
                now_ms: int = 0, failed: bool = False) -> Change:  # fmt: skip
    change = partition.acknowledge(member, [Acknowledgement(first, last, types)], LIMITS, now_ms)
    partition.stored(change, LIMITS, now_ms, failed=failed)
    return change


def test_records_are_acquired_by_one_member_and_the_start_offset_follows_what_is_acknowledged() -> None:
    partition = SharePartition(0)
    assert take(partition, 10) == [Acquired(0, 9, 1)]
    assert take(partition, 10, member="b") == []
    change = acknowledge(partition, 0, 3, ACCEPT)
    assert change.batches == [StateBatch(0, 3, ACKNOWLEDGED, 1)]
    assert (partition.start_offset, partition.end_offset, partition.in_flight) == (4, 10, 6)
    acknowledge(partition, 6, 7, ACCEPT)
    assert (partition.start_offset, partition.delivery_complete_count) == (4, 2)
    acknowledge(partition, 4, 5, ACCEPT)
    acknowledge(partition, 8, 9, REJECT)
    assert (partition.start_offset, partition.end_offset, list(partition.runs())) == (10, 10, [])


def test_what_is_acknowledged_counts_when_it_is_stored_and_is_taken_back_if_it_is_not() -> None:
    partition = SharePartition(0)
    take(partition, 10)
    change = partition.acknowledge("a", [Acknowledgement(0, 9, (ACCEPT,))], LIMITS, 0)
    assert partition.start_offset == 0
    with pytest.raises(Refused) as refused:
        partition.acknowledge("a", [Acknowledgement(0, 9, (ACCEPT,))], LIMITS, 0)
    assert refused.value.error == ErrorCode.INVALID_RECORD_STATE
    partition.stored(change, LIMITS, 10, failed=True)
    assert list(partition.runs()) == [(0, 9, ACQUIRED, 1, "a")]
    with pytest.raises(ValueError, match="settled before"):
        partition.stored(change, LIMITS, 10)


def test_a_lock_that_expires_while_its_acknowledgement_is_stored_lets_go_only_if_that_fails() -> None:
    for failed, state in ((True, AVAILABLE), (False, None)):
        partition = SharePartition(0)
        take(partition, 10)
        change = partition.acknowledge("a", [Acknowledgement(0, 9, (ACCEPT,))], LIMITS, 0)
        assert partition.expire(LIMITS, 5_000).batches == []
        partition.stored(change, LIMITS, 5_000, failed=failed)
        assert [run[2] for run in partition.runs()] == ([] if state is None else [state])


def test_released_and_expired_records_come_again_and_at_most_as_often_as_they_may() -> None:
    limits = Limits(delivery_count=2, lock_ms=1_000)
    partition = SharePartition(0)
    assert take(partition, 1, limits=limits) == [Acquired(0, 0, 1)]
    change = partition.acknowledge("a", [Acknowledgement(0, 0, (RELEASE,))], limits, 0)
    partition.stored(change, limits, 0)
    assert partition.next_fetch_offset == 0
    assert take(partition, 1, member="b", limits=limits) == [Acquired(0, 0, 2)]
    assert partition.check_ms == 1_000
    assert partition.expire(limits, 999).batches == []
    assert partition.expire(limits, 1_000).batches == [StateBatch(0, 0, ARCHIVED, 2)]
    assert (partition.start_offset, partition.check_ms) == (1, NEVER_MS)


def test_the_start_goes_on_over_what_is_done_while_something_below_it_is_stored() -> None:
    partition = SharePartition(0)
    take(partition, 4)
    below = partition.acknowledge("a", [Acknowledgement(0, 0, (ACCEPT,))], LIMITS, 0)
    partition.log_start_moved(1)
    acknowledge(partition, 1, 1, ACCEPT)
    assert partition.start_offset == 2
    partition.stored(below, LIMITS, 0)
    assert partition.start_offset == 2


LETTERS = LIMITS._replace(delivery_count=2, dead_letters=True)


def test_a_rejected_record_is_archived_when_its_dead_letter_is_written() -> None:
    partition = SharePartition(0)
    take(partition, 5, limits=LETTERS)
    words = [Acknowledgement(0, 1, (REJECT,)), Acknowledgement(2, 2, (GAP,))]
    change = partition.acknowledge("a", words, LETTERS, 0)
    assert change.batches == [StateBatch(0, 1, ARCHIVING, 1), StateBatch(2, 2, ARCHIVED, 1)]
    assert partition.dead_letters() == []
    partition.stored(change, LETTERS, 0)
    ((letter, change),) = partition.dead_letters()
    assert letter == DeadLetter(0, 1, 1, rejected=True)
    assert change.batches == [StateBatch(0, 1, ARCHIVED, 1)]
    assert partition.dead_letters() == []
    assert (partition.start_offset, partition.next_fetch_offset) == (0, 5)
    partition.stored(change, LETTERS, 0)
    assert partition.start_offset == 3


def test_records_that_were_delivered_too_often_are_dead_letters() -> None:
    partition = SharePartition(0)
    for _ in range(2):
        take(partition, 4, limits=LETTERS)
        assert partition.dead_letters() == []
        partition.stored(partition.expire(LETTERS, 1_000), LETTERS, 1_000)
    assert next(run[2] for run in partition.runs()) is ARCHIVING
    letters = [letter for letter, _ in partition.dead_letters()]
    assert letters[0] == DeadLetter(0, letters[0].last, 2, rejected=False)


def test_what_the_last_lock_says_is_stored_before_the_letter() -> None:
    partition = SharePartition(0, [StateBatch(0, 0, AVAILABLE, 1)])
    take(partition, 1, limits=LETTERS)
    change = partition.expire(LETTERS, 1_000)
    assert change.batches == [StateBatch(0, 0, ARCHIVING, 2)]
    assert partition.dead_letters() == []
    assert partition.next_fetch_offset == 1
    partition.stored(change, LETTERS, 1_000, failed=True)
    ((_, archived),) = partition.dead_letters()
    partition.stored(archived, LETTERS, 1_000, failed=True)
    assert partition.start_offset == 1


def test_a_letter_that_was_under_way_is_written_by_the_next_leader() -> None:
    partition = SharePartition(3, [StateBatch(3, 4, ARCHIVING, 1), StateBatch(5, 5, ACKNOWLEDGED, 1)])
    ((letter, _),) = partition.dead_letters()
    assert letter == DeadLetter(3, 4, 1, rejected=False)


def test_records_below_the_start_of_the_log_are_no_dead_letters() -> None:
    partition = SharePartition(0, [StateBatch(0, 4, ARCHIVING, 1)])
    partition.log_start_moved(3)
    assert [letter.first for letter, _ in partition.dead_letters()] == [3]


def test_a_renewed_lock_holds_longer_and_is_refused_where_the_group_does_not_want_it() -> None:
    partition = SharePartition(0)
    take(partition, 10)
    assert acknowledge(partition, 0, 4, RENEW, now_ms=500).batches == []
    assert partition.expire(LIMITS, 1_000).batches == [StateBatch(5, 9, AVAILABLE, 1)]
    assert partition.check_ms == 1_500
    with pytest.raises(Refused, match="not enabled"):
        partition.acknowledge("a", [Acknowledgement(0, 4, (RENEW,))], LIMITS._replace(may_renew=False), 600)


def test_an_acknowledgement_is_refused_as_a_whole() -> None:
    partition = SharePartition(0)
    take(partition, 5)
    take(partition, 10, member="b", first=5)
    for first, last, error in ((3, 6, 121), (5, 9, 121), (8, 12, 42), (0, 20, 42)):
        with pytest.raises(Refused) as refused:
            partition.acknowledge(
                "a", [Acknowledgement(0, 2, (ACCEPT,)), Acknowledgement(first, last, (ACCEPT,))], LIMITS, 0
            )
        assert refused.value.error == error
    assert [run[2] for run in partition.runs()] == [ACQUIRED, ACQUIRED]


def test_whole_batches_are_given_unless_the_member_says_how_many_records_it_can_take() -> None:
    assert take(SharePartition(0), 30, 60, 90, records=40) == [Acquired(0, 59, 1)]
    assert take(SharePartition(0), 30, 60, 90, records=40, exact=True) == [Acquired(0, 39, 1)]
    assert take(SharePartition(0), 30, 60, 90, batch_size=50) == [Acquired(0, 59, 1), Acquired(60, 89, 1)]
    partition = SharePartition(0)
    take(partition, 90)
    partition.stored(partition.release("a", LIMITS), LIMITS, 0)
    assert take(partition, 30, 60, 90, records=10, member="b") == [Acquired(0, 29, 2)]


def test_no_more_records_are_in_flight_than_may_be_but_those_that_are_may_come_again() -> None:
    limits = Limits(record_locks=100)
    partition = SharePartition(0)
    take(partition, 100, limits=limits)
    assert not partition.can_acquire(limits)
    assert take(partition, 200, first=100, limits=limits) == []
    partition.stored(partition.acknowledge("a", [Acknowledgement(50, 59, (RELEASE,))], limits, 0), limits, 0)
    assert partition.can_acquire(limits)
    assert take(partition, 200, first=50, limits=limits, member="b") == [Acquired(50, 59, 2)]


def test_records_that_were_delivered_often_come_in_smaller_portions_and_at_last_alone() -> None:
    partition = SharePartition(0)
    sizes = []
    for number in range(5):
        taken = take(partition, 16, member=str(number))
        sizes.append(taken[0].last - taken[0].first + 1)
        partition.stored(partition.release(str(number), LIMITS), LIMITS, 0)
    assert sizes == [16, 16, 16, 8, 1]


def test_records_that_are_not_there_any_more_are_done() -> None:
    partition = SharePartition(0)
    take(partition, 10)
    partition.stored(partition.release("a", LIMITS), LIMITS, 0)
    assert take(partition, 10, first=6) == [Acquired(6, 9, 2)]  # the log was compacted
    assert next(iter(partition.runs()))[:3] == (0, 5, ARCHIVED)
    acknowledge(partition, 6, 9, ACCEPT)
    assert partition.start_offset == 10
    take(partition, 20, first=10)
    partition.log_start_moved(15)
    assert acknowledge(partition, 10, 17, ACCEPT).batches == [StateBatch(15, 17, ACKNOWLEDGED, 1)]
    assert (partition.start_offset, partition.end_offset) == (18, 20)
    partition.log_start_moved(40)
    assert (partition.start_offset, partition.end_offset, list(partition.runs())) == (40, 40, [])


def test_records_of_aborted_transactions_are_done_for_who_reads_what_is_committed() -> None:
    partition = SharePartition(0)
    read = [FetchedBatch(0, 4), FetchedBatch(5, 9, aborted=True), FetchedBatch(10, 14)]
    assert partition.acquire(Wanted("a", 500, 500), 0, read, LIMITS, 0) == [Acquired(0, 4, 1), Acquired(10, 14, 1)]
    assert [run[:3] for run in partition.runs()] == [(0, 4, ACQUIRED), (5, 9, ARCHIVED), (10, 14, ACQUIRED)]


def test_what_is_stored_is_taken_up_and_what_lies_between_is_available() -> None:
    partition = SharePartition(
        5, [StateBatch(5, 6, ACKNOWLEDGED, 1), StateBatch(10, 11, ARCHIVED, 5), StateBatch(12, 13, AVAILABLE, 3)]
    )
    assert (partition.start_offset, partition.end_offset, partition.next_fetch_offset) == (7, 14, 7)
    assert list(partition.runs()) == [(7, 9, AVAILABLE, 0, ""), (10, 11, ARCHIVED, 5, ""), (12, 13, AVAILABLE, 3, "")]
    with pytest.raises(ValueError, match="overlap"):
        SharePartition(0, [StateBatch(0, 5, AVAILABLE, 1), StateBatch(5, 6, AVAILABLE, 1)])


def test_a_late_or_repeated_write_takes_nothing_back() -> None:
    stored = combined((), [StateBatch(0, 9, ACKNOWLEDGED, 1)], 0)
    assert combined(stored, [StateBatch(0, 9, AVAILABLE, 1)], 0) == stored
    assert combined(stored, [StateBatch(4, 5, AVAILABLE, 2)], 2) == (
        StateBatch(2, 3, ACKNOWLEDGED, 1), StateBatch(4, 5, AVAILABLE, 2), StateBatch(6, 9, ACKNOWLEDGED, 1),
    )  # fmt: skip
    assert combined([StateBatch(0, 4, ARCHIVED, 1)], [StateBatch(5, 9, ARCHIVED, 1)], 0) == (
        StateBatch(0, 9, ARCHIVED, 1),
    )


# ---- random histories


@dataclass(frozen=True)
class Known:
    """What the model knows of one record."""

    state: RecordState
    count: int
    member: str = ""
    until_ms: int = NEVER_MS
    pending: RecordState | None = None


MEMBERS = st.sampled_from("abc")
OFFSETS = st.integers(0, 60)


class Histories(RuleBasedStateMachine):
    """A log of 60 records in batches of 5; changes are stored late, fail, or survive a change of the leader."""

    def __init__(self) -> None:
        super().__init__()
        self.partition = SharePartition(0)
        self.model: dict[int, Known] = {}
        self.start = 0
        self.now_ms = 0
        self.limits = Limits(delivery_count=3, record_locks=40, lock_ms=100)
        self.pending: list[tuple[Change, set[int]]] = []
        self.stored: tuple[StateBatch, ...] = ()
        self.stored_start = 0
        self.done: set[int] = set()
        """Acknowledged, and the member has heard so."""

    @rule(member=MEMBERS, records=st.integers(1, 20), exact=st.booleans(), size=st.integers(1, 6))
    def acquire(self, member: str, records: int, exact: bool, size: int) -> None:
        offset = self.partition.next_fetch_offset
        if offset >= 60 or not self.partition.can_acquire(self.limits):
            return
        first = offset // 5 * 5
        read = [FetchedBatch(at, at + 4) for at in range(first, min(first + 5 * size, 60), 5)]
        taken = self.partition.acquire(Wanted(member, records, 500, exact), offset, read, self.limits, self.now_ms)
        offsets = [each for part in taken for each in range(part.first, part.last + 1)]
        assert offsets, "there were records to be had"
        assert offsets == sorted(set(offsets))
        assert first <= offsets[0] <= offsets[-1] <= read[-1].last
        assert len(offsets) <= records + (0 if exact else 4)
        for part in taken:
            for each in range(part.first, part.last + 1):
                known = self.model.get(each, Known(AVAILABLE, 0))
                assert each not in self.done
                assert (known.state, known.pending) == (AVAILABLE, None)
                assert each >= self.start
                assert part.delivery_count == known.count + 1 <= self.limits.delivery_count
                self.model[each] = Known(ACQUIRED, known.count + 1, member, self.now_ms + self.limits.lock_ms)

    @rule(member=MEMBERS, first=OFFSETS, length=st.integers(1, 12), data=st.data())
    def acknowledge(self, member: str, first: int, length: int, data: st.DataObject) -> None:
        kinds = st.sampled_from((GAP, ACCEPT, RELEASE, REJECT, RENEW))
        types = data.draw(st.one_of(st.tuples(kinds), st.lists(kinds, min_size=length, max_size=length).map(tuple)))
        range_ = [each for each in range(first, first + length) if each >= self.start]
        may = all(
            (known := self.model.get(each)) is not None
            and known.state is ACQUIRED and known.member == member and known.pending is None
            for each in range_
        )  # fmt: skip
        try:
            change = self.partition.acknowledge(
                member, [Acknowledgement(first, first + length - 1, types)], self.limits, self.now_ms
            )
        except Refused:
            assert not may
            return
        assert may
        changed = set()
        for each in range_:
            kind = types[0] if len(types) == 1 else types[each - first]
            known = self.model[each]
            if kind == RENEW:
                self.model[each] = replace(known, until_ms=self.now_ms + self.limits.lock_ms)
                continue
            state = {ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE}.get(kind, ARCHIVED)
            if state is AVAILABLE and known.count >= self.limits.delivery_count:
                state = ARCHIVED
            self.model[each] = replace(known, pending=state)
            changed.add(each)
        self._begin(change, changed)

    def _begin(self, change: Change, changed: set[int]) -> None:
        assert {each for batch in change.batches for each in range(batch.first, batch.last + 1)} == changed
        assert all(self.model[batch.first].pending is batch.state for batch in change.batches)
        self.pending.append((change, changed))

    @rule(member=MEMBERS)
    def release(self, member: str) -> None:
        change = self.partition.release(member, self.limits)
        changed = set()
        for each, known in self.model.items():
            if known.member == member and known.state is ACQUIRED and known.pending is None:
                over = known.count >= self.limits.delivery_count
                self.model[each] = replace(known, pending=ARCHIVED if over else AVAILABLE)
                changed.add(each)
        self._begin(change, changed)

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), failed=st.booleans(), kept=st.booleans())
    def settle(self, data: st.DataObject, failed: bool, kept: bool) -> None:
        """`kept`: a write that is reported as failed was stored all the same."""
        change, changed = self.pending.pop(data.draw(st.integers(0, len(self.pending) - 1)))
        if not failed or kept:
            self.stored_start = max(self.stored_start, self.start)
            self.stored = combined(self.stored, change.batches, self.stored_start)
        self.partition.stored(change, self.limits, self.now_ms, failed=failed)
        for each in changed & self.model.keys():
            known = self.model[each]
            assert known.pending is not None
            if not failed:
                self.model[each] = Known(known.pending, known.count)
                if known.pending is ACKNOWLEDGED:
                    self.done.add(each)
            elif known.until_ms <= self.now_ms:
                self.model[each] = self._let_go(known)
            else:
                self.model[each] = replace(known, pending=None)

    def _let_go(self, known: Known) -> Known:
        return Known(ARCHIVED if known.count >= self.limits.delivery_count else AVAILABLE, known.count)

    @rule(passed_ms=st.sampled_from((1, 40, 150)))
    def time_passes(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        change = self.partition.expire(self.limits, self.now_ms)
        for each, known in self.model.items():
            if known.until_ms <= self.now_ms and known.state is ACQUIRED and known.pending is None:
                self.model[each] = self._let_go(known)
        self.stored = combined(self.stored, change.batches, self.stored_start)

    @rule(start=OFFSETS)
    def log_start_moves(self, start: int) -> None:
        if start <= self.start + 3:
            self.partition.log_start_moved(start)
            self.start = max(self.start, start)

    @rule()
    def leader_changes(self) -> None:
        """Another leader goes on from what is stored; what was not settled may be heard of no more."""
        start = max(self.stored_start, self.start)
        stored = combined(self.stored, (), start)
        self.partition = SharePartition(start, stored)
        self.pending.clear()
        by_offset = {each: batch for batch in stored for each in range(batch.first, batch.last + 1)}
        end = stored[-1].last + 1 if stored else start
        self.model = {
            each: Known(*by_offset[each][2:]) if each in by_offset else Known(AVAILABLE, 0)
            for each in range(start, end)
        }
        assert not self.done & {each for each, known in self.model.items() if not known.state.is_terminal}
        assert all(each < end for each in self.done)
        self.start = start

    @invariant()
    def both_know_the_same(self) -> None:
        while (known := self.model.get(self.start)) is not None and known.pending is None and known.state.is_terminal:
            self.start += 1
        assert self.partition.start_offset == self.start
        for each in [each for each, known in self.model.items() if each < self.start and known.pending is None]:
            del self.model[each]
        seen = {}
        for first, last, state, count, member in self.partition.runs():
            seen.update(dict.fromkeys(range(first, last + 1), (state, count, member)))
        assert seen == {each: (known.state, known.count, known.member) for each, known in sorted(self.model.items())}
        assert self.partition.delivery_complete_count == sum(
            (known.pending or known.state).is_terminal for each, known in self.model.items() if each >= self.start
        )
        waits = [known.until_ms for known in self.model.values() if known.pending is None]
        assert self.partition.check_ms == min(waits, default=NEVER_MS)


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_two_words_on_one_record_are_refused_together() -> None:
    """Batches of one request may touch (Apache Kafka compares with the last offset itself)."""
    partition = SharePartition(0)
    take(partition, 10)
    before = list(partition.runs())
    words = [Acknowledgement(0, 4, (ACCEPT,)), Acknowledgement(4, 9, (REJECT,))]
    with pytest.raises(Refused) as refused:
        partition.acknowledge("a", words, LIMITS, 0)
    assert (refused.value.error, list(partition.runs())) == (ErrorCode.INVALID_RECORD_STATE, before)
    acknowledge(partition, 0, 9, ACCEPT)
    assert partition.start_offset == 10

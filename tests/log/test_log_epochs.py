"""The leader epoch cache against Apache's recorded answers (rules 109-113), and against the records themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.log.epochs import UNDEFINED, EpochEntry, LeaderEpochCache

# Inputs and answers reproduced with Apache Kafka 4.3.0 (ec-01, ec-09, ec-17, ec-25 of the shared scenarios).
APACHE = {
    "ec-01": ([(2, 10), (4, 15), (10, 20)], 18, [(2, 10), (4, 15)], {}),
    "ec-09": ([(5, 11), (6, 12), (7, 13), (7, 12)], None, [(5, 11), (7, 12)], {(5, 0): (5, 12), (6, 0): (5, 12)}),
    "ec-17": ([(2, 6), (3, 8), (4, 11)], 8, [(2, 6)], {}),
    "ec-25": ([(2, 6), (3, 8), (4, 11)], 9, [(2, 6), (3, 8)], {}),
}


@pytest.mark.parametrize("name", APACHE)
def test_what_apache_answers(name: str) -> None:
    assigned, truncate_end, entries, queries = APACHE[name]
    cache = LeaderEpochCache()
    for epoch, offset in assigned:
        cache.assign(epoch, offset)
    if truncate_end is not None:
        cache.truncate_from_end(truncate_end)
    assert list(cache.entries) == entries
    for (epoch, end), answer in queries.items():
        assert cache.end_offset_for(epoch, end) == answer


def test_previous_epoch() -> None:
    cache = LeaderEpochCache([(2, 10), (4, 15), (10, 20)])
    assert [cache.previous_epoch(epoch) for epoch in (1, 2, 4, 5, 10, 11)] == [-1, -1, 2, 4, 4, 10]


@pytest.mark.parametrize(
    ("last_epoch", "offset", "diverging"),
    [
        (2, 5, (0, 2)),
        (0, 4, (0, 2)),
        (6, 6, (4, 13)),
        (5, 9, (4, 13)),
        (10, 18, (10, 17)),
        (0, 2, None),
        (7, 14, None),
        (9, 17, None),
        (10, 17, None),
    ],
)
def test_diverging_answers_of_a_leader(last_epoch: int, offset: int, diverging: tuple[int, int] | None) -> None:
    """lg-01: batches of epochs 0, 3, 4, 7, 9, and epoch 10 begun at the end (rule 113)."""
    cache = LeaderEpochCache([(0, 0), (3, 2), (4, 8), (7, 13), (9, 14), (10, 17)])
    answer = cache.end_offset_for(last_epoch, 17)
    diverges = answer.epoch < last_epoch or answer.end_offset < offset
    assert (tuple(answer) if diverges else None) == diverging


def test_an_epoch_that_the_leader_does_not_know_is_undefined() -> None:
    cache = LeaderEpochCache([(0, 0), (10, 17)])
    assert cache.end_offset_for(11, 17) == UNDEFINED
    assert cache.end_offset_for(-1, 17) == UNDEFINED
    assert LeaderEpochCache().end_offset_for(0, 0) == UNDEFINED


def test_an_epoch_before_the_first_ends_where_that_begins() -> None:
    assert LeaderEpochCache([(5, 11)]).end_offset_for(3, 20) == (3, 11)


def test_assigning_what_is_known_is_no_news() -> None:
    cache = LeaderEpochCache([(3, 7)])
    assert not cache.assign(3, 9)
    assert not cache.dirty
    assert cache.assign(3, 5)
    assert cache.entries == (EpochEntry(3, 5),)
    assert cache.dirty


@pytest.mark.parametrize(("epoch", "offset"), [(-1, 0), (0, -1)])
def test_negative_values_are_refused(epoch: int, offset: int) -> None:
    cache = LeaderEpochCache([(3, 7)])
    with pytest.raises(ValueError, match="negative"):
        cache.assign(epoch, offset)
    assert cache.entries == (EpochEntry(3, 7),)


def test_truncating_from_the_start_keeps_the_epoch_that_reaches_it() -> None:
    cache = LeaderEpochCache([(2, 6), (3, 8), (4, 11)])
    assert cache.truncate_from_start(9)
    assert cache.entries == (EpochEntry(3, 9), EpochEntry(4, 11))
    assert not cache.truncate_from_start(9)
    assert cache.truncate_from_start(50)
    assert cache.entries == (EpochEntry(4, 50),)


def test_a_negative_end_truncates_nothing() -> None:
    cache = LeaderEpochCache([(2, 6)])
    assert not cache.truncate_from_end(-1)
    assert cache.entries == (EpochEntry(2, 6),)


offsets = st.integers(0, 30)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 6), st.integers(1, 4)),
        st.tuples(st.just("end"), offsets, st.just(0)),
        st.tuples(st.just("start"), offsets, st.just(0)),
    ),
    max_size=30,
)


@given(steps)
def test_the_cache_says_what_the_records_say(course: list[tuple[str, int, int]]) -> None:
    """A log as a list of epochs, one a record; the cache must be what one would compute from it."""
    cache = LeaderEpochCache()
    start, epochs = 0, list[int]()
    for kind, value, count in course:
        if kind == "append":
            epoch = max([*epochs, 0]) + (value == 6)
            cache.assign(epoch, start + len(epochs))
            epochs += [epoch] * count
        elif kind == "end":
            end = max(start, min(value, start + len(epochs)))
            cache.truncate_from_end(end)
            epochs = epochs[: end - start]
        else:
            new_start = max(start, min(value, start + len(epochs) - 1)) if epochs else start
            cache.truncate_from_start(new_start)
            epochs = epochs[new_start - start :]
            start = new_start
    expected = [
        EpochEntry(epoch, start + index)
        for index, epoch in enumerate(epochs)
        if index == 0 or epochs[index - 1] != epoch
    ]
    assert list(cache.entries) == expected
    end = start + len(epochs)
    for offset, epoch in enumerate(epochs, start):
        assert cache.epoch_at(offset) == epoch
    for epoch in set(epochs):
        last = start + len(epochs) - 1 - epochs[::-1].index(epoch)
        assert cache.end_offset_for(epoch, end) == (epoch, last + 1)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two logs of a partition, as lists of their records' epochs: each leader goes on where its log ended."""
    logs: list[list[int]] = [[]]
    for epoch in range(draw(st.integers(1, 5))):
        before = draw(st.sampled_from(logs))
        logs.append([*before[: draw(st.integers(0, len(before)))], *([epoch] * draw(st.integers(0, 4)))])
    one, other = draw(st.sampled_from(logs)), draw(st.sampled_from(logs))
    return one[: draw(st.integers(0, len(one)))], other[: draw(st.integers(0, len(other)))]


def cache_of(log: list[int]) -> LeaderEpochCache:
    cache = LeaderEpochCache()
    for offset, epoch in enumerate(log):
        cache.assign(epoch, offset)
    return cache


@given(histories())
def test_two_logs_are_the_same_up_to_where_their_epochs_say(logs: tuple[list[int], list[int]]) -> None:
    one, other = logs
    same = next((at for at, (mine, theirs) in enumerate(zip(one, other)) if mine != theirs), min(len(one), len(other)))
    known = cache_of(one).common_end(len(one), cache_of(other), len(other))
    assert known == (same or -1)
    assert cache_of(other).common_end(len(other), cache_of(one), len(one)) == known


def test_a_cache_becomes_another() -> None:
    cache = LeaderEpochCache([(2, 6)])
    cache.become(LeaderEpochCache([(3, 7), (5, 9)]))
    assert cache.entries == (EpochEntry(3, 7), EpochEntry(5, 9))
    assert cache.dirty

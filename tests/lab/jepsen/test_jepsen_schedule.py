"""What is done is drawn from the seed, and is only what the cluster allows."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.faults import Where, names_of
from tanist.lab.jepsen.schedule import KINDS, MIXED, Episode, NotPossible, draw, possible

NODES = (1, 2, 3)
EVERYTHING = frozenset(names_of(Where.JEPSEN))


def _drawn(seed: int, tests: tuple[str, ...] = (MIXED,), abilities: frozenset[str] = EVERYTHING) -> list[Episode]:
    return list(islice(draw(seed, tests, NODES, 4, abilities), 4 * len(KINDS)))


@given(st.integers(0, 1 << 40))
def test_the_same_seed_is_the_same_schedule_and_another_is_another(seed: int) -> None:
    assert _drawn(seed) == _drawn(seed)
    assert _drawn(seed) != _drawn(seed + 1)


@given(st.integers(0, 1 << 40))
def test_every_kind_comes_once_before_any_comes_again(seed: int) -> None:
    episodes = _drawn(seed)
    for start in range(0, len(episodes), len(KINDS)):
        assert sorted(episode.kind for episode in episodes[start : start + len(KINDS)]) == sorted(KINDS)
    assert [episode.kind for episode in episodes[: len(KINDS)]] == list(KINDS)
    assert [episode.number for episode in episodes] == list(range(1, len(episodes) + 1))
    for episode in episodes:
        assert sorted(episode.nodes) == list(NODES)
        assert 0 <= episode.partition < 4
        # A session of 3 s must be over within an episode, or nobody would be fenced.
        assert episode.lasts_s > 3.0


@given(st.integers(0, 1 << 40), st.sets(st.sampled_from(sorted(EVERYTHING))))
def test_only_what_the_cluster_allows_is_drawn(seed: int, abilities: set[str]) -> None:
    ways = possible(abilities)
    if not ways:
        with pytest.raises(NotPossible, match="nothing can be done"):
            _drawn(seed, abilities=frozenset(abilities))
        return
    for episode in _drawn(seed, abilities=frozenset(abilities)):
        assert episode.how in ways[episode.kind]
    assert ("partition" in ways) == bool({"partition", "partition-one-way"} & abilities)
    assert ("last-standing" in ways) == ("power-loss" in abilities)


def test_a_kind_that_is_asked_for_and_not_possible_says_what_it_takes() -> None:
    with pytest.raises(
        NotPossible, match="partition cannot be done to this cluster: it takes partition or partition-one-way"
    ):
        _drawn(1, ("crash", "partition"), frozenset({"crash"}))


def test_a_named_test_is_all_that_is_drawn() -> None:
    assert {episode.kind for episode in _drawn(1, ("crash", "pause"))} == {"crash", "pause"}

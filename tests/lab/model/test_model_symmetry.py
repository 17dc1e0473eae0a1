"""Names mean nothing: a state and its renamings have the same future, and the same representative."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from tanist.lab.model.partition.model import PartitionModel
from tanist.lab.model.steps import State
from tests.lab.model.models import partition_model

WALKED = (
    "last-replica-standing",
    "slow-followers",
    "old-fetches",
    "all-crashed",
    "reassignment",
    "controlled-shutdown",
)


def _walk(model: PartitionModel, seed: int, steps: int) -> list[State]:
    """States on a random way through the model."""
    rng = random.Random(seed)
    state = model.initial()
    seen = [state]
    for _ in range(steps):
        possible = [after for _, after, broken in model.expand(state) if broken is None]
        if not possible:
            break
        state = rng.choice(possible)
        seen.append(state)
    return seen


@pytest.mark.parametrize("name", WALKED)
def test_renamings_have_one_representative(name: str) -> None:
    model = partition_model(name)
    for state in _walk(model, 1, 60):
        known = model.representative(state)
        for to in permutations(range(model.configuration.brokers)):
            renamed = model.rename(state, to)
            assert model.representative(renamed) == known
        assert model.representative(known) == known


@pytest.mark.parametrize("name", WALKED)
def test_a_renamed_state_has_the_renamed_future(name: str) -> None:
    """The soundness of the reduction. It needs that no decision depends on who is who, nor on a replica's place."""
    model = partition_model(name)
    rng = random.Random(2)
    for state in rng.sample(_walk(model, 3, 80), 20):
        future = {model.representative(after) for _, after, _ in model.expand(state)}
        for to in permutations(range(model.configuration.brokers)):
            other = {model.representative(after) for _, after, _ in model.expand(model.rename(state, to))}
            assert other == future


def test_a_renaming_is_undone_by_its_inverse() -> None:
    model = partition_model("slow-followers")
    for state in _walk(model, 4, 50):
        for to in permutations(range(3)):
            back = tuple(to.index(name) for name in range(3))
            assert model.rename(model.rename(state, to), back) == state


def test_what_is_wrong_stays_wrong_under_other_names() -> None:
    model = partition_model("last-replica-standing")
    state = model.initial()
    for text in ("write 1", "fetch 2", "fetch 3", "fetch 2", "fetch 3"):
        state = next(after for label, after, _ in model.expand(state) if str(label) == text)
    tables, broker = model.tables, state[5]
    emptied = tables.broker(tables.brokers[broker]._replace(log=(), high_watermark=0))
    wrong = (*state[:5], emptied, *state[6:])
    assert model.violation_of(state) is None
    for to in permutations(range(3)):
        found = model.violation_of(model.rename(wrong, to))
        assert found is not None
        assert found.name == "S2"

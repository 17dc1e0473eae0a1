"""The quorum's model: the real nodes in it, what may happen, and that each broken rule of the quorum is noticed."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from tanist.lab.model import CONFIGURATIONS, Limits, check, checking
from tanist.lab.model.quorum.model import QuorumBudget, QuorumConfiguration, QuorumModel
from tanist.lab.model.quorum.voter_state import BUDGET, MEMBERS, VoterState
from tanist.lab.model.steps import State, directed
from tanist.lab.mutations.model import applied
from tanist.lab.mutations.quorum import QUORUM_MUTATIONS

ELECTED = ("timeout 1", "ask 1 the pre-vote of 2", "ask 1 the vote of 2")

FEWEST_STEPS = {"E-A": 7, "E-B": 3, "E-C": 10, "E-F": 8, "E-I": 1, "E-K": 3}


def _model(*start: str, **budget: int) -> QuorumModel:
    return QuorumModel(QuorumConfiguration("test", "", QuorumBudget(**budget), start=start))


def _members(model: QuorumModel, state: State) -> list[VoterState]:
    return [model.members[number] for number in state[MEMBERS:]]


def test_nobody_leads_in_the_beginning() -> None:
    model = _model()
    members = _members(model, model.initial())
    assert [(each.role, each.epoch, each.log) for each in members] == [("Unattached", 0, ())] * 3


def test_an_election_by_the_real_nodes() -> None:
    model = _model(*ELECTED)
    state = model.initial()
    first, second, third = _members(model, state)
    assert (first.role, first.epoch, first.log) == ("Leader", 1, ((1, -1),))
    assert (second.role, second.voted, second.saved.voted) == ("Unattached", 0, 0)
    assert (third.epoch, third.voted) == (0, -1)
    assert model.budgets[state[BUDGET]] == QuorumBudget(), "a directed start is free"


def test_what_a_majority_has_is_committed() -> None:
    model = _model(*ELECTED, "fetch 2 from 1", "fetch 2 from 1", writes=1)
    state = model.initial()
    assert [each.high_watermark for each in _members(model, state)] == [1, 1, 0]
    state = directed(model, state, ["append 1", *["fetch 3 from 1"] * 3])
    leader = _members(model, state)[0]
    assert leader.log == ((1, -1), (1, 0))
    assert (leader.announced, leader.high_watermark) == (True, 2)


def test_a_log_that_is_not_durable_is_not_counted() -> None:
    model = _model(*ELECTED, losses=1)
    state = directed(model, model.initial(), ["fetch 2 from 1", "sync 2", "fetch 2 from 1"])
    assert _members(model, state)[0].high_watermark == 0
    assert _members(model, directed(model, state, ["sync 1"]))[0].high_watermark == 1


def test_a_loss_of_power_takes_what_was_not_durable() -> None:
    model = _model(*ELECTED, losses=1)
    state = directed(model, model.initial(), ["fetch 2 from 1", "lose 2 keeps 0"])
    restarted = _members(model, state)[1]
    assert (restarted.log, restarted.saved.voted) == ((), 0)


def test_a_start_that_is_no_way_to_go_is_refused() -> None:
    with pytest.raises(ValueError, match="'append 1' is none of the steps"):
        _model("append 1", writes=1).initial()


@pytest.mark.parametrize("name", ["quorum-losses", "quorum-stale-asks", "quorum-crashes", "quorum-old-epoch"])
def test_who_is_who_makes_no_difference(name: str) -> None:
    """The search looks at one state for all that differ in names: their steps must differ in names only."""
    model = QuorumModel(CONFIGURATIONS[name])  # type: ignore[arg-type]
    rng = random.Random(1)
    for _ in range(6):
        state = model.initial()
        for _ in range(30):
            steps = model.expand(state)
            for to in permutations(range(3)):
                renamed = model.rename(state, to)
                assert model.representative(renamed) == model.representative(state)
                assert {after for _, after, _ in model.expand(renamed)} == {model.rename(at, to) for _, at, _ in steps}
            if not steps:
                break
            state = rng.choice(steps)[1]


DEEP = {"E-N": 80_000}
"""States that it takes to find these; the others show within 20,000."""


@pytest.mark.parametrize(
    "number", [pytest.param(each, marks=[pytest.mark.slow] if each in DEEP else []) for each in QUORUM_MUTATIONS]
)
def test_a_broken_rule_is_noticed(number: str) -> None:
    mutation = QUORUM_MUTATIONS[number]
    with applied(mutation):
        found = check(
            CONFIGURATIONS[mutation.configuration], Limits(states=DEEP.get(number, 20_000))
        ).outcome.counterexample
    assert found is not None
    assert found.violation.name in mutation.caught_by
    assert len(found.steps) == FEWEST_STEPS.get(number, len(found.steps))


def test_the_mutations_are_of_this_model() -> None:
    for number, mutation in QUORUM_MUTATIONS.items():
        assert number == mutation.number
        assert isinstance(CONFIGURATIONS[mutation.configuration], QuorumConfiguration)


def test_the_story_of_a_quorum() -> None:
    with applied(QUORUM_MUTATIONS["E-B"]):
        checked = check(CONFIGURATIONS["quorum"])
    reported = list(checking.lines(checked))
    assert "  2. 1 asks for the pre-vote of 2: 1 is Candidate in epoch 1, has voted for 1" in reported
    assert reported[-2] == "E9 does not hold: 1 records were committed, and only 1 would still have them all"
    values = checking.as_json(checked)["counterexample"]
    assert values["steps"][-1]["voters"][0]["role"] == "Leader"

"""Broken rules are noticed: some of them here, each at once; all of them by `tanist lab mutants`, and the slow ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tanist.lab.mutations import catalogue, examination, model, simulator
from tanist.lab.mutations.directed import Directed, Script, Until, config, with_records
from tanist.lab.mutations.examination import FaultyWithout, Row, examine, examine_all, healthy, hunt, play, search
from tanist.lab.mutations.patching import Patch, no_records, replaced
from tanist.lab.mutations.rules_of_exceptions import EXCEPTION_MUTANTS
from tanist.lab.mutations.rules_of_invariants import INVARIANT_MUTANTS
from tanist.lab.mutations.simulator import MUTANTS, Mutation
from tanist.sim.checkers.violation import Violation

PATIENCE = 6
"""Seeds: which of them shows a mutation first depends on timing, and so on changes that have nothing to do with it."""

DIRECTED = {name: mutation for name, mutation in MUTANTS.items() if mutation.directed}

SHOWN_BY = {
    "A5": {"S14"},
    "A7": {"S3"},
    "A10": {"S3"},
    "A11": {"S2"},
    "A12": {"S2", "S35"},
    "A13": {"S4"},
    "A16": {"U1"},
    "A20": {"S12"},
    "A22": {"S4"},
    "A23": {"S21"},
    "A24": {"S4"},
    "A26": {"L6"},
    "A29": {"S12"},
    "A34": {"S19"},
    "A35": {"S6"},
    "A36": {"S22"},
    "A37": {"L6"},
    "A39": {"U2"},
    "A39b": {"U2"},
    "A39c": {"U2", "U4"},
    "A40": {"U2"},
    "A40b": {"U2"},
    "A43": {"S20"},
    "A44": {"G1a"},
    "A45": {"S6"},
    "A46": {"S13"},
    "A47": {"S3"},
    "A49b": {"S16"},
    "A50": {"S6"},
    "duplicates": {"S20"},
    "torn-answers": {"S6"},
    "cut-hole": {"S22"},
    "torn-ranges": {"S21"},
    "votes-forgotten": {"S10"},
}
"""Directed runs: the property that is there for the rule."""

SOON = ["A17", "A19", "A28", "reads", "unread"]
"""Shown by the first seeds that the simulator draws."""


def test_all_fifty_are_there() -> None:
    assert {f"A{number}" for number in range(1, 51)} <= set(MUTANTS)
    assert set(model.MUTATIONS) <= set(MUTANTS)
    assert set(DIRECTED) == set(SHOWN_BY)


@pytest.mark.parametrize("name", DIRECTED)
def test_a_broken_rule_shows_in_its_directed_run(name: str) -> None:
    # (A loss of power takes what it takes: some of these have to be tried a few times.)
    seen, _ = hunt(MUTANTS[name], range(1, 1 + 5 * PATIENCE))
    assert seen is not None
    assert seen.property_id in SHOWN_BY[name], seen.message


@pytest.mark.parametrize("name", DIRECTED)
def test_a_directed_run_finds_no_fault_with_the_rule_as_it_is(name: str) -> None:
    assert [healthy(MUTANTS[name], seed) for seed in (1, 2)] == [None, None]


@pytest.mark.slow
@pytest.mark.parametrize("name", DIRECTED)
def test_a_directed_run_finds_none_with_any_seed(name: str) -> None:
    assert {seed: fault for seed in range(1, 41) if (fault := healthy(MUTANTS[name], seed)) is not None} == {}


@pytest.mark.parametrize("name", SOON)
def test_a_broken_rule_shows_in_what_is_drawn(name: str) -> None:
    seen, _ = hunt(MUTANTS[name], range(1, 1 + PATIENCE))
    assert seen is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MUTANTS if name not in DIRECTED and name not in SOON])
def test_a_broken_rule_shows_in_what_is_drawn_at_last(name: str) -> None:
    seen, _ = hunt(MUTANTS[name], range(1, 200))
    assert seen is not None or MUTANTS[name].equivalent


EXCEPTIONS_AND_INVARIANTS = {**EXCEPTION_MUTANTS, **INVARIANT_MUTANTS}
AT_ONCE = {
    "torn-masked": {"S28"},
    "torn-log": {"crash"},
    "holds-end": {"crash"},
    "holds-epochs": {"crash"},
    "holds-quorum": {"crash"},
    "holds-isr": {"crash"},
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_torn_state_and_broken_invariants_show(name: str) -> None:
    seen, _ = hunt(EXCEPTIONS_AND_INVARIANTS[name], range(1, 1 + PATIENCE))
    assert seen is not None
    assert seen.property_id in AT_ONCE[name], seen.message


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXCEPTIONS_AND_INVARIANTS if name not in AT_ONCE])
def test_torn_state_and_broken_invariants_show_at_last(name: str) -> None:
    seen, _ = hunt(EXCEPTIONS_AND_INVARIANTS[name], range(1, 100))
    assert seen is not None


def test_the_model_checker_is_asked_for_what_it_knows() -> None:
    found = search(model.MUTATIONS["A9"])
    assert found is not None
    assert (found.property_id, found.configuration, found.steps) == ("S3", "slow-followers", 1)
    assert not examination.is_modelled("A36")


# -- what is broken is whole again


@pytest.mark.parametrize("name", catalogue.MUTANTS)
def test_a_mutation_leaves_no_trace(name: str) -> None:
    mutation = catalogue.MUTANTS[name]
    places = [(patch.owner, patch.name) for patch in mutation.patches()]
    before = [vars(owner).get(attribute) for owner, attribute in places]
    with simulator.applied(mutation):
        assert all(vars(owner)[attribute] is not was for (owner, attribute), was in zip(places, before, strict=True))
    assert [vars(owner).get(attribute) for owner, attribute in places] == before


def test_patches_are_undone_whatever_happens_in_between() -> None:
    class Owner:
        kept = 1

    class Heir(Owner):
        pass

    seen: list[int] = []

    def fails() -> None:
        with replaced((Patch(Heir, "kept", 2), Patch(Owner, "kept", 3))):
            seen.extend((Heir.kept, Owner.kept))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert seen == [2, 3]
    assert (Heir.kept, Owner.kept) == (1, 1)
    assert "kept" not in vars(Heir)


def test_what_one_run_adds_to_nothing_is_not_there_in_the_next() -> None:
    no_records().append("a record")
    assert no_records() == []


# -- directed runs


def test_a_directed_run_is_the_same_with_the_same_seed() -> None:
    mutation = MUTANTS["A22"]
    assert play(mutation, 3).digest == play(mutation, 3).digest


def test_a_hold_delays_and_loses_nothing() -> None:
    ends: list[int] = []

    def script(run: Directed) -> Script:
        yield from with_records(run, 3)
        hold = run.hold_answers(3, 1)
        run.writer.write(1, 2)
        yield 500
        ends.append(run.end(3))
        hold.release()
        yield Until(lambda: run.end(3) == 5)
        ends.append(run.end(3))

    run = Directed(1, script, config())
    assert run.run().violation is None
    assert run.completed
    assert ends == [3, 5]


def test_a_script_that_waits_in_vain_lets_go_and_says_so() -> None:
    def script(run: Directed) -> Script:
        yield from with_records(run, 3)
        run.hold_answers(3, 1)
        run.writer.write(1)
        run.host(2).kill()
        yield Until(lambda: False, within_ms=2_000)

    mutation = Mutation("nothing", tuple, lambda seed: Directed(seed, script, config()), directed="script")
    run = mutation.play(1)
    assert run.run().violation is None  # the liveness phase has found all nodes whole: nothing is held any more
    assert isinstance(run, Directed)
    assert not run.completed
    fault = healthy(mutation, 1)
    assert fault is not None
    assert fault.property_id == "script"


def test_a_script_that_fails_is_no_finding() -> None:
    def fails(run: Directed) -> Script:
        yield from with_records(run, 3)
        raise LookupError("nobody there")

    def asks_in_vain(run: Directed) -> Script:
        yield from with_records(run, 3)
        yield Until(lambda: run.world.hosts[99].up, within_ms=100)

    for script in (fails, asks_in_vain):
        run = Directed(1, script, config(fault_time_ms=1_000))
        assert run.run().violation is None
        assert not run.completed
        assert run.line > 0


# -- what counts as noticed


class _Played:
    """In place of a run."""

    def __init__(self, seed: int, fails: bool) -> None:
        self.seed, self.fails = seed, fails

    def run(self) -> _Played:
        return self

    @property
    def violation(self) -> Violation | None:
        return Violation("S1", 0, f"seed {self.seed}") if self.fails else None

    events = 7


def _mutation(shows_in: int, fails_without: bool = False) -> Mutation:
    class Owner:
        broken = False

    def runs(seed: int) -> _Played:
        return _Played(seed, seed == shows_in and (Owner.broken or fails_without))

    return Mutation("a rule", lambda: (Patch(Owner, "broken", True),), runs)  # type: ignore[arg-type]


def test_the_first_seed_that_shows_it_ends_the_hunt() -> None:
    seen, tried = hunt(_mutation(4), range(1, 100))
    assert seen is not None
    assert (seen.seed, seen.property_id, seen.events, tried) == (4, "S1", 7, 4)
    assert hunt(_mutation(4), range(1, 4)) == (None, 3)
    assert hunt(_mutation(4), range(1, 100), deadline_s=0.0) == (None, 0)


def test_a_seed_that_fails_with_the_rule_as_it_is_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "MUTANTS", {"A36": _mutation(4, fails_without=True)})
    row = examine("A36", ["simulator"], range(1, 100))
    assert row.simulated is None
    assert "seed 4 fails with the rules as they are" in row.fault
    assert row.missed


@pytest.mark.parametrize(
    ("module", "ours"), [("tanist.lab.mutations.rules_of_nodes", True), ("tanist.broker.replication.replicas", False)]
)
def test_a_mutation_that_does_not_fit_the_product_any_more_shows_nothing(module: str, ours: bool) -> None:
    names: dict[str, Any] = {"__name__": module}
    exec("def fails():\n    raise KeyError", names)
    with pytest.raises(KeyError) as raised:
        names["fails"]()
    crash = Violation.of_error(raised.value, 0)

    class Crashes(_Played):
        @property
        def violation(self) -> Violation | None:
            return crash if self.fails else None

    class Owner:
        broken = False

    def runs(seed: int) -> _Played:
        return Crashes(seed, Owner.broken)

    misfit = Mutation("a rule", lambda: (Patch(Owner, "broken", True),), runs)  # type: ignore[arg-type]
    if ours:
        with pytest.raises(FaultyWithout, match="what stands in the rule's place fails"):
            hunt(misfit, range(1, 2))
    else:
        assert hunt(misfit, range(1, 2))[0] is not None


def test_a_row_says_who_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "MUTANTS", {"A36": _mutation(2), "A1": _mutation(2)})

    def rows() -> Iterator[Row]:
        return examine_all(["A36", "A1"], ["simulator", "model"], range(1, 3))

    unmodelled, modelled = rows()
    assert unmodelled.simulated is not None
    assert not unmodelled.model_asked
    assert modelled.checked is not None
    assert not unmodelled.missed
    assert not modelled.missed
    assert examine("A36", ["simulator"], range(1)).missed
    late = examine("A1", ["simulator", "model"], range(1, 3), deadline_s=0.0)
    assert not late.asked

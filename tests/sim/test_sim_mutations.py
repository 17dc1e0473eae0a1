"""Broken rules are noticed: some mutations, each at a seed that shows it soon.

All of them, and where these pairs come from: `python -m tests.sim.mutations`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import mutations
from sim_mutants import MUTANTS, Mutation

PATIENCE = 6
"""Seeds: which of them shows a mutation first depends on timing, and so on changes that have nothing to do with it."""

# Mutation, where to begin, the property that it violates.
KNOWN = [
    ("A1", 23, "S4"),
    ("A3", 4, "S8"),
    ("A8", 1, "S3"),
    ("A14", 1, "S12"),
    ("A17", 1, "S4"),
    ("A19", 1, "S4"),
    ("A27", 2, "S13"),
    ("A30", 4, "S12"),
    ("A38b", 1, "U1"),
    ("A42", 2, "U5"),
    ("A49", 4, "S8"),
    ("acks", 1, "S17"),
    ("reads", 1, "S18"),
    ("majority", 4, "S16"),
]


@pytest.mark.parametrize(("name", "first", "property_id"), KNOWN, ids=[known[0] for known in KNOWN])
def test_a_broken_rule_is_noticed(name: str, first: int, property_id: str) -> None:
    finding = mutations.hunt(MUTANTS[name], range(first, first + PATIENCE))
    assert finding is not None
    assert finding.property_id == property_id, finding.message


def test_every_mutation_can_be_applied_and_undone() -> None:
    for mutation in MUTANTS.values():
        with pytest.MonkeyPatch.context() as patch:
            mutation.apply(patch)


@pytest.mark.parametrize(("equivalent", "status"), [("", 1), ("it changes nothing", 0)])
def test_a_mutation_that_is_not_caught_says_so(
    equivalent: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = Mutation("nothing", lambda patch: None, equivalent=equivalent)
    monkeypatch.setattr(mutations, "MUTANTS", {"none": nothing})
    assert mutations.main(["none", "--seeds", "2..2"]) == status
    assert capsys.readouterr().out.startswith("none       nothing: NOT CAUGHT")
    with pytest.raises(SystemExit):
        mutations.main(["A0"])

"""Broken rules of groups show in runs of the simulator: the quickest of them here, all of them among the slow tests."""

from __future__ import annotations

import pytest

from tanist.lab.mutations.examination import healthy, hunt
from tanist.lab.mutations.rules_of_groups import GROUP_MUTANTS

PATIENCE = 12
"""Seeds: which of them shows a mutation first depends on timing, and so on changes that have nothing to do with it."""

SHOWN_BY = {
    "G1": {"C1"},
    "G2": {"C1"},
    "G3": {"C4"},
    "G3b": {"C4"},
    "G4": {"C2"},
    "G5": {"C2", "C3", "C6"},
    "G6": {"C3"},
    "G6b": {"C3"},
    "G7": {"C3"},
    "G8": {"C3"},
    "G9": {"C5"},
    "G9b": {"C5"},
    "G10": {"C5"},
    "G11": {"C2"},
    "G12": {"C6"},
    "G13": {"S27"},
}
SOON = ("G2", "G4", "G6b", "G7", "G11")
"""Shown by the first seeds, within their first second."""


def shown(name: str) -> str:
    seen, _ = hunt(GROUP_MUTANTS[name], range(1, PATIENCE + 1))
    return "" if seen is None else seen.property_id


def test_each_rule_is_broken() -> None:
    assert SHOWN_BY.keys() == GROUP_MUTANTS.keys()


@pytest.mark.parametrize("name", [name for name in GROUP_MUTANTS if GROUP_MUTANTS[name].directed])
def test_a_directed_run_finds_no_fault_with_the_rule_as_it_is(name: str) -> None:
    assert [healthy(GROUP_MUTANTS[name], seed) for seed in (1, 2)] == [None, None]


@pytest.mark.parametrize("name", SOON)
def test_a_broken_rule_shows_soon(name: str) -> None:
    assert shown(name) in SHOWN_BY[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SHOWN_BY.keys() - set(SOON)))
def test_a_broken_rule_shows(name: str) -> None:
    assert shown(name) in SHOWN_BY[name]

"""The tests of tests/field can fail: with the bug in tanist each of them is red."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.invariants import InvariantError
from tanist.lab.mutations.catalogue import MUTANTS
from tanist.lab.mutations.patching import replaced
from tanist.lab.scenarios.outcome import Mismatch
from tests.field.catalogue import Bug, all_bugs

BUGS = all_bugs()
RED = (AssertionError, InvariantError, Mismatch, pytest.fail.Exception)
"""A fault of the planted code itself would be another exception."""


def case(bug: Bug) -> Any:
    """One whose test waits in vain for a controller, again and again, takes minutes."""
    marks = pytest.mark.slow if "KAFKA-14996" in bug.source else ()
    return pytest.param(bug, id=f"{bug.source} {bug.test}", marks=marks)


@pytest.mark.parametrize("bug", [case(each) for each in BUGS if each.planted is not None])
def test_with_the_bug_the_test_is_red(bug: Bug) -> None:
    assert bug.planted is not None
    with replaced(bug.planted()), pytest.raises(RED):
        bug.check()


def test_each_bug_is_one_sentence_and_something_shows_it() -> None:
    for bug in BUGS:
        assert bug.went_wrong.endswith("."), bug.test
        assert bug.went_wrong.count(". ") == 0, bug.test
        assert bug.planted is not None or bug.mutations, bug.test
        assert set(bug.mutations) <= set(MUTANTS), bug.test

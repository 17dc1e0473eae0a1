"""docs/field.md has the table of the tests."""

from __future__ import annotations

from tests.field import seeds
from tests.field.catalogue import BOTH_HAVE_IT, NEITHER_HAS_IT, all_bugs
from tools.field_page import PAGE, rewritten


def test_the_page_is_that_of_the_tests() -> None:
    page = PAGE.read_text()
    assert rewritten(page) == page, "python -m tools.field_page writes it anew"


def test_what_tanist_had_is_on_the_page() -> None:
    page = PAGE.read_text().partition("## The bugs")[0]
    for bug in all_bugs():
        if bug.was_here:
            assert f"**{bug.source.split(', ')[0]}**" in page


def test_the_page_says_why_a_bug_has_no_seed_and_of_no_other() -> None:
    reasons = PAGE.read_text().partition("| Why no seed shows it |")[2].partition("\n\n")[0].splitlines()[2:]
    explained = [bug for line in reasons for bug in line.split(" | ")[0].removeprefix("| ").split(", ")]
    searches = seeds.searches()
    found = {test for test, made in searches.items() if made[-1].property_id}
    assert sorted(explained) == sorted(bug.source.split(", ")[0] for bug in all_bugs() if bug.test not in found)


def test_what_was_shown_is_what_the_row_says_and_of_both_versions() -> None:
    for bug in all_bugs():
        if bug.shown:
            assert bug.shown in (BOTH_HAVE_IT, NEITHER_HAS_IT), bug.test
            assert bug.apache.startswith("has it") == bug.shown["4.3.1"], bug.test
        assert bug.planted is not None, bug.test

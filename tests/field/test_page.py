"""docs/field.md has the table of the tests."""

from __future__ import annotations

from tests.field.catalogue import all_bugs
from tools.field_page import PAGE, rewritten


def test_the_page_is_that_of_the_tests() -> None:
    page = PAGE.read_text()
    assert rewritten(page) == page, "python -m tools.field_page writes it anew"


def test_what_tanist_had_is_on_the_page() -> None:
    page = PAGE.read_text().partition("## The bugs")[0]
    for bug in all_bugs():
        if bug.was_here:
            assert f"**{bug.source.split(', ')[0]}**" in page


def test_what_was_shown_is_what_the_row_says() -> None:
    for bug in all_bugs():
        if "4.3.1" in bug.shown:
            assert bug.apache.startswith("has it") == bug.shown["4.3.1"], bug.test

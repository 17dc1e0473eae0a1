"""docs/authorization.md is made from the table of requirements."""

from __future__ import annotations

from tools.authorization_page import PAGE, rewritten


def test_the_page_is_made_from_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert rewritten(page) == page, "python -m tools.authorization_page writes it anew"

"""Lines for people: how they are broken where the terminal ends."""

from __future__ import annotations

import pytest

from tanist.cli.output.lines import wrapped


@pytest.mark.parametrize(
    ("text", "hang", "lines"),
    [
        ("short", None, ["short"]),
        ("", None, [""]),
        ("one two three four", None, ["one two", "  three", "  four"]),
        ("    one two three", None, ["    one two", "      three"]),
        ("safe    one two", 8, ["safe    one", "        two"]),
        ("see `a b c d e` now", 0, ["see", "`a b c d e`", "now"]),
        ("a-word-that-is-too-long x", 0, ["a-word-that-is-too-long", "x"]),
    ],
)
def test_words_move_to_the_next_line(text: str, hang: int | None, lines: list[str]) -> None:
    assert wrapped(text, 11, hang) == lines

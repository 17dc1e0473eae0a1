"""Words that came back after they were replaced: docs/glossary.md has the field's terms for them.

Code, tests, docs and messages are read: identifiers by their parts (`told_at` and `ToldAt` both have "told"), prose by
its words.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BANNED = {
    "told": "reported, acknowledged, answered, returned",
    "room": "package; space",
    "house": "project",
    "whoever": "the broker, the client, the replica",
    "truth": "oracle",
    "chance": "rng; probability",
}
"""Word -> the field's words."""
_WORDS = re.compile(r"[A-Z]?[a-z]+")
_READ = (".py", ".md", ".toml", ".yml", ".yaml", ".sh")
ALLOWED = '"there is room on the disk again"'
"""A text that is part of a seed's digest."""
_NOT_READ = ("src/tanist/wire/messages/", "tests/architecture/test_words.py", "CHANGELOG.md")


def files() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    return [name for name in listed if name.endswith(_READ) and not name.startswith(_NOT_READ)]


def banned_in(text: str) -> list[tuple[int, str]]:
    """Line numbers and banned words."""
    return [
        (number, word)
        for number, line in enumerate(text.splitlines(), 1)
        if ALLOWED not in line
        for each in _WORDS.findall(line)
        if (word := each.lower().removesuffix("s")) in BANNED
    ]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_no_word_of_a_private_vocabulary() -> None:
    wrong = [
        f"{name}:{number}: {word} ({BANNED[word]})"
        for name in files()
        for number, word in banned_in((ROOT / name).read_text())
    ]
    assert not wrong, f"{len(wrong)} banned words:\n" + "\n".join(wrong[:200])


@pytest.mark.parametrize("line", ["we told it", "x = told_at", "class ToldAt:", "two rooms", "The Truth"])
def test_it_sees_words_in_prose_and_in_identifiers(line: str) -> None:
    assert len(banned_in(line)) == 1


@pytest.mark.parametrize("line", ["housekeeping", "bedrooms of mushrooms", "chanced", "retold"])
def test_it_sees_nothing_else(line: str) -> None:
    assert banned_in(line) == []

"""Words that may not come back: docs/glossary.md has the field's terms for them.

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
    "rooms": "packages",
    "house": "project",
    "whoever": "the broker, the client, the replica",
    "surroundings": "partition context",
    "peace": "liveness phase",
    "truth": "oracle",
    "truths": "oracles",
    "chance": "rng; probability",
    "weather": "faults",
    "tidings": "alerts",
    "leftovers": "crash cleanup",
    "folk": "people",
    "doomed": "to be deleted",
    "scribe": "writer",
    "seat": "voter",
    "thinning": "compacted log",
    "thinnings": "compacted logs",
}
"""Word -> the field's words."""
FACT = re.compile(r"\bfacts? \d")
_WORDS = re.compile(r"[A-Z]?[a-z]+")
_READ = (".py", ".md", ".toml", ".yml", ".yaml", ".sh")
ALLOWED = ('"there is room on the disk again"', 'LIVENESS_STREAM = "peace"')
"""Texts and names of random streams that are part of a seed's digest."""
_NOT_READ = ("src/tanist/wire/messages/", "tests/architecture/test_words.py", "docs/glossary.md", "CHANGELOG.md")


def files() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    return [name for name in listed if name.endswith(_READ) and not name.startswith(_NOT_READ)]


def banned_in(text: str) -> list[tuple[int, str]]:
    """Line numbers and banned words."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if any(each in line for each in ALLOWED):
            continue
        found += [(number, word) for each in _WORDS.findall(line) if (word := each.lower()) in BANNED]
        found += [(number, match[0]) for match in FACT.finditer(line)]
    return found


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_no_word_of_a_private_vocabulary() -> None:
    wrong = [
        f"{name}:{number}: {word} ({BANNED.get(word, 'rule')})"
        for name in files()
        for number, word in banned_in((ROOT / name).read_text())
    ]
    assert not wrong, f"{len(wrong)} banned words:\n" + "\n".join(wrong[:200])


@pytest.mark.parametrize("line", ["we told it", "x = told_at", "class ToldAt:", "(fact 12)", "The Truth"])
def test_it_sees_words_in_prose_and_in_identifiers(line: str) -> None:
    assert len(banned_in(line)) == 1


@pytest.mark.parametrize("line", ["housekeeping", "bedrooms of mushrooms", "chances", "retold", "a fact of life"])
def test_it_sees_nothing_else(line: str) -> None:
    assert banned_in(line) == []

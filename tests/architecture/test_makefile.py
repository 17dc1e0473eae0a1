"""The Makefile's own words come out whole: a comma inside `$(or ...)` ends what make prints."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def first_line(*words: str) -> str:
    command = ["make", "-n", "-o", "setup", "test", *words]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, cwd=ROOT, env=outside, capture_output=True, text=True)
    return done.stdout.splitlines()[0]


def test_make_test_says_how_long_it_takes() -> None:
    assert re.search(r"tests: about \w+ minutes", first_line())


def test_make_test_names_the_tests_that_were_asked_for() -> None:
    assert "tests/docs" in first_line("TESTS=tests/docs")

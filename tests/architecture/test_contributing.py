"""CONTRIBUTING.md shows lines of the code, tests and commands: each is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from tanist.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

SHOWN = re.findall(r"In `([\w./]+)`[^`]*:\n\n *```python\n(.*?)```", PAGE, re.DOTALL)
SHOWN += re.findall(r"In `([\w./]+)` [^`\n]*\n[^`]*(?:`[^`\n]*`[^`]*)*?:\n\n *```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = re.findall(r"\.venv/bin/tanist ([^\n`#|]+)", PAGE)
TESTS = re.findall(r"pytest (tests/[\w/]+\.py)(?:::(\w+))?", PAGE)


def test_the_page_shows_something() -> None:
    assert len(SHOWN) >= 8
    assert len(SHOWN) >= PAGE.count("```python")
    assert len(COMMANDS) >= 8
    assert len(TESTS) >= 2


@pytest.mark.parametrize(("path", "code"), SHOWN, ids=lambda text: text.strip()[:40])
def test_lines_that_are_shown_stand_in_the_file(path: str, code: str) -> None:
    there = {line.strip() for line in (ROOT / path).read_text(encoding="utf-8").splitlines()}
    assert [line.strip() for line in code.splitlines() if line.strip() and line.strip() not in there] == []


@pytest.mark.parametrize(("path", "name"), TESTS)
def test_tests_that_are_named_exist(path: str, name: str) -> None:
    assert f"def {name}" in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_that_are_shown_exist(line: str) -> None:
    command: click.Command = app
    context = click.Context(app)
    words = shlex.split(line)
    while isinstance(command, click.Group):
        found = command.get_command(context, words.pop(0))
        assert found is not None, line
        command = found
    options = {option for parameter in command.params for option in parameter.opts}
    assert [word for word in words if word.startswith("--") and word not in options] == []

"""Lines for people: on a terminal none is longer than the terminal is wide. Elsewhere each is whole, for scripts.

Words move to the next line, which is indented a little more. A command in backticks is one word: it is to be copied.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable

import click

_ELSEWHERE = 100
_READABLE = 100
"""Longer lines are hard to read, however wide the terminal is."""
_WORD = re.compile(r"\s*(?:`[^`]*`\S*|\S+)")


def columns() -> int:
    """The width of diagrams and of paragraphs."""
    return min(shutil.get_terminal_size().columns, _READABLE) if sys.stdout.isatty() else _ELSEWHERE


def say(text: str = "", *, hang: int | None = None) -> None:
    """Print a line. `hang` is where its continuation begins."""
    for line in wrapped(text.expandtabs(), columns(), hang) if sys.stdout.isatty() else (text,):
        click.echo(line)


def say_all(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


def wrapped(text: str, width: int, hang: int | None = None) -> list[str]:
    """The line as several that are no longer than this, if its words allow that."""
    if hang is None:
        hang = len(text) - len(text.lstrip()) + 2
    lines = [""]
    for word in _WORD.findall(text):
        if len(lines[-1] + word) > width and lines[-1].strip():
            lines.append(" " * hang + word.lstrip())
        else:
            lines[-1] += word
    return lines

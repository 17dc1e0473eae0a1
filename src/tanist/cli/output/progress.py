"""The progress of long commands: beforehand about how long it will take, then how far they are.

All of it goes to standard error, so that it is never part of a result. On a terminal it is one line, which the next one
replaces; elsewhere (a pipe, a log of CI) a line every ten seconds. The estimates are for a machine that does nothing
else: they tell a minute from an hour.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType

import click

_LINE_EVERY_S = 10.0
_WORTH_SAYING_S = 5.0
"""Shorter work needs no announcement."""


def duration(seconds: float) -> str:
    """A rough one in words: `20 s`, `5 min`, `3 h`."""
    if seconds < 100:
        return f"{max(5, 5 * round(seconds / 5))} s"
    if seconds < 100 * 60:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h"


def announce(what: str, seconds: float, *, at_most: bool = False) -> None:
    """Say beforehand about how long it will take."""
    if seconds >= _WORTH_SAYING_S and math.isfinite(seconds):
        click.echo(f"{what}: {'at most about' if at_most else 'about'} {duration(seconds)}", err=True)


class Progress:
    """How far a command is. `with Progress() as show: show("3 of 7 cells")`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_s = clock() + _LINE_EVERY_S
        self._terminal = sys.stderr.isatty()
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.clear()

    def __call__(self, text: str) -> None:
        if self._terminal:
            text = text[: shutil.get_terminal_size().columns - 1]
            click.echo("\r" + text.ljust(self._width), nl=False, err=True)
            self._width = len(text)
        elif self._clock() >= self._next_s:
            self._next_s = self._clock() + _LINE_EVERY_S
            click.echo(text, err=True)

    def line(self, text: str) -> None:
        """Print a line that stays."""
        self.clear()
        click.echo(text, err=True)

    def clear(self) -> None:
        """Clear the line for the next output."""
        if self._width:
            click.echo("\r" + " " * self._width + "\r", nl=False, err=True)
            self._width = 0

"""Stories: files of prose, commands, and what those print on a live cluster.

    Broker 1 gets SIGKILL, and its page cache is gone.

    $ tanist crash 1 --lose page-cache
        node 1: crashed

A line that begins with `$ ` is a command. The lines below it that are indented by four spaces are its output, as
`plain` leaves it, and are compared exactly. All else is prose, which is never indented. It is the form of
`tests/transcripts`; here the commands are an operator's, and what they are given to is processes.

A command that breaks (a deadline passes, a process dies that should not) raises and fails the story. One that is
refused has an exit code, which is output.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Protocol

PROMPT = "$ "
INDENT = "    "


class Stage(Protocol):
    """The world of one story."""

    def run(self, command: str) -> str:
        """Carry out a command; what it prints."""


class StoryError(Exception):
    """A story that can't be played, or a command that broke."""


class StoryDiffers(Exception):
    """What was printed is not what the story says."""


def perform(text: str, stage: Stage, printed: Callable[[str], None] = lambda _: None) -> str:
    """Play a story; the same story with what its commands printed just now. `printed` gets each line as it comes."""
    played: list[str] = []

    def tell(line: str) -> None:
        played.append(line)
        printed(line)

    in_output = False
    commands = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(PROMPT):
            commands += 1
            tell(line.rstrip())
            try:
                output = stage.run(line.removeprefix(PROMPT).strip())
            except Exception as failure:
                raise StoryError(f"line {number}, `{line}`: {type(failure).__name__}: {failure}") from failure
            for each in output.splitlines():
                tell(f"{INDENT}{each}".rstrip())
            in_output = True
        elif line.startswith(" "):
            if not in_output:
                raise StoryError(f"line {number}: output without a command, or prose that is indented")
        else:
            tell(line.rstrip())
            in_output = False
    if not commands:
        raise StoryError("no command in it")
    return "\n".join(played) + "\n"


def compare(written: str, played: str) -> None:
    """`StoryDiffers` unless they are the same."""
    if played != written:
        lines = difflib.unified_diff(written.splitlines(), played.splitlines(), "written", "played", lineterm="")
        raise StoryDiffers("\n".join(lines))

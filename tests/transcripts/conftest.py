"""Transcripts: stories that are run.

A transcript is a `*.txt` file of prose, commands and what they print:

    The follower asks for offset 0 and is sent both records.

    > fetch 2
        2 asks 1 for 0
        1 answers: sent a b, HW 0

A line that begins with `> ` is a command. The lines indented by four spaces below it are its output, and are compared
exactly. All else is prose, which is never indented. A folder of transcripts holds a `stage.py` whose `stage()` makes
the world in which one transcript plays: an object with `run(command) -> str`, real product objects behind it. What a
story wants to show as going wrong is output; a command that raises fails the transcript.

`TRANSCRIPTS=rewrite pytest tests/transcripts` writes what was printed into the files. Read the difference before you
commit it: it is a change of behaviour, or it would not be there.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Protocol

import pytest

PROMPT = "> "
INDENT = "    "


class Stage(Protocol):
    """The world of one transcript."""

    def run(self, command: str) -> str:
        """Carry out a command; what it prints, without a newline at the end."""


class TranscriptError(Exception):
    """A transcript that can't be played, or a command that raised."""


class TranscriptDiffers(Exception):
    """What was printed is not what the transcript says."""


def perform(text: str, stage: Stage) -> str:
    """Play the commands of a transcript; the same transcript with what they printed just now."""
    played: list[str] = []
    in_output = False
    commands = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(PROMPT):
            commands += 1
            played.append(line.rstrip())
            try:
                output = stage.run(line.removeprefix(PROMPT).strip())
            except Exception as failure:
                raise TranscriptError(f"line {number}, `{line}`: {type(failure).__name__}: {failure}") from failure
            played += [f"{INDENT}{printed}".rstrip() for printed in output.splitlines() if printed.strip()]
            in_output = True
        elif line.startswith(" "):
            if not in_output:
                raise TranscriptError(f"line {number}: output without a command, or prose that is indented")
        else:
            played.append(line.rstrip())
            in_output = False
    if not commands:
        raise TranscriptError("no command in it")
    return "\n".join(played) + "\n"


def _load(path: Path) -> ModuleType:
    """The folder's `stage.py`, under a name of its own: there are several."""
    name = f"transcript_stage_{path.parent.name}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise TranscriptError(f"{path} can't be loaded")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


class TranscriptItem(pytest.Item):
    """One transcript, as a test."""

    def runtest(self) -> None:
        written = self.path.read_text(encoding="utf-8")
        played = perform(written, _load(self.path.parent / "stage.py").stage())
        if played == written:
            return
        if os.environ.get("TRANSCRIPTS") == "rewrite":
            self.path.write_text(played, encoding="utf-8")
            return
        difference = difflib.unified_diff(written.splitlines(), played.splitlines(), "written", "played", lineterm="")
        raise TranscriptDiffers("\n".join(difference))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, TranscriptError | TranscriptDiffers):
            return f"{self.path.name}: {excinfo.value}"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"transcript {self.path.stem}"


class TranscriptFile(pytest.File):
    def collect(self) -> Iterator[TranscriptItem]:
        yield TranscriptItem.from_parent(self, name=self.path.stem)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".txt" and (file_path.parent / "stage.py").exists():
        return TranscriptFile.from_parent(parent, path=file_path)
    return None


@pytest.fixture
def transcript_perform() -> Callable[[str, Stage], str]:
    """`perform`, for tests of the engine itself."""
    return perform

"""Every command into a pipe that nobody reads (any more): 141 as by SIGPIPE, or 0, and not a word."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tanist.cli.closed_output import EXIT_CLOSED
from tanist.cli.output.following import show_stream
from tests.cli import forked
from tests.cli.cli_rig import TANIST
from tests.cli.command_cases import CASES, invoke, words_of
from tests.cli.salvage_rig import WALL_MS, salvage_something

SLOW = ("demo", "incident", "jepsen", "lab report")
LATE = ("transactions find-hanging", "transactions abort")
"""The transaction may have ended by itself when a slow machine comes to them, which is an error in words."""
ONCE = ("transactions abort", "salvage remove", "format", "jepsen")
"""A second time they have nothing to do, and say so with an error."""
FOUND = {"account": 1}
"""It finds what the case of `produce` has written twice by then."""
WORDS = ("roken pipe", "Traceback", "Exception ignored", "Error")


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    errors: str


def run(words: list[str], *, lines: int, stdin: bytes = b"", with_errors: bool = False) -> Done:
    """Run the program, and read so many lines of what it prints."""
    reader, writer = os.pipe()
    read, write = (os.fdopen(each, mode) for each, mode in zip(os.pipe(), ("rb", "wb"), strict=True))
    source, sink = os.pipe()
    os.write(sink, stdin)
    os.close(sink)
    if not lines:
        os.close(reader)
    pid = forked.begin(words, source, writer, writer if with_errors else write.fileno())
    for each in (writer, source):
        os.close(each)
    write.close()
    if lines:
        with os.fdopen(reader, "rb") as output:
            for _ in range(lines):
                output.readline()
    with read:
        errors = read.read().decode()
    return Done(forked.ended(pid), errors)


def cases() -> Iterator[Any]:
    for name in CASES:
        marks = pytest.mark.long if name in SLOW else ()
        yield pytest.param(name, 0, marks=marks, id=f"{name} from the start")
        if name not in ONCE:
            yield pytest.param(name, 1, marks=marks, id=f"{name} after the first line")


@pytest.mark.parametrize(("name", "lines"), list(cases()))
def test_it_ends_silently(names: dict[str, str], name: str, lines: int) -> None:
    case = CASES[name]
    for line in case.before:
        assert invoke(line, names).exit_code == 0, line
    try:
        done = run(words_of(f"{name} {case.arguments}", names, case.data), lines=lines, stdin=case.stdin.encode())
    finally:
        for line in case.after:
            invoke(line, names)
    if name in LATE and "open are: none" in done.errors:
        return
    assert not any(word in done.errors for word in WORDS), done.errors
    assert done.code in {0, EXIT_CLOSED, FOUND.get(name, case.code)}, done.errors


@pytest.mark.parametrize("arguments", ["--help", "lab --help", "topics create --help", "--version", "completion bash"])
def test_help_ends_silently(arguments: str) -> None:
    assert run(arguments.split(), lines=0) == Done(EXIT_CLOSED, "")


@pytest.mark.parametrize("arguments", ["no-such-command", "topics list --no-such-option", "lab run --seeds x"])
def test_an_error_that_nobody_reads(arguments: str) -> None:
    assert run(arguments.split(), lines=0, with_errors=True).code == EXIT_CLOSED


@pytest.fixture
def much(tmp_path: Path) -> Path:
    salvage_something(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "arguments", [f"salvage show {WALL_MS + 2} --data {{data}}", "lab run --seeds 1 --trace", "lab replay 3 --all"]
)
def test_with_a_real_shell(much: Path, arguments: str) -> None:
    """The interpreter's own end included."""
    command = f"{' '.join(TANIST)} {arguments.format(data=much)} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode in {0, EXIT_CLOSED}, done.stderr) == (True, "")
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_without_the_stream_at_all(much: Path, closed: str) -> None:
    command = f"{' '.join(TANIST)} salvage list --data {much} {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_waits_for_more_to_print_ends_with_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """`tanist logs -f | head -1`, and no node says anything more."""
    reader, writer = os.pipe()
    looks = iter([["all that there is"], []])
    with os.fdopen(writer, "w") as output:
        monkeypatch.setattr("sys.stdout", output)
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            show_stream(lambda: next(looks), lambda lines: None, most=None, follow=True)


@pytest.mark.long
@pytest.mark.parametrize("lines", [2, 3, 5])
def test_a_demo_that_nobody_reads_leaves_nothing(tmp_path: Path, lines: int) -> None:
    command = f"{' '.join(TANIST)} demo --records 2000 | head -{lines}; exit ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode in {0, EXIT_CLOSED}, done.stderr) == (True, "")
    assert [each for each in processes() if str(tmp_path) in each] == []
    assert list(tmp_path.iterdir()) == []


def processes() -> Iterator[str]:
    """The command lines of all that run."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield path.read_text(errors="replace")

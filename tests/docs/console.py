"""Pages whose console blocks are run: what a page says, one shell that runs it, and the comparison.

A block `console` has commands after `$ ` and what they print. `...` stands for any text within a line, and alone in a
line for any lines. Two decimal fractions are equal, and so are two runs of spaces. A command without output below it
may print anything. `# exit code N` at the end of a command is what it ends with; without it, that is 0. A block
`python` whose first line is a comment with a file's name is that file.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

_BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+\.\w+)\n")
_EXIT_CODE = re.compile(r"# .*\bexit code (\d+)$")
_FRACTION = re.compile(r"\d+\.\d+")
_END = "console-command-ended"


@dataclass
class Command:
    """A line after `$ `, and the lines below it."""

    text: str
    shown: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        found = _EXIT_CODE.search(self.text)
        return int(found[1]) if found else 0


@dataclass(frozen=True)
class File:
    """A file that the reader is asked to write."""

    name: str
    text: str


def steps(page: str) -> Iterator[Command | File]:
    """In the order of the page."""
    for kind, body in _BLOCK.findall(page):
        if kind == "python":
            if (named := _FILE.match(body)) is not None:
                yield File(named[1], body)
            continue
        command: Command | None = None
        for line in body.splitlines():
            if line.startswith("$ "):
                if command is not None:
                    yield command
                command = Command(line[2:])
            elif command is None:
                raise ValueError(f"output before the first command: {line}")
            else:
                command.shown.append(line)
        if command is not None:
            yield command


def differs(shown: list[str], printed: str) -> str | None:
    """Where the page and the command disagree, None if they do not."""
    if not shown:
        return None
    pattern = "".join(r"(?:[^\n]*\n)*?" if line.strip() == "..." else _line(line) + r"\n" for line in shown)
    lines = [" ".join(line.split()) for line in printed.strip("\n").splitlines()]
    text = "".join(f"{line}\n" for line in lines)
    return None if re.fullmatch(pattern, text) else f"the page shows\n{chr(10).join(shown)}\nand it printed\n{printed}"


def _line(line: str) -> str:
    parts = []
    for part in re.split(r"(\.\.\.|\d+\.\d+)", " ".join(line.split())):
        if part == "...":
            parts.append(r"[^\n]*")
        else:
            parts.append(_FRACTION.pattern if _FRACTION.fullmatch(part) else re.escape(part))
    return "".join(parts)


def _without_ci(environment: Mapping[str, str]) -> dict[str, str]:
    """A page shows what a terminal shows: pytest prints a failure's whole message where it believes to run in CI."""
    return {name: value for name, value in environment.items() if name not in ("CI", "BUILD_NUMBER")}


class Shell:
    """One bash for all commands, so that `cd` and an activated environment stay."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder,
            env=_without_ci(os.environ) | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def __enter__(self) -> Shell:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def run(self, command: str, timeout_s: float = 180.0) -> tuple[str, int]:
        """What the command printed to both outputs, and its exit code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\nprintf '\\n{_END} %d\\n' $?\n".encode())
        self._process.stdin.flush()
        deadline, printed = time.monotonic() + timeout_s, b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while (ended := re.search(rb"\n" + _END.encode() + rb" (\d+)\n$", printed)) is None:
                assert selector.select(deadline - time.monotonic()), f"{command}: still runs\n{printed.decode()}"
                chunk = os.read(self._process.stdout.fileno(), 65536)
                assert chunk, f"{command}: the shell has ended\n{printed.decode()}"
                printed += chunk
        return printed[: ended.start()].decode(), int(ended[1])

"""Processes that outlive the command that started them: start, recognise, signal, wait.

A process is known by its id *and* its start time, for ids are used again: a file that says "pid 4711" may be from
before the last boot. It must never signal a process whose start time it has not checked.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_POLL_EVERY_S = 0.01


class LaunchFailed(Exception):
    """No process came of it."""


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """A process, past or present."""

    pid: int
    started: str
    """When it started, in whatever form the system says it; only ever compared."""

    @property
    def alive(self) -> bool:
        """Whether any thread of it runs. One that has ended and was not waited for (a zombie) does not."""
        return start_time(self.pid) == self.started

    @property
    def paused(self) -> bool:
        """Whether it is alive and stopped by SIGSTOP."""
        state = _process_state(self.pid)
        return state is not None and state[1] == self.started and state[0].startswith("T")

    def signal(self, number: int) -> bool:
        """Send a signal; False if the process is gone."""
        if not self.alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        wait_until(lambda: not self.alive, 30.0)


def own_mark() -> ProcessMark:
    """The mark of the process that asks."""
    return ProcessMark(os.getpid(), start_time(os.getpid()) or "unknown")


def start_time(pid: int) -> str | None:
    """When the process started; None if there is none, or only what is left of one."""
    state = _process_state(pid)
    return None if state is None else state[1]


def _process_state(pid: int) -> tuple[str, str] | None:
    """The state of a process, as `ps` writes it, and when it started; None if there is none that lives."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else _process_state_by_ps(pid)
    except (PermissionError, ProcessLookupError):
        return None
    # The command's name, in parentheses, may itself have spaces and parentheses.
    fields = status[status.rindex(")") + 2 :].split()
    state, threads, started = fields[0], int(fields[17]), fields[19]
    # A zombie whose other threads still run has its files open, and locked: one may be in a sync that takes seconds.
    return None if state == "X" or (state == "Z" and threads <= 1) else (state, started)


def _process_state_by_ps(pid: int) -> tuple[str, str] | None:
    """Where there is no /proc (macOS)."""
    found = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    state, _, started = found.partition(" ")
    return None if not found or state.startswith("Z") else (state, started.strip())


class Launcher:
    """A process that prepares itself at once, and starts others when it gets their properties (`process.launch`).

    Those are its children, not ours: the process that inherits them waits for them.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int] = ()) -> None:
        self._command = command
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
            pass_fds=descriptors,
            start_new_session=True,  # a Ctrl-C is ours to handle: it must not end the launcher half-way
        )

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def launch(self, pairs: Iterable[tuple[Path, Path]]) -> list[ProcessMark]:
        """Start a process for each (properties, log). `LaunchFailed` with what the launcher said."""
        lines = (json.dumps([str(properties), str(log)]) + "\n" for properties, log in pairs)
        out, errors = self._process.communicate("".join(lines))
        if self._process.returncode:
            raise LaunchFailed(f"{' '.join(self._command)} ended with {self._process.returncode}:\n{errors.strip()}")
        return [ProcessMark(int(pid), start_time(int(pid)) or "gone") for pid in out.split()]


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP wait: what is started must be noted before anything else happens."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def wait_until(condition: Callable[[], bool], patience_s: float) -> bool:
    """Whether the condition came to hold in time."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_EVERY_S)
    return True

"""Processes that outlive the command that started them: start, recognise, signal, wait.

A process is known by its id *and* its start time, for ids are used again: a file that says "pid 4711" may be from
before the last boot. It must never signal a process whose start time it has not checked.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LOOK_EVERY_S = 0.01


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """A process, past or present."""

    pid: int
    started: str
    """When it started, in whatever form the system says it; only ever compared."""

    @property
    def alive(self) -> bool:
        """Whether it runs. One that has ended and was not waited for (a zombie) does not."""
        return start_time(self.pid) == self.started

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


def start_time(pid: int) -> str | None:
    """When the process started; None if there is none, or only what is left of one."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else _start_time_by_ps(pid)
    except (PermissionError, ProcessLookupError):
        return None
    # The command's name, in parentheses, may itself have spaces and parentheses.
    fields = status[status.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else fields[19]


def _start_time_by_ps(pid: int) -> str | None:
    """Where there is no /proc (macOS)."""
    found = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return None if not found or found.startswith("Z") else found.partition(" ")[2].strip()


def start_process(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> ProcessMark:
    """Start a process in a session of its own, its output appended to `log`."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )
    _CHILDREN[process.pid] = process
    return ProcessMark(process.pid, start_time(process.pid) or "gone")


def reap() -> None:
    """Collect what is left of children that have ended."""
    for pid, child in list(_CHILDREN.items()):
        if child.poll() is not None:
            del _CHILDREN[pid]


def wait_until(condition: Callable[[], bool], patience_s: float) -> bool:
    """Whether the condition came to hold in time."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        reap()
        time.sleep(_LOOK_EVERY_S)
    return True


_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}
"""Kept so that they are reaped; a `Popen` that is forgotten while its process runs complains."""

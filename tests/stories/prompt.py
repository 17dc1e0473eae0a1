"""A prompt at which `tanist` is loaded already.

Importing is most of what a short command costs, and a story has two dozen of them. `python -m tests.stories.prompt`
imports the command line once and forks for each command: a process of its own, with its own arguments, folder and
environment, that runs `tanist`'s entry point as the installed script does. `Prompt` is the other end.

It must never run two commands at once: a story has one person at the keyboard.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND_PATIENCE_S = 120.0

_PRELOADED = (
    "app",
    *(f"commands.{name}" for name in ("clusters", "topics", "records", "elect", "features", "configs", "salvage")),
)


class Prompt:
    """Runs `tanist` commands, one after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.stories.prompt"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def run(
        self, arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], given: bytes = b""
    ) -> tuple[str, int]:
        """What the command printed, on either stream, and its exit code."""
        source, output = folder / ".given", folder / ".printed"
        source.write_bytes(given)
        request = [list(arguments), str(folder), dict(environment), str(source), str(output)]
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the prompt has no pipes")
        stdin.write(json.dumps(request).encode() + b"\n")
        stdin.flush()
        if not select.select([stdout], [], [], COMMAND_PATIENCE_S)[0]:
            self.close()
            raise TimeoutError(f"`tanist {' '.join(arguments)}` did not end within {COMMAND_PATIENCE_S:.0f} s")
        printed = stdout.readline()
        if not printed:
            raise RuntimeError("the prompt has ended")
        return output.read_text(errors="replace"), int(printed)

    def close(self) -> None:
        """End it, and the command that it may be running; never the nodes that one has started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


def _serve() -> None:
    for name in _PRELOADED:
        __import__(f"tanist.cli.{name}")
    for line in sys.stdin.buffer:
        arguments, folder, environment, source, output = json.loads(line)
        pid = os.fork()
        if not pid:
            _become(arguments, folder, environment, source, output)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(arguments: list[str], folder: str, environment: dict[str, str], source: str, output: str) -> None:
    """In the fork: be the command. Never returns."""
    code = 1
    try:
        os.dup2(os.open(source, os.O_RDONLY), 0)
        printed = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        os.chdir(folder)
        os.environ.update(environment)
        sys.argv = ["tanist", *arguments]
        from tanist.cli.main import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()

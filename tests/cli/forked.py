"""The program in a fork of the tests' process: as a process of its own, without the second that a start takes."""

from __future__ import annotations

import os
import signal
import sys

from tanist.cli import main as program


def begin(words: list[str], stdin: int, stdout: int, stderr: int) -> int:
    """Run `tanist` with these words on these descriptors, and give the process's id."""
    pid = os.fork()
    if pid == 0:
        _child(words, stdin, stdout, stderr)
    return pid


def ended(pid: int) -> int:
    """Wait for its end, and give its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _child(words: list[str], *descriptors: int) -> None:
    """What the interpreter does around a program: streams at the start, and at the end the flush that gives 120."""
    code = 99
    try:
        for number, each in enumerate(descriptors):
            os.dup2(each, number)
        os.closerange(3, 1000)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
        sys.argv = ["tanist", *words]
        try:
            program.main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
            code = 1
        try:
            sys.stdout.flush()
        except OSError as error:
            print(f"Exception ignored: {error}", file=sys.stderr)
            code = 120
    finally:
        os._exit(code)

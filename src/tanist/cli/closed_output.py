"""Output that nobody reads any more (`| head -3`): the command ends silently, as a program does that SIGPIPE ends.

The one place for it. Python ignores SIGPIPE, and rightly so: a broken connection must not end a cluster's process. So a
write to standard output or standard error whose reader has gone is an error, wherever in a command it happens, and
whatever the command makes of it on the way. Loaded by `tanist serve` too, so it imports little.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

EXIT_CLOSED = 128 + signal.SIGPIPE


@contextmanager
def quietly() -> Iterator[None]:
    """Around a whole command."""
    _replace_missing()
    output = sys.stdout
    try:
        try:
            yield
        finally:
            _flush()
    except BaseException as error:
        # If click has met it first, it has put another object there and made it an exit with 1.
        if not behind(error) and sys.stdout is output:
            raise
        forsake(*(stream for stream in _streams() if _is_closed(stream)))
        raise SystemExit(EXIT_CLOSED) from None


def behind(error: BaseException | None) -> bool:
    """Whether this came about because nobody reads what the command prints."""
    while error is not None and not isinstance(error, BrokenPipeError):
        error = error.__cause__ or error.__context__
    return error is not None and any(map(_is_closed, _streams()))


def end_if_closed() -> None:
    """For a command that waits for what to print next: a reader that has gone ends it before there is more."""
    if _is_closed(sys.stdout):
        raise BrokenPipeError


def forsake(*streams: TextIO) -> None:
    """Send the rest to nowhere. Python writes what is left in its buffers at the exit, fails, and exits with 120."""
    with open(os.devnull, "wb") as nowhere:
        for stream in streams:
            os.dup2(nowhere.fileno(), stream.fileno())


def _streams() -> list[TextIO]:
    return [sys.stdout, sys.stderr]


def _flush() -> None:
    for stream in _streams():
        try:
            stream.flush()
        except BrokenPipeError:
            raise
        except OSError:  # a full disk: Python says so itself at the exit
            continue


def _is_closed(stream: TextIO) -> bool:
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # a test's, in memory
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def _replace_missing() -> None:
    """A program that was started with a closed stream (`>&-`) would open its first file or socket in that place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115

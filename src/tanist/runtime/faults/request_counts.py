"""How often each rule was called and has hit: one count for the whole cluster, in small files that all nodes share.

A file for each rule, two numbers, changed under a lock: "once" is once, whichever broker it happens at.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path

from tanist.runtime.ports.descriptors import opening

_COUNTS = struct.Struct(">qq")
_PREFIX = "request-rule-"


def _path(folder: Path, rule_id: int) -> Path:
    return folder / f"{_PREFIX}{rule_id}"


def create(folder: Path, rule_id: int) -> None:
    """A rule begins: no calls, no hits."""
    _path(folder, rule_id).write_bytes(_COUNTS.pack(0, 0))


def read(folder: Path, rule_id: int) -> tuple[int, int]:
    """Calls and hits; zeros of a rule that there is not."""
    try:
        return _COUNTS.unpack(_path(folder, rule_id).read_bytes())
    except (FileNotFoundError, struct.error):
        return 0, 0


def call(folder: Path, rule_id: int, decide: Callable[[int], bool]) -> bool:
    """Count one call, ask `decide` about its number, and count the hit if it is one. False if the rule is gone."""
    try:
        fd = opening(lambda: os.open(_path(folder, rule_id), os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        calls, hits = _COUNTS.unpack(os.pread(fd, _COUNTS.size, 0))
        hit = decide(calls + 1)
        os.pwrite(fd, _COUNTS.pack(calls + 1, hits + hit), 0)
        return hit
    finally:
        os.close(fd)


def forget_all(folder: Path) -> None:
    """The cluster is down, or begins anew."""
    for path in folder.glob(f"{_PREFIX}*"):
        path.unlink(missing_ok=True)

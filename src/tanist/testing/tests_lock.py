"""One run of tests at a time on a cluster that is kept between runs (`--tanist-reuse`).

Tests break the cluster and delete what was made meanwhile: two runs at once would break and delete each other's. The
lock is the kernel's, so it ends with the process that has it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tanist.runtime.cluster.cluster_file import TESTS_LOCK_NAME


@contextmanager
def tests_lock(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Wait until no other run has the cluster of the folder, and have it. `say` hears of a wait."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / TESTS_LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(lock, 20, 0).decode(errors="replace").strip()
            say(f"tanist: waiting for another run of tests (process {pid}) to end with the cluster in {folder}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(lock)

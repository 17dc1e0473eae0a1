"""Queries that are killed again and again, on three brokers of which one is away at times."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tanist.runtime.cluster.cluster import LocalCluster


class Query:
    """A process with a Spark query, in a session of its own. What it says goes to the end of `log`."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def kill(self) -> None:
        """The driver and its JVM. Python workers, which are sessions of their own, may write until they find out."""
        assert not self.has_ended, self.log.read_text()[-4000:]
        self._kill()

    def ends_well(self, patience_s: float) -> None:
        assert self.process.wait(patience_s) == 0, self.log.read_text()

    def _kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.has_ended:
            self._kill()


class BrokersInTurn:
    """One broker after the other crashes, and is back before the next does."""

    def __init__(self, nodes: LocalCluster, crashes: int) -> None:
        self._nodes = nodes
        self._left = crashes
        self._crashed = 0
        self._down: int | None = None

    def next(self) -> None:
        """The broker that is down comes back; or else the next one crashes, if one is to."""
        if self._down is not None:
            self.back()
        elif self._left:
            self._left -= 1
            self._down = 1 + self._crashed % 3
            self._crashed += 1
            self._nodes.crash(self._down)

    def back(self) -> None:
        if self._down is not None:
            self._nodes.start(self._down)
            self._down = None

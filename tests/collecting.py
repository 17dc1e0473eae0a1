"""What a run with workers says before its first test: how many files they have read, which takes a while for thousands.

A worker notes the count in a file, for the process that the terminal belongs to collects nothing itself. On a terminal
it is one line, which the next one replaces; elsewhere (a pipe, a log of CI) a line every ten seconds.
"""

from __future__ import annotations

import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

NOTE = "collecting"
WATCHED = "gw0"
POLL_EVERY_S, LINE_EVERY_S = 1.0, 10.0


class Noting:
    """In a worker: the number of files that it has read."""

    def __init__(self, note: Path) -> None:
        self._note, self._files = note, 0

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.nodeid.endswith(".py"):
            self._files += 1
            self._note.write_text(str(self._files))


class Showing:
    """In the process that the terminal belongs to: what the worker notes, until it has read all."""

    def __init__(self) -> None:
        self._terminal: Any = None
        self._folder = tempfile.TemporaryDirectory(prefix="tanist-collecting-", ignore_cleanup_errors=True)
        self._note = Path(self._folder.name) / NOTE
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        if node.gateway.id == WATCHED:
            node.workerinput[NOTE] = str(self._note)
            self._terminal = node.config.pluginmanager.get_plugin("terminalreporter")
            self._thread.start()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any) -> None:
        if node.gateway.id == WATCHED:
            self._ended.set()
            self._thread.join()

    def pytest_unconfigure(self) -> None:
        self._ended.set()
        self._folder.cleanup()

    def _show(self) -> None:
        every_s = POLL_EVERY_S if self._terminal.isatty else LINE_EVERY_S
        say = partial(self._terminal.rewrite, erase=True) if self._terminal.isatty else self._terminal.write_line
        say("collecting tests")
        while not self._ended.wait(every_s):
            say(f"collecting: {self._note.read_text() if self._note.exists() else 0} files read")


def register(config: pytest.Config) -> None:
    """Have this process take its part. Without workers pytest says itself that it collects."""
    noted = getattr(config, "workerinput", {}).get(NOTE)
    if noted is not None:
        config.pluginmanager.register(Noting(Path(noted)))
    else:
        config.pluginmanager.register(Showing())

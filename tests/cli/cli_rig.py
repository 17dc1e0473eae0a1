"""Commands on clusters of processes, run as people type them."""

from __future__ import annotations

import json
import random
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tanist.cli.app import app

TANIST = [sys.executable, "-m", "tanist.cli.main"]
FEW_PARTITIONS = ["--config", "offsets.topic.num.partitions=1"]
Mount = Callable[[str], Path]
"""Mounts a tmpfs with these options, or skips the test."""


def free_port() -> int:
    """The first of enough free ports for a cluster, below those that the system gives to outgoing connections."""
    while True:
        port = random.randrange(12_000, 29_000)
        try:
            for node in range(16):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port + node))
        except OSError:
            continue
        return port


def run(*arguments: str, folder: Path, stdin: str = "", code: int | None = 0) -> Any:
    """What the command printed: decoded if it was asked for JSON. In this process, for the speed of it.

    `code` None: whichever it is; what was asked for as JSON is then None unless it came about.
    """
    done = CliRunner().invoke(app, [*arguments, "--data", str(folder)], input=stdin)
    if code is None and done.exit_code:
        return None if "--json" in arguments else done.output
    assert done.exit_code == (code or 0), f"{arguments}: {done.exit_code}\n{done.output}\n{done.exception!r}"
    return json.loads(done.stdout) if "--json" in arguments else done.output


def fill(disk: Path) -> None:
    """Take all space that is left, but for less than a page."""
    with (disk / "filler").open("ab", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError:
                return

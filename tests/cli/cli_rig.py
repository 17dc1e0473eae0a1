"""Commands on clusters of processes, run as people type them."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tanist.cli.app import app
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.processes import wait_until

TANIST = [sys.executable, "-m", "tanist.cli.main"]
FEW_PARTITIONS = ["--config", "offsets.topic.num.partitions=1"]
Tanist = Callable[..., Any]
"""`run` on one folder."""
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


@contextmanager
def up(folder: Path, *arguments: str) -> Iterator[Tanist]:
    """A cluster that other processes have started; `run` on its folder."""
    command = [
        *TANIST,
        "up",
        "--detach",
        "--port",
        str(free_port()),
        *arguments,
        *FEW_PARTITIONS,
        "--data",
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "ready in " in done.stdout, done.stderr
    yield lambda *words, **options: run(*words, folder=folder, **options)
    run("down", folder=folder)
    assert load_existing(folder).running == []


def first_partition(tanist: Tanist, topic: str) -> dict[str, Any]:
    """As `topics describe` has it."""
    (described,) = tanist("topics", "describe", topic, "--json")
    found: dict[str, Any] = described["partitions"][0]
    return found


def json_lines(*arguments: str, folder: Path) -> list[dict[str, Any]]:
    """What a command with an object on each line printed."""
    done = subprocess.run(
        [*TANIST, *arguments, "--json", "--data", str(folder)], capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@contextmanager
def following(*arguments: str, folder: Path, out: Path) -> Iterator[None]:
    """A command that goes on printing, here into a file. It has begun, so what comes now is new to it; at the end it
    is interrupted.
    """
    with out.open("w") as file:
        follower = subprocess.Popen([*TANIST, *arguments, "--data", str(folder)], stdout=file)
        try:
            assert wait_until(lambda: out.read_text().endswith("\n"), 120)
            yield
            follower.send_signal(signal.SIGINT)
            assert follower.wait(120) == 0
        finally:
            follower.kill()


def fill(disk: Path) -> None:
    """Take all space that is left, but for less than a page."""
    with (disk / "filler").open("ab", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError:
                return

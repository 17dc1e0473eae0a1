"""README's commands as a stranger types them: in a pipe, on a terminal of 80 columns, and with `--json`; and mistakes.

What they print is in `transcript.txt`, with what differs each time masked. `TRANSCRIPTS=rewrite pytest
tests/cli/test_cli_transcript.py` writes it anew: read the difference before you commit it. Help is too long to be kept;
it must fit 80 columns on a terminal and in a pipe alike.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.runtime.cluster.processes import wait_until
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, Mount, fill, free_port, run

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_name("transcript.txt")
COLUMNS = 80
PATIENCE_S = 120

NOT_PLAYED = {
    "make demo": "CI runs it",
    "make test": "CI runs it",
    "make up": "the cluster of this test is one, on ports that are free",
    "make setup && .venv/bin/tanist lab demo": "tests/lab/test_last_replica_standing.py",
    ". .venv/bin/activate": "a shell's",
    "tanist serve server.properties": "tests/runtime/test_runtime_serve.py",
    "tanist top": "on a terminal it goes on until it is ended; tests/cli/test_cli_top.py",
}
MISTAKES = (
    "tanist stauts",
    "tanist topics lst",
    "tanist topics list --bootsrap x",
    "tanist crash",
    "tanist crash two",
    "tanist crash 9",
    "tanist topics describe ordres",
    "tanist topics create events",
    "tanist status --data nowhere",
    "echo x | tanist produce ordres",
    "tanist salvage list",
    "tanist heal",
    "tanist top --bootstrap 127.0.0.1:1 --count 1",
    "tanist configs alter --topic events --config retention.ms=60000",
    "tanist configs alter --topic ordres --config retention.ms=60000",
)
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
controller.quorum.voters=1@127.0.0.1:9093
log.dirs=data
"""

_MASKS: tuple[tuple[str, str], ...] = (
    (r"\x1b\[[0-9;?]*[A-Za-z]", ""),
    (r"(http://)?127\.0\.0\.1:\d+(/metrics)?", "ADDRESS"),
    (r"ADDRESS(,ADDRESS)+", "ADDRESSES"),
    (r'(?<=[\s":])[-_A-Za-z0-9]{22}(?=[\s"])', "ID"),
    (r'("(?:pid|port|timestamp|leader|leader_epoch|controller|partition|offset)":) -?\d+', r"\1 N"),
    (r'("metadata_age_ms":) (?:\d+|null)', r"\1 N"),
    (r'("(?:isr|elr|replicas)":) \[[^]]*\]', r"\1 [...]"),
    (r"\b(Leader|Replicas|Isr|Elr): [\d,]+", r"\1: N"),
    (r"\b[Bb]roker \d+", "broker N"),
    (r"\* node \d+ is the active controller\n", ""),
    (r"controller\*", "controller"),
    (r"(running +)\d+\b *", r"\1PID  "),
    # The gap between columns is as narrow as the length of process ids makes it.
    (r"NODE +ROLES +ADDRESS +STATE +PID +RACK +METRICS", "NODE  ROLES  ADDRESS  STATE  PID  RACK  METRICS"),
    (r"broker\+controller +ADDRESS +(\w+) +(PID|-) +- +ADDRESS", r"broker+controller  ADDRESS  \1  \2  -  ADDRESS"),
    (r"\b\d\d:\d\d:\d\d\b", "TIME"),
)


def masked(printed: str, folder: Path) -> str:
    """Without what is another each time: addresses, ids, who leads, and how wide columns are for it."""
    printed = printed.replace("\r\n", "\n").replace(str(folder), "FOLDER")
    for pattern, instead in _MASKS:
        printed = re.sub(pattern, instead, printed)
    lines = [re.sub(r"(?<=\S)  +", "  ", line).rstrip() for line in printed.splitlines()]
    return "\n".join(lines)


def readme() -> list[str]:
    """The commands of its console blocks."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [re.sub(r"\s+#.*", "", line.removeprefix("$ ")).strip() for line in lines]


class Shell:
    """A folder with a cluster, where `tanist` is on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "tanist-data"
        programs = folder / "bin"
        programs.mkdir()
        (programs / "tanist").write_text(f'#!/bin/sh\nexec {" ".join(TANIST)} "$@"\n')
        (programs / "tanist").chmod(0o755)
        (folder / "server.properties").write_text(PROPERTIES)
        hidden = ("COLUMNS", "LINES", "TANIST_DATA", "TANIST_BOOTSTRAP")
        self._environment = {name: value for name, value in os.environ.items() if name not in hidden} | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "TERM": "xterm",
        }

    def up(self) -> None:
        run("up", "--detach", "--port", str(free_port()), *FEW_PARTITIONS, folder=self.data)

    def down(self) -> None:
        run("down", folder=self.data)

    def pipe(self, command: str) -> tuple[str, int]:
        done = self._run(command, subprocess.PIPE)
        return done.stdout + done.stderr, done.returncode

    def apart(self, command: str) -> subprocess.CompletedProcess[str]:
        return self._run(command, subprocess.PIPE)

    def terminal(self, command: str) -> tuple[str, int]:
        """On a terminal, as wide as terminals are."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        process = subprocess.Popen(
            ["bash", "-c", command], cwd=self.folder, env=self._environment, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        printed = bytearray()
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            if not select.select([ours], [], [], max(0.0, deadline_s - time.monotonic()))[0]:
                process.kill()
                pytest.fail(f"{command} has not ended after {PATIENCE_S} s: {printed.decode(errors='replace')[-500:]}")
            try:
                found = os.read(ours, 65536)
            except OSError:  # the last who had it open has closed it
                break
            if not found:
                break
            printed += found
        os.close(ours)
        return printed.decode(), process.wait(60)

    def _run(self, command: str, pipe: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    shell.up()
    try:
        yield shell
    finally:
        shell.down()


def played(commands: list[str], shell: Shell, way: str) -> list[str]:
    lines = []
    for command in commands:
        if way == "json":
            command += " --json"
            done = shell.apart(command)
            result = done.stdout + done.stderr
            if done.returncode:
                json.loads(done.stderr.splitlines()[-1])
                assert done.stdout == ""
            elif "consume" in command:
                [json.loads(line) for line in done.stdout.splitlines()]
            else:
                json.loads(done.stdout)
            code = done.returncode
        else:
            result, code = shell.terminal(command) if way == "terminal" else shell.pipe(command)
        assert "Traceback" not in result, result
        lines += [f"$ {command}", masked(result, shell.folder)]
        if code:
            lines.append(f"(exit code {code})")
        elif command.startswith("tanist crash "):
            # Milliseconds; but where the active controller is the one that was killed, another is elected first.
            assert wait_until(lambda: "is offline" in shell.pipe("tanist topics describe --explain")[0], PATIENCE_S)
    return lines


def section(title: str) -> str:
    text = KEPT.read_text() if KEPT.exists() else ""
    found = re.search(rf"^== {title}\n(.*?)(?=^== |\Z)", text, re.DOTALL | re.MULTILINE)
    return "" if found is None else found[1].strip("\n")


def keep(title: str, text: str) -> None:
    before = KEPT.read_text() if KEPT.exists() else ""
    titles = dict(re.findall(r"^== ([^\n]*)\n(.*?)(?=^== |\Z)", before, re.DOTALL | re.MULTILINE))
    titles[title] = text + "\n\n"
    KEPT.write_text("".join(f"== {name}\n{titles[name]}" for name in sorted(titles)).rstrip("\n") + "\n")


LONG = pytest.mark.long


@pytest.mark.parametrize("way", ["pipe", pytest.param("terminal", marks=LONG), pytest.param("json", marks=LONG)])
def test_the_commands_of_the_readme(shell: Shell, way: str) -> None:
    commands = [command for command in readme() if command not in NOT_PLAYED]
    assert len(commands) >= 8
    text = "\n".join(played([*commands, *MISTAKES], shell, way))
    if text != section(way) and os.environ.get("TRANSCRIPTS") == "rewrite":
        keep(way, text)
    assert text == section(way), "TRANSCRIPTS=rewrite writes what was printed into the file"


ON_A_BAD_DISK = (
    "tanist up --detach --brokers 1 --port 0 --data disk/data",
    "tanist up --detach --brokers 1 --port 0 --data disk/data --json",
    "tanist down --data disk/data",
    "tanist status --data disk/data",
    "tanist topics list --data disk/data",
)
ON_A_DISK_THAT_WENT_BAD = (
    "tanist status --data disk/data",
    "tanist down --data disk/data",
    "tanist up --detach --data disk/data",
    "tanist up --detach --data disk/data --json",
    "tanist status --data disk/data",
    "tanist start 1 --data disk/data",
    "tanist crash 1 --data disk/data",
    "tanist reset --yes --data disk/data",
)


@pytest.mark.parametrize("trouble", ["full", "read-only"])
def test_a_data_folder_that_is_full_or_read_only(tmp_path: Path, mount: Mount, trouble: str) -> None:
    """For a new cluster, and for one that was made while all was well."""
    shell = Shell(tmp_path)
    disk = mount("size=1m")
    (tmp_path / "disk").symlink_to(disk)

    def go_bad() -> None:
        if trouble == "full":
            fill(disk)
        else:
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)

    go_bad()
    lines = played(list(ON_A_BAD_DISK), shell, "pipe")
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    (disk / "filler").unlink(missing_ok=True)
    run("up", "--detach", "--brokers", "1", "--port", "0", *FEW_PARTITIONS, folder=disk / "data")
    # A file system with files that are open for writing cannot become read-only, and a node on a full one dies when it
    # next writes. `test_cli_bad_disks` has disks that go bad under a running node.
    run("down", folder=disk / "data")
    go_bad()
    lines += played(list(ON_A_DISK_THAT_WENT_BAD), shell, "pipe")
    if trouble == "full":
        (disk / "filler").unlink()
    text = "\n".join(lines).replace(str(disk), "DISK")
    title = f"data folder {trouble}"
    if text != section(title) and os.environ.get("TRANSCRIPTS") == "rewrite":
        keep(title, text)
    assert text == section(title), "TRANSCRIPTS=rewrite writes what was printed into the file"


def test_what_is_not_played_stands_in_the_readme() -> None:
    assert NOT_PLAYED.keys() <= set(readme())


HELP = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.cli.command_cases import tree
from tanist.cli.app import app
for path in [(), *(path for path, _ in tree())]:
    print("$ tanist", *path, "--help", flush=True)
    app.main([*path, "--help"], prog_name="tanist", standalone_mode=False)
"""


@pytest.mark.parametrize("way", ["pipe", "terminal"])
def test_all_help_fits_80_columns(tmp_path: Path, way: str) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "help.py").write_text(HELP)
    command = f"{sys.executable} help.py {ROOT}"
    printed, code = shell.terminal(command) if way == "terminal" else shell.pipe(command)
    assert code == 0, printed
    lines = printed.replace("\r", "").splitlines()
    assert sum(line.startswith("Usage: tanist") for line in lines) > 50
    assert [line for line in lines if len(line) > COLUMNS] == []

"""The system refuses a resource that a cluster needs: space, a disk that can be written, rights, open files."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.exit_reasons import exit_reason
from tanist.runtime.cluster.processes import wait_until
from tanist.runtime.ports.descriptors import NEEDED
from tanist.runtime.ports.synced_lengths import SyncLedger
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, Mount, fill, free_port, run


def up(folder: Path, *options: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """A cluster of one broker: a new one, or the one that the folder has."""
    new = () if (folder / "cluster.json").exists() else ("--brokers", "1", "--port", str(free_port()))
    command = [*before, *TANIST, "up", "--detach", *new, "--data", str(folder)]
    return subprocess.run(
        [*command, *FEW_PARTITIONS, *options], capture_output=True, text=True, check=False, timeout=90
    )


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def test_a_full_disk_is_said_in_one_line_and_nothing_runs(mount: Mount) -> None:
    disk = mount("size=200k")
    fill(disk)
    line = one_line(up(disk / "data"))
    assert line.endswith("no space left on device: free space there, or use another folder")
    assert line.startswith(f"Error: {disk}/data/")
    (disk / "filler").unlink()
    assert "ready in" in up(disk / "data").stdout
    run("down", folder=disk / "data")


def test_a_cluster_whose_disk_is_full_or_read_only_by_now_can_be_stopped(mount: Mount) -> None:
    disk = mount("size=1m")
    folder = disk / "data"
    assert "ready in" in up(folder).stdout
    fill(disk)
    said = run("down", folder=folder)
    assert said.splitlines()[-1] == "stopped 1 node: 1"
    assert "the stopped nodes will show as crashed" in said
    assert "no space left on device: free space there" in said
    assert load_existing(folder).running == []
    (disk / "filler").unlink()
    assert "ready in" in up(folder).stdout
    for path in (disk / "data").rglob("*"):
        assert not path.name.endswith("json.tmp")
    (node,) = load_existing(folder).nodes
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=False, capture_output=True)
    if os.statvfs(disk).f_flag & os.ST_RDONLY:  # the files that the node has open may forbid it
        assert "stopped" in run("down", folder=folder)
    else:
        run("down", folder=folder)
    assert not node.alive


def test_a_read_only_disk_is_said(mount: Mount) -> None:
    disk = mount("size=1m,ro")
    assert one_line(up(disk / "data")) == (
        f"Error: {disk}/data: read-only file system: mount it for writing, or use another folder"
    )


def test_a_folder_below_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    line = one_line(up(tmp_path / "file" / "data"))
    assert "file/data: not a directory: a folder was expected there" in line
    for command in ("status", "down"):
        said = run(command, folder=tmp_path / "file" / "data", code=1)
        assert "not a directory: a folder was expected there: remove the file, or use another folder" in said


def test_a_folder_of_somebody_else_is_said() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "data"
        os.chmod(name, 0o555)
        try:
            said = (
                as_nobody(lambda: run("up", "--detach", folder=folder, code=1))
                if os.getuid() == 0
                else run("up", "--detach", folder=folder, code=1)
            )
        finally:
            os.chmod(name, 0o755)
    assert said == f"Error: {folder}: permission denied: give yourself the right to, or use another folder\n"


def as_nobody(call: Callable[[], str]) -> str:
    """What the call gives when a user without rights makes it. All that it imports must be there already."""
    run("up", "--help", folder=Path())
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            os.write(write_end, call().encode())
        except BaseException as error:
            os.write(write_end, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    with open(read_end, encoding="utf-8") as said:
        return said.read()


def test_what_has_no_cluster_is_not_made_by_asking(tmp_path: Path) -> None:
    for command in ("down", "status"):
        assert "there is no cluster in" in run(command, folder=tmp_path / "none", code=1)
    assert not (tmp_path / "none").exists()


@pytest.mark.long
def test_a_node_that_dies_of_a_full_disk_leaves_its_reason(mount: Mount) -> None:
    disk = mount("size=3m")
    folder = disk / "data"
    assert "ready in" in up(folder).stdout
    (node,) = load_existing(folder).nodes
    try:
        assert exit_reason(folder, node) is None
        run("topics", "create", "t", "--partitions", "1", "--replication-factor", "1", folder=folder)
        fill(disk)
        command = [*TANIST, "produce", "t", "--data", str(folder)]
        producer = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            assert producer.stdin is not None
            with suppress(BrokenPipeError):
                producer.stdin.write(b"%s\n" % (b"x" * 900) * 1000)
                producer.stdin.close()
            assert wait_until(lambda: not node.alive, 60)
        finally:
            producer.kill()
            producer.wait()
        reason = exit_reason(folder, node)
        assert reason is not None
        assert "No space left on device" in reason
        assert "\n" not in reason
    finally:
        if node.process is not None:
            node.process.kill()


def test_the_ledger_of_synced_lengths_finds_out_before_it_stores_into_a_full_disk(mount: Mount) -> None:
    """A store into a hole of a mapped file would end the process by SIGBUS, without a word."""
    disk = mount("size=64k")
    ledger = SyncLedger(f"{disk}/ledger")
    fill(disk)
    with pytest.raises(OSError, match="No space left on device"):  # noqa: PT012 (how many fit is not known)
        for inode in range(1, 5000):
            ledger.adopt((1, inode), 0)
    assert ledger.synced((1, 1)) == 0
    ledger.record((1, 1), 7)
    assert ledger.synced((1, 1)) == 7
    with pytest.raises(OSError, match="No space left on device"):
        SyncLedger(f"{disk}/another")


def test_a_killed_node_has_no_reason(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert "ready in" in up(folder).stdout
    run("crash", "1", folder=folder)
    (node,) = load_existing(folder).nodes
    assert exit_reason(folder, node) is None
    (folder / "node-1" / "data" / "meta.properties").unlink()
    said = run("start", "1", folder=folder, code=1)
    assert "node 1 cannot start: " in said
    assert "is not formatted" in said
    assert said.count("\n") == 1
    (node,) = load_existing(folder).nodes
    assert "is not formatted" in (exit_reason(folder, node) or "")


# -- open files


def limited(number: int) -> tuple[str, ...]:
    return ("sh", "-c", f'ulimit -n {number}; exec "$@"', "sh")


def test_too_few_open_files_are_said_at_the_start(tmp_path: Path) -> None:
    line = one_line(up(tmp_path / "data", before=limited(64)))
    assert line == "Error: the limit of open files is 64, and a node needs 256: `ulimit -n 4096`, then try again"
    assert not (tmp_path / "data").exists()
    soft = ("sh", "-c", 'ulimit -S -n 64; exec "$@"', "sh")  # the node may raise it
    assert "ready in" in up(tmp_path / "data", before=soft).stdout
    run("down", folder=tmp_path / "data")


def test_a_node_that_runs_out_of_open_files_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert "ready in" in up(folder, before=limited(NEEDED)).stdout
    (node,) = load_existing(folder).nodes
    log = folder / "node-1" / "node.log"
    many: list[socket.socket] = []
    try:
        assert f"the limit of open files is {NEEDED}" in log.read_text()
        run("topics", "create", "small", "--partitions", "1", "--replication-factor", "1", folder=folder)
        run("topics", "create", "large", "--partitions", "400", "--replication-factor", "1", folder=folder)
        assert wait_until(lambda: "too many open files" in log.read_text(), 60)
        many = [socket.create_connection(("127.0.0.1", node.broker_port)) for _ in range(300)]
        assert node.alive
        for connection in many:
            connection.close()
        run("topics", "delete", "large", folder=folder)  # what it has open is closed
        run("topics", "create", "later", "--partitions", "1", "--replication-factor", "1", folder=folder)
        assert "1 record sent" in run("produce", "small", folder=folder, stdin="x\n")
        assert "1 record sent" in run("produce", "later", folder=folder, stdin="x\n")
        assert node.alive
        assert "ERROR" not in log.read_text()
    finally:
        for connection in many:
            connection.close()
        if node.process is not None:
            node.process.signal(signal.SIGTERM)
            assert wait_until(lambda: not node.alive, 60)


@pytest.mark.long
def test_a_killed_node_with_as_many_logs_as_its_limit_lets_it_have_starts_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert "ready in" in up(folder, before=limited(800)).stdout
    log = folder / "node-1" / "node.log"
    try:
        run("topics", "create", "many", "--partitions", "320", "--replication-factor", "1", folder=folder)
        assert "320 records sent" in run("produce", "many", folder=folder, stdin="x\n" * 320)
        run("crash", "1", folder=folder)
        assert "ready in" in up(folder, before=limited(800)).stdout
        assert "1 record sent" in run("produce", "many", folder=folder, stdin="x\n")
        assert "ERROR" not in log.read_text()

        run("crash", "1", folder=folder)
        failed = up(folder, before=limited(NEEDED))
        assert failed.returncode == 1
        assert "could be opened: Too many open files (the limit is 256: raise it with `ulimit -n`)" in failed.stderr
        assert "offline" not in log.read_text()
        assert "ready in" in up(folder, before=limited(800)).stdout
        said = run("consume", "many", "--from-beginning", "--max-messages", "321", folder=folder)
        assert said.count("x\n") == 321
    finally:
        run("down", folder=folder)

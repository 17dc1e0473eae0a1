"""Disks that are full, slow or broken, while files are open and when they are healed."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tanist.ports import FileRange
from tanist.runtime.faults.disk import _Troubles, apply_disk_faults
from tanist.runtime.faults.settings import BadDisk
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.files import DiskFile
from tanist.runtime.ports.network import SocketNetwork


@pytest.fixture
def disk(runner: Any) -> Iterator[RealDisk]:
    disk = RealDisk(runner.loop)
    yield disk
    disk.close()


def fails_with(code: int, access: Callable[[], object]) -> bool:
    with pytest.raises(OSError) as caught:
        access()
    return caught.value.errno == code


def synced(runner: Any, disk: RealDisk, file: DiskFile) -> OSError | None:
    """What came of a sync."""
    reported: list[OSError | None] = []
    disk.sync([file], reported.append)
    runner.until(lambda: bool(reported))
    return reported[0]


def test_full(disk: RealDisk, tmp_path: Path) -> None:
    before = disk.open(f"{tmp_path}/log")
    before.write(0, [b"0123456789"])
    disk.write_file(f"{tmp_path}/small", b"old")
    apply_disk_faults(disk, [BadDisk(1, "full")])
    assert fails_with(errno.ENOSPC, lambda: before.write(8, [b"abc"]))
    assert fails_with(errno.ENOSPC, lambda: disk.write_file(f"{tmp_path}/small", b"new"))
    assert fails_with(errno.ENOSPC, lambda: disk.open(f"{tmp_path}/other"))
    assert fails_with(errno.ENOSPC, lambda: disk.make_directory(f"{tmp_path}/folder"))
    before.write(2, [b"ab"])  # it fits
    again = disk.open(f"{tmp_path}/log")
    assert fails_with(errno.ENOSPC, lambda: again.write(10, [b"x"]))
    assert before.read(0, 10) == b"01ab456789"
    assert disk.read_file(f"{tmp_path}/small") == b"old"
    before.truncate(5)
    disk.remove(f"{tmp_path}/small")
    apply_disk_faults(disk, [])
    before.write(5, [b"healed"])
    assert again.read(0, 5) == b"01ab4"
    assert before.read(0, 20) == b"01ab4healed"
    assert type(before) is type(again) is DiskFile
    assert type(disk) is RealDisk
    before.close()
    again.close()


def test_read_only_in_one_directory(runner: Any, disk: RealDisk, tmp_path: Path) -> None:
    bad, good = (disk.open(f"{_folder(tmp_path, name)}/log") for name in ("bad", "good"))
    for file in (bad, good):
        file.write(0, [b"content"])
    path = f"{tmp_path}/bad"
    apply_disk_faults(disk, [BadDisk(1, "read-only", path)])
    for change in (
        lambda: bad.write(7, [b"x"]),
        lambda: bad.write(0, [b"x"]),  # it would fit
        lambda: bad.truncate(0),
        lambda: disk.open(f"{path}/other"),
        lambda: disk.make_directory(f"{path}/folder"),
        lambda: disk.write_file(f"{path}/log", b""),
        lambda: disk.rename(f"{path}/log", f"{path}/other"),
        lambda: disk.remove(f"{path}/log"),
    ):
        assert fails_with(errno.EROFS, change)
    assert bad.read(0, 9) == disk.read_file(f"{path}/log") == b"content"
    assert disk.list(path) == ["log"]
    for file in (bad, good):
        assert synced(runner, disk, file) is None
    good.write(7, [b", and more"])
    apply_disk_faults(disk, [])
    bad.write(7, [b", healed"])
    assert bad.read(0, 20) == b"content, healed"
    bad.close()
    good.close()


def test_broken_in_one_directory(runner: Any, disk: RealDisk, tmp_path: Path) -> None:
    bad, good, alike = (disk.open(f"{_folder(tmp_path, name)}/log") for name in ("bad", "good", "bad-not"))
    for file in (bad, good, alike):
        file.write(0, [b"content"])
    apply_disk_faults(disk, [BadDisk(1, "failed", f"{tmp_path}/bad")])
    path = f"{tmp_path}/bad"
    assert fails_with(errno.EIO, lambda: bad.read(0, 1))
    assert fails_with(errno.EIO, lambda: bad.write(0, [b"x"]))
    assert fails_with(errno.EIO, lambda: bad.truncate(0))
    assert fails_with(errno.EIO, lambda: disk.sync_now(bad))
    for access in (disk.open, disk.read_file, disk.exists, disk.remove):
        assert fails_with(errno.EIO, partial(access, f"{path}/log"))
    assert fails_with(errno.EIO, lambda: disk.list(path))
    assert fails_with(errno.EIO, lambda: disk.rename(f"{path}/log", f"{path}/other"))
    assert fails_with(errno.EIO, lambda: disk.write_file(f"{path}/log", b""))
    for file in (good, alike):
        file.write(7, [b", and more"])
        assert file.read(0, 20) == b"content, and more"
        assert synced(runner, disk, file) is None
    bad.close()  # also now; its descriptor is not lost
    apply_disk_faults(disk, [])
    with pytest.raises(OSError, match="Bad file descriptor"):
        bad.read(0, 1)
    good.close()
    alike.close()


def _folder(tmp_path: Path, name: str) -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name


def test_a_failed_sync_stays_failed_when_the_disk_is_healed(runner: Any, disk: RealDisk, tmp_path: Path) -> None:
    file = disk.open(f"{tmp_path}/log")
    file.write(0, [b"content"])
    apply_disk_faults(disk, [BadDisk(1, "failed")])
    error = synced(runner, disk, file)
    assert error is not None
    assert error.errno == errno.EIO
    apply_disk_faults(disk, [])
    assert synced(runner, disk, file) is error
    assert file.read(0, 7) == b"content"
    file.close()


def test_slow_syncs(runner: Any, disk: RealDisk, tmp_path: Path) -> None:
    file = disk.open(f"{tmp_path}/log")
    apply_disk_faults(disk, [BadDisk(1, "slow", latency_ms=80)])
    began_s = time.monotonic()
    file.write(0, [b"at once"])
    assert synced(runner, disk, file) is None
    assert time.monotonic() - began_s >= 0.08
    assert file.synced == 7
    disk.write_file(f"{tmp_path}/small", b"synced too")
    assert time.monotonic() - began_s >= 0.16
    file.close()


def test_a_disk_is_healed_while_a_slow_sync_and_a_slow_job_are_under_way(
    runner: Any, disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They go on at once."""
    waiting: list[str] = []
    wait = _Troubles.wait

    def noted(troubles: _Troubles, path: str, *, write: bool) -> None:
        waiting.append(path)
        wait(troubles, path, write=write)

    monkeypatch.setattr(_Troubles, "wait", noted)
    file = disk.open(f"{tmp_path}/log")
    apply_disk_faults(disk, [BadDisk(1, "slow", latency_ms=3_600_000, writes=True)])
    results: list[object] = []
    disk.run(lambda: disk.write_file(f"{tmp_path}/small", b"late"), results.append)
    disk.run(lambda: disk.open(f"{tmp_path}/other").write(0, [b"late"]), results.append)
    disk.sync([file], results.append)
    runner.until(lambda: len(waiting) == 3)
    apply_disk_faults(disk, [])
    runner.until(lambda: len(results) == 3)
    assert results == [None, None, None]
    assert disk.read_file(f"{tmp_path}/small") == disk.read_file(f"{tmp_path}/other") == b"late"
    file.close()


def test_whatever_a_thread_does_a_disk_may_be_healed_meanwhile(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node ended by a TypeError: the disk had another class than the method that was running."""
    (tmp_path / "small").write_bytes(b"x")
    file = disk.open(f"{tmp_path}/log")

    def heal(*_: object, **__: object) -> None:
        apply_disk_faults(disk, [])

    uses: dict[str, Callable[[], object]] = {
        "make_durable": lambda: disk.make_durable(f"{tmp_path}/small"),
        "read_file": lambda: disk.read_file(f"{tmp_path}/small"),
        "write_file": lambda: disk.write_file(f"{tmp_path}/small", b"y"),
        "list": lambda: disk.list(str(tmp_path)),
        "exists": lambda: disk.exists(f"{tmp_path}/small"),
        "open": lambda: disk.open(f"{tmp_path}/other").close(),
        "make_directory": lambda: disk.make_directory(f"{tmp_path}/folder"),
        "rename": lambda: disk.rename(f"{tmp_path}/small", f"{tmp_path}/renamed"),
        "remove": lambda: disk.remove(f"{tmp_path}/renamed"),
        "truncate": lambda: file.truncate(0),
        "write": lambda: file.write(0, [b"abc"]),
    }
    for use in uses.values():
        apply_disk_faults(disk, [BadDisk(1, "slow")])
        with monkeypatch.context() as patch:
            for check in ("check", "check_change", "check_space", "wait"):
                patch.setattr(_Troubles, check, heal)
            use()
        assert type(disk) is RealDisk
    file.close()


def test_slow_writes(disk: RealDisk, tmp_path: Path) -> None:
    file = disk.open(f"{tmp_path}/log")
    apply_disk_faults(disk, [BadDisk(1, "slow", latency_ms=50, writes=True)])
    began_s = time.monotonic()
    file.write(0, [b"late"])
    assert time.monotonic() - began_s >= 0.05
    apply_disk_faults(disk, [BadDisk(1, "slow", latency_ms=60_000)])
    file.write(4, [b", soon"])
    assert file.read(0, 10) == b"late, soon"
    file.close()


@pytest.mark.parametrize("apart", [False, True])
def test_what_is_being_sent_from_a_broken_disk_ends_its_connection(
    runner: Any, disk: RealDisk, tmp_path: Path, apart: bool
) -> None:
    """As it does when `sendfile` fails; and on a disk with other troubles it is sent."""

    class Handler:
        def __init__(self) -> None:
            self.connection: Any = None
            self.frames: list[bytes] = []
            self.closed: list[str] = []

        def on_open(self, connection: Any) -> None:
            """Nothing to do."""

        def on_frame(self, frame: memoryview) -> None:
            self.frames.append(bytes(frame))

        def on_close(self, reason: str) -> None:
            self.closed.append(reason)

    network = SocketNetwork(runner.loop)
    there, here = Handler(), Handler()
    listener = network.bind("127.0.0.1", 0, lambda _: there, max_frame_bytes=1 << 20)
    listener.open()
    here.connection = network.connect("127.0.0.1", listener.port, here, max_frame_bytes=1 << 20)
    file = disk.open(f"{tmp_path}/log")
    file.write(0, [b"\0\0\0\5hello"])
    chunks = [b"\0\0\0\5", FileRange(file, 4, 5)] if apart else [FileRange(file, 0, 9)]
    apply_disk_faults(disk, [BadDisk(1, "full")])
    here.connection.send(chunks)
    runner.until(lambda: there.frames == [b"hello"])
    apply_disk_faults(disk, [BadDisk(1, "failed")])
    here.connection.send(chunks)
    runner.until(lambda: bool(here.closed))
    assert here.closed == [os.strerror(errno.EIO)]
    assert runner.failures == []
    file.close()
    network.close()

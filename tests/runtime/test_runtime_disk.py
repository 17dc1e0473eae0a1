"""What the files do beyond the contract: failures, group commit, and the ledger that is read from outside."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.ports import files as files_module
from tanist.runtime.ports.disk import WRITE_THREADS, RealDisk
from tanist.runtime.ports.synced_lengths import LEDGER_NAME, SyncLedger, key_of, read_ledger


@pytest.fixture
def disk(runner: Any, tmp_path: Path) -> RealDisk:
    return RealDisk(runner.loop, f"{tmp_path}/{LEDGER_NAME}")


def noted(tmp_path: Path) -> dict[str, int]:
    """What the ledger says, by the names that files have now."""
    ledger = read_ledger(tmp_path / LEDGER_NAME)
    found = {}
    for path in tmp_path.rglob("*"):
        key = key_of(path.stat())
        if path.is_file() and key in ledger:
            found[str(path.relative_to(tmp_path))] = ledger[key]
    return found


class SlowSync:
    """A stand-in for fdatasync that waits until it is let go, and can fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[int] = []
        self.gate = threading.Event()
        self.error: OSError | None = None
        monkeypatch.setattr(files_module, "_fdatasync", self)

    def __call__(self, fd: int) -> None:
        self.calls.append(fd)
        if not self.gate.wait(120):
            raise TimeoutError
        if self.error is not None:
            raise self.error


def test_one_sync_serves_all_who_asked_while_another_ran(
    runner: Any, disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowSync(monkeypatch)
    file = disk.open(f"{tmp_path}/a")
    done: list[int] = []
    file.write(0, [b"first"])
    disk.sync([file], lambda _: done.append(file.synced))
    runner.until(lambda: len(slow.calls) == 1)
    for index in range(40):
        file.write(5 + index, [b"x"])
        disk.sync([file], lambda _: done.append(file.synced))
    slow.gate.set()
    runner.until(lambda: len(done) == 41)
    assert done == [5] + [45] * 40
    assert len(slow.calls) == 2


def test_what_is_cut_and_written_anew_during_a_sync_is_not_synced(
    runner: Any, disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowSync(monkeypatch)
    file = disk.open(f"{tmp_path}/a")
    file.write(0, [b"0123456789"])
    done: list[OSError | None] = []
    disk.sync([file], done.append)
    runner.until(lambda: len(slow.calls) == 1)
    file.truncate(4)
    file.write(4, [b"abcdef"])
    slow.gate.set()
    runner.until(lambda: bool(done))
    assert (file.size, file.synced) == (10, 4)
    assert noted(tmp_path)["a"] == 4


def test_a_failed_sync_is_reported_and_the_file_never_claims_durability_again(
    runner: Any, disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowSync(monkeypatch)
    slow.error = OSError(errno.EIO, "I/O error")
    slow.gate.set()
    file, other = disk.open(f"{tmp_path}/a"), disk.open(f"{tmp_path}/b")
    file.write(0, [b"x"])
    done: list[OSError | None] = []
    disk.sync([file], done.append)
    runner.until(lambda: len(done) == 1)
    slow.error = None
    disk.sync([file, other], done.append)
    disk.sync([other], done.append)
    runner.until(lambda: len(done) == 3)
    codes = [None if error is None else error.errno for error in done]
    assert codes == [errno.EIO, errno.EIO, None]
    assert file.synced == 0
    with pytest.raises(OSError, match="I/O error"):
        disk.sync_now(file)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_an_os_error(disk: RealDisk) -> None:
    file = disk.open("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        file.write(0, [b"x"])
    assert caught.value.errno == errno.ENOSPC


def full_after_three_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The disk takes three bytes of the next write, and is full then; the offsets of the calls."""
    real = os.pwritev
    calls: list[int] = []

    def full_after_three_bytes(fd: int, buffers: Any, offset: int) -> int:
        calls.append(offset)
        if len(calls) == 1:
            return real(fd, [bytes(buffers[0][:3])], offset)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwritev", full_after_three_bytes)
    return calls


def test_a_write_that_fails_half_way_leaves_no_torn_end(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(f"{tmp_path}/a")
    file.write(0, [b"whole"])
    calls = full_after_three_bytes(monkeypatch)
    with pytest.raises(OSError, match="No space"):
        file.write(5, [b"half-", b"written"])
    monkeypatch.undo()
    assert calls == [5, 8]
    assert file.size == 5
    assert Path(f"{tmp_path}/a").read_bytes() == b"whole"


def test_short_writes_are_completed(disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwritev
    monkeypatch.setattr(
        os, "pwritev", lambda fd, buffers, offset: real(fd, [b"".join(map(bytes, buffers))[:4]], offset)
    )
    file = disk.open(f"{tmp_path}/a")
    file.write(0, [b"ab", b"", b"cdefg", memoryview(b"hi"), b"jklmnop"])
    assert file.read(0, 100) == b"abcdefghijklmnop"


def test_write_file_that_fails_keeps_the_old_and_leaves_nothing_behind(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.write_file(f"{tmp_path}/checkpoint", b"old")

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        disk.write_file(f"{tmp_path}/checkpoint", b"new")
    monkeypatch.undo()
    assert disk.read_file(f"{tmp_path}/checkpoint") == b"old"
    assert disk.list(str(tmp_path)) == [LEDGER_NAME, "checkpoint"]


def test_the_ledger_follows_syncs_cuts_renames_and_removals(disk: RealDisk, tmp_path: Path) -> None:
    disk.make_directory(f"{tmp_path}/t-0")
    file = disk.open(f"{tmp_path}/t-0/log")
    file.write(0, [b"0123456789"])
    assert noted(tmp_path) == {"t-0/log": 0}
    disk.sync_now(file)
    file.write(10, [b"more"])
    assert noted(tmp_path) == {"t-0/log": 10}
    disk.rename(f"{tmp_path}/t-0", f"{tmp_path}/t-1")
    assert noted(tmp_path) == {"t-1/log": 10}
    file.truncate(3)
    assert noted(tmp_path) == {"t-1/log": 3}
    disk.write_file(f"{tmp_path}/checkpoint", b"12345")
    disk.write_file(f"{tmp_path}/checkpoint", b"123")
    disk.write_file(f"{tmp_path}/unsynced", b"1234567", sync=False)
    assert noted(tmp_path) == {"t-1/log": 3, "checkpoint": 3, "unsynced": 7}
    disk.remove(f"{tmp_path}/t-1")
    disk.rename(f"{tmp_path}/unsynced", f"{tmp_path}/checkpoint")
    assert noted(tmp_path) == {"checkpoint": 7}
    assert len(read_ledger(tmp_path / LEDGER_NAME)) == 1


def test_a_file_opened_again_knows_what_was_synced_before(runner: Any, tmp_path: Path) -> None:
    disk = RealDisk(runner.loop, f"{tmp_path}/{LEDGER_NAME}")
    file = disk.open(f"{tmp_path}/a")
    file.write(0, [b"12345"])
    disk.sync_now(file)
    file.write(5, [b"678"])
    file.close()
    disk.close()
    again = RealDisk(runner.loop, f"{tmp_path}/{LEDGER_NAME}").open(f"{tmp_path}/a")
    assert (again.size, again.synced) == (8, 5)


def test_files_that_were_there_before_the_ledger_count_as_synced(runner: Any, tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "log").write_bytes(b"of another program")
    disk = RealDisk(runner.loop, f"{tmp_path}/{LEDGER_NAME}")
    assert disk.open(f"{tmp_path}/t-0/log").synced == 18


def test_a_new_file_in_a_used_inode_starts_at_nothing(tmp_path: Path) -> None:
    ledger = SyncLedger(f"{tmp_path}/ledger")
    ledger.adopt((1, 77), 500)
    ledger.adopt((1, 77), 0)
    assert ledger.synced((1, 77)) == 0
    ledger.drop((1, 77))
    ledger.record((1, 77), 9)  # a file that is open but removed
    assert ledger.synced((1, 77)) == 0


def test_the_ledger_grows(tmp_path: Path) -> None:
    ledger = SyncLedger(f"{tmp_path}/ledger")
    for inode in range(1, 3001):
        ledger.adopt((8, inode), inode * 10)
    for inode in range(1, 3001, 3):
        ledger.drop((8, inode))
    ledger.close()
    expected = {(8, inode): inode * 10 for inode in range(1, 3001) if inode % 3 != 1}
    assert read_ledger(tmp_path / "ledger") == expected
    again = SyncLedger(f"{tmp_path}/ledger")
    assert all(again.synced(key) == synced for key, synced in expected.items())
    again.adopt((8, 1), 1)
    assert read_ledger(tmp_path / "ledger") == expected | {(8, 1): 1}


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_bytes(b"something else entirely")
    with pytest.raises(OSError, match="not a ledger"):
        SyncLedger(f"{tmp_path}/ledger")
    with pytest.raises(ValueError, match="not a ledger"):
        read_ledger(tmp_path / "ledger")


def test_the_ledger_of_a_killed_process_says_what_was_synced(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.loop import Loop
folder = sys.argv[1]
disk = RealDisk(Loop(), folder + "/.tanist-synced")
file = disk.open(folder + "/log")
file.write(0, [b"x" * 1000])
disk.sync_now(file)
file.write(1000, [b"y" * 500])
os.kill(os.getpid(), signal.SIGKILL)
"""
    process = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert process.returncode == -9
    assert (tmp_path / "log").stat().st_size == 1500
    assert noted(tmp_path) == {"log": 1000}


def test_a_job_may_write_a_file_that_is_written_here_at_the_same_time(disk: RealDisk, tmp_path: Path) -> None:
    path, failures = f"{tmp_path}/partition.metadata", list[BaseException]()

    def write() -> None:
        try:
            for number in range(300):
                disk.write_file(path, b"%04d" % number, sync=False)
        except OSError as failure:
            failures.append(failure)

    thread = threading.Thread(target=write)
    thread.start()
    write()
    thread.join()
    assert failures == []
    assert disk.read_file(path) == b"0299"
    assert disk.list(str(tmp_path)) == sorted([LEDGER_NAME, "partition.metadata"])


def test_jobs_of_run_now_run_side_by_side_and_all_of_them_before_a_failure_is_raised(disk: RealDisk) -> None:
    together = threading.Barrier(2, timeout=20)
    ended: list[int] = []

    def fail() -> None:
        together.wait()
        raise OSError(errno.EIO, "the first")

    def work(number: int) -> None:
        if number == 1:
            together.wait()
        ended.append(number)

    with pytest.raises(OSError, match="the first"):
        disk.run_now([fail, *(partial(work, number) for number in range(1, 20))])
    assert sorted(ended) == list(range(1, 20))


def test_a_small_file_that_is_written_later_does_not_replace_what_is_written_meanwhile(
    runner: Any, disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if the thread has its own file ready and is about to rename it."""
    path, replaced, gate = f"{tmp_path}/checkpoint", threading.Event(), threading.Event()
    done: list[OSError | None] = []

    def held(source: str, target: str) -> None:
        if threading.current_thread() is not threading.main_thread():
            replaced.set()
            assert gate.wait(120)
        os.rename(source, target)

    monkeypatch.setattr("tanist.runtime.ports.disk.os.replace", held)
    disk.write_file_later(path, b"first", done.append)
    assert replaced.wait(120)
    threading.Timer(0.1, gate.set).start()
    disk.write_file(path, b"second", sync=True)
    runner.until(lambda: done == [None])
    assert disk.read_file(path) == b"second"


class GatedFile:
    """An open file whose writes wait until they are let go, and can fail."""

    path, size, synced = "gated", 0, 0

    def __init__(self, order: list[str], name: str = "written") -> None:
        self.order = order
        self.name = name
        self.begun = threading.Event()
        self.gate = threading.Event()
        self.error: Exception | None = None

    def write(self, offset: int, buffers: Any) -> None:
        self.begun.set()
        if not self.gate.wait(120):
            raise TimeoutError
        self.order.append(self.name)
        if self.error is not None:
            raise self.error

    def read(self, offset: int, length: int) -> bytes:
        raise NotImplementedError

    def truncate(self, size: int) -> None:
        raise NotImplementedError

    def close(self) -> None: ...


def test_the_loop_goes_on_while_a_late_write_takes_its_time(runner: Any, disk: RealDisk) -> None:
    order: list[str] = []
    file = GatedFile(order)
    disk.write_later(file, 0, [b"x"], lambda error: order.append(f"reported {error}"))
    runner.until(file.begun.is_set)
    order.append("another turn")
    file.gate.set()
    runner.until(lambda: len(order) == 3)
    assert order == ["another turn", "written", "reported None"]


def test_who_finishes_a_late_write_that_a_thread_has_begun_waits_for_its_end(runner: Any, disk: RealDisk) -> None:
    order: list[str] = []
    file = GatedFile(order)
    write = disk.write_later(file, 0, [b"x"], lambda error: order.append(f"reported {error}"))
    assert file.begun.wait(120)

    def finish() -> None:
        write.finish()
        order.append("finished")

    thread = threading.Thread(target=finish)
    thread.start()
    file.gate.set()
    thread.join()
    assert order == ["written", "finished"]
    runner.until(lambda: len(order) == 3)
    assert order == ["written", "finished", "reported None"]


def test_a_late_write_that_no_thread_is_free_for_is_made_by_who_finishes_it(
    runner: Any, disk: RealDisk, tmp_path: Path
) -> None:
    order: list[str] = []
    slow = [GatedFile(order, "slow") for _ in range(WRITE_THREADS)]
    for file in slow:
        disk.write_later(file, 0, [b"x"], lambda _: None)
    assert all(file.begun.wait(120) for file in slow)
    waiting = disk.open(f"{tmp_path}/a")
    write = disk.write_later(waiting, 0, [b"content"], lambda error: order.append(f"reported {error}"))
    write.finish()
    assert waiting.read(0, 10) == b"content"
    waiting.write(0, [b"changed"])
    assert order == []
    for file in slow:
        file.gate.set()
    runner.until(lambda: len(order) == WRITE_THREADS + 1)
    assert sorted(order) == ["reported None", *["slow"] * WRITE_THREADS]
    assert waiting.read(0, 10) == b"changed"  # the thread has not written it again


@pytest.mark.parametrize("finish_first", [True, False])
def test_a_late_write_that_fails_half_way_is_reported_and_leaves_no_torn_end(
    runner: Any, disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finish_first: bool
) -> None:
    file = disk.open(f"{tmp_path}/a")
    file.write(0, [b"whole"])
    calls = full_after_three_bytes(monkeypatch)
    done: list[OSError | None] = []
    write = disk.write_later(file, 5, [b"half-", b"written"], done.append)
    if finish_first:
        with pytest.raises(OSError, match="No space"):
            write.finish()
    runner.until(lambda: bool(done))
    with pytest.raises(OSError, match="No space"):
        write.finish()
    monkeypatch.undo()
    assert [error and error.errno for error in done] == [errno.ENOSPC]
    assert calls == [5, 8]
    assert file.size == 5
    assert Path(f"{tmp_path}/a").read_bytes() == b"whole"


def test_the_disk_closes_when_its_late_writes_have_ended(disk: RealDisk, tmp_path: Path) -> None:
    files = [disk.open(f"{tmp_path}/{index}") for index in range(10)]
    for file in files:
        disk.write_later(file, 0, [b"x" * 200_000], lambda _: None)
    disk.close()
    assert [file.size for file in files] == [200_000] * 10


def test_a_late_write_appends_to_what_is_being_synced_without_counting_as_synced(
    runner: Any, disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowSync(monkeypatch)
    file = disk.open(f"{tmp_path}/a")
    file.write(0, [b"first"])
    done: list[str] = []
    disk.sync([file], lambda _: done.append("synced"))
    runner.until(lambda: len(slow.calls) == 1)
    disk.write_later(file, 5, [b"second"], lambda _: done.append("written"))
    runner.until(lambda: done == ["written"])
    slow.gate.set()
    runner.until(lambda: done == ["written", "synced"])
    assert (file.size, file.synced) == (11, 5)
    assert noted(tmp_path)["a"] == 5

"""What is not in the page cache is read by threads, and the loop goes on meanwhile; nothing is lost or reordered."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tanist.ports import FileRange
from tanist.runtime.ports import cold_ranges, kernel
from tanist.runtime.ports.cold_ranges import BLOCK_BYTES, in_memory
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.files import DiskFile
from tests.runtime.network_rig import frame

pytestmark = pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="the system cannot be asked what is in memory")

SIZE = 3 << 20


class KernelThatCannotSay(kernel.PageCache):
    """One without `cachestat`."""

    def __init__(self) -> None:
        super().__init__()
        self._call = None


class PageCache:
    """A page cache from which everything was dropped: what threads read is in it, and nothing may be sent else."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: set[int] = set()
        """Pages."""
        self.asked = 0
        self.forgets = False
        self.cannot_say = False
        self.evicts = 0
        """How many reads are undone as soon as they have ended."""
        self.at_once = SIZE
        """Bytes that a thread gets at once."""
        self.disk_answers = threading.Event()
        self.disk_answers.set()
        self.sent_cold = 0
        self._preadv, self._sendfile = os.preadv, os.sendfile
        monkeypatch.setattr(os, "preadv", self.preadv)
        monkeypatch.setattr(os, "sendfile", self.sendfile)
        monkeypatch.setattr(os, "posix_fadvise", lambda *_: None)
        monkeypatch.setattr(cold_ranges, "_page_cache", KernelThatCannotSay())

    def preadv(self, fd: int, buffers: Any, offset: int, flags: int = 0) -> int:
        if not flags:
            return self._preadv(fd, buffers, offset)
        assert flags == os.RWF_NOWAIT
        if self.cannot_say:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        self.asked += 1
        if self.forgets or offset // 4096 not in self.read:
            raise BlockingIOError
        page = offset // 4096
        while page in self.read:
            page += 1
        view = memoryview(buffers[0])
        return self._preadv(fd, [view[: page * 4096 - offset]], offset)

    def sendfile(self, out: int, source: int, offset: int, count: int) -> int:
        if threading.current_thread() is not threading.main_thread():
            return self._read_by_a_thread(out, source, offset, count)
        if not {offset // 4096, (offset + count - 1) // 4096} <= self.read:
            self.sent_cold += 1
        return self._sendfile(out, source, offset, count)

    def _read_by_a_thread(self, out: int, source: int, offset: int, count: int) -> int:
        assert self.disk_answers.wait(120)
        count = self._sendfile(out, source, offset, min(count, self.at_once))
        if self.evicts:
            self.evicts -= 1
        elif count:
            self.read |= set(range(offset // 4096, (offset + count - 1) // 4096 + 1))
        return count


@pytest.fixture
def data() -> bytes:
    return os.urandom(SIZE)


@pytest.fixture
def file(runner: Any, tmp_path: Path, data: bytes) -> Iterator[DiskFile]:
    (tmp_path / "log").write_bytes(data)
    file = RealDisk(runner.loop).open(str(tmp_path / "log"))
    yield file
    file.close()


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> PageCache:
    return PageCache(monkeypatch)


def received(runner: Any, client: Any, size: int) -> bytes:
    client.setblocking(False)
    found = bytearray()

    def all_read() -> bool:
        with suppress(BlockingIOError):
            found.extend(client.recv(1 << 20))
        return len(found) >= size

    runner.until(all_read)
    return bytes(found)


class Reader:
    """A client that reads the beginning of the file, over and over."""

    def __init__(self, runner: Any, serve: Any, file: DiskFile, data: bytes, length: int) -> None:
        self._runner = runner
        self._expected = b"head" + data[:length]
        self._server = serve(lambda handler, _: handler.connection.send([b"head", FileRange(file, 0, length)]))
        self._client = self._server.client()

    def read(self) -> int:
        """Gives how many ranges threads have read by now."""
        self._client.sendall(frame(b"read"))
        assert received(self._runner, self._client, len(self._expected)) == self._expected
        return int(self._server.network.cold_reads.count)


@pytest.mark.parametrize("length", [5_000, 40_000, 200_000, SIZE])
def test_a_cold_range_is_read_before_it_is_sent(
    runner: Any, serve: Any, file: DiskFile, data: bytes, cache: PageCache, length: int
) -> None:
    answer = [b"head", FileRange(file, 0, length), b"tail", FileRange(file, SIZE - length, length), b"end"]
    client = serve(lambda handler, _: handler.connection.send(answer)).client()
    client.sendall(frame(b"read"))
    expected = b"head" + data[:length] + b"tail" + data[SIZE - length :] + b"end"
    assert received(runner, client, len(expected)) == expected
    assert cache.sent_cold == 0


def test_a_disk_that_gives_little_at_once_is_read_to_the_end(
    runner: Any, serve: Any, file: DiskFile, data: bytes, cache: PageCache
) -> None:
    cache.at_once = 40_960
    Reader(runner, serve, file, data, 200_000).read()
    assert cache.read == set(range(BLOCK_BYTES // 4096))
    assert cache.sent_cold == 0


@pytest.mark.parametrize(("begin", "end"), [(0, BLOCK_BYTES), (BLOCK_BYTES, BLOCK_BYTES + cold_ranges.AHEAD_BYTES)])
def test_the_disk_is_asked_for_what_is_missing_only(
    file: DiskFile, cache: PageCache, monkeypatch: pytest.MonkeyPatch, begin: int, end: int
) -> None:
    advised: list[int] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, offset, *__: advised.append(offset))
    there = set(range(SIZE // 4096))
    cache.read = there.copy()
    cold_ranges._read(file.fd, 0, 10, SIZE)
    assert not advised
    cache.read = there - set(range(begin // 4096, end // 4096))
    cold_ranges._read(file.fd, 0, 10, SIZE)
    assert advised == list(range(0, BLOCK_BYTES + cold_ranges.AHEAD_BYTES, BLOCK_BYTES))


def test_others_are_served_while_the_disk_is_waited_for(
    runner: Any, serve: Any, file: DiskFile, data: bytes, cache: PageCache
) -> None:
    def on_frame(handler: Any, body: bytes) -> None:
        handler.connection.send([b"head", FileRange(file, 0, SIZE), b"tail"] if body == b"read" else [body])

    server = serve(on_frame)
    reader, other = server.client(), server.client()
    cache.disk_answers.clear()
    reader.sendall(frame(b"read") + frame(b"and behind it"))
    runner.until(lambda: server.network.cold_reads.waiting == 1)
    other.sendall(frame(b"ping"))
    assert received(runner, other, 4) == b"ping"
    assert server.network.cold_reads.waiting == 1
    cache.disk_answers.set()
    expected = b"head" + data + b"tail" + b"and behind it"
    assert received(runner, reader, len(expected)) == expected
    assert cache.sent_cold == 0
    assert server.network.cold_reads.waiting == 0


def test_a_file_system_that_never_has_anything_in_memory_is_sent_from_all_the_same(
    runner: Any, serve: Any, file: DiskFile, data: bytes, cache: PageCache
) -> None:
    cache.forgets = True
    Reader(runner, serve, file, data, SIZE).read()


def test_what_has_left_memory_before_it_was_sent_is_read_again(
    runner: Any, serve: Any, file: DiskFile, data: bytes, cache: PageCache
) -> None:
    cache.evicts = 1
    assert Reader(runner, serve, file, data, 40_000).read() == 2
    assert cache.sent_cold == 0


@pytest.mark.parametrize("length", [40_000, 200_000])
def test_what_follows_a_range_is_read_ahead_and_nobody_waits_for_it(
    runner: Any, serve: Any, file: DiskFile, data: bytes, cache: PageCache, length: int
) -> None:
    cache.read = set(range(2 * BLOCK_BYTES // 4096))
    offset = BLOCK_BYTES - length // 2
    server = serve(lambda handler, _: handler.connection.send([b"head", FileRange(file, offset, length)]))
    client = server.client()
    cache.disk_answers.clear()
    client.sendall(frame(b"read") + frame(b"again"))
    assert received(runner, client, 2 * length + 8) == (b"head" + data[offset : offset + length]) * 2
    assert (server.network.cold_reads.waiting, server.network.cold_reads.count) == (1, 0)
    cache.disk_answers.set()
    runner.until(lambda: server.network.cold_reads.waiting == 0)
    assert cache.read == set(range(3 * BLOCK_BYTES // 4096))
    assert cache.sent_cold == 0


def test_nothing_is_read_ahead_behind_the_end_of_a_file(
    runner: Any, serve: Any, file: DiskFile, data: bytes, cache: PageCache
) -> None:
    cache.read = set(range(SIZE // 4096))
    server = serve(lambda handler, _: handler.connection.send([b"head", FileRange(file, SIZE - 40_000, 40_000)]))
    client = server.client()
    client.sendall(frame(b"read"))
    assert received(runner, client, 40_004) == b"head" + data[-40_000:]
    assert (server.network.cold_reads.waiting, server.network.cold_reads.count) == (0, 0)


def test_a_client_that_leaves_meanwhile_leaves_nothing_behind(
    runner: Any, serve: Any, file: DiskFile, cache: PageCache
) -> None:
    server = serve(lambda handler, _: handler.connection.send([b"head", FileRange(file, 0, SIZE)]))
    client = server.client()
    cache.disk_answers.clear()
    client.sendall(frame(b"read"))
    runner.until(lambda: server.network.cold_reads.waiting == 1)
    client.close()
    server.handlers[0].connection.close()
    file.close()
    assert file.fd >= 0, "a thread reads from it"
    cache.disk_answers.set()
    runner.until(lambda: server.network.cold_reads.waiting == 0)
    assert file.fd < 0


@pytest.mark.parametrize("length", [5_000, 40_000, 200_000, SIZE])
def test_a_file_system_that_cannot_say_is_asked_once(
    runner: Any, serve: Any, file: DiskFile, data: bytes, cache: PageCache, length: int
) -> None:
    cache.cannot_say = True
    reader = Reader(runner, serve, file, data, length)
    assert (reader.read(), reader.read()) == (0, 0)
    assert (file.nowait, cache.asked) == (0, 0)


@pytest.mark.parametrize("length", [5_000, 40_000])
def test_a_small_range_is_asked_for_and_read_in_one_call(
    runner: Any, serve: Any, file: DiskFile, data: bytes, cache: PageCache, length: int
) -> None:
    cache.read = set(range(SIZE // 4096))
    reader = Reader(runner, serve, file, data, length)
    for count in range(1, 4):
        assert reader.read() == 0
        assert cache.asked == count


def test_a_range_of_which_a_part_is_in_memory_is_read_by_a_thread(
    runner: Any, serve: Any, file: DiskFile, data: bytes, cache: PageCache
) -> None:
    cache.read = set(range(3))
    assert Reader(runner, serve, file, data, 40_000).read() == 1
    assert cache.sent_cold == 0


@pytest.fixture
def dropped(runner: Any, tmp_path: Path) -> Iterator[DiskFile]:
    """A file on the disk and not in memory."""
    path = tmp_path / "log"
    with path.open("wb") as out:
        out.write(os.urandom(SIZE))
        out.flush()
        os.fsync(out.fileno())
    file = RealDisk(runner.loop).open(str(path))
    assert in_memory(file, 0, SIZE)
    os.posix_fadvise(file.fd, 0, SIZE, os.POSIX_FADV_DONTNEED)
    if in_memory(file, 0, SIZE):
        pytest.skip("this file system drops nothing from memory")
    yield file
    file.close()


def test_the_kernel_is_asked(dropped: DiskFile) -> None:
    os.preadv(dropped.fd, [bytearray(4096)], 0)
    assert not in_memory(dropped, 0, SIZE)
    cold_ranges._read(dropped.fd, 0, SIZE, SIZE)
    assert in_memory(dropped, 0, SIZE)


@pytest.mark.skipif(not kernel.PageCache().answers, reason="the kernel has no `cachestat`")
@pytest.mark.parametrize("page", [1, 30, 62, 64 + 5])
def test_a_page_that_is_missing_within_a_block_is_seen(dropped: DiskFile, page: int) -> None:
    cold_ranges._read(dropped.fd, 0, SIZE, SIZE)
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    folio = 1 << 16  # what the page cache has as one piece leaves it as one
    begin = page * page_bytes // folio * folio
    os.posix_fadvise(dropped.fd, begin, folio, os.POSIX_FADV_DONTNEED)
    try:
        os.preadv(dropped.fd, [bytearray(1)], page * page_bytes, os.RWF_NOWAIT)
    except BlockingIOError:
        assert not in_memory(dropped, 0, 2 * BLOCK_BYTES)
        assert in_memory(dropped, 2 * BLOCK_BYTES, SIZE - 2 * BLOCK_BYTES)
    else:
        pytest.skip("the page is part of a larger piece, which stays")


def test_what_stands_behind_the_end_of_the_file_is_not_missing(dropped: DiskFile) -> None:
    cold_ranges._read(dropped.fd, 0, SIZE, SIZE)
    dropped.truncate(SIZE - BLOCK_BYTES // 2 - 1)
    assert in_memory(dropped, SIZE - BLOCK_BYTES, 10)
    assert in_memory(dropped, SIZE, 10), "gone: the sender finds it"


def answering(found: kernel.PageCache, monkeypatch: pytest.MonkeyPatch, result: int, error: int = 0) -> list[int]:
    """The kernel sees no page, or fails; the descriptors it was asked about."""
    asked: list[int] = []

    def call(number: int, fd: int, *_: Any) -> int:
        asked.append(fd)
        ctypes.set_errno(error)
        return result

    monkeypatch.setattr(found, "_call", call)
    return asked


def test_a_kernel_that_sees_nothing_of_what_was_just_read_is_not_asked_again(
    file: DiskFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = kernel.PageCache()
    asked = answering(found, monkeypatch, 0)
    monkeypatch.setattr(cold_ranges, "_page_cache", found)
    assert not in_memory(file, 0, SIZE)
    cold_ranges._read(file.fd, 0, SIZE, SIZE)
    assert not found.answers
    asked.clear()
    assert in_memory(file, 0, SIZE), "samples say so"
    assert not asked


@pytest.mark.parametrize(("error", "answers"), [(errno.ENOSYS, False), (errno.EPERM, False), (errno.EBADF, True)])
def test_a_kernel_that_cannot_say(monkeypatch: pytest.MonkeyPatch, error: int, answers: bool) -> None:
    found = kernel.PageCache()
    answering(found, monkeypatch, -1, error)
    assert found.has(3, 0, SIZE)
    assert found.answers == answers
    answering(found, monkeypatch, -1, error)
    found.was_read(3, 0, SIZE)
    assert found.answers == answers


def test_another_system_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not kernel.PageCache().answers

"""Ranges of files that are not in the page cache are read by threads before the loop sends them.

`sendfile` waits for the disk, and with it would all other clients: a consumer that comes back after a week, or a
replica that catches up, reads what has left memory long ago, and each of its answers would stop the loop for tens of
milliseconds. So the loop asks the kernel, each time, and never guesses:

* a small range is read by `preadv2` with RWF_NOWAIT, which asks and reads in one call (`DiskFile.read_in_memory`);
* before `sendfile` of a larger one, `cachestat` counts its pages, and RWF_NOWAIT says of the last byte of each block
  whether it has arrived: some microseconds, where sending takes a hundred.

What is missing is read by a thread, and a stretch behind it, since a reader goes on where its last answer has ended:
there a header is read on the loop for its next answer. So whenever a range that is in memory ends in another block than
it begins in, and the next block is not in memory, that is read as well, and nobody waits for it.

Without `cachestat` the answer for a large range is a sample, a byte of each block. A file system without RWF_NOWAIT
cannot be asked: ranges are sent as they are.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Final

from tanist.runtime.ports.files import NOWAIT, DiskFile
from tanist.runtime.ports.kernel import PageCache
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.workers import Workers

READ_THREADS: Final = 4
"""They wait for the disk, which serves some at a time."""

AHEAD_BYTES: Final = 1 << 20
"""What is read behind a range, for the next answers."""

AHEAD_MAX: Final = 64
"""Blocks that are read ahead at once."""

BLOCK_BYTES: Final = 256 << 10
"""What is asked for, and read, at once."""

_BLOCKS_OF_A_FILE: Final = 1 << 40
"""More than any file has."""

_page_cache = PageCache()


class ColdReads:
    """The threads that read for one network: at most one range of each connection, and `AHEAD_MAX` blocks ahead."""

    def __init__(self, loop: Loop) -> None:
        self._workers = Workers(loop, "read", READ_THREADS)
        self.count = 0
        """Ranges that were read so."""
        self._ahead: set[int] = set()
        """Numbers of the blocks that are being read ahead."""

    @property
    def waiting(self) -> int:
        """Ranges that are being read, or wait for a thread."""
        return self._workers.busy

    def sent(self, file: DiskFile, offset: int, end: int) -> None:
        """A range was in memory. If it has come to another block, have the next one read, unless that is in memory."""
        size = file.size
        if offset // BLOCK_BYTES == end // BLOCK_BYTES or end >= size:
            return
        offset = min(end + BLOCK_BYTES, size - 1)
        block = file.fd * _BLOCKS_OF_A_FILE + offset // BLOCK_BYTES
        if block in self._ahead or len(self._ahead) >= AHEAD_MAX or in_memory(file, offset, 1):
            return
        self._ahead.add(block)
        self._read(file, offset, 1, lambda: self._ahead.discard(block))

    def read(self, file: DiskFile, offset: int, length: int, done: Callable[[], None]) -> None:
        """Have the range read, then call `done`, in a later turn. An error is the sender's to find."""
        self.count += 1
        self._read(file, offset, length, done)

    def _read(self, file: DiskFile, offset: int, length: int, done: Callable[[], None]) -> None:
        file.pin()

        def finish(_: object) -> None:
            file.unpin()
            done()

        fd, size = file.fd, file.size
        self._workers.submit(lambda: _read(fd, offset, length, size), finish)

    def close(self) -> None:
        self._workers.close()


def _read(fd: int, offset: int, length: int, size: int) -> None:
    """Whole blocks of a file of `size` bytes, in a thread."""
    begin = offset - offset % BLOCK_BYTES
    end = min(-(-(offset + length) // BLOCK_BYTES) * BLOCK_BYTES, size)
    ahead_end = min(end + AHEAD_BYTES, size)
    if not _there(fd, begin, ahead_end):
        for at in range(begin, ahead_end, BLOCK_BYTES):  # of more at once the kernel may read the beginning only
            os.posix_fadvise(fd, at, BLOCK_BYTES, os.POSIX_FADV_WILLNEED)
    at = begin
    while at < end:  # pages are put in order, not copied: the kernel waits until each of them has been read
        count = os.sendfile(_nowhere(), fd, at, end - at)
        if count == 0:
            break
        at += count
    if at > begin:
        _page_cache.was_read(fd, begin, at - begin)


@cache
def _nowhere() -> int:
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def in_memory(file: DiskFile, offset: int, length: int) -> bool:
    """Whether a range of a file is in the page cache, as the kernel says at this moment."""
    if not file.nowait:
        return True
    try:
        return _there(file.fd, offset, min(offset + length, file.size))
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            file.nowait = 0
        return True  # an error, which sending finds as well


def _there(fd: int, begin: int, end: int) -> bool:
    """Whether a range is in the page cache."""
    if begin >= end:
        return True
    try:
        # `has` counts what is on its way from the disk, too; of a block, the last byte comes last.
        for at in range(begin - begin % BLOCK_BYTES + BLOCK_BYTES - 1, end - 1, BLOCK_BYTES):
            os.preadv(fd, _byte, at, NOWAIT)
        os.preadv(fd, _byte, end - 1, NOWAIT)
    except BlockingIOError:
        return False
    return _page_cache.has(fd, begin, end - begin)


_byte = (bytearray(1),)
"""What stands in it says nothing."""

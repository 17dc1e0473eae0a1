"""Ranges of files that are not in the page cache are read by threads before the loop sends them.

`sendfile` waits for the disk, and with it would all other clients: a consumer that comes back after a week, or a
replica that catches up, reads what has left memory long ago, and each of its answers would stop the loop for tens of
milliseconds. So the loop asks the kernel whether a range is in memory (`cachestat` and `preadv2` with RWF_NOWAIT, some
microseconds, and once for the readers that come by within 50 ms); one that is not is read by a thread, and a stretch
behind it, since a reader goes on where its last answer has ended. There a header is read on the loop for its next
answer: where a range is in memory and what follows is not, that is read as well, and nobody waits for it.

What is in memory may leave it before it is sent, or may still be on its way there. So a connection is *suspected* for
half a second after one of its ranges was missing: all that it is sent is read by threads first, and sent at once. A
range that the loop sent slowly may have been missing: the next read decides.

Without `cachestat` the answer is a sample, one page of each block. A system without RWF_NOWAIT cannot be asked: ranges
are sent as they are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from tanist.ports import Chunk, FileRange
from tanist.runtime.ports.files import DiskFile, disk_file
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

ASKED_AGAIN_S: Final = 0.05
"""So long a block that was in memory is taken to be there."""

SLOW_S: Final = 0.002
"""A range that took the loop longer than this to send was not all in memory, or the loop had no processor."""

SUSPECTED_S: Final = 0.5
"""So long a connection is suspected."""

BLOCKS_MAX: Final = 1024
"""Blocks that are known to be in memory, of all files."""

_BLOCKS_OF_A_FILE: Final = 1 << 40
"""More than any file has."""

_NOWAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)

_known: dict[int, float] = {}
"""When a block was found in memory, by its number (`_block`). A process has one page cache, so this module has one of
these. That a descriptor is given to another file meanwhile does no harm: that one is asked for 50 ms later.
"""

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

    def any_cold(self, chunks: Sequence[Chunk], suspected: bool) -> bool:
        """Whether there is a range among these that is not in memory. If not, see to what their readers read next.

        `suspected`: as far as what was written lately, it is taken for granted that it is.
        """
        for chunk in chunks:
            if type(chunk) is FileRange:
                file, offset, length = disk_file(chunk), chunk.offset, chunk.length
                if not file.written_lately(offset):
                    if suspected or not in_memory(file, offset, length):
                        return True
                    self._read_ahead(file, offset + length)
        return False

    def _read_ahead(self, file: DiskFile, end: int) -> None:
        """Have the block behind the one in which a reader's range ends read, if it is not in memory."""
        size = file.size
        if end >= size:
            return
        offset = min(end + BLOCK_BYTES, size - 1)
        if file.written_lately(offset) or in_memory(file, offset, 1):
            return
        block = _block(file.fd, offset)
        if block not in self._ahead and len(self._ahead) < AHEAD_MAX:
            self._ahead.add(block)
            self._read(file, offset, 1, lambda _: self._ahead.discard(block))

    def read(self, file: DiskFile, offset: int, length: int, done: Callable[[bool], None]) -> None:
        """Have the range read, then call `done`, in a later turn. An error is `sendfile`'s to find.

        `done` hears whether something of the range was not in memory before.
        """
        self.count += 1
        self._read(file, offset, length, done)

    def _read(self, file: DiskFile, offset: int, length: int, done: Callable[[bool], None]) -> None:
        file.pin()

        def finish(missed: bool | BaseException) -> None:
            file.unpin()
            done(missed is True)

        fd, size = file.fd, file.size
        self._workers.submit(lambda: _read(fd, offset, length, size), finish)

    def close(self) -> None:
        self._workers.close()


def _read(fd: int, offset: int, length: int, size: int) -> bool:
    """Whole blocks of a file of `size` bytes, in a thread; gives whether something was not in memory."""
    begin = offset - offset % BLOCK_BYTES
    end = min(-(-(offset + length) // BLOCK_BYTES) * BLOCK_BYTES, size)
    ahead_end = min(end + AHEAD_BYTES, size)
    missed = not _there(fd, begin, end)
    if missed or not _there(fd, end, ahead_end):
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
    return missed


@cache
def _nowhere() -> int:
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def _block(fd: int, offset: int) -> int:
    """The number of a block, among those of all files."""
    return fd * _BLOCKS_OF_A_FILE + offset // BLOCK_BYTES


def in_memory(file: DiskFile, offset: int, length: int) -> bool:
    """Whether the blocks of a range of a file are in the page cache."""
    if not _NOWAIT:
        return True
    now_s = time.monotonic()
    since_s = now_s - ASKED_AGAIN_S
    try:
        fd = file.fd
        blocks = range(_block(fd, offset), _block(fd, offset + length - 1) + 1)
        asked = [block for block in blocks if _known.get(block, 0.0) <= since_s]
        if not asked:
            return True
        zero = _block(fd, 0)
        if not _there(fd, (asked[0] - zero) * BLOCK_BYTES, min((asked[-1] - zero + 1) * BLOCK_BYTES, file.size)):
            return False
    except OSError:
        return True  # a file system that can't say; or an error, which sending finds as well
    if len(_known) + len(asked) > BLOCKS_MAX:
        _known.clear()
    _known.update(dict.fromkeys(asked, now_s))
    return True


def _there(fd: int, begin: int, end: int) -> bool:
    """Whether a range is in the page cache; `begin` is a block's."""
    if begin >= end:
        return True
    page = [bytearray(1)]
    try:
        os.preadv(fd, page, end - 1, _NOWAIT)  # the last that would come from the disk: `has` counts what is on its way
        if not _page_cache.has(fd, begin, end - begin):
            return False
        if not _page_cache.answers:
            for at in range(begin, end, BLOCK_BYTES):
                os.preadv(fd, page, at, _NOWAIT)
    except BlockingIOError:
        return False
    return True

"""Ranges of files that are not in the page cache are read by threads before the loop sends them.

`sendfile` waits for the disk, and with it would all other clients: a consumer that comes back after a week, or a
replica that catches up, reads what has left memory long ago, and each of its answers would stop the loop for tens of
milliseconds. So the loop asks the kernel whether a range is in memory (`preadv2` with RWF_NOWAIT, a microsecond, and
once for the readers that come by within 20 ms); one that is not is read by a thread, and a stretch behind it, since a
reader goes on where its last answer has ended.

A system without RWF_NOWAIT cannot be asked: ranges are sent as they are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Final

from tanist.ports import Chunk, FileRange
from tanist.runtime.ports.files import DiskFile, disk_file
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.workers import Workers

READ_THREADS: Final = 4
"""They wait for the disk, which serves some at a time."""

AHEAD_BYTES: Final = 1 << 20
"""What is read behind a range, for the next answers."""

BLOCK_BYTES: Final = 256 << 10
"""What is asked for at once: what leaves the page cache leaves it in large pieces."""

ASKED_AGAIN_S: Final = 0.02
"""So long a block that was in memory is taken to be there."""

BLOCKS_MAX: Final = 1024
"""Blocks that are known to be in memory, of all files."""

_NOWAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)


_BLOCKS_OF_A_FILE: Final = 1 << 40
"""More than any file has: block B of descriptor F is F times this, plus B."""

_known: dict[int, float] = {}
"""When a block was found in memory. A process has one page cache, so this module has one of these. That a descriptor is
given to another file meanwhile does no harm: that one is asked for 20 ms later.
"""


class ColdReads:
    """The threads that read for one network. At most one range of each connection waits for them."""

    def __init__(self, loop: Loop) -> None:
        self._workers = Workers(loop, "read", READ_THREADS)
        self.count = 0
        """Ranges that were read so."""

    @property
    def waiting(self) -> int:
        """Ranges that are being read, or wait for a thread."""
        return self._workers.busy

    def read(self, file: DiskFile, offset: int, length: int, done: Callable[[], None]) -> None:
        """Have the range read, then call `done`, in a later turn. An error is `sendfile`'s to find."""
        file.pin()
        self.count += 1

        def finish(_: object) -> None:
            file.unpin()
            done()

        fd = file.fd
        self._workers.submit(lambda: _read(fd, offset, length), finish)

    def close(self) -> None:
        self._workers.close()


def _read(fd: int, offset: int, length: int) -> None:
    """Whole blocks, in a thread."""
    os.posix_fadvise(fd, offset, length + AHEAD_BYTES, os.POSIX_FADV_WILLNEED)
    buffer = [bytearray(BLOCK_BYTES)]
    end = offset + length
    offset -= offset % BLOCK_BYTES
    while offset < end:
        count = os.preadv(fd, buffer, offset)
        if count == 0:
            return
        offset += count


def any_cold(chunks: Sequence[Chunk]) -> bool:
    """Whether there is a range among these that is not in memory."""
    for chunk in chunks:
        if type(chunk) is FileRange:
            file = disk_file(chunk)
            if not file.written_lately(chunk.offset) and not in_memory(file, chunk.offset, chunk.length):
                return True
    return False


def in_memory(file: DiskFile, offset: int, length: int) -> bool:
    """Whether a range of a file is in the page cache, as far as some of its pages tell."""
    if not _NOWAIT:
        return True
    now_s = time.monotonic()
    since_s = now_s - ASKED_AGAIN_S
    try:
        fd = file.fd
        first = fd * _BLOCKS_OF_A_FILE + offset // BLOCK_BYTES
        last = fd * _BLOCKS_OF_A_FILE + (offset + length - 1) // BLOCK_BYTES
        asked = [block for block in range(first, last + 1) if _known.get(block, 0.0) <= since_s]
        if not asked:
            return True
        page = [bytearray(1)]
        for block in asked:
            os.preadv(fd, page, block % _BLOCKS_OF_A_FILE * BLOCK_BYTES, _NOWAIT)
        os.preadv(fd, page, (asked[-1] % _BLOCKS_OF_A_FILE + 1) * BLOCK_BYTES - 1, _NOWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system that can't say; or an error, which sending finds as well
    if len(_known) + len(asked) > BLOCKS_MAX:
        _known.clear()
    _known.update(dict.fromkeys(asked, now_s))
    return True

"""The chunks that a TLS connection has not sent yet, and their encryption.

Ranges of files are read into the memory that is encrypted (`sendfile` cannot encrypt). It encrypts in steps of
`STEP_BYTES`, and the next one when the network has taken the last: so little cipher text waits, and what waits in plain
text costs nothing until its turn. A step of a megabyte would hold the loop up for a millisecond or two.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from ssl import MemoryBIO
from typing import Final

from tanist.ports import Buffer, Chunk, FileRange
from tanist.runtime.ports.bulk import BULK_BYTES, Bulk
from tanist.runtime.ports.cold_ranges import SLOW_S, SUSPECTED_S
from tanist.runtime.ports.files import disk_file
from tanist.runtime.ports.send_queue import CannotSend, SendQueue

STEP_BYTES: Final = 65_536
"""Encrypted at once: four records."""

PASS_BYTES: Final = 262_144
"""The most that one connection encrypts before others get their turn."""

CIPHER_BYTES_MAX: Final = 262_144
"""More cannot wait encrypted, unless the other side makes it so."""

_WEIGHT: Final = 4
"""A byte of a large range costs four times what it costs without TLS: of its share of a pass, a connection gets a
quarter."""

_step = memoryview(bytearray(STEP_BYTES))
"""What is encrypted next. Nothing is kept in it: the loop's thread fills it, and has it encrypted at once."""


class CipherQueue(SendQueue):
    __slots__ = ("_encrypt", "_outgoing", "cipher")

    def __init__(self) -> None:
        super().__init__()
        self.cipher: Buffer = b""
        """Encrypted, and not taken by the network yet; also what a handshake has to say."""
        self._encrypt: Callable[[Buffer], int] | None = None
        self._outgoing: MemoryBIO | None = None

    def open(self, encrypt: Callable[[Buffer], int], outgoing: MemoryBIO) -> None:
        """The handshake is done: what waits may be encrypted, and stands in `outgoing` then."""
        self._encrypt = encrypt
        self._outgoing = outgoing

    def clear(self) -> None:
        super().clear()
        self.cipher = b""

    def seal(self, data: Buffer) -> bytes:
        """The cipher text of so many bytes, at most a step."""
        if self._encrypt is None or self._outgoing is None:
            raise OSError("there was no handshake")
        left = memoryview(data)
        while left:
            left = left[self._encrypt(left) :]
        return self._outgoing.read()

    def write(self, sock: socket.socket, bulk: Bulk) -> bool:
        budget = PASS_BYTES
        try:
            while True:
                cipher = self.cipher
                if cipher:
                    sent = sock.send(cipher)
                    if sent < len(cipher):
                        self.cipher = memoryview(cipher)[sent:]
                        return False
                    self.cipher = b""
                if not self.chunks or self._encrypt is None:
                    return True
                if budget <= 0:
                    return False
                count = self._seal_next(min(STEP_BYTES, budget), bulk)
                if not count:
                    return False
                budget -= count
        except (BlockingIOError, InterruptedError):
            return False

    def _seal_next(self, limit: int, bulk: Bulk) -> int:
        """Encrypt what stands at the head; gives its bytes. 0: its file must be read first, or its share is used up."""
        chunks = self.chunks
        head, done = chunks[0], self.head_sent
        if type(head) is not FileRange and len(head) - done >= limit:  # type: ignore[arg-type]
            data: Buffer = memoryview(head)[done : done + limit]  # type: ignore[arg-type]
            self._pass(limit)
        else:
            filled = 0
            while chunks and filled < limit:
                count = self._fill(chunks[0], filled, limit - filled, bulk)
                if not count:
                    break
                filled += count
                self._pass(count)
            data = _step[:filled]
        if not data:
            return 0
        self.pending_bytes -= len(data)
        self.cipher = self.seal(data)
        return len(data)

    def _fill(self, head: Chunk, filled: int, limit: int, bulk: Bulk) -> int:
        """Put up to `limit` of the next bytes of the first chunk into the step."""
        done = self.head_sent
        if type(head) is not FileRange:
            count = min(len(head) - done, limit)  # type: ignore[arg-type]
            _step[filled : filled + count] = memoryview(head)[done : done + count]  # type: ignore[arg-type]
            return count
        left = head.length - done
        share = left if left <= BULK_BYTES else bulk.share_of(left) // _WEIGHT
        share = self._in_memory(head, min(limit, share))
        if not share:
            return 0
        file = disk_file(head)
        began_s = time.monotonic()
        count = os.preadv(file.fd, [_step[filled : filled + share]], head.offset + done)
        now_s = time.monotonic()
        if now_s - began_s > SLOW_S and now_s >= self._suspected_until_s:
            self._suspected_until_s = now_s + SUSPECTED_S
            self._is_proven = False
        if not count:
            raise CannotSend(f"{file.path} is shorter than what was to be sent of it")
        bulk.sent(left, count * _WEIGHT)
        self._reads = 0
        return count

    def _pass(self, count: int) -> None:
        """So many bytes of the first chunk are gone."""
        head, done = self.chunks[0], self.head_sent + count
        is_range = type(head) is FileRange
        if done < (head.length if is_range else len(head)):  # type: ignore[union-attr, arg-type]
            self.head_sent = done
            return
        self.chunks.popleft()
        self.head_sent = 0
        if is_range:
            self._read_to = 0
            disk_file(head).unpin()  # type: ignore[arg-type]


def gathered(chunks: Sequence[Chunk]) -> memoryview | None:
    """All chunks, one behind the other, to be encrypted at once; None if they are more than a step takes.

    None also if a file is shorter than it should be, as sending it will find.
    """
    filled = 0
    for chunk in chunks:
        is_range = type(chunk) is FileRange
        size = chunk.length if is_range else len(chunk)  # type: ignore[union-attr, arg-type]
        end = filled + size
        if end > STEP_BYTES:
            return None
        if not is_range:
            _step[filled:end] = chunk  # type: ignore[assignment]
        elif size:
            file = disk_file(chunk)  # type: ignore[arg-type]
            try:
                if os.preadv(file.fd, [_step[filled:end]], chunk.offset) < size:  # type: ignore[union-attr]
                    return None
            except OSError:
                return None
        filled = end
    return _step[:filled]

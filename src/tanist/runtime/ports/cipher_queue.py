"""The chunks that a TLS connection has not sent yet, and their encryption.

Ranges of files are read into the memory that is encrypted (`sendfile` cannot encrypt). It encrypts in steps of
`STEP_BYTES`, and the next one when the network has taken the last: so little cipher text waits, and what waits in plain
text costs nothing until its turn. A step of a megabyte would hold the loop up for a millisecond or two.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from ssl import MemoryBIO
from typing import Final

from tanist.ports import Buffer, Chunk, FileRange
from tanist.runtime.ports.bulk import BULK_BYTES, Bulk
from tanist.runtime.ports.cold_ranges import ColdReads
from tanist.runtime.ports.files import disk_file
from tanist.runtime.ports.send_queue import GATHERED_BYTES, READS_MAX, CannotSend, SendQueue, scratch

STEP_BYTES: Final = GATHERED_BYTES
"""Encrypted at once: four records."""

PASS_BYTES: Final = 262_144
"""The most that one connection encrypts before others get their turn."""

CIPHER_BYTES_MAX: Final = 262_144
"""More cannot wait encrypted, unless the other side makes it so."""

_WEIGHT: Final = 4
"""A byte of a large range costs four times what it costs without TLS: of its share of a pass, a connection gets a
quarter."""


class CipherQueue(SendQueue):
    __slots__ = ("_encrypt", "_outgoing", "cipher")

    def __init__(self, cold_reads: ColdReads) -> None:
        super().__init__(cold_reads)
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
            data = scratch[:filled]
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
            scratch[filled : filled + count] = memoryview(head)[done : done + count]  # type: ignore[arg-type]
            return count
        left = head.length - done
        share = left if left <= BULK_BYTES else bulk.share_of(left) // _WEIGHT
        count = self._read(head, scratch[filled : filled + min(limit, share)])
        bulk.sent(left, count * _WEIGHT)
        return count

    def _read(self, head: FileRange, view: memoryview) -> int:
        """Read the next bytes of a range, the first chunk; 0 if they are not in memory."""
        file, offset = disk_file(head), head.offset + self.head_sent
        if not view:
            return 0
        try:
            count = (
                file.read_in_memory(view, offset) if self._reads < READS_MAX else os.preadv(file.fd, (view,), offset)
            )
        except BlockingIOError:
            self.cold = (file, offset, len(view))
            return 0
        if not count:
            raise CannotSend(f"{file.path} is shorter than what was to be sent of it")
        return count

    def _pass(self, count: int) -> None:
        """So many bytes of the first chunk are gone."""
        head = self.chunks[0]
        if type(head) is FileRange:
            self._passed_range(head, disk_file(head), count)
            return
        self.head_sent += count
        if self.head_sent == len(head):  # type: ignore[arg-type]
            self.chunks.popleft()
            self.head_sent = 0

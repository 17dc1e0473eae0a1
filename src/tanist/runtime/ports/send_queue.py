"""The chunks that the network has not taken yet: the slow path of `SocketConnection.send`.

Owns the queue: chunks in memory of its own, files that stay open while they wait, and how they go out (`sendmsg` for
bytes, `sendfile` for ranges of files). It also has what the fast path needs: an answer that is not large, gathered in
one piece. It never watches the socket and never closes the connection: the connection does.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Sequence
from typing import Any

from tanist.ports import Chunk, FileRange
from tanist.runtime.ports.bulk import Bulk
from tanist.runtime.ports.cold_ranges import ColdReads, in_memory
from tanist.runtime.ports.files import DiskFile, disk_file

_MSG_MORE: int = getattr(socket, "MSG_MORE", 0)

_BYTES_AT_ONCE = 4 << 20
"""The most that one connection may hand to the network in one go before others get their turn."""

READS_MAX = 2
"""Bytes that have left memory again each time are sent as they are: the file system may always say so."""

GATHERED_BYTES = 65_536
"""Up to so many, a copy costs less than the system calls it saves, and the other side wakes up once."""

_VECTOR_MAX = 512


class CannotSend(Exception):
    """A file that was to be sent cannot be: the reason, for the log."""


scratch = memoryview(bytearray(GATHERED_BYTES))
"""What is sent, or encrypted, next. Nothing is kept in it: the loop's thread fills it, and hands it on at once."""


class SendQueue:
    __slots__ = ("_cold_reads", "_read_to", "_reads", "chunks", "cold", "head_sent", "pending_bytes")

    def __init__(self, cold_reads: ColdReads) -> None:
        self._cold_reads = cold_reads
        self.chunks: deque[Chunk] = deque()
        self.head_sent = 0
        """How many bytes of the first chunk are gone."""
        self.pending_bytes = 0
        self.cold: tuple[DiskFile, int, int] | None = None
        """File, offset and length of a range that `write` has come to and that must be read first (`cold_ranges`)."""
        self._reads = 0
        """How often the next bytes of the first chunk were read: more than once if they have left memory again."""
        self._read_to = 0
        """Up to here they were."""

    def gathered(self, chunks: Sequence[Chunk]) -> memoryview | None:
        """All chunks, one behind the other, to be handed on at once; None if that is too much for a copy.

        None also if not all of a file's range is in memory, or the file is shorter than it should be: the queue finds
        out which.
        """
        filled = 0
        for chunk in chunks:
            is_range = type(chunk) is FileRange
            size = chunk.length if is_range else len(chunk)  # type: ignore[union-attr, arg-type]
            end = filled + size
            if end > GATHERED_BYTES:
                return None
            if not is_range:
                scratch[filled:end] = chunk  # type: ignore[assignment]
            elif size:
                file, offset = disk_file(chunk), chunk.offset  # type: ignore[arg-type, union-attr]
                try:
                    if file.read_in_memory(scratch[filled:end], offset) < size:
                        return None
                except OSError:
                    return None
                self._cold_reads.sent(file, offset, offset + size)
            filled = end
        return scratch[:filled]

    def keep(self, chunks: Sequence[Chunk], sent: int) -> None:
        """Queue what is left of chunks of which the network has taken `sent` bytes. The queue must be empty."""
        for index, chunk in enumerate(chunks):
            size = chunk.length if type(chunk) is FileRange else len(chunk)  # type: ignore[arg-type]
            if sent < size:
                self.add(chunks[index:])
                self.head_sent = sent
                self.pending_bytes -= sent
                return
            sent -= size

    def add(self, chunks: Sequence[Chunk]) -> None:
        """Queue these. `CannotSend` if a file is gone."""
        for chunk in chunks:
            if type(chunk) is FileRange:
                length = chunk.length
                if length == 0:
                    continue
                try:
                    disk_file(chunk).pin()
                except OSError as error:
                    raise CannotSend(f"{chunk.file.path} cannot be sent: {error.strerror}") from error
            else:
                length = len(chunk)  # type: ignore[arg-type]
                if length == 0:
                    continue
                chunk = _kept(chunk)
            self.pending_bytes += length
            self.chunks.append(chunk)

    def clear(self) -> None:
        for chunk in self.chunks:
            if type(chunk) is FileRange:
                disk_file(chunk).unpin()
        self.chunks.clear()
        self.pending_bytes = 0
        self.cold = None

    def write(self, sock: socket.socket, bulk: Bulk) -> bool:
        """Send from the head of the queue; True when it is empty. `CannotSend`, or `OSError` of the socket.

        With `cold` set there is more to send once that was read; then call `was_read`.
        """
        chunks = self.chunks
        budget = _BYTES_AT_ONCE
        try:
            while chunks:
                if budget <= 0:
                    return False
                head = chunks[0]
                if type(head) is FileRange:
                    left = head.length - self.head_sent
                    share = self._in_memory(head, min(budget, bulk.share_of(left)))
                    if not share:
                        return False
                    sent = self._send_file(sock, head, share)
                    bulk.sent(left, sent)
                    if sent == 0:
                        raise CannotSend(f"{head.file.path} is shorter than what was to be sent of it")
                else:
                    sent = self._send_bytes(sock, head)
                budget -= sent
                self.pending_bytes -= sent
                if self.head_sent:
                    return False  # taken in part: there is no space for more, and trying would cost as much again
        except (BlockingIOError, InterruptedError):
            return False
        return True

    def _in_memory(self, head: FileRange, length: int) -> int:
        """How many of the next bytes of the first chunk may be sent without waiting for the disk."""
        file, offset = disk_file(head), head.offset + self.head_sent
        if self._reads:
            length = min(length, self._read_to - offset)
            if self._reads == READS_MAX:
                return length
        if length and not in_memory(file, offset, length):
            self.cold = (file, offset, length)
            return 0
        return length

    def was_read(self) -> None:
        """`cold` is in memory now, or cannot be read."""
        if self.cold is not None:
            _, offset, length = self.cold
            self._read_to = offset + length
            self._reads += 1
            self.cold = None

    def _send_file(self, sock: socket.socket, head: FileRange, budget: int) -> int:
        file, offset = disk_file(head), head.offset + self.head_sent
        sent = os.sendfile(sock.fileno(), file.fd, offset, budget)
        self._passed_range(head, file, sent)
        return sent

    def _passed_range(self, head: FileRange, file: DiskFile, count: int) -> None:
        """So many of the next bytes of a range, the first chunk, are gone."""
        self._reads = 0
        offset = head.offset + self.head_sent
        self.head_sent += count
        if self.head_sent == head.length:
            self.chunks.popleft()
            self.head_sent = 0
            self._cold_reads.sent(file, offset, offset + count)
            file.unpin()

    def _send_bytes(self, sock: socket.socket, head: Any) -> int:
        chunks, done = self.chunks, self.head_sent
        if done:
            head = memoryview(head)[done:]
        if len(chunks) == 1:
            sent = sock.send(head)
        else:
            vector = [head]
            flags = 0
            for index in range(1, len(chunks) if len(chunks) < _VECTOR_MAX else _VECTOR_MAX):
                chunk = chunks[index]
                if type(chunk) is FileRange:
                    flags = _MSG_MORE
                    break
                vector.append(chunk)
            sent = sock.sendmsg(vector, (), flags)
        passed = done + sent
        while chunks:
            chunk = chunks[0]
            if type(chunk) is FileRange or passed < len(chunk):  # type: ignore[arg-type]
                break
            passed -= len(chunk)  # type: ignore[arg-type]
            chunks.popleft()
        self.head_sent = passed
        return sent


def _kept(chunk: Chunk) -> Chunk:
    """The chunk in memory of its own, if it stands in memory that its lender may write over."""
    if type(chunk) is memoryview and not chunk.readonly:
        return bytes(chunk)
    return chunk

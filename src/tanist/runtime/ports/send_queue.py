"""The chunks that the network has not taken yet: the slow path of `SocketConnection.send`.

Owns the queue: chunks in memory of its own, files that stay open while they wait, and how they go out (`sendmsg` for
bytes, `sendfile` for ranges of files). It also has the helpers for chunks that the fast path uses. It never watches the
socket and never closes the connection: the connection does.
"""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from tanist.ports import Chunk, FileRange
from tanist.runtime.ports.bulk import Bulk
from tanist.runtime.ports.cold_ranges import ASKED_AGAIN_S, SLOW_S, SUSPECTED_S, in_memory
from tanist.runtime.ports.files import DiskFile, disk_file

MSG_MORE: int = getattr(socket, "MSG_MORE", 0)

_BYTES_AT_ONCE = 4 << 20
"""The most that one connection may hand to the network in one go before others get their turn."""

READS_MAX = 2
"""Bytes that have left memory again each time are sent as they are: the file system may always say so."""

JOINED_BYTES = 16_384
"""Up to so many, a copy costs less than the system calls it saves, and the other side wakes up once."""

_VECTOR_MAX = 512


class CannotSend(Exception):
    """A file that was to be sent cannot be: the reason, for the log."""


class SendQueue:
    __slots__ = (
        "_is_proven", "_read_s", "_read_to", "_reads", "_suspected_until_s", "chunks", "cold", "head_sent",
        "pending_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.chunks: deque[Chunk] = deque()
        self.head_sent = 0
        """How many bytes of the first chunk are gone."""
        self.pending_bytes = 0
        self.cold: tuple[DiskFile, int, int] | None = None
        """File, offset and length of a range that `write` has come to and that must be read first (`cold_ranges`)."""
        self._reads = 0
        """How often the next bytes of the first chunk were read: more than once if they have left memory again."""
        self._read_to = 0
        """Up to here they were,"""
        self._read_s = 0.0
        """at this time."""
        self._suspected_until_s = 0.0
        self._is_proven = False
        """The last suspicion was right: something was not in memory."""

    @property
    def suspected(self) -> bool:
        """Whether ranges of files are read by a thread, whatever is said of the page cache (`cold_ranges`)."""
        return self._suspected_until_s > 0.0 and time.monotonic() < self._suspected_until_s

    def send_range(self, fd: int, file: DiskFile, offset: int, length: int) -> int:
        """`sendfile` to a socket. Was all of it in memory? If that took long, the next read is to say so."""
        began_s = time.monotonic()
        sent = os.sendfile(fd, file.fd, offset, length)
        now_s = time.monotonic()
        if now_s - began_s > SLOW_S and now_s >= self._suspected_until_s:
            self._suspected_until_s = now_s + SUSPECTED_S
            self._is_proven = False
        return sent

    def add(self, chunks: Sequence[Chunk], sent: int = 0) -> None:
        """Queue these; of the first of them the network has taken `sent` bytes. `CannotSend` if a file is gone.

        With `sent` the queue must be empty.
        """
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
        if sent:
            self.head_sent = sent
            self.pending_bytes -= sent

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
        if length == 0 or file.written_lately(offset):
            return length
        read = self._read_to - offset
        if self._reads == READS_MAX:
            return min(length, read)
        just_read = read > 0 and time.monotonic() - self._read_s < ASKED_AGAIN_S
        if just_read:
            length = min(length, read)
        if (just_read or not self.suspected) and in_memory(file, offset, length):
            return length
        self.cold = (file, offset, length)
        return 0

    def was_read(self, missed: bool) -> None:
        """`cold` is in memory now, or cannot be read. `missed`: not all of it was there before."""
        now_s = self._read_s = time.monotonic()
        if missed:
            self._suspected_until_s = now_s + SUSPECTED_S
            self._is_proven = True
        elif not self._is_proven:
            self._suspected_until_s = 0.0
        if self.cold is not None:
            _, offset, length = self.cold
            self._read_to = offset + length
            self._reads += 1
            self.cold = None

    def _send_file(self, sock: socket.socket, head: FileRange, budget: int) -> int:
        done = self.head_sent
        file = disk_file(head)
        sent = self.send_range(sock.fileno(), file, head.offset + done, min(head.length - done, budget))
        self._reads = 0
        if done + sent == head.length:
            self._read_to = 0
            self.chunks.popleft()
            self.head_sent = 0
            file.unpin()
        else:
            self.head_sent = done + sent
        return sent

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
                    flags = MSG_MORE
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


def joined(chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    """One piece instead of many, if they are small; else the chunks as they are."""
    size = 0
    for chunk in chunks:
        size += chunk.length if type(chunk) is FileRange else len(chunk)  # type: ignore[arg-type]
    if size > JOINED_BYTES:
        return chunks
    pieces: list[Any] = []
    for chunk in chunks:
        if type(chunk) is FileRange:
            data = os.pread(disk_file(chunk).fd, chunk.length, chunk.offset)
            if len(data) < chunk.length:
                return chunks  # the file is shorter than it should be, as `sendfile` will find
            pieces.append(data)
        else:
            pieces.append(chunk)
    return [b"".join(pieces)]


def _kept(chunk: Chunk) -> Chunk:
    """The chunk in memory of its own, if it stands in memory that its lender may write over."""
    if type(chunk) is memoryview and not chunk.readonly:
        return bytes(chunk)
    return chunk

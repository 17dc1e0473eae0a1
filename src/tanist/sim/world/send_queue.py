"""What one end of a simulated connection was handed to send, and has not sent.

A range is read when it goes on the wire, as `sendfile` does, so a log that is written over meanwhile sends what was
never asked for (KAFKA-18723). The receiver may refuse the answer, or drop it: only here is it seen each time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tanist.ports import Chunk, FileRange
from tanist.sim.world.disk import SimFile

_TAKEN_BYTES_MIN = 512
"""A socket that has space at all takes so much of what it is handed at once, and is beyond its window then."""


class SendQueue:
    """Bytes and ranges of files, in order."""

    def __init__(self, failed: Callable[[str], None], torn: Callable[[str], None]) -> None:
        """`failed`: a range cannot be read, so the connection ends, and `clear` is called. `torn`: other bytes are sent
        of this file than were there when its range was handed over.
        """
        self._failed = failed
        self._torn = torn
        self.chunks: deque[bytes | FileRange] = deque()
        self.size_bytes = 0

    def add(self, chunks: Sequence[Chunk]) -> bool:
        """False if that has failed."""
        for chunk in chunks:
            if isinstance(chunk, FileRange):
                file = chunk.file
                if not isinstance(file, SimFile) or file.closed:
                    self._failed(f"cannot send from {file.path}: it is closed")
                    return False
                self.chunks.append(chunk)
                self.size_bytes += chunk.length
            else:
                self.chunks.append(bytes(chunk))
                self.size_bytes += len(chunk)
        return True

    def note_contents(self, count: int) -> None:
        """From now on it is known what the last ranges of so many chunks hold now."""
        chunks = self.chunks
        for index in range(-min(count, len(chunks)), 0):
            chunks[index] = _waiting(chunks[index])

    def clear(self) -> None:
        self.chunks.clear()
        self.size_bytes = 0

    def replace(self, data: bytes) -> None:
        """Send this instead."""
        self.clear()
        if data:
            self.chunks.append(data)
            self.size_bytes = len(data)

    @property
    def next_chunk_bytes(self) -> int:
        """The length of the first chunk that waits to be sent: of a fetch's answer, what stands before its records."""
        if not self.chunks:
            return 0
        chunk = self.chunks[0]
        return chunk.length if isinstance(chunk, FileRange) else len(chunk)

    def take(self, space_bytes: int, least_bytes: int = _TAKEN_BYTES_MIN) -> bytes:
        """Take up to that many bytes of the send queue; if any, then this many at least."""
        chunks = self.chunks
        if len(chunks) == 1:
            only = chunks[0]
            if only.__class__ is bytes and len(only) <= space_bytes:
                chunks.clear()
                self.size_bytes = 0
                return only
        pieces: list[bytes] = []
        while chunks and space_bytes > 0:
            chunk = chunks.popleft()
            if isinstance(chunk, FileRange):
                length = min(chunk.length, max(space_bytes, least_bytes))
                if length < chunk.length:
                    chunks.appendleft(_rest_of(chunk, length))
                try:
                    piece = chunk.file.peek(chunk.offset, length)  # type: ignore[attr-defined]  # a SimFile, see add
                except OSError as error:
                    self._failed(f"cannot send from {chunk.file.path}: {error}")
                    break
                if len(piece) < length:
                    self._failed(f"cannot send from {chunk.file.path}: it ends before {chunk.offset + length}")
                    break
                if _is_torn(chunk, piece):
                    self._torn(chunk.file.path)
            else:
                piece, length = chunk, max(space_bytes, least_bytes)
                if len(piece) > length:
                    chunks.appendleft(piece[length:])
                    piece = piece[:length]
            space_bytes -= len(piece)
            self.size_bytes -= len(piece)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


@dataclass(slots=True)
class WaitingRange(FileRange):
    """The rest of a range. `content`: nothing else may be sent of it."""

    content: bytes


def _waiting(chunk: bytes | FileRange) -> bytes | FileRange:
    """The same chunk; of a range, with what it holds now."""
    if isinstance(chunk, bytes | WaitingRange) or not isinstance(chunk.file, SimFile):
        return chunk
    content = bytes(chunk.file.inode.data[chunk.offset : chunk.offset + chunk.length])
    return WaitingRange(chunk.file, chunk.offset, chunk.length, content)


def _rest_of(chunk: FileRange, sent: int) -> FileRange:
    """What is left of a range of which so many bytes are sent."""
    offset, length = chunk.offset + sent, chunk.length - sent
    if isinstance(chunk, WaitingRange):
        return WaitingRange(chunk.file, offset, length, chunk.content[sent:])
    return FileRange(chunk.file, offset, length)


def _is_torn(chunk: FileRange, piece: bytes) -> bool:
    """Whether its next bytes are others than it held."""
    return isinstance(chunk, WaitingRange) and not chunk.content.startswith(piece)

"""Ranges of files that wait to be sent, with what they held when they were handed over.

A range is read when it goes on the wire, so a log that is written over meanwhile sends what was never asked for
(KAFKA-18723). The receiver may refuse the answer, or drop it: only here is it seen each time.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.ports import FileRange
from tanist.sim.world.disk import SimFile


@dataclass(slots=True)
class WaitingRange(FileRange):
    """The rest of a range. `content`: nothing else may be sent of it."""

    content: bytes


def waiting(chunk: bytes | FileRange) -> bytes | FileRange:
    """The same chunk; of a range, with what it holds now."""
    if isinstance(chunk, bytes | WaitingRange) or not isinstance(chunk.file, SimFile):
        return chunk
    content = bytes(chunk.file.inode.data[chunk.offset : chunk.offset + chunk.length])
    return WaitingRange(chunk.file, chunk.offset, chunk.length, content)


def rest_of(chunk: FileRange, sent: int) -> FileRange:
    """What is left of a range of which so many bytes are sent."""
    offset, length = chunk.offset + sent, chunk.length - sent
    if isinstance(chunk, WaitingRange):
        return WaitingRange(chunk.file, offset, length, chunk.content[sent:])
    return FileRange(chunk.file, offset, length)


def is_torn(chunk: FileRange, piece: bytes) -> bool:
    """Whether its next bytes are others than it held."""
    return isinstance(chunk, WaitingRange) and not chunk.content.startswith(piece)

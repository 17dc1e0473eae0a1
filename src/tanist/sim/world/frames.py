"""The frames of a stream: whether one is complete, and what becomes of its memory when it has been handled."""

from __future__ import annotations

from collections.abc import Sequence

_HEAD_BYTES = 4
_POISON = b"\xdb"
_POISONS: dict[int, bytes] = {}
"""Length of a frame -> that many bytes of poison."""
_POISONS_MAX_BYTES = 2048


def is_part(partial: bytearray, arrived: Sequence[bytes]) -> bool:
    """Whether all that has come is a part of one frame, so that nobody can handle it yet."""
    head = (bytes(partial[:_HEAD_BYTES]) + b"".join(arrived))[:_HEAD_BYTES]
    if len(head) < _HEAD_BYTES:
        return True
    return len(partial) + sum(map(len, arrived)) - _HEAD_BYTES < int.from_bytes(head, "big", signed=True)


def poison(frames: Sequence[memoryview]) -> None:
    """The memory is used again: who still looks at a frame sees it."""
    for frame in frames:
        size = len(frame)
        other = _POISONS.get(size)
        if other is None:
            other = _POISON * size if size > _POISONS_MAX_BYTES else _POISONS.setdefault(size, _POISON * size)
        frame[:] = other

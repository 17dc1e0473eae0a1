"""The key map of a cleaning: the latest offset of each key in the part of the log that is not yet clean.

Owns the bound of its memory (`log.cleaner.dedupe.buffer.size`). When it is full, the mapped part of the log ends there,
and another pass does the rest. Kafka counts 24 bytes a key, 16 of them its MD5. A Python dict takes `BYTES_PER_KEY`,
and counts them: the setting is a promise about memory. Keys below 16 bytes are kept as they are, longer ones as 16
bytes of BLAKE2b: collisions cannot be constructed, and a collision would delete the other key's records.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

BYTES_PER_KEY: Final = 200
"""A bytes object, an int, and their slot in the dict: 138 with a million keys (CPython 3.11), 158 when it has grown."""
_LOAD_FACTOR: Final = 0.9
_DIGEST_BYTES: Final = 16


class KeyMap:
    """Keys and offsets. `latest_offset` is how far the log has been put into it."""

    __slots__ = ("_offsets", "keys_max", "latest_offset")

    def __init__(self, keys_max: int) -> None:
        self.keys_max = max(1, keys_max)
        self.latest_offset = -1
        self._offsets: dict[bytes, int] = {}

    @classmethod
    def of_buffer(cls, buffer_bytes: int, load_factor: float = _LOAD_FACTOR) -> KeyMap:
        """One that stays within `log.cleaner.dedupe.buffer.size`."""
        return cls(int(buffer_bytes * load_factor) // BYTES_PER_KEY)

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """A later record of the key is at `offset`; False, and nothing has changed, if that is one key too many."""
        short = _short(key)
        if len(self._offsets) >= self.keys_max and short not in self._offsets:
            return False
        self._offsets[short] = offset
        return True

    def get(self, key: bytes) -> int:
        """The latest offset of the key, -1 if it is not there."""
        return self._offsets.get(_short(key), -1)


def _short(key: bytes) -> bytes:
    if len(key) < _DIGEST_BYTES:
        return key
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()

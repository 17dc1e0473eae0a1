"""In place of the extension module `crc32c`, for interpreters that have none: the same numbers, slowly."""

from __future__ import annotations


def _entry(value: int) -> int:
    for _ in range(8):
        value = (value >> 1) ^ 0x82F63B78 if value & 1 else value >> 1
    return value


_TABLE = tuple(map(_entry, range(256)))


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    table, crc = _TABLE, value ^ 0xFFFFFFFF
    for byte in bytes(data):
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF

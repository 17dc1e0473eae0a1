from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tanist.spark.segments.fingerprints import PADDING_BYTES, fingerprints

_ALL = (1 << 64) - 1
TANIST = 0xBC063EEDE099D48D


def plain(data: bytes) -> int:
    """The same, a word at a time."""
    total = 0
    for number in range(0, len(data), 8):
        word = int.from_bytes(data[number : number + 8], "little")
        word ^= word >> 32
        word = word * 0xD6E8FEB86659FD93 & _ALL
        word ^= word >> 32
        total = (total + word * pow(0x9E3779B97F4A7C15, number // 8, 1 << 64)) & _ALL
    total ^= len(data) * 0x94D049BB133111EB & _ALL
    total ^= total >> 30
    total = total * 0xBF58476D1CE4E5B9 & _ALL
    total ^= total >> 27
    total = total * 0x94D049BB133111EB & _ALL
    return total ^ total >> 31


def of(pieces: list[bytes]) -> list[int]:
    arena = np.frombuffer(b"".join(pieces) + b"\xff" * PADDING_BYTES, np.uint8)
    ends = np.cumsum(np.array([len(piece) for piece in pieces], np.int64))
    starts = ends - np.array([len(piece) for piece in pieces], np.int64)
    return [int(found) for found in fingerprints(arena, starts, ends)]


@given(st.lists(st.binary(max_size=700), max_size=30))
def test_a_fingerprint_depends_on_its_bytes_alone(pieces: list[bytes]) -> None:
    """Whatever the neighbours, by which the width of rows is chosen."""
    assert of(pieces) == [plain(piece) for piece in pieces]


def test_fingerprints_stay_what_they_were() -> None:
    """They are kept in tables: another number here is another format."""
    assert of([b"", b"tanist", bytes(range(256)) * 3]) == [plain(b""), plain(b"tanist"), plain(bytes(range(256)) * 3)]
    assert plain(b"tanist") == TANIST


def test_what_differs_little_has_another_fingerprint() -> None:
    base = bytearray(b"\0" * 64)
    others = [bytes(base)]
    for bit in range(8 * len(base)):
        changed = bytearray(base)
        changed[bit // 8] ^= 1 << bit % 8
        others.append(bytes(changed))
    others += [b"\0" * length for length in range(64)]
    others += [b"a" * 8 + b"b" * 8, b"b" * 8 + b"a" * 8]
    assert len(set(of(others))) == len(others)

"""Large writes are made in slices, so that the kernel may let others have the processor between them."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tanist.ports import Buffer
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.files import SLICE_BYTES


@pytest.fixture
def disk(runner: Any) -> RealDisk:
    return RealDisk(runner.loop)


@pytest.fixture
def slices(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what `pwritev` is given."""
    real = os.pwritev
    sizes: list[int] = []

    def pwritev(fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        sizes.append(sum(map(len, buffers)))
        return real(fd, buffers, offset)

    monkeypatch.setattr(os, "pwritev", pwritev)
    return sizes


@pytest.mark.parametrize("lengths", [[1_000_000], [16_000] * 60, [1, SLICE_BYTES, 0, SLICE_BYTES - 1, 5]])
def test_a_large_write_is_made_in_slices(disk: RealDisk, tmp_path: Path, slices: list[int], lengths: list[int]) -> None:
    buffers = [memoryview(bytearray(os.urandom(length))) for length in lengths]
    file = disk.open(f"{tmp_path}/a")
    file.write(0, [b"before"])
    file.write(6, buffers)
    assert file.read(0, 2_000_000) == b"before" + b"".join(buffers)
    whole, rest = divmod(sum(lengths), SLICE_BYTES)
    assert slices == [6] + [SLICE_BYTES] * whole + [rest] * (rest > 0)


def test_a_disk_that_is_full_after_a_slice_has_no_torn_end(
    disk: RealDisk, tmp_path: Path, slices: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(f"{tmp_path}/a")
    file.write(0, [b"whole"])
    one = os.pwritev

    def full(fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        if len(slices) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return one(fd, buffers, offset)

    monkeypatch.setattr(os, "pwritev", full)
    with pytest.raises(OSError, match="No space"):
        file.write(5, [bytes(1_000_000)])
    assert (file.size, file.read(0, 100)) == (5, b"whole")
    assert os.fstat(file.fd).st_size == 5

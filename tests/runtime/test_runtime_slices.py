"""Large writes are made in slices where copying is slow, and others have the processor between them."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tanist.ports import Buffer
from tanist.runtime.ports import files, kernel
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.files import SLICE_BYTES


@pytest.fixture
def disk(runner: Any) -> RealDisk:
    return RealDisk(runner.loop)


@pytest.fixture
def slices(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what `pwritev` is given, by a system that copies slowly."""
    real = os.pwritev
    sizes: list[int] = []

    def pwritev(fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        sizes.append(sum(map(len, buffers)))
        return real(fd, buffers, offset)

    monkeypatch.setattr(os, "pwritev", pwritev)
    monkeypatch.setattr(files, "_memory", SlowMemory())
    return sizes


class SlowMemory(files._Memory):
    """A millisecond for a slice, whatever is written."""

    @property
    def _s_per_byte(self) -> float:
        return 0.001 / SLICE_BYTES

    @_s_per_byte.setter
    def _s_per_byte(self, found: float) -> None:
        assert found >= 0


@pytest.mark.parametrize("lengths", [[1_000_000], [16_000] * 60, [1, SLICE_BYTES, 0, SLICE_BYTES - 1, 5]])
def test_what_takes_long_to_copy_is_written_in_slices(
    disk: RealDisk, tmp_path: Path, slices: list[int], monkeypatch: pytest.MonkeyPatch, lengths: list[int]
) -> None:
    let_run = 0

    def others() -> None:
        nonlocal let_run
        let_run += 1

    monkeypatch.setattr(files, "let_others_run", others)
    buffers = [memoryview(bytearray(os.urandom(length))) for length in lengths]
    file = disk.open(f"{tmp_path}/a")
    file.write(0, [b"before"])
    file.write(6, buffers)
    assert file.read(0, 2_000_000) == b"before" + b"".join(buffers)
    whole, rest = divmod(sum(lengths), SLICE_BYTES)
    assert slices == [6] + [SLICE_BYTES] * whole + [rest] * (rest > 0)
    assert let_run == len(slices) - 2, "between the slices"


def test_what_is_copied_fast_is_written_at_once(
    disk: RealDisk, tmp_path: Path, slices: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_memory", files._Memory())
    monkeypatch.setattr(files, "LONG_S", 3600.0)
    for _ in range(3):
        disk.open(f"{tmp_path}/a").write(0, [bytes(1_000_000)])
    assert slices == [1_000_000] * 3


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


def test_the_system_has_a_way_to_let_others_run() -> None:
    assert kernel._sched_yield() == 0

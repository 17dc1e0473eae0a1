"""A loss of power on a real disk: what was synced stays, what was not is gone, whatever it is called by now."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, cast

import pytest

from tanist.runtime.cluster import power_loss
from tanist.runtime.cluster.power_loss import Cut, lose_page_cache
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.synced_lengths import LEDGER_NAME


def test_each_file_is_cut_to_what_was_synced(runner: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "meta.properties").write_text("by tanist format")
    disk = RealDisk(runner.loop, f"{first}/{LEDGER_NAME}")
    disk.make_directory(f"{second}/t-0")
    log, other, synced = (disk.open(f"{second}/t-0/{name}") for name in ("log", "other", "synced"))
    for file in (log, synced):
        file.write(0, [b"durable"])
        disk.sync_now(file)
    log.write(7, [b" and more"])
    other.write(0, [b"never synced"])
    disk.write_file(f"{second}/checkpoint", b"replaced whole", sync=False)
    disk.rename(f"{second}/t-0", f"{second}/t-1")

    assert lose_page_cache([str(first), str(second)]) == [
        Cut(f"{second}/t-1/log", 9),
        Cut(f"{second}/t-1/other", 12),
    ]
    assert (second / "t-1" / "log").read_bytes() == b"durable"
    assert (second / "t-1" / "other").read_bytes() == b""
    assert (second / "t-1" / "synced").read_bytes() == b"durable"
    assert (second / "checkpoint").read_bytes() == b"replaced whole"
    assert (second / "meta.properties").read_text() == "by tanist format"
    assert lose_page_cache([str(first), str(second)]) == []


class _First:
    """Draws what the test says."""

    def __init__(self, drawn: int) -> None:
        self.drawn = drawn

    def randrange(self, stop: int) -> int:
        assert stop == 4
        return self.drawn


@pytest.mark.parametrize("drawn", [0, 1, 3])
def test_a_small_file_that_was_replaced_without_a_sync_may_be_empty(runner: Any, tmp_path: Path, drawn: int) -> None:
    """KAFKA-16541: its name came through, its content did not. The simulator's disks do so too."""
    disk = RealDisk(runner.loop, f"{tmp_path}/{LEDGER_NAME}")
    names = ("first-of-its-name", "replaced", "synced", "made-durable", "replaced-durably")
    first, replaced, synced, made_durable, replaced_durably = (f"{tmp_path}/{name}" for name in names)
    for path in (replaced, synced, made_durable, replaced_durably):
        disk.write_file(path, b"old")
    for path in (first, replaced, made_durable, replaced_durably):
        disk.write_file(path, b"new content", sync=False)
    disk.write_file(synced, b"new content")
    disk.make_durable(made_durable)
    disk.write_file(replaced_durably, b"new content")
    cuts = lose_page_cache([str(tmp_path)], cast(random.Random, _First(drawn)))
    assert cuts == ([Cut(replaced, 11)] if drawn == 0 else [])
    for path in (first, synced, made_durable, replaced_durably):
        assert Path(path).read_bytes() == b"new content"
    assert Path(replaced).read_bytes() == (b"" if drawn == 0 else b"new content")


def test_what_was_replaced_half_a_minute_ago_is_on_the_disk(
    runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = RealDisk(runner.loop, f"{tmp_path}/{LEDGER_NAME}")
    path = f"{tmp_path}/checkpoint"
    for _ in range(2):
        disk.write_file(path, b"content", sync=False)
    monkeypatch.setattr(power_loss, "WRITE_BACK_MS", 0)
    assert lose_page_cache([str(tmp_path)], cast(random.Random, _First(0))) == []
    monkeypatch.undo()
    assert lose_page_cache([str(tmp_path)], cast(random.Random, _First(0))) == [Cut(path, 7)]


def test_a_folder_without_a_ledger_is_no_nodes_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        lose_page_cache([str(tmp_path)])

"""A loss of power on a real disk: what was synced stays, what was not is gone, whatever it is called by now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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


def test_a_folder_without_a_ledger_is_no_nodes_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        lose_page_cache([str(tmp_path)])

"""Salvage: the entries in the log directories, and their records as text that a person can read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tanist.log.salvage.manifest import QUARANTINE
from tanist.runtime.client.salvaged import Entry, PartitionSalvage, find_entries
from tanist.web.state import Json, SalvageState, plain

_TEXT_MAX = 200


def salvage_entries(directories: Iterable[Path]) -> list[Entry]:
    """Those of some log directories, the oldest first. To search for them would be to walk through all partitions."""
    quarantines = [path for each in directories if (path := each / QUARANTINE).is_dir()]
    found = [entry for each in quarantines for entry in find_entries(each)[0]]
    return sorted(found, key=lambda entry: (entry.manifest.wall_ms, entry.entry_id))


def read_salvage(directories: Iterable[Path]) -> Json:
    """Every entry, without its records."""
    return plain(
        [
            SalvageState(
                each.entry_id,
                each.manifest.topic,
                each.manifest.partition,
                each.manifest.broker_id,
                each.manifest.from_offset,
                each.manifest.to_offset,
                each.manifest.why.value,
                each.manifest.wall_ms,
                each.manifest.leader_epoch,
                each.manifest.epochs,
            )
            for each in salvage_entries(directories)
        ]
    )


def record_texts(salvages: Iterable[PartitionSalvage], most: int) -> tuple[list[Json], int]:
    """The first records of each, and how many there are in all, each once."""
    shown: list[Json] = []
    count = 0
    for salvage in salvages:
        count += salvage.record_count
        for each in salvage.records():
            if len(shown) >= most:
                break
            record = each.record
            shown.append(
                {
                    "offset": record.offset,
                    "epoch": each.epoch,
                    "timestamp_ms": record.timestamp,
                    "key": text_of(record.key),
                    "value": text_of(record.value),
                }
            )
    return shown, count


def text_of(data: bytes | None) -> str | None:
    """UTF-8 if it is, hexadecimal if not; cut where it is long."""
    if data is None:
        return None
    cut = bytes(data[: _TEXT_MAX * 4])
    try:
        text = cut.decode() if len(cut) == len(data) else cut.decode(errors="ignore")
        if not all(each.isprintable() or each.isspace() for each in text):
            text = f"0x{cut.hex()}"
    except UnicodeDecodeError:
        text = f"0x{cut.hex()}"
    return text if len(text) <= _TEXT_MAX else text[:_TEXT_MAX] + "…"

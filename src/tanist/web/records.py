"""Records of a salvage as text: what a person can read of keys and values."""

from __future__ import annotations

from collections.abc import Iterable

from tanist.runtime.client.salvaged import PartitionSalvage
from tanist.web.state import Json

_TEXT_MAX = 200


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

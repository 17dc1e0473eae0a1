"""Crash cleanup of a partition's folder: files that were being swapped in or deleted.

Owns the choice which of them are finished and which are undone, by Kafka's rules: `.deleted` and `.cleaned` go, a
`.swap` takes its place unless the cleaning that made it was not complete, and an index without its segment goes. Files
with other names are left alone.
"""

from __future__ import annotations

from tanist.log.checkpoints import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA
from tanist.log.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
    offset_of,
)
from tanist.log.scan import DamagedBatch, scan_headers
from tanist.ports import Disk


def tidy(disk: Disk, directory: str, reasons: list[str]) -> set[str]:
    """Finish or undo what a crash has interrupted; the names that remain.

    Each repair adds a line to `reasons`.
    """
    listed = disk.list(directory)
    names = set(listed)
    cleaned = [base for name in names if (base := _base_of(name, CLEANED_SUFFIX)) is not None]
    for name in listed:
        obsolete = (
            _base_of(name, DELETED_SUFFIX) is not None
            or _base_of(name, CLEANED_SUFFIX) is not None
            or (name.endswith(TEMPORARY_SUFFIX) and name.startswith((LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)))
        )
        swap = _base_of(name, SWAP_SUFFIX)
        if swap is not None and cleaned and swap >= min(cleaned):
            # Part of a split or cleaning whose output was not complete: the originals still stand.
            obsolete = True
        if obsolete:
            _remove(disk, directory, name, names)
    _swap_in(disk, directory, names, reasons)
    bases = {base for name in names if (base := offset_of(name, LOG_SUFFIX)) is not None}
    for name in sorted(names):
        for suffix in INDEX_SUFFIXES:
            base = offset_of(name, suffix)
            if base is not None and base not in bases:
                reasons.append(f"{name} is the index of no segment: removed")
                _remove(disk, directory, name, names)
    return names


def _remove(disk: Disk, directory: str, name: str, names: set[str]) -> None:
    names.discard(name)
    disk.remove(f"{directory}/{name}")


def _swap_in(disk: Disk, directory: str, names: set[str], reasons: list[str]) -> None:
    """Cleaned segments that were complete when the crash came take the place of those they were made from."""
    swaps = sorted(name for name in names if _base_of(name, SWAP_SUFFIX) is not None)
    logs = [name for name in swaps if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    if logs:
        low = min(base for name in logs if (base := _base_of(name, SWAP_SUFFIX)) is not None)
        high = max(_end_of_file(disk, f"{directory}/{name}", _base_of(name, SWAP_SUFFIX) or 0) for name in logs)
        for name in sorted(names):
            base = _base_of(name, "")
            if base is not None and low <= base < max(high, low + 1) and not name.endswith(SNAPSHOT_SUFFIX):
                _remove(disk, directory, name, names)
    # The log first: what is left is indexes then, which the next start recognises, should this one be interrupted.
    for name in sorted(swaps, key=lambda name: not name.endswith(LOG_SUFFIX + SWAP_SUFFIX)):
        target = name.removesuffix(SWAP_SUFFIX)
        disk.rename(f"{directory}/{name}", f"{directory}/{target}")
        names.discard(name)
        names.add(target)
        reasons.append(f"{target} taken over from an interrupted swap")
    if swaps:
        _make_durable(disk, directory, names)


def _make_durable(disk: Disk, directory: str, names: set[str]) -> None:
    """Replace a small file by itself, durably, and with it the names in the folder.

    A sync of the swapped segment later would make its own name durable, and not that those it replaces are gone.
    """
    for name in (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA):
        if name in names:
            path = f"{directory}/{name}"
            disk.write_file(path, disk.read_file(path), sync=True)
            return


def _end_of_file(disk: Disk, path: str, base_offset: int) -> int:
    file = disk.open(path)
    end = base_offset
    try:
        for _, header in scan_headers(file, 0, file.size):
            end = header.last_offset + 1
    except DamagedBatch:
        pass
    finally:
        file.close()
    return end


def _base_of(name: str, suffix: str) -> int | None:
    """The offset of a segment's or snapshot's file to which `suffix` was added; None for any other name."""
    if suffix and not name.endswith(suffix):
        return None
    stem = name[: len(name) - len(suffix)]
    for kind in (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX):
        base = offset_of(stem, kind)
        if base is not None:
            return base
    return None

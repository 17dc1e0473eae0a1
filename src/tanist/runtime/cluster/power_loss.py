"""Make a loss of power out of a killed process: cut each file to what was synced (`tanist crash ID --lose
page-cache`).

The process must be dead. Its writes are still in the page cache then, and the ledger of its folder says how much of
each file had reached the disk (`ports/synced_lengths.py`). Files that the ledger does not know were not written
through a node's disk (what `tanist format` wrote, or a person) and stay as they are.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass

from tanist.runtime.ports.synced_lengths import LEDGER_NAME, key_of, read_ledger, read_replaced

WRITE_BACK_MS = 30_000
"""After so long the kernel has written what nobody has synced."""
_EMPTY_ONE_OF = 4


@dataclass(frozen=True, slots=True)
class Cut:
    """A file that lost its end."""

    path: str
    lost_bytes: int


def lose_page_cache(log_dirs: Iterable[str], rng: random.Random | None = None) -> list[Cut]:
    """Cut the files below a node's log folders; gives those that lost something, by path."""
    rng = rng or random.Random()
    folders = list(log_dirs)
    ledger = f"{folders[0]}/{LEDGER_NAME}"
    synced, replaced = read_ledger(ledger), read_replaced(ledger)
    recent_ms = time.time_ns() // 1_000_000 - WRITE_BACK_MS
    cuts = []
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(parent, name)
                status = os.lstat(path)
                key = key_of(status)
                durable = synced.get(key)
                if replaced.get(key, 0) > recent_ms and not rng.randrange(_EMPTY_ONE_OF):
                    durable = 0
                if durable is not None and status.st_size > durable:
                    os.truncate(path, durable)
                    cuts.append(Cut(path, status.st_size - durable))
    return sorted(cuts, key=lambda cut: cut.path)

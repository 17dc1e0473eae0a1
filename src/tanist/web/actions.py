"""The faults that a page can ask for, of processes and of simulated nodes: their names, and what is said of those done.

The commands have the same names (`tanist crash`, `pause`, ...).
"""

from __future__ import annotations

from typing import Final

ACTIONS: Final = ("crash", "crash-page-cache", "pause", "cut-off", "slow", "disk-full", "stop", "start", "heal")
DOWN: Final = ("crash", "crash-page-cache", "stop", "disk-full")
"""After these a node is down, or may be."""
SLOW_MS: Final = 200

ALL_HEALED: Final = "all faults are healed"
_DONE: Final = {
    "crash": "node {} is killed; the page cache still has what it wrote",
    "pause": "node {} is paused",
    "cut-off": "node {} is cut off from all other nodes",
    "slow": f"the links of node {{}} take {SLOW_MS} ms more each way",
    "disk-full": "the disk of node {} is full",
    "start": "node {} is started",
    "heal": "the faults of node {} are healed",
}


def done(action: str, node: int) -> str:
    """The sentence of an action that does the same wherever it is done."""
    return _DONE[action].format(node)

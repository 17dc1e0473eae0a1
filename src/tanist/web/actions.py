"""What a page can ask for, of processes and of simulated nodes: the faults of the table that have a button, and their
ends. Owns what is said of those done."""

from __future__ import annotations

from typing import Final

from tanist.faults import FAULTS, Price, Where, names_of

_FAULTS: Final = names_of(Where.PAGE)
ACTIONS: Final = (*_FAULTS, "start", "heal")
LEAVES: Final = frozenset(name for name in _FAULTS if FAULTS[name].price is not Price.NOTHING)
"""After these a broker is fenced, or will be."""
DOWN: Final = frozenset(name for name in LEAVES if FAULTS[name].price is not Price.FENCING)
"""After these a node is down, or may be."""
SLOW_MS: Final = 200

ALL_HEALED: Final = "all faults are healed"
_DONE: Final = {
    "crash": "node {} is killed; the page cache still has what it wrote",
    "pause": "node {} is paused",
    "partition": "node {} is cut off from all other nodes",
    "slow": f"the links of node {{}} take {SLOW_MS} ms more each way",
    "disk-full": "the disk of node {} is full",
    "start": "node {} is started",
    "heal": "the faults of node {} are healed",
}


def done(action: str, node: int) -> str:
    """The sentence of an action that does the same wherever it is done."""
    return _DONE[action].format(node)

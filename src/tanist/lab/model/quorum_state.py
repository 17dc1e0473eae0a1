"""The layout of a state of the quorum's model.

Owns the places in a state's tuple, and `Ghosts`, which no node has: the model keeps them for its properties.
"""

from __future__ import annotations

from typing import NamedTuple

from tanist.lab.model.components import Permutation
from tanist.lab.model.quorum_member import MetadataLog, renamed_log

STALE, GHOSTS, BUDGET, MEMBERS = range(4)
"""The places in a state: vote requests of former candidates, ghosts, budget, then each member."""


class Ghosts(NamedTuple):
    """Ghost variables: only the checker knows them."""

    leaders: tuple[tuple[int, int], ...]
    """Epochs and their leaders."""
    committed: MetadataLog

    def renamed(self, to: Permutation) -> Ghosts:
        return self._replace(
            leaders=tuple((epoch, to[leader]) for epoch, leader in self.leaders),
            committed=renamed_log(self.committed, to),
        )

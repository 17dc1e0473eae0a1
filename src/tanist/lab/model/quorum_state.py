"""The layout of a state of the quorum's model.

Owns the places in the tuple that a state is, and `Ghosts`, which no node has: the model remembers them to judge.
"""

from __future__ import annotations

from typing import NamedTuple

from tanist.lab.model.components import Permutation
from tanist.lab.model.quorum_member import MetadataLog

STALE, GHOSTS, BUDGET, MEMBERS = range(4)
"""The places in a state: asks of candidates that are none any more, ghosts, budget, then each member."""


class Ghosts(NamedTuple):
    """What only the checker knows."""

    leaders: tuple[tuple[int, int], ...]
    """Epochs, and who has led them."""
    committed: MetadataLog

    def renamed(self, to: Permutation) -> Ghosts:
        return self._replace(leaders=tuple((epoch, to[leader]) for epoch, leader in self.leaders))

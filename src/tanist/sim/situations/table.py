"""The named protocol situations of a run of the simulator, all of them, and the watching of a run."""

from __future__ import annotations

from typing import Final

from tanist.sim.situations.clients import CLIENT_SITUATIONS
from tanist.sim.situations.controller import CONTROLLER_SITUATIONS
from tanist.sim.situations.counting import SituationCounter
from tanist.sim.situations.nodes import NODE_SITUATIONS
from tanist.sim.situations.quorum import QUORUM_SITUATIONS
from tanist.sim.situations.replicas import REPLICA_SITUATIONS
from tanist.sim.world.world import World

BY_EVENTS: Final = (*REPLICA_SITUATIONS, *CONTROLLER_SITUATIONS, *QUORUM_SITUATIONS, *NODE_SITUATIONS)

SITUATIONS: Final[dict[str, str]] = {each.name: each.meaning for each in BY_EVENTS} | CLIENT_SITUATIONS
"""Name -> meaning."""


def watch_situations(world: World) -> None:
    """Count the situations of nodes from now on. Before the nodes start: most come with their fine events."""
    world.fine = True
    world.watchers.append(SituationCounter(world.counts, BY_EVENTS))

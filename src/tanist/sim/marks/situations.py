"""The named protocol situations, and the wrappers that count them in a run.

A situation is a moment in which a rule of the protocol decides: a range of seeds without it proves nothing about that
rule. Replicas, controllers and the quorum have tables of their own; clients count theirs; nodes' reports are here.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import AbstractContextManager

from tanist.sim.marks.controller import CONTROLLER_SITUATIONS, watch_controllers
from tanist.sim.marks.marks import Marks, watching
from tanist.sim.marks.quorum import QUORUM_SITUATIONS, watch_quorum
from tanist.sim.marks.replicas import REPLICA_SITUATIONS, watch_replicas
from tanist.sim.situations.clients import CLIENT_SITUATIONS
from tanist.sim.world.world import World

NODE_SITUATIONS: dict[str, tuple[str, str]] = {
    "node: quorum's leader found dead": (r"quorum leader \d+ is gone", "connection refused: no timeout is waited for"),
    "node: broker found dead": (r"broker \d+ is gone .*: fenced", "connection refused: fenced at once"),
    "node: fenced while it runs": (r"broker \d+ was fenced", "its controller did not hear of it in time"),
    "node: registers anew in the same life": (
        r"broker \d+: epoch \d+ is stale, registering anew",
        "its registration is not known",
    ),
    "node: shuts down without a controller": (r"no controller answers", "leaderships are not handed over"),
    "node: recovery cuts a log": (r"\S+: cut \d+ bytes at offset", "torn, lost or rotten: the first batch not whole"),
    "node: salvage saved": (r"salvage \S+ .* is saved before it is dropped", "what was cut is kept"),
    "node: log directory offline": (r"log directory \S+ is offline", "the others go on"),
    "node: all log directories offline": (r"all log directories are offline", "the process ends"),
    "node: metadata log's disk failed": (r"the metadata log's disk has failed", "the process ends"),
    "node: log of a former replica deleted": (r"\S+ is not ours any more", "reassigned while it was down"),
    "node: metadata log truncated": (r"metadata log truncated to", "it had what was never committed"),
    "node: cannot start": (r"cannot start:", "its disk is full, or fails"),
    "node: unclean election reported": (r"POSSIBLE DATA LOSS", "for the operator to read, once"),
}
"""Name -> the node's report, and the meaning."""

SITUATIONS: dict[str, str] = {
    **REPLICA_SITUATIONS,
    **CONTROLLER_SITUATIONS,
    **QUORUM_SITUATIONS,
    **{name: meaning for name, (_, meaning) in NODE_SITUATIONS.items()},
    **CLIENT_SITUATIONS,
}
"""Name -> meaning."""


def watching_situations(counts: Counter[str]) -> AbstractContextManager[None]:
    """Count the situations of `SITUATIONS` in this context."""
    return watching(counts, watch_replicas, watch_controllers, watch_quorum, _watch_nodes)


def _watch_nodes(marks: Marks) -> None:
    patterns = [(re.compile(pattern), name) for name, (pattern, _) in NODE_SITUATIONS.items()]

    def noted(world: World, who: str, level: str, message: str) -> None:
        for pattern, name in patterns:
            if pattern.match(message):
                marks.hit(name)

    marks.before(World, "_note", noted)

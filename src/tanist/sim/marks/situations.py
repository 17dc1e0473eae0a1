"""The named protocol situations, and the wrappers that count them in a run.

A situation is a moment in which a rule of the protocol decides: a range of seeds without it proves nothing about that
rule. Replicas, controllers and the quorum have tables of their own; nodes' reports and clients' errors are here.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any

from tanist.sim.marks.controller import CONTROLLER_SITUATIONS, watch_controllers
from tanist.sim.marks.marks import Marks, watching
from tanist.sim.marks.quorum import QUORUM_SITUATIONS, watch_quorum
from tanist.sim.marks.replicas import REPLICA_SITUATIONS, watch_replicas
from tanist.sim.workload.producer import Producer
from tanist.sim.workload.readers import Consumer
from tanist.sim.world.world import World
from tanist.wire.errors import ErrorCode

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

CLIENT_SITUATIONS: dict[str, str] = {
    "producer: answer lost": "it sends the same again",
    "producer: sent to who does not lead": "NOT_LEADER_OR_FOLLOWER",
    "producer: too few in sync": "NOT_ENOUGH_REPLICAS",
    "producer: timed out at the leader": "REQUEST_TIMED_OUT: appended, and not committed in time",
    "producer: begins anew": "under another producer id, as the log has lost what came before",
    "consumer: answer lost": "it asks again",
    "consumer: asked who does not lead": "NOT_LEADER_OR_FOLLOWER",
    "consumer: fenced by a newer leader epoch": "it must look for the leader (KIP-320)",
    "consumer: ahead of the leader it asks": "UNKNOWN_LEADER_EPOCH",
    "consumer: offset not there": "OFFSET_OUT_OF_RANGE",
}

SITUATIONS: dict[str, str] = {
    **REPLICA_SITUATIONS,
    **CONTROLLER_SITUATIONS,
    **QUORUM_SITUATIONS,
    **{name: meaning for name, (_, meaning) in NODE_SITUATIONS.items()},
    **CLIENT_SITUATIONS,
}
"""Name -> meaning."""

_PRODUCER_ERRORS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "producer: sent to who does not lead",
    ErrorCode.NOT_ENOUGH_REPLICAS: "producer: too few in sync",
    ErrorCode.REQUEST_TIMED_OUT: "producer: timed out at the leader",
}
_CONSUMER_ERRORS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "consumer: asked who does not lead",
    ErrorCode.FENCED_LEADER_EPOCH: "consumer: fenced by a newer leader epoch",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "consumer: ahead of the leader it asks",
    ErrorCode.OFFSET_OUT_OF_RANGE: "consumer: offset not there",
}


def watching_situations(counts: Counter[str]) -> AbstractContextManager[None]:
    """Count the situations of `SITUATIONS` in this context."""
    return watching(counts, watch_replicas, watch_controllers, watch_quorum, _watch_nodes, _watch_clients)


def _watch_nodes(marks: Marks) -> None:
    patterns = [(re.compile(pattern), name) for name, (pattern, _) in NODE_SITUATIONS.items()]

    def noted(world: World, who: str, level: str, message: str) -> None:
        for pattern, name in patterns:
            if pattern.match(message):
                marks.hit(name)

    marks.before(World, "note", noted)


def _watch_clients(marks: Marks) -> None:
    def produced(producer: Producer, partition: int, batch: Any, response: Any) -> None:
        if response is None:
            marks.hit("producer: answer lost")
            return
        name = _PRODUCER_ERRORS.get(response.responses[0].partition_responses[0].error_code)
        if name is not None:
            marks.hit(name)

    def fetched(consumer: Consumer, partition: int, position: int, asked: Any, response: Any) -> None:
        if response is None:
            marks.hit("consumer: answer lost")
        elif response.responses:
            name = _CONSUMER_ERRORS.get(response.responses[0].partitions[0].error_code)
            if name is not None:
                marks.hit(name)

    marks.before(Producer, "_answered", produced)
    marks.before(Producer, "_begin_anew", lambda *_: marks.hit("producer: begins anew"))
    marks.before(Consumer, "_answered", fetched)

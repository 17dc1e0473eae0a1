"""Every kind of scenario and its player, and the play of one.

Owns `KINDS` and `run`. `run` never raises: an error of one scenario is its result, and the next one is played.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tanist.lab.scenarios import brokers, cluster, one_event, partitions, quorum, replica
from tanist.lab.scenarios.describe import describe
from tanist.lab.scenarios.deviations import DEFECT
from tanist.lab.scenarios.epochs import epoch_cache
from tanist.lab.scenarios.fields import Fields, NotUnderstood
from tanist.lab.scenarios.formats import record_format, rpc_format
from tanist.lab.scenarios.outcome import Difference, Mismatch, ScenarioResult, Verdict

Player = Callable[[Fields], Sequence[Difference]]

KINDS: Mapping[str, Player] = {
    "builder": partitions.builder,
    "assignment": partitions.assignment,
    "revert": partitions.play_revert,
    "controller": cluster.controller,
    "config": one_event.config,
    "feature": one_event.feature,
    "register": brokers.register,
    "heartbeat_state": brokers.heartbeat_state,
    "heartbeat_sessions": brokers.heartbeat_sessions,
    "heartbeat_cs_offset": brokers.heartbeat_cs_offset,
    "controller_failover": brokers.controller_failover,
    "clean_shutdown": brokers.clean_shutdown,
    "leader_partition": replica.leader_partition,
    "log": replica.log,
    "truncate": replica.truncate,
    "out_of_range": replica.out_of_range,
    "produce": replica.produce,
    "produce_check": replica.produce_check,
    "epoch_cache": epoch_cache,
    "describe": describe,
    "raft": quorum.fatal_or(quorum.raft),
    "raft_vote": quorum.fatal_or(quorum.raft_vote),
    "raft_epoch": quorum.fatal_or(quorum.raft_epoch),
    "raft_hw": quorum.fatal_or(quorum.raft_hw),
    "raft_fetch": quorum.fatal_or(quorum.raft_fetch),
    "raft_follower": quorum.fatal_or(quorum.raft_follower),
    "raft_resign": quorum.fatal_or(quorum.raft_resign),
    "raft_backoff": quorum.fatal_or(quorum.raft_backoff),
    "raft_end_quorum": quorum.fatal_or(quorum.raft_end_quorum),
    "record_format": record_format,
    "rpc_format": rpc_format,
}


def run(item: Mapping[str, Any]) -> ScenarioResult:
    """Play one scenario."""
    name, kind = str(item["id"]), str(item["kind"])
    player = KINDS.get(kind)
    if player is None:
        reason = f"there is no player for kind {kind}"
        return ScenarioResult(name, kind, Verdict.FAILED, reason=reason, unknown_kind=True)
    defect = bool(item.get("apache_defect", False))
    fields = Fields(item)
    fields.skip("id", "kind", "source", "oracle", "area", "apache_defect")
    try:
        differences = tuple(player(fields))
        fields.require_all_read()
    except Mismatch as mismatch:
        found = mismatch.difference
        if defect:
            explained = Difference(found.what, found.expected, found.seen, DEFECT)
            return ScenarioResult(name, kind, Verdict.DEVIATES, (explained,))
        return ScenarioResult(name, kind, Verdict.FAILED, (found,))
    except NotUnderstood as error:
        return ScenarioResult(name, kind, Verdict.FAILED, reason=str(error))
    except Exception as error:  # any error is the result of this scenario
        if defect:  # it may ask for a state that must not be reached
            explained = Difference("the play", "what Apache does", repr(error), DEFECT)
            return ScenarioResult(name, kind, Verdict.DEVIATES, (explained,))
        return ScenarioResult(name, kind, Verdict.FAILED, reason=f"it cannot be played: {error!r}")
    return ScenarioResult(name, kind, Verdict.DEVIATES if differences else Verdict.PASSED, differences)

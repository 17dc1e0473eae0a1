"""The faults that the page can ask for on a cluster of processes: the same that `tanist crash`, `pause`, ... do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tanist.runtime.cluster.cluster_file import ClusterError, load_existing
from tanist.runtime.cluster.fault_requests import FaultRequests
from tanist.runtime.faults.settings import BadDisk, Partition, Slow
from tanist.text import counted
from tanist.web.actions import ACTIONS, ALL_HEALED, SLOW_MS, done

if TYPE_CHECKING:
    from tanist.runtime.cluster.cluster import LocalCluster


def act(folder: Path, action: str, node: int | None) -> str:
    """Carry it out, and say what was done. `ClusterError` if it cannot be."""
    orders = FaultRequests(folder)
    if action == "heal" and node is None:
        orders.heal()
        return ALL_HEALED
    if action not in ACTIONS:
        raise ClusterError(f"there is no fault {action!r} here")
    if node is None:
        raise ClusterError(f"{action} needs a node")
    load_existing(folder).node(node)
    match action:
        case "crash":
            _cluster(folder).crash(node)
        case "power-loss":
            cuts = _cluster(folder).crash(node, lose_page_cache=True)
            lost = counted(sum(cut.lost_bytes for cut in cuts), "byte")
            return f"node {node} is killed, and {lost} that were not synced are gone"
        case "stop":
            _cluster(folder).stop(node)
            return f"node {node} has shut down cleanly"
        case "start":
            _cluster(folder).start(node)
        case "pause":
            orders.pause(node)
        case "partition":
            orders.set(Partition(*orders.sides([node], None)))
        case "slow":
            orders.set(Slow(*orders.sides([node], None), latency_ms=SLOW_MS))
        case "disk-full":
            orders.set(BadDisk(node, "full"))
        case "heal":
            orders.heal({node})
        case _:
            raise NotImplementedError(action)
    return done(action, node)


def _cluster(folder: Path) -> LocalCluster:
    from tanist.runtime.cluster.cluster import LocalCluster  # what starts nodes is loaded when a node is started

    return LocalCluster(folder)

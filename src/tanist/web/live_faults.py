"""The faults that the page can ask for on a cluster of processes: the same that `tanist crash`, `pause`, ... do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tanist.runtime.cluster.cluster_file import ClusterError, load_existing
from tanist.runtime.cluster.fault_requests import FaultRequests
from tanist.runtime.faults.settings import BadDisk, Partition, Side, Slow, side
from tanist.text import counted
from tanist.web.actions import ACTIONS, ALL_HEALED, SLOW_MS, done

if TYPE_CHECKING:
    from tanist.runtime.cluster.cluster import LocalCluster


def act(folder: Path, action: str, node: int | None) -> str:
    """Carry it out, and say what was done. `ClusterError` if it cannot be."""
    if action == "heal" and node is None:
        FaultRequests(folder).heal()
        return ALL_HEALED
    if action not in _ACTS:
        raise ClusterError(f"there is no fault {action!r} here")
    if node is None:
        raise ClusterError(f"{action} needs a node")
    load_existing(folder).node(node)
    return _ACTS[action](folder, node)


def _cluster(folder: Path) -> LocalCluster:
    from tanist.runtime.cluster.cluster import LocalCluster  # what starts nodes is loaded when a node is started

    return LocalCluster(folder)


def _crash(folder: Path, node: int) -> str:
    _cluster(folder).crash(node)
    return done("crash", node)


def _crash_page_cache(folder: Path, node: int) -> str:
    cuts = _cluster(folder).crash(node, lose_page_cache=True)
    lost = counted(sum(cut.lost_bytes for cut in cuts), "byte")
    return f"node {node} is killed, and {lost} that were not synced are gone"


def _stop(folder: Path, node: int) -> str:
    _cluster(folder).stop(node)
    return f"node {node} has shut down cleanly"


def _start(folder: Path, node: int) -> str:
    _cluster(folder).start(node)
    return done("start", node)


def _pause(folder: Path, node: int) -> str:
    FaultRequests(folder).pause(node)
    return done("pause", node)


def _others(folder: Path, node: int) -> Side:
    others = [each.node_id for each in load_existing(folder).nodes if each.node_id != node]
    if not others:
        raise ClusterError("there is no other node to cut it off from")
    return side(others)


def _cut_off(folder: Path, node: int) -> str:
    FaultRequests(folder).set(Partition(side([node]), _others(folder, node)))
    return done("cut-off", node)


def _slow(folder: Path, node: int) -> str:
    FaultRequests(folder).set(Slow(side([node]), _others(folder, node), latency_ms=SLOW_MS))
    return done("slow", node)


def _disk_full(folder: Path, node: int) -> str:
    FaultRequests(folder).set(BadDisk(node, "disk_full"))
    return done("disk-full", node)


def _heal(folder: Path, node: int) -> str:
    FaultRequests(folder).heal({node})
    return done("heal", node)


_ACTS: Final[dict[str, Callable[[Path, int], str]]] = dict(
    zip(
        ACTIONS,
        (_crash, _crash_page_cache, _pause, _cut_off, _slow, _disk_full, _stop, _start, _heal),
        strict=True,
    )
)

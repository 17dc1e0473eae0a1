"""Scenario files of versions 1 and 2, as those of version 3.

In version 1 a file did not hold the whole plan: the conditions of nodes and links were drawn from the seed when the run
began (`sim.run.additions.with_conditions`), which must go on drawing the same. And each workload had a configuration of
its own, with its settings beside the cluster's. In version 2 some faults had other names (`tanist.faults`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

from tanist.faults import FAULTS
from tanist.sim.run.additions import with_conditions
from tanist.sim.run.config import RECORDS, SETTINGS, ChaosConfig

_ALL_WRITES_WERE_LARGE = ("late-acknowledged", "late-beside", "late-committed", "late-memory")
"""Broken rules that came with it."""
_NAMES: Final = {fault.formerly: fault.name for fault in FAULTS.values() if fault.formerly}


def rearranged(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with each value at its place in version 2."""
    cluster = dict(document["cluster"])
    workload = cluster["workload"] = str(document.get("workload", RECORDS))
    if workload in SETTINGS:
        own = {field.name for field in fields(SETTINGS[workload])}
        cluster[workload] = {name: cluster.pop(name) for name in own & cluster.keys()}
    most_ms = cluster.pop("skew_ms_max", 0)
    cluster["skews_ms"] = dict.fromkeys(cluster.get("roles", ChaosConfig().roles), most_ms)
    return {**document, "cluster": cluster}


def renamed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the names of faults in version 3."""
    cluster, faults = dict(document["cluster"]), [dict(fault) for fault in document["faults"]]
    if "kinds" in cluster:
        cluster["kinds"] = [_NAMES.get(kind, kind) for kind in cluster["kinds"]]
    for fault in faults:
        fault["kind"] = _NAMES.get(fault["kind"], fault["kind"])
    return {**document, "cluster": cluster, "faults": faults}


def completed(config: ChaosConfig, seed: int, mutation: str | None) -> ChaosConfig:
    """The configuration with what the seed drew behind it."""
    drawn = with_conditions(seed, config)
    drawn = replace(drawn, raise_pause_ms=(0, 0), throttle_bytes=config.throttle_bytes)  # as in runs of version 1
    return replace(drawn, large_write_bytes=1) if mutation in _ALL_WRITES_WERE_LARGE else drawn

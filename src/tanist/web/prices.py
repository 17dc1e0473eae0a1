"""The price of a fault before it is asked for: over all partitions of the broker that it would hit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tanist.runtime.client.replica_positions import ReplicaPositions, on_page
from tanist.runtime.cluster.cluster_file import ClusterFile
from tanist.text import counted
from tanist.web.actions import LEAVES
from tanist.web.metadata_view import MetadataView
from tanist.web.partition_positions import positions
from tanist.web.state import Json

_NAMED = 4


def price_of(
    action: str,
    node: int,
    cluster: ClusterFile,
    view: MetadataView,
    hosted: Mapping[int, Sequence[Mapping[str, Any]]],
    absent: Callable[[int, str, int], ReplicaPositions],
) -> Json:
    """Sentences, and how many records are destroyed. `hosted`: the replicas of the nodes that answer; `absent` gives
    one of another node.
    """
    lines = _votes(node, cluster, action)
    if action not in LEAVES:
        return {"lines": [*lines, "no record is lost; what waits for it gets slower"], "destroys": 0}
    found = _Price(action, node)
    rows = {(broker, row["topic"], row["partition"]): row for broker, several in hosted.items() for row in several}
    for topic_id, index in list(view.image.partitions_on(node)):
        topic = view.image.topics[topic_id]
        state = topic.partitions[index]
        standing = [
            on_page(broker, rows[broker, topic.name, index])
            if (broker, topic.name, index) in rows
            else absent(broker, topic.name, index)
            for broker in state.replicas
        ]
        successions = view.successions(topic.name, index, of=(node,))
        if node not in successions:
            continue
        found.add(
            f"{topic.name}-{index}",
            state.leader,
            view.image.min_insync_replicas(topic.name),
            len(state.replicas),
            next(iter(positions(topic.name, index, state.leader, standing, successions).if_dies), None),
        )
    early = sorted(each for each in view.not_running - {node} if view.unfenced(each))
    lines += [f"broker {each} does not run and is not fenced yet: it counts as fenced here" for each in early]
    return {"lines": [*found.lines(), *lines], "destroys": found.destroyed}


def _votes(node: int, cluster: ClusterFile, action: str) -> list[str]:
    entry = cluster.node(node)
    if not entry.is_controller or action not in LEAVES:
        return []
    left = sum(each.alive and not each.paused and each is not entry for each in cluster.controllers)
    total = len(cluster.controllers)
    if left * 2 > total:
        return [f"{left} of {counted(total, 'controller')} are left: the quorum holds"]
    return [f"{left} of {counted(total, 'controller')} {'is' if left == 1 else 'are'} left: no quorum, no elections"]


class _Price:
    """What is added up over partitions."""

    def __init__(self, action: str, node: int) -> None:
        self._action = action
        self._node = node
        self._counts: Counter[str] = Counter()
        self._only_here: list[tuple[str, int]] = []
        self.destroyed = 0

    def add(self, name: str, leader: int, min_isr: int, replicas: int, found: Any) -> None:
        if found is None:
            return
        if found.leader < 0:
            self._counts["none"] += 1
        elif leader == self._node:
            self._counts["moved"] += 1
        if found.leader >= 0 and len(found.isr) < min(min_isr, replicas):
            self._counts["under"] += 1
        self._counts["missing"] += found.missing
        self._counts["dead"] += found.only_dead
        if found.only_here:
            self._only_here.append((name, found.only_here))
        if self._action == "power-loss":
            self.destroyed += found.destroyed

    def lines(self) -> list[str]:
        said = []
        counts = self._counts
        if counts["moved"]:
            said.append(f"{counted(counts['moved'], 'partition')} {_get(counts['moved'])} another leader")
        if counts["none"]:
            said.append(f"{counted(counts['none'], 'partition')} will have no leader")
        if counts["under"]:
            said.append(f"{counted(counts['under'], 'partition')} will refuse acks=all (below min.insync.replicas)")
        only = sum(number for _, number in self._only_here)
        if only:
            names = ", ".join(name for name, _ in self._only_here[:_NAMED])
            more = "" if len(self._only_here) <= _NAMED else ", ..."
            said.append(f"{counted(only, 'acknowledged record')} {_is(only)} only here ({names}{more})")
        if self.destroyed:
            said.append(f"{self.destroyed} of them {_is(self.destroyed)} not synced: a power loss destroys them")
        if counts["dead"]:
            said.append(
                f"{counted(counts['dead'], 'acknowledged record')} {_is(counts['dead'])} then on dead brokers only"
            )
        if counts["missing"]:
            said.append(f"the next leaders lack {counted(counts['missing'], 'acknowledged record')}")
        return said or ["no acknowledged record is only here, and no partition changes its leader"]


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _get(number: int) -> str:
    return "gets" if number == 1 else "get"

"""Setting and healing the faults of a cluster of processes, for `tanist partition`, `slow`, `disk`, `pause`, `resume`,
`heal` and `faults`.

A request writes the file of all faults (`faults`), signals the nodes, and waits until each node that runs has applied
it. A paused node applies it when it is resumed, and a node that is down when it starts. Requests run one at a time,
under a lock of their own: a `tanist start` that waits for a node which is cut off must not keep the link from being
healed.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tanist.runtime.cluster.cluster_file import ClusterError, ClusterFile, NodeEntry, load_existing, locked
from tanist.runtime.cluster.layout import log_directories
from tanist.runtime.cluster.processes import wait_until
from tanist.runtime.faults import request_counts, settings
from tanist.runtime.faults.request_rules import RequestFault
from tanist.runtime.faults.settings import (
    CLIENTS,
    REQUEST_SIGNAL,
    BadDisk,
    Fault,
    FaultSet,
    FaultsUnreadable,
    Side,
    applied_path,
    side,
)
from tanist.text import counted

_APPLY_PATIENCE_S = 20.0


class FaultRequests:
    """The faults of the cluster in a data folder."""

    def __init__(self, data: Path) -> None:
        self._data = data.absolute()
        self._folder = settings.folder_of(self._data)

    def present(self) -> FaultSet:
        """All that is set."""
        return self._load(load_existing(self._data))

    def paused(self) -> list[int]:
        return [node.node_id for node in load_existing(self._data).nodes if node.paused]

    def sides(self, a: Iterable[int], b: Iterable[int] | None, *, clients: bool = False) -> tuple[Side, Side]:
        """The two ends of a link: `a` and `b` or, without `b`, all other nodes. `clients` join `a`, or those others."""
        source = side(a)
        if b is not None:
            return side((*source, CLIENTS)) if clients else source, side(b)
        others = [node.node_id for node in load_existing(self._data).nodes if node.node_id not in source]
        target = side([*others, CLIENTS] if clients else others)
        if not source or not target:
            raise ClusterError(f"there is no node on the other side of {settings.names(source)}: name both sides")
        return source, target

    def log_dir(self, node_id: int, wanted: str) -> str:
        """The path of one of the node's log directories; `wanted` is the path, or its last part."""
        load_existing(self._data).node(node_id)
        paths = log_directories(self._data, node_id)
        for path in paths:
            if wanted in (path, Path(path).name) or Path(wanted).absolute() == Path(path):
                return path
        raise ClusterError(f"node {node_id} has no log directory {wanted}; it has {', '.join(paths)}")

    def set(self, fault: Fault) -> None:
        """Set a fault; returns when every node that runs and is not paused has it."""
        self._check(load_existing(self._data), fault)
        self._change(lambda present: present.also(fault))

    def inject(self, rule: RequestFault) -> RequestFault:
        """Set a fault by request; gives it with its id when every node that runs and is not paused has it."""
        changed = self._change(lambda present: present.also_request(rule))
        return changed.requests[-1]

    def remove(self, rule_id: int) -> bool:
        """End a fault by request; whether it was set. Its counts can still be read."""
        found = any(rule.rule_id == rule_id for rule in self.present().requests)
        if found:
            self._change(lambda present: present.without_request(rule_id))
        return found

    def counts(self, rule_id: int) -> tuple[int, int]:
        """How many calls a fault by request has seen, and how many it has hit, in the whole cluster."""
        return request_counts.read(self._folder, rule_id)

    def hits_of(self, rule: RequestFault) -> str:
        """`1 hit of 4 calls`."""
        calls, hits = self.counts(rule.rule_id)
        return f"{counted(hits, 'hit')} of {counted(calls, 'call')}"

    def described_requests(self) -> list[dict[str, Any]]:
        """The faults by request with their counts, for programs."""
        return [rule.as_json(*self.counts(rule.rule_id)) for rule in self.present().requests]

    def heal(self, members: Collection[int] | None = None) -> tuple[FaultSet, list[int]]:
        """End all faults, or those that concern some nodes (or `CLIENTS`), and resume the nodes that are paused. Gives
        the faults that are still set, and the nodes that were resumed."""
        cluster = load_existing(self._data)
        for member in members or ():
            if member != CLIENTS:
                cluster.node(member)
        meant = [node for node in cluster.nodes if members is None or node.node_id in members]
        resumed = [node.node_id for node in meant if node.paused]
        for node_id in resumed:
            self.resume(node_id)
        return self._change(lambda present: present.without(members)), resumed

    def pause(self, node_id: int) -> None:
        """SIGSTOP: the process does nothing any more; returns when it has stopped."""
        node = self._alive(node_id)
        if node.paused:
            raise ClusterError(f"node {node_id} is paused already: `tanist resume {node_id}` lets it go on")
        self._signal(node, signal.SIGSTOP, lambda: node.paused)

    def resume(self, node_id: int) -> None:
        """SIGCONT."""
        node = self._alive(node_id)
        if not node.paused:
            raise ClusterError(f"node {node_id} is not paused")
        self._signal(node, signal.SIGCONT, lambda: not node.paused)

    # -- inner

    def _alive(self, node_id: int) -> NodeEntry:
        node = load_existing(self._data).node(node_id)
        if not node.alive:
            raise ClusterError(f"node {node_id} is not running: `tanist start {node_id}` starts it")
        return node

    def _signal(self, node: NodeEntry, number: int, done: Callable[[], bool]) -> None:
        if node.process is None or not node.process.signal(number):
            raise ClusterError(f"node {node.node_id} has just ended")
        if not wait_until(lambda: done() or not node.alive, _APPLY_PATIENCE_S):
            raise ClusterError(f"node {node.node_id} takes no signals")

    def _check(self, cluster: ClusterFile, fault: Fault) -> None:
        if isinstance(fault, BadDisk):
            cluster.node(fault.node_id)
            return
        for member in fault.source + fault.target:
            if member != CLIENTS:
                cluster.node(member)
        both = set(fault.source) & set(fault.target)
        if both:
            raise ClusterError(f"{settings.names(tuple(both))} cannot be on both sides of a link")

    def ports_moved(self) -> None:
        """Nodes have other ports by now: faults that cut links by their ports have to know."""
        if self.present().faults:
            self._change(lambda faults: faults)

    def _change(self, change: Callable[[FaultSet], FaultSet]) -> FaultSet:
        load_existing(self._data)  # before a folder is made where no cluster is
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with locked(self._folder):
            cluster = load_existing(self._data)
            faults = change(self._load(cluster))
            for rule in faults.requests:
                if rule.rule_id == faults.number:
                    request_counts.create(self._folder, rule.rule_id)
            settings.save(self._folder, faults)
            self._await_applied(self._signal_change(cluster.running), faults.number)
            return faults

    def _load(self, cluster: ClusterFile) -> FaultSet:
        ports = {
            node.node_id: tuple(port for port in (node.broker_port, node.controller_port) if port)
            for node in cluster.nodes
        }
        try:
            return replace(settings.load(self._folder) or FaultSet(), ports=ports)
        except FaultsUnreadable as error:
            raise ClusterError(f"{error}. Stop the cluster and remove the folder {self._folder}") from None

    def _signal_change(self, nodes: Sequence[NodeEntry]) -> list[NodeEntry]:
        """Have the nodes read the faults; gives those that got the signal."""
        for node in nodes:
            applied_path(self._folder, node.node_id).unlink(missing_ok=True)  # its answer to requests before
        return [node for node in nodes if node.process is not None and node.process.signal(REQUEST_SIGNAL)]

    def _await_applied(self, nodes: Sequence[NodeEntry], number: int) -> None:
        waiting = list(nodes)

        def applied() -> bool:
            waiting[:] = [node for node in waiting if node.alive and not node.paused and not self._has(node, number)]
            return not waiting

        if not wait_until(applied, _APPLY_PATIENCE_S):
            late = ", ".join(str(node.node_id) for node in waiting)
            raise ClusterError(
                f"nodes {late} have not applied it within {_APPLY_PATIENCE_S:.0f} s: were they started by an older "
                "version? `tanist stop` and `start` them"
            )

    def _has(self, node: NodeEntry, number: int) -> bool:
        try:
            answer = json.loads(applied_path(self._folder, node.node_id).read_bytes())
        except (OSError, ValueError):
            return False
        if node.process is None or answer["pid"] != node.process.pid:
            return False
        if answer["problem"]:
            raise ClusterError(f"node {node.node_id} does not apply faults: {answer['problem']}")
        return int(answer["number"]) >= number


def end_faults(data: Path) -> None:
    """A cluster that is down, or about to start as a whole, has no faults."""
    folder = settings.folder_of(data)
    settings.forget(folder)
    request_counts.forget_all(folder)

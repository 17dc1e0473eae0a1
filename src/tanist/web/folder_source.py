"""A cluster of `tanist up`, looked at through its data folder.

Partitions and events come from the metadata log of one of its nodes, as far as a node says it is committed; positions
from the nodes' own pages, or from the files of those that are dead; states of processes from `cluster.json`. So a look
at a cluster in which nothing happens asks each node one short question, however many partitions there are.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tanist.broker.config import ConfigError, NodeConfig
from tanist.controller.decision import ControllerSettings
from tanist.runtime.client.client import Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.salvaged import by_partition, find_entries
from tanist.runtime.cluster import layout
from tanist.runtime.cluster.addresses import addresses_of
from tanist.runtime.cluster.cluster_file import ClusterError, ClusterFile, NodeEntry, load_existing
from tanist.runtime.cluster.exit_reasons import exit_reason
from tanist.runtime.cluster.fault_requests import FaultRequests
from tanist.runtime.faults.settings import BadDisk
from tanist.text import counted
from tanist.web import live_faults, node_pages
from tanist.web.folders import DeadNode
from tanist.web.groups import look_at_groups
from tanist.web.metadata_log import MetadataLog
from tanist.web.metadata_view import MetadataView
from tanist.web.prices import price_of
from tanist.web.records import record_texts
from tanist.web.source import Watched
from tanist.web.standing import positions
from tanist.web.state import (
    ClusterState,
    FaultState,
    Json,
    NodeState,
    ReplicaPositions,
    SalvageState,
    plain,
)

_GROUPS_S = 3.0


class FolderSource:
    """The cluster in a data folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._options = f" --data {shlex.quote(str(self.folder))}"
        self._log: tuple[int, MetadataLog] | None = None
        self._cluster_id = load_existing(self.folder).cluster_id
        self._dead: dict[int, DeadNode] = {}
        self._died_ms: dict[int, int] = {}
        self._frozen: dict[tuple[int, str, int], ReplicaPositions] = {}
        self._kept: dict[str, Json] = {}
        self._quorum_epoch: int | None = None

    def close(self) -> None:
        pass

    # -- from second to second

    def look(self, watched: Watched) -> Mapping[str, Json]:
        cluster = load_existing(self.folder)
        if cluster.cluster_id != self._cluster_id:  # after `tanist reset`
            self._log, self._cluster_id = None, cluster.cluster_id
        pages = self._ask_nodes(cluster, watched)
        view = self._follow(cluster, pages)
        look: dict[str, Json] = dict(view.partitions())
        look.update(view.events)
        look["cluster"] = self._same("cluster", plain(self._cluster_state(cluster, view, pages)))
        for topic, partition in watched:
            key = f"r/{topic}/{partition}"
            found = self._positions(cluster, view, pages, topic, partition)
            if found is not None:
                look[key] = self._same(key, found)
        return look

    def _same(self, key: str, value: Json) -> Json:
        """The value that was given before, if it is equal."""
        if self._kept.get(key) != value:
            self._kept[key] = value
        return self._kept[key]

    def _ask_nodes(self, cluster: ClusterFile, watched: Watched) -> dict[int, list[dict[str, Any]]]:
        """The answers of each node that runs: one for each watched partition, and one at least."""
        found: dict[int, list[dict[str, Any]]] = {}
        for node in cluster.nodes:
            address = layout.metrics_address(cluster, node)
            if address is None or not node.alive or node.paused:
                continue
            try:
                answers = [node_pages.ask(address, *place) for place in watched if node.is_broker]
                # No topic has this name: the node's own line, without replicas.
                found[node.node_id] = answers or [node_pages.ask(address, "-", 0)]
            except node_pages.NoAnswer:
                continue
        return found

    def _follow(self, cluster: ClusterFile, pages: Mapping[int, list[dict[str, Any]]]) -> MetadataView:
        """The metadata log, read up to what the node that knows most says to be committed."""
        applied = {node: int(answers[-1]["metadata_offset"]) for node, answers in pages.items()}
        self._quorum_epoch = max((int(a[-1]["quorum_epoch"]) for a in pages.values()), default=self._quorum_epoch)
        best = max(applied, key=lambda node: applied[node], default=None)
        if self._log is None or (best is not None and applied.get(self._log[0], -1) < applied[best]):
            chosen = best if best is not None else cluster.nodes[0].node_id
            if self._log is None or self._log[1].view.next_offset <= applied.get(chosen, -1):
                self._log = chosen, self._open(cluster, chosen)
        log = self._log[1]
        log.follow(1 << 62 if best is None and not log.view.next_offset else max(applied.values(), default=-1))
        return log.view

    def _open(self, cluster: ClusterFile, node_id: int) -> MetadataLog:
        try:
            config = NodeConfig.from_text(layout.properties_path(self.folder, node_id).read_text())
        except (OSError, ConfigError) as error:
            raise ClusterError(f"the properties of node {node_id} cannot be read: {error}") from None
        settings = ControllerSettings(
            min_insync_replicas=config.min_insync_replicas,
            unclean_leader_election_enable=config.unclean_leader_election_enable,
            unclean_recovery_manager_enabled=config.unclean_recovery_manager_enabled,
        )
        return MetadataLog(Path(config.metadata_log_dir), lambda: MetadataView(config.static, settings))

    # -- the cluster

    def _cluster_state(
        self, cluster: ClusterFile, view: MetadataView, pages: Mapping[int, list[dict[str, Any]]]
    ) -> ClusterState:
        leaders = {
            (int(answers[-1]["quorum_epoch"]), int(answers[-1]["quorum_leader"]))
            for answers in pages.values()
            if answers[-1]["quorum_leader"] is not None
        }
        controller = max(leaders)[1] if leaders else None
        if controller is not None and controller not in pages:
            controller = None  # it is dead or paused, and the others have not noticed yet
        nodes = tuple(self._node_state(cluster, node, view, pages) for node in cluster.nodes)
        problem = None
        if not pages:
            problem = "no node answers: this is what was last committed"
        elif controller is None:
            problem = "no controller is active: no leader can be elected"
        return ClusterState(
            "cluster",
            cluster.cluster_id,
            controller,
            quorum_epoch=self._quorum_epoch,
            nodes=nodes,
            faults=self._faults(cluster),
            problem=problem,
            actions=live_faults.ACTIONS,
            options=self._options,
        )

    def _node_state(
        self, cluster: ClusterFile, node: NodeEntry, view: MetadataView, pages: Mapping[int, Any]
    ) -> NodeState:
        registration = view.image.brokers.get(node.node_id) if node.is_broker else None
        fenced = None if registration is None else registration.fenced
        why: str | None = None
        if node.paused:
            state = "paused"
        elif not node.alive:
            state = "stopped" if node.process is None else "crashed"
            why = exit_reason(self.folder, node)
        elif node.node_id not in pages:
            state, why = "starting", "its process runs and does not answer yet"
        else:
            state = "fenced" if fenced else "running"
        if node.alive:
            self._died_ms.pop(node.node_id, None)
            self._dead.pop(node.node_id, None)
        elif node.node_id not in self._died_ms:
            self._died_ms[node.node_id] = self._last_line_ms(node.node_id)
        return NodeState(node.node_id, node.roles, state, why, fenced, self._died_ms.get(node.node_id))

    def _last_line_ms(self, node_id: int) -> int:
        """When the node last wrote to a log directory or to its own log: about when it died."""
        times = [0.0]
        for path in [layout.log_path(self.folder, node_id), *map(Path, self._directories(node_id))]:
            try:
                times.append(path.stat().st_mtime)
            except OSError:
                continue
        return round(max(times) * 1000)

    def _directories(self, node_id: int) -> list[str]:
        try:
            return layout.log_directories(self.folder, node_id)
        except ClusterError:
            return []

    def _faults(self, cluster: ClusterFile) -> tuple[FaultState, ...]:
        try:
            faults = FaultRequests(self.folder).present().faults
        except ClusterError:
            faults = ()
        found = [
            FaultState(
                each.kind,
                (each.node_id,) if isinstance(each, BadDisk) else tuple(sorted({*each.source, *each.target})),
                str(each),
            )
            for each in faults
        ]
        found += [
            FaultState("freeze", (node.node_id,), f"node {node.node_id} is paused")
            for node in cluster.nodes
            if node.paused
        ]
        return tuple(found)

    # -- replicas

    def _positions(
        self,
        cluster: ClusterFile,
        view: MetadataView,
        pages: Mapping[int, list[dict[str, Any]]],
        topic: str,
        partition: int,
    ) -> Json | None:
        state = view.state(topic, partition)
        if state is None:
            return None
        replicas = [self._replica(cluster, broker, pages, topic, partition) for broker in state.replicas]
        return plain(positions(topic, partition, state.leader, replicas, view.successions(topic, partition)))

    def _replica(
        self,
        cluster: ClusterFile,
        broker: int,
        pages: Mapping[int, list[dict[str, Any]]],
        topic: str,
        partition: int,
    ) -> ReplicaPositions:
        place = (broker, topic, partition)
        for answer in pages.get(broker, ()):
            for row in answer["replicas"]:
                if (row["topic"], row["partition"]) == (topic, partition):
                    self._frozen[place] = node_pages.replica(broker, row)
                    return self._frozen[place]
        try:
            node = cluster.node(broker)
        except ClusterError:
            return ReplicaPositions(broker, "dead", False, note="no node of this folder has this id")
        if not node.alive:
            if broker not in self._dead:
                self._dead[broker] = DeadNode(broker, self._directories(broker))
            return self._dead[broker].replica(topic, partition, self._died_ms.get(broker))
        last = self._frozen.get(place)
        note = "it is paused: this is where it was" if node.paused else "it does not answer: this is where it was"
        if last is None:
            return ReplicaPositions(broker, "offline", True, note=note.partition(":")[0])
        return replace(last, note=note)

    # -- what changes slowly

    def look_around(self) -> Mapping[str, Json]:
        look: dict[str, Json] = {"salvage": self._same("salvage", self._salvage())}
        groups = self._groups()
        if groups is not None:
            look["groups"] = self._same("groups", groups)
        return look

    def _salvage(self) -> Json:
        entries, _ = find_entries(self.folder)
        return plain(
            [
                SalvageState(
                    each.entry_id,
                    each.manifest.topic,
                    each.manifest.partition,
                    each.manifest.broker_id,
                    each.manifest.from_offset,
                    each.manifest.to_offset,
                    each.manifest.why.value,
                    each.manifest.wall_ms,
                    each.manifest.leader_epoch,
                    each.manifest.epochs,
                )
                for each in entries
            ]
        )

    def _groups(self) -> Json | None:
        """None: they cannot be asked for at the moment."""
        log = self._log
        if log is None:
            return None
        view = log[1].view

        def leader_of(topic: str, partition: int) -> int:
            state = view.state(topic, partition)
            return -1 if state is None else state.leader

        try:
            addresses = addresses_of(load_existing(self.folder), self.folder)
            with Client(addresses, timeout_s=_GROUPS_S) as client:
                return look_at_groups(client, leader_of)
        except (Unreachable, KafkaError, Unsupported):
            return None

    def salvaged(self, topic: str, partition: int, most: int) -> Json:
        entries, _ = find_entries(self.folder)
        chosen = [each for each in entries if (each.manifest.topic, each.manifest.partition) == (topic, partition)]
        records, count = record_texts(by_partition(chosen), most)
        base = f"tanist salvage export --topic {topic} --to topic"
        return {
            "records": records,
            "count": count,
            "text": f"{counted(count, 'record')} of {topic}-{partition}",
            "commands": [f"{base} --dry-run{self._options}", f"{base}{self._options}"],
        }

    # -- faults

    def price(self, action: str, node: int) -> Json:
        cluster = load_existing(self.folder)
        if self._log is None:
            raise ClusterError("the cluster was not looked at yet")
        view = self._log[1].view
        hosted: dict[int, list[dict[str, Any]]] = {}
        for entry in cluster.brokers:
            address = layout.metrics_address(cluster, entry)
            if address is not None and entry.alive and not entry.paused:
                try:
                    hosted[entry.node_id] = node_pages.ask(address)["replicas"]
                except node_pages.NoAnswer:
                    continue

        def absent(broker: int, topic: str, partition: int) -> ReplicaPositions:
            return self._replica(cluster, broker, {}, topic, partition)

        return price_of(action, node, cluster, view, hosted, absent)

    def act(self, action: str, node: int | None) -> str:
        return live_faults.act(self.folder, action, node)

"""A cluster of `tanist up`, looked at through its data folder.

Partitions and events come from the metadata log of one of its nodes, as far as a node says it is committed; positions
from the nodes' own pages, or from the files of those that are dead; states of processes from `cluster.json`. So a
sample of an idle cluster asks each node one short question, however many partitions there are. A node that does not
answer in time is as it was at its last answer for a while: a busy node is not a dead one.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tanist.broker.config import NodeConfig
from tanist.controller.decision import ControllerSettings
from tanist.runtime.client.client import KafkaError, Unreachable, Unsupported
from tanist.runtime.client.replica_positions import ReplicaPositions, on_page
from tanist.runtime.client.salvaged import by_partition
from tanist.runtime.cluster import layout
from tanist.runtime.cluster.addresses import client_of
from tanist.runtime.cluster.cluster_file import ClusterError, ClusterFile, NodeEntry, load_existing
from tanist.runtime.cluster.dead_node import DeadNode
from tanist.runtime.cluster.exit_reasons import exit_reason
from tanist.runtime.cluster.fault_requests import FaultRequests
from tanist.runtime.cluster.processes import ProcessMark
from tanist.runtime.faults.settings import BadDisk
from tanist.text import counted
from tanist.web import live_faults, node_pages
from tanist.web.actions import ACTIONS
from tanist.web.groups import read_groups
from tanist.web.metadata_log import MetadataLog
from tanist.web.metadata_view import MetadataView
from tanist.web.node_pages import Pages
from tanist.web.partition_positions import positions
from tanist.web.prices import price_of
from tanist.web.salvage import read_salvage, record_texts, salvage_entries
from tanist.web.source import Watched
from tanist.web.state import (
    ClusterState,
    FaultState,
    Json,
    NodeState,
    plain,
)
from tanist.web.traffic import Traffic
from tanist.wire.errors import WireError

_GROUPS_S = 3.0
_BUSY_S = 5.0
"""A node may be silent for so long before it is shown as unreachable: one that opens thousands of logs is."""
_LAG_S = 5.0
"""The followed node may be behind the others for so long before another node's log is followed."""
_WHOLE_TOPIC_MAX = 200
"""Of a topic with no more partitions a node is asked for all at once, if several are watched."""


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
        self._heard: dict[int, tuple[float, ProcessMark | None, dict[str, Any]]] = {}
        self._whole_s = time.monotonic()
        self._traffic = Traffic()

    def close(self) -> None:
        pass

    # -- from second to second

    def read_state(self, watched: Watched) -> Mapping[str, Json]:
        cluster = load_existing(self.folder)
        if cluster.cluster_id != self._cluster_id:  # after `tanist reset`
            self._log, self._cluster_id = None, cluster.cluster_id
            self._heard.clear()
        pages = self._ask_nodes(cluster, watched)
        view = self._follow(cluster, pages)
        view.note_not_running(_not_running(cluster))
        sample: dict[str, Json] = dict(view.partitions())
        sample.update(view.events)
        sample["cluster"] = self._same("cluster", plain(self._cluster_state(cluster, view, pages)))
        for topic, partition in watched:
            key = f"r/{topic}/{partition}"
            found = self._positions(cluster, view, pages, topic, partition)
            if found is not None:
                sample[key] = self._same(key, found)
        traffic = self._traffic.read(view, pages, watched)
        sample.update({key: self._same(key, value) for key, value in traffic.items()})
        return sample

    def _same(self, key: str, value: Json) -> Json:
        """The value that was given before, if it is equal."""
        if self._kept.get(key) != value:
            self._kept[key] = value
        return self._kept[key]

    def _ask_nodes(self, cluster: ClusterFile, watched: Watched) -> dict[int, list[dict[str, Any]]]:
        """The answers of each node that runs: all watched partitions are in them, and there is one at least."""
        found: dict[int, list[dict[str, Any]]] = {}
        # No topic has the name "-": the node's own line, without replicas.
        questions = self._questions(watched)
        for node in cluster.nodes:
            address = layout.metrics_address(cluster, node)
            if address is None or not node.alive or node.paused:
                self._heard.pop(node.node_id, None)
                continue
            try:
                asked = questions if node.is_broker else []
                found[node.node_id] = [node_pages.ask(address, *each) for each in asked or [("-", 0)]]
            except node_pages.NoAnswer:
                continue
            self._heard[node.node_id] = time.monotonic(), node.process, found[node.node_id][-1]
        return found

    def _questions(self, watched: Watched) -> list[tuple[str, int | None]]:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in watched:
            by_topic.setdefault(topic, []).append(partition)
        found: list[tuple[str, int | None]] = []
        for topic, partitions in by_topic.items():
            count = 0 if self._log is None else self._log[1].view.partition_count(topic)
            if len(partitions) > 1 and count <= _WHOLE_TOPIC_MAX:
                found.append((topic, None))
            else:
                found += [(topic, each) for each in partitions]
        return found

    def _last_answer(self, node: NodeEntry) -> dict[str, Any] | None:
        """What a node that runs last said, if that was a moment ago."""
        at_s, process, answer = self._heard.get(node.node_id, (0.0, None, {}))
        return answer if answer and process == node.process and time.monotonic() - at_s <= _BUSY_S else None

    def _follow(self, cluster: ClusterFile, pages: Pages) -> MetadataView:
        """The metadata log, read up to what the node that knows most says to be committed."""
        applied = {node: int(answers[-1]["metadata_offset"]) for node, answers in pages.items()}
        self._quorum_epoch = max((int(a[-1]["quorum_epoch"]) for a in pages.values()), default=self._quorum_epoch)
        best = max(applied, key=lambda node: applied[node], default=None)
        if self._log is None:
            chosen = best if best is not None else cluster.nodes[0].node_id
            self._log = chosen, self._open(chosen)
        followed, log = self._log
        committed = applied.get(best, -1) if best is not None else -1
        log.follow(log.end_offset() if best is None and not log.view.next_offset else committed)
        now_s = time.monotonic()
        if log.view.next_offset > committed:
            self._whole_s = now_s
        elif best is not None and best != followed and (followed not in applied or now_s - self._whole_s > _LAG_S):
            log.move(Path(self._config(best).metadata_log_dir))
            log.follow(committed)
            self._log = best, log
        return log.view

    def _config(self, node_id: int) -> NodeConfig:
        try:
            return NodeConfig.from_text(layout.properties_path(self.folder, node_id).read_text())
        except (OSError, ValueError) as error:
            raise ClusterError(f"the properties of node {node_id} cannot be read: {error}") from None

    def _open(self, node_id: int) -> MetadataLog:
        config = self._config(node_id)
        settings = ControllerSettings(
            min_insync_replicas=config.min_insync_replicas,
            unclean_leader_election_enable=config.unclean_leader_election_enable,
            unclean_recovery_manager_enabled=config.unclean_recovery_manager_enabled,
        )
        return MetadataLog(Path(config.metadata_log_dir), lambda: MetadataView(config.static, settings))

    # -- the cluster

    def _cluster_state(self, cluster: ClusterFile, view: MetadataView, pages: Pages) -> ClusterState:
        answers = {node.node_id: found for node in cluster.nodes if (found := self._last_answer(node)) is not None}
        leaders = {
            (int(each["quorum_epoch"]), int(each["quorum_leader"]))
            for each in answers.values()
            if each["quorum_leader"] is not None
        }
        controller = max(leaders)[1] if leaders else None
        if controller is not None and controller not in answers:
            controller = None  # it is dead or paused, and the others have not noticed yet
        nodes = tuple(self._node_state(node, view, answers) for node in cluster.nodes)
        problem = None
        if not any(node.alive for node in cluster.nodes):
            problem = f"the cluster is down: this is what was last committed (tanist up{self._options} starts it)"
        elif not answers:
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
            actions=ACTIONS,
            options=self._options,
        )

    def _node_state(self, node: NodeEntry, view: MetadataView, answers: Mapping[int, Any]) -> NodeState:
        registration = view.image.brokers.get(node.node_id) if node.is_broker else None
        fenced = None if registration is None else registration.fenced
        why: str | None = None
        if node.paused:
            state = "paused"
        elif not node.alive:
            state = "stopped" if node.process is None else "crashed"
            why = exit_reason(self.folder, node)
        elif node.node_id not in answers and self._heard.get(node.node_id, (0, None))[1] == node.process:
            state, why = "unreachable", "its process runs and does not answer"
        elif node.node_id not in answers:
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

    def _log_directories(self) -> list[Path]:
        brokers = load_existing(self.folder).brokers
        return [Path(each) for node in brokers for each in self._directories(node.node_id)]

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
            FaultState("pause", (node.node_id,), f"node {node.node_id} is paused")
            for node in cluster.nodes
            if node.paused
        ]
        return tuple(found)

    # -- replicas

    def _positions(
        self,
        cluster: ClusterFile,
        view: MetadataView,
        pages: Pages,
        topic: str,
        partition: int,
    ) -> Json | None:
        state = view.state(topic, partition)
        if state is None:
            return None
        replicas = [self._replica(cluster, broker, pages, topic, partition) for broker in state.replicas]
        successions = view.successions(topic, partition)
        return plain(positions(topic, partition, state.leader, replicas, successions))

    def _replica(
        self,
        cluster: ClusterFile,
        broker: int,
        pages: Pages,
        topic: str,
        partition: int,
    ) -> ReplicaPositions:
        place = (broker, topic, partition)
        row = node_pages.row_of(pages.get(broker, ()), topic, partition)
        if row is not None:
            self._frozen[place] = on_page(broker, row)
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

    def read_groups_and_salvage(self) -> Mapping[str, Json]:
        sample: dict[str, Json] = {"salvage": self._same("salvage", read_salvage(self._log_directories()))}
        groups = self._groups()
        if groups is not None:
            sample["groups"] = self._same("groups", groups)
        return sample

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
            with client_of(load_existing(self.folder), self.folder, timeout_s=_GROUPS_S) as client:
                groups = read_groups(client, leader_of)
        except (Unreachable, KafkaError, Unsupported, ClusterError, WireError, OSError):
            return None
        self._traffic.commits(groups)
        return groups

    def salvaged(self, topic: str, partition: int, most: int) -> Json:
        entries = salvage_entries(self._log_directories())
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


def _not_running(cluster: ClusterFile) -> frozenset[int]:
    """Brokers that are dead or paused: the controller fences them in a while, whatever the metadata has now."""
    return frozenset(each.node_id for each in cluster.brokers if not each.alive or each.paused)

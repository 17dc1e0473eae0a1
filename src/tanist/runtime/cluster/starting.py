"""Starting nodes: their properties and log directories, the launcher, and the wait until the cluster is ready.

A cluster is *ready* when every node says that it takes part, every broker answers Metadata with all brokers and knows
an active controller; not before. The caller holds the folder's lock, and kills the nodes if the wait fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tanist.broker.config import ConfigError, NodeConfig
from tanist.runtime.client.admin import quorum_leader
from tanist.runtime.client.client import Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.connection import API_VERSIONS
from tanist.runtime.cluster import layout
from tanist.runtime.cluster.addresses import address_of, bootstrap_of, to_brokers, to_controllers
from tanist.runtime.cluster.cluster_file import ClusterError, ClusterFile, NodeEntry
from tanist.runtime.cluster.exit_reasons import exit_reason
from tanist.runtime.cluster.parent_watch import ParentWatch, watch_arguments
from tanist.runtime.cluster.processes import Launcher, LaunchFailed, ProcessMark, uninterrupted, wait_until
from tanist.runtime.cluster.secure_files import SecureFiles
from tanist.runtime.faults.settings import FOLDER_VARIABLE, folder_of
from tanist.runtime.format import FormatError, format_folders, formatted_cluster_id
from tanist.runtime.ports.files import replace_file
from tanist.runtime.readiness import Readiness
from tanist.wire.messages.api_versions_response import ApiVersionsResponse

if TYPE_CHECKING:
    from tanist.controller.image.acls import Acl

_SAY_AFTER_S = 2.0
"""A cluster is ready by then, or says what it waits for."""
_SAY_AGAIN_S = 5.0
"""How often the progress of a node is said that loads its logs."""
_ASK_PATIENCE_S = 5.0

Say = Callable[[str], None]


class Starter:
    """Starts nodes of the cluster in a data folder."""

    def __init__(self, folder: Path, say: Say, launcher: Sequence[str]) -> None:
        self._folder = folder
        self._say = say
        self._launcher_command = list(launcher)
        self._parent_watch: ParentWatch | None = None

    def let_go(self) -> None:
        """From now on the cluster does not end with this process."""
        if self._parent_watch is not None:
            self._parent_watch.let_go()
            self._parent_watch = None

    def write_properties(self, cluster: ClusterFile, nodes: Sequence[NodeEntry] = ()) -> None:
        """Of these nodes, or of all."""
        users: list[str] = []
        acls: list[Acl] = []
        if cluster.secure:
            files = SecureFiles(self._folder)
            files.make(
                cluster.cluster_id, [node.node_id for node in cluster.nodes], [cluster.host], bootstrap_of(cluster)
            )
            users, acls = files.scram_arguments(), files.acls()
        for node in nodes or cluster.nodes:
            properties = layout.properties_of(cluster, node, self._folder)
            try:
                config = NodeConfig.from_properties(properties)
                layout.node_folder(self._folder, node.node_id).mkdir(parents=True, exist_ok=True)
                format_folders(
                    config,
                    cluster.cluster_id,
                    ignore_formatted=True,
                    features=cluster.features,
                    # Credentials take a while to derive, and only a new cluster begins with them.
                    scram=users if formatted_cluster_id(config) is None else (),
                    acls=acls,
                )
            except (ConfigError, FormatError) as error:
                raise ClusterError(str(error)) from None
            path = layout.properties_path(self._folder, node.node_id)
            replace_file(str(path), layout.properties_text(properties).encode())
            if cluster.secure:
                path.chmod(0o600)  # it has a password

    @contextmanager
    def launcher(self, owner: ProcessMark | None = None) -> Iterator[tuple[Launcher, Readiness]]:
        """With an owner: one that leaves a watcher, which stops the cluster when this process has died."""
        command, descriptors = self._launcher_command, []
        if owner is not None:
            self.let_go()
            self._parent_watch = ParentWatch()
            command = command + watch_arguments(self._parent_watch, owner, self._folder)
            descriptors = [self._parent_watch.watched_fd]
        with Readiness() as readiness:
            environment = {**readiness.environment, FOLDER_VARIABLE: str(folder_of(self._folder))}
            with Launcher(command, environment, descriptors) as launcher:
                if self._parent_watch is not None:
                    self._parent_watch.hand_over()
                yield launcher, readiness

    def launch(self, launcher: Launcher, cluster: ClusterFile, nodes: Sequence[NodeEntry]) -> None:
        pairs = [
            (layout.properties_path(self._folder, node.node_id), layout.log_path(self._folder, node.node_id))
            for node in nodes
        ]
        with uninterrupted():
            try:
                marks = launcher.launch(pairs)
            except LaunchFailed as error:
                raise ClusterError(f"no node could be started: {error}") from None
            for node, mark in zip(nodes, marks, strict=True):
                node.process = mark
            cluster.save(self._folder)

    def await_ready(
        self, readiness: Readiness, cluster: ClusterFile, started: Sequence[NodeEntry], patience_s: float
    ) -> None:
        """Until every started node says that it takes part, and every broker that takes part knows of all that do, and
        of an active controller.

        A broker that was not started now takes part if those that were say so: one that is paused or cut off may run
        and hear nothing.
        """
        running = cluster.running
        expected = {node.node_id for node in started if node.is_broker}
        waiting = [*started, *(node for node in running if node.is_broker and node not in started)]
        lack = ""
        with ExitStack() as stack:
            clients = {
                node.node_id: stack.enter_context(
                    Client(
                        [address_of(cluster, node)],
                        timeout_s=_ASK_PATIENCE_S,
                        security=(to_brokers if node.is_broker else to_controllers)(cluster, self._folder),
                    )
                )
                for node in running
            }

            def in_cluster() -> set[int]:
                """The brokers that take part, as one that was started now knows; all that run, if none was."""
                known = next((clients[node.node_id] for node in started if node.is_broker), None)
                return {node.node_id for node in running} if known is None else set(known.metadata().brokers)

            said: dict[str, tuple[str, float]] = {}
            late_at = time.monotonic() + _SAY_AFTER_S

            def say_late() -> bool:
                now, kind = time.monotonic(), lack.partition(" (")[0]  # in brackets: how far it is
                last, again_at = said.get(kind, ("", late_at))
                if lack != last and now > again_at:
                    said[kind] = lack, now + _SAY_AGAIN_S
                    self._say(f"waiting for {lack}")
                return False

            def ready() -> bool:
                nonlocal lack
                for node in started:
                    if node.process is None or not node.alive:
                        raise ClusterError(_exit_of(self._folder, node))
                    if not readiness.is_ready(node.process.pid):
                        waits = readiness.status_of(node.process.pid) or "it has not joined the cluster yet"
                        lack = f"node {node.node_id}: {waits}"
                        return say_late()
                while waiting:
                    try:
                        if waiting[0] not in started and waiting[0].node_id not in in_cluster():
                            waiting.pop(0)
                            continue
                        lack = _lack_of(waiting[0], clients[waiting[0].node_id], expected)
                    except (Unreachable, KafkaError, Unsupported) as error:
                        lack = str(error)
                    if lack:
                        lack = f"node {waiting[0].node_id}: {lack}"
                        return say_late()
                    waiting.pop(0)
                return True

            if not wait_until(ready, patience_s):
                raise ClusterError(
                    f"the cluster is not ready after {patience_s:.0f} s: {lack}. "
                    f"See the nodes' logs: {self._folder}/node-*/node.log"
                )


def _exit_of(folder: Path, node: NodeEntry) -> str:
    reason = exit_reason(folder, node) or f"node {node.node_id} has ended for an unknown reason"
    subject = "" if reason.startswith(f"node {node.node_id} ") else f"node {node.node_id} has ended: "
    return f"{subject}{reason} (its log: {layout.log_path(folder, node.node_id)})"


def _lack_of(node: NodeEntry, client: Client, expected: set[int]) -> str:
    """The condition that a node still lacks to be ready; empty if it is."""
    if not node.is_broker:
        client.ask(API_VERSIONS, ApiVersionsResponse)
        return ""
    missing = expected - client.metadata().brokers.keys()
    if missing:
        return f"it does not know of brokers {', '.join(map(str, sorted(missing)))} yet"
    return "" if quorum_leader(client) is not None else "it knows of no active controller"

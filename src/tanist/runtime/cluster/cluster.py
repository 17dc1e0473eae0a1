"""A cluster of node processes on this machine: up, down, and one node of it crashed, stopped, started.

Each operation takes the folder's lock, reads `cluster.json`, does its work on real processes and writes the file
again. `starting` starts the nodes and waits until they are ready. A failure is a `ClusterError` that says the cause and
what to do; an `up` that fails leaves nothing running.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tanist.broker.config import NodeConfig
from tanist.runtime.cluster import layout, power_loss, wiping
from tanist.runtime.cluster.addresses import askable, bootstrap_of
from tanist.runtime.cluster.cluster_file import (
    ClusterError,
    ClusterFile,
    NodeEntry,
    load,
    load_existing,
    locked,
    locked_existing,
)
from tanist.runtime.cluster.fault_requests import FaultRequests, end_faults
from tanist.runtime.cluster.power_loss import Cut
from tanist.runtime.cluster.processes import ProcessMark, own_mark, wait_until
from tanist.runtime.cluster.starting import Say, Starter
from tanist.runtime.cluster.status import ClusterStatus, cluster_status, is_cut_off
from tanist.runtime.format import random_id
from tanist.runtime.ports.descriptors import too_few
from tanist.runtime.ports.file_errors import remedy

HOST = "127.0.0.1"
PORT = 9092
"""Where a new cluster listens."""

READY_PATIENCE_S = 60.0
STOP_PATIENCE_S = 60.0
_TRIES_MAX = 3
"""How often the nodes are started, if a port is taken each time before they have it."""

LAUNCHER = (sys.executable, "-m", "tanist.runtime.process.launch")
"""The command of a `Launcher`."""


class LocalCluster:
    """The cluster in a data folder. `say` gets a line about what is worth telling."""

    def __init__(self, folder: Path, say: Say = lambda _: None, launcher: Sequence[str] = LAUNCHER) -> None:
        self.folder = folder.absolute()
        self._say_to = say
        self._starter = Starter(self.folder, self._say, launcher)

    # -- the whole

    def up(
        self,
        *,
        brokers: int | None = None,
        controllers: int | None = None,
        host: str | None = None,
        port: int | None = None,
        log_dirs: int | None = None,
        secure: bool | None = None,
        config: Mapping[str, str] | None = None,
        features: Mapping[str, int] | None = None,
        patience_s: float = READY_PATIENCE_S,
        ends_with_us: bool = False,
        ephemeral: bool = False,
        join: bool = False,
    ) -> ClusterFile:
        """Start a new cluster, or the stopped one that the folder has; returns when it is ready.

        `features` are those that a new cluster begins with. A `secure` one has certificates, users and an authorizer.
        The folder of an `ephemeral` one goes with it. With `ends_with_us` the cluster is stopped when this process has
        ended, however it ends (`parent_watch`), unless `let_go` comes before. `join`: one that runs already is left as
        it is, and so is its shape.
        """
        if (problem := too_few()) is not None:
            raise ClusterError(problem)
        with locked(self.folder):
            cluster = load(self.folder)
            fresh = cluster is None
            if cluster is not None and join:
                if cluster.running:
                    return cluster
                brokers = controllers = host = port = log_dirs = secure = features = None
            if cluster is None:
                cluster, moved = layout.lay_out(
                    cluster_id=random_id(),
                    brokers=3 if brokers is None else brokers,
                    controllers=controllers or 0,
                    host=HOST if host is None else host,
                    port=PORT if port is None else port,
                    config=config or {},
                    log_dirs=log_dirs or 1,
                    secure=bool(secure),
                )
                cluster.features = dict(features or {})
                cluster.ephemeral = ephemeral
            else:
                self._refuse_other_shape(cluster, brokers, controllers, log_dirs)
                if secure and not cluster.secure:
                    raise ClusterError(
                        f"the cluster in {self.folder} was made without --secure: leave it out to start it, or name "
                        "another folder with --data"
                    )
                self._refuse_other_place(cluster, host, port)
                if features:
                    raise ClusterError(
                        f"{self.folder} has a cluster already: start it without --feature, then change its features "
                        "with `tanist features`"
                    )
                if cluster.running:
                    nodes = ", ".join(str(node.node_id) for node in cluster.running)
                    raise ClusterError(
                        f"the cluster in {self.folder} is running already (nodes {nodes}) at {bootstrap_of(cluster)}: "
                        "see `tanist status`, or stop it with `tanist down`"
                    )
                moved = layout.move_ports(cluster)
                cluster.config.update(config or {})
            for picked in moved:
                self._say(str(picked))
            end_faults(self.folder)
            cluster.owner = own_mark() if ends_with_us else None
            self._start_all(cluster, patience_s, write_properties=bool(fresh or moved or config))
            return cluster

    def down(self, patience_s: float = STOP_PATIENCE_S, *, wipe: bool = False) -> list[int]:
        """Stop every node in an orderly way, after ending all faults; gives the ids of those that ran.

        With `wipe` all that the cluster has is removed then, as it always is of an ephemeral one.
        """
        with locked_existing(self.folder) as cluster:
            stopped = self._down(cluster, patience_s, wipe=wipe)
        self.let_go()
        return stopped

    def reset(self, patience_s: float = READY_PATIENCE_S) -> bool:
        """Make the cluster what it was when it was new: the same nodes, ports and settings, and no data.

        One that runs is stopped, and runs again when this returns; its owner stays the same. Gives whether
        it runs.
        """
        with locked_existing(self.folder) as cluster:
            runs = bool(cluster.running)
            self._stop_all(cluster, STOP_PATIENCE_S)
            wiping.wipe_nodes(self.folder, cluster)
            cluster.cluster_id = random_id()
            for picked in layout.move_ports(cluster):
                self._say(str(picked))
            if runs:
                self._start_all(cluster, patience_s, write_properties=True, owned=False)
            else:
                self._starter.write_properties(cluster)
                cluster.save(self.folder)
            return runs

    def down_if_owned_by(
        self, owner: ProcessMark, launched: Sequence[ProcessMark], patience_s: float = STOP_PATIENCE_S
    ) -> list[int]:
        """`down` for a command that has died, if the cluster is still its own. `launched` are the processes that it
        started, in the order of the nodes: it may have died before it noted them.
        """
        if load(self.folder) is None:
            return []
        with locked_existing(self.folder) as cluster:
            if cluster.owner != owner:
                return []
            for node, mark in zip(cluster.nodes, launched, strict=False):
                node.process = node.process or mark
            return self._down(cluster, patience_s, wipe=False)

    def let_go(self) -> None:
        """From now on the cluster does not end with this process."""
        self._starter.let_go()

    def status(self) -> ClusterStatus:
        cluster = load_existing(self.folder)
        return cluster_status(cluster, self.folder, bootstrap_of(cluster), askable(cluster, self.folder))

    # -- one node

    def crash(self, *node_ids: int, lose_page_cache: bool = False) -> list[Cut]:
        """SIGKILL: nothing is flushed, closed or said. With `lose_page_cache`, as if the power had failed too."""
        with locked_existing(self.folder) as cluster:
            nodes = _running(cluster, node_ids)
            for node in nodes:
                self._kill(node)
            return [cut for node in nodes for cut in self._lose_page_cache(node)] if lose_page_cache else []

    def _lose_page_cache(self, node: NodeEntry) -> list[Cut]:
        properties = layout.properties_path(self.folder, node.node_id).read_text()
        try:
            return power_loss.lose_page_cache(NodeConfig.from_text(properties).log_dirs)
        except FileNotFoundError as error:
            raise ClusterError(f"node {node.node_id} had written nothing yet ({error.filename} is missing)") from None

    def stop(self, *node_ids: int, patience_s: float = STOP_PATIENCE_S) -> None:
        """A controlled shutdown; returns when the processes have ended."""
        with locked_existing(self.folder) as cluster:
            self._stop(cluster, _running(cluster, node_ids), patience_s)
            self._note_stopped(cluster)

    def start(self, *node_ids: int, patience_s: float = READY_PATIENCE_S) -> None:
        """Start nodes that are down, at the same time; returns when they take part in the cluster again."""
        with locked_existing(self.folder) as cluster:
            nodes = [cluster.node(node_id) for node_id in dict.fromkeys(node_ids)]
            for node in nodes:
                if node.alive:
                    raise ClusterError(f"node {node.node_id} is running already")
            controllers = sum(1 for other in cluster.controllers if other.alive or other in nodes)
            whole_is_down = not cluster.running
            moved = layout.move_ports(cluster, () if whole_is_down else nodes)
            for picked in moved:
                self._say(str(picked))
            if moved:
                self._starter.write_properties(cluster, () if whole_is_down else nodes)
            # On a disk that is full this fails before a node has taken the mark of its clean shutdown away.
            cluster.save(self.folder)
            if moved:
                FaultRequests(self.folder).ports_moved()
            try:
                with self._starter.launcher() as (launcher, readiness):
                    self._starter.launch(launcher, cluster, nodes)
                    joining = [node for node in nodes if not is_cut_off(self.folder, node.node_id)]
                    for node in nodes:
                        if node not in joining:
                            self._say(f"node {node.node_id} is started, but cut off: `tanist faults` shows why")
                    if joining and controllers * 2 > len(cluster.controllers):
                        self._starter.await_ready(readiness, cluster, joining, patience_s)
                    elif joining:
                        votes = f"{controllers} of {len(cluster.controllers)} controllers run"
                        for node in joining:
                            self._say(f"node {node.node_id} waits for a majority: {votes}")
            except BaseException:
                for node in nodes:
                    self._kill(node)
                raise

    # -- inner

    def _say(self, line: str) -> None:
        """What is under way goes on when nobody reads of it any more: or nodes would be left running."""
        with suppress(BrokenPipeError):
            self._say_to(line)

    def _start_all(
        self, cluster: ClusterFile, patience_s: float, *, write_properties: bool, owned: bool = True
    ) -> None:
        """Every node, none of which runs; none is left running if they do not get ready.

        `owned` False: this is not the process that owns the cluster, if any does.
        """
        tries = 0
        try:
            while True:
                try:
                    with self._starter.launcher(cluster.owner if owned else None) as (launcher, readiness):
                        if write_properties:
                            self._starter.write_properties(cluster)
                        cluster.save(self.folder)
                        self._starter.launch(launcher, cluster, cluster.nodes)
                        self._starter.await_ready(readiness, cluster, cluster.nodes, patience_s)
                    return
                except ClusterError:
                    for node in cluster.running:
                        self._kill(node)
                    tries += 1
                    # Somebody may have taken a port since it was looked at: another cluster that starts now, say.
                    moved = [each for each in layout.move_ports(cluster) if not each.returned]
                    if not moved or tries == _TRIES_MAX:
                        raise
                    for picked in moved:
                        self._say(str(picked))
                    write_properties = True
        except BaseException:
            for node in cluster.running:
                self._kill(node)
            if cluster.ephemeral:
                wiping.wipe(self.folder, cluster)
            raise

    def _down(self, cluster: ClusterFile, patience_s: float, *, wipe: bool) -> list[int]:
        stopped = self._stop_all(cluster, patience_s)
        if stopped or cluster.owner is not None:
            cluster.owner = None  # written once all have ended
            self._note_stopped(cluster)
        if wipe or cluster.ephemeral:
            wiping.wipe(self.folder, cluster)
        return stopped

    def _stop_all(self, cluster: ClusterFile, patience_s: float) -> list[int]:
        requests = FaultRequests(self.folder)
        present = requests.present()
        if present.faults or present.requests:
            try:
                requests.heal()
                end_faults(self.folder)
            except (ClusterError, OSError) as error:
                self._say(f"faults could not be ended: {error}")
        # Brokers hand over to controllers, so controllers of their own go last.
        brokers = self._stop(cluster, cluster.brokers, patience_s)
        return brokers + self._stop(cluster, cluster.nodes, patience_s)

    def _refuse_other_shape(
        self, cluster: ClusterFile, brokers: int | None, controllers: int | None, log_dirs: int | None
    ) -> None:
        has_brokers = len(cluster.brokers)
        separate = sum(1 for node in cluster.controllers if not node.is_broker)
        if brokers not in (None, has_brokers) or controllers not in (None, separate):
            raise ClusterError(
                f"{self.folder} has a cluster of {has_brokers} brokers and {separate} separate controllers: "
                "leave out --brokers and --controllers to start it, or name another folder with --data"
            )
        if log_dirs not in (None, cluster.log_dirs):
            raise ClusterError(
                f"the nodes in {self.folder} have {cluster.log_dirs} log directories each: leave out --log-dirs to "
                "start them, or name another folder with --data"
            )

    def _refuse_other_place(self, cluster: ClusterFile, host: str | None, port: int | None) -> None:
        """Port 0 asks for any port, and it has one."""
        if host in (None, cluster.host) and port in (None, 0, cluster.port):
            return
        asked = f"{host or cluster.host}:{port or cluster.port}"
        raise ClusterError(
            f"the cluster in {self.folder} is at {cluster.host}:{cluster.port}, not {asked}: leave out --host and "
            "--port to start it there, or name another folder with --data"
        )

    def _stop(self, cluster: ClusterFile, nodes: Iterable[NodeEntry], patience_s: float) -> list[int]:
        stopping = [node for node in nodes if node.alive and node.process is not None]
        for node in stopping:
            if node.process is not None:
                node.process.signal(signal.SIGTERM)
                if node.paused:
                    self._say(f"node {node.node_id} was paused: resuming it, so that it can stop")
                    node.process.signal(signal.SIGCONT)
        late = not wait_until(lambda: not any(node.alive for node in stopping), patience_s)
        for node in stopping:
            if late and node.alive:
                self._say(f"node {node.node_id} did not stop within {patience_s:.0f} s: killed")
                self._kill(node)
            else:
                node.process = None
        return [node.node_id for node in stopping]

    def _note_stopped(self, cluster: ClusterFile) -> None:
        """They have ended, whether that can be written down or not."""
        try:
            cluster.save(self.folder)
        except OSError as error:
            self._say(f"the stopped nodes will show as crashed: {remedy(error) or error}")

    def _kill(self, node: NodeEntry) -> None:
        if node.process is not None:
            node.process.kill()


def _running(cluster: ClusterFile, node_ids: Sequence[int]) -> list[NodeEntry]:
    """These nodes, each once, of which nothing is done to any unless all run."""
    nodes = [cluster.node(node_id) for node_id in dict.fromkeys(node_ids)]
    for node in nodes:
        if not node.alive:
            raise ClusterError(f"node {node.node_id} is not running: `tanist start {node.node_id}` starts it")
    return nodes

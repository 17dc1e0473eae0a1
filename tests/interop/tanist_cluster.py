"""tanist's own clusters, driven from outside by its command line alone, as an operator would.

`tanist up --detach`, `down`, `start ID`, `stop ID` and `crash ID`, and `tanist serve` for a single node. Ports and
process ids are read from the `cluster.json` that `up` leaves in the data folder: a command for each would be slow.
"""

from __future__ import annotations

import atexit
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

from tanist.runtime.cluster.cluster_file import ClusterFile, load_existing
from tanist.runtime.cluster.layout import metrics_address
from tests.interop.cluster import HOST, free_ports, wait_ready


class CommandFailed(AssertionError):
    """A `tanist` command ended with another exit code than 0."""


PROGRAM = Path(sys.executable).with_name("tanist")
"""The command of this interpreter's environment."""


def tanist(*arguments: str, timeout_s: float = 90.0, program: Path = PROGRAM) -> str:
    """Run one `tanist` command; gives what it printed."""
    command = [str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        raise CommandFailed(f"tanist {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


@dataclass(slots=True)
class TanistCluster:
    """A cluster that `tanist up` made, ids from 1."""

    directory: Path
    nodes: int = 3
    properties: Mapping[str, str] = field(default_factory=dict)
    first_port: int | None = None
    name: str = "tanist"
    program: Path = PROGRAM
    options: tuple[str, ...] = field(default=(), init=False)
    """Of `tanist up`."""
    _up: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        atexit.register(self.stop)

    @property
    def node_ids(self) -> Sequence[int]:
        return tuple(range(1, self.nodes + 1))

    @property
    def bootstrap(self) -> str:
        return ",".join("{}:{}".format(*self.address(node_id)) for node_id in self.node_ids)

    def address(self, node_id: int) -> tuple[str, int]:
        return HOST, load_existing(self.directory).node(node_id).broker_port

    def log_directory(self, node_id: int) -> Path:
        return self.directory / f"node-{node_id}" / "data"

    def pid(self, node_id: int) -> int | None:
        process = load_existing(self.directory).node(node_id).process
        return process.pid if process is not None and process.alive else None

    def start(self) -> None:
        port = self.first_port if self.first_port is not None else free_ports(self.nodes)
        settings = [part for item in self.properties.items() for part in ("--config", "=".join(item))]
        self._up = True
        try:
            self.tanist("up", "--detach", "--port", str(port), "--brokers", str(self.nodes), *self.options, *settings)
            wait_ready(self)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        if self._up:
            self._up = False
            self.tanist("down")

    def start_node(self, node_id: int) -> None:
        self.tanist("start", str(node_id))

    def stop_node(self, node_id: int) -> None:
        self.tanist("stop", str(node_id))

    def kill_node(self, node_id: int) -> None:
        self.tanist("crash", str(node_id))

    def tanist(self, *arguments: str) -> str:
        """A command on this cluster; gives what it printed."""
        return tanist(*arguments, "--data", str(self.directory), program=self.program)


def node_metrics(cluster: ClusterFile, node_id: int, timeout_s: float) -> dict[str, float]:
    """What a node of a cluster tells, by the metrics' names with their labels. `OSError` if it is down."""
    with urlopen(f"http://{metrics_address(cluster, cluster.node(node_id))}/metrics", timeout=timeout_s) as page:
        lines = page.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def node_metric(cluster: ClusterFile, node_id: int, name: str, timeout_s: float) -> float | None:
    """One of them; None if there is no such metric."""
    return node_metrics(cluster, node_id, timeout_s).get(name)


@dataclass(slots=True)
class TanistNode:
    """One node served from a server.properties file, as `tanist serve FILE` runs it: the process is our child."""

    properties_file: Path
    name: str = "tanist"
    program: Path = PROGRAM
    process: subprocess.Popen[bytes] | None = None
    properties: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for line in self.properties_file.read_text().splitlines():
            key, _, value = line.partition("=")
            self.properties[key.strip()] = value.strip()
        atexit.register(self.stop)

    @property
    def node_ids(self) -> Sequence[int]:
        return (int(self.properties["node.id"]),)

    @property
    def bootstrap(self) -> str:
        return "{}:{}".format(*self.address(self.node_ids[0]))

    def address(self, node_id: int) -> tuple[str, int]:
        self._check_id(node_id)
        host, _, port = self.properties["listeners"].split(",")[0].partition("://")[2].rpartition(":")
        return host, int(port)

    def log_directory(self, node_id: int) -> Path:
        self._check_id(node_id)
        return Path(self.properties["log.dirs"])

    def pid(self, node_id: int) -> int | None:
        self._check_id(node_id)
        return self.process.pid if self.process is not None and self.process.poll() is None else None

    def start(self) -> None:
        self.start_node(self.node_ids[0])
        try:
            wait_ready(self, alive=self._check_alive)
        except BaseException:
            self.stop()
            raise

    def _log_file(self) -> Path:
        return self.properties_file.with_name("tanist.log")

    def _check_alive(self) -> None:
        if self.process is not None and self.process.poll() is not None:
            tail = "\n".join(self._log_file().read_text(errors="replace").splitlines()[-30:])
            raise CommandFailed(f"tanist serve ended with {self.process.returncode}:\n{tail}")

    def start_node(self, node_id: int) -> None:
        self._check_id(node_id)
        command = [str(self.program), "serve", str(self.properties_file)]
        with self._log_file().open("ab") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def stop_node(self, node_id: int) -> None:
        self._check_id(node_id)
        self._end(signal.SIGTERM)

    def kill_node(self, node_id: int) -> None:
        self._check_id(node_id)
        self._end(signal.SIGKILL)

    def _check_id(self, node_id: int) -> None:
        if node_id not in self.node_ids:
            raise ValueError(f"there is no node {node_id}")

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def stop(self) -> None:
        self._end(signal.SIGTERM)

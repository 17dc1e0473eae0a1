"""One cluster of Apache Kafka's nodes and ours: each node is of one kind and has its roles, and may change its kind.

A node's kind decides the program that serves its folder. Both kinds get the same properties, and start on what the
other kind has left there.
"""

from __future__ import annotations

import atexit
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from tests.interop.apache import SERVER, SERVER_FLAGS, STORAGE, java_command, random_cluster_id, tool
from tests.interop.cluster import HOST, free_ports, wait_ready

Kind = Literal["apache", "tanist"]
APACHE: Kind = "apache"
TANIST: Kind = "tanist"
PROGRAM = Path(sys.executable).with_name("tanist")
STOP_S = 60.0


class NodeEnded(AssertionError):
    """A node's process ended by itself."""


@dataclass(slots=True)
class Member:
    """One node: its program, its roles, and its process while it runs."""

    kind: Kind
    roles: str = "broker,controller"
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    output: IO[bytes] | None = None

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles


@dataclass(slots=True)
class MixedCluster:
    """Nodes by their id, with a static quorum; `members` says what each is at first."""

    directory: Path
    members: Mapping[int, Member]
    properties: Mapping[str, str] = field(default_factory=dict)
    release: str = "4.3"
    heap: str = "256m"
    name: str = "mixed"

    def __post_init__(self) -> None:
        first = free_ports(2 * len(self.members))
        for index, member in enumerate(self.members.values()):
            member.port = first + 2 * index
        atexit.register(self._kill_all)

    # -- what `tests.interop.cluster` asks of a cluster

    @property
    def node_ids(self) -> Sequence[int]:
        """The brokers: controllers alone answer no client."""
        return tuple(node_id for node_id, member in self.members.items() if member.is_broker)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{self.members[node_id].port}" for node_id in self.node_ids)

    def address(self, node_id: int) -> tuple[str, int]:
        return HOST, self.members[node_id].port

    def pid(self, node_id: int) -> int | None:
        process = self.members[node_id].process
        return process.pid if process is not None and process.poll() is None else None

    def log_directory(self, node_id: int) -> Path:
        return self.directory / f"node-{node_id}" / "data"

    def log(self, node_id: int) -> str:
        """All that the node has printed, of both kinds."""
        file = self._log_file(node_id)
        return file.read_text(errors="replace") if file.exists() else ""

    def start(self) -> None:
        self.format()
        try:
            for node_id in self.members:
                self.start_node(node_id)
            wait_ready(self, timeout_s=180.0, alive=self.check_alive)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Brokers first: they hand over to each other while there are controllers."""
        for node_id in sorted(self.members, key=lambda each: not self.members[each].is_broker):
            self.stop_node(node_id)

    def start_node(self, node_id: int) -> None:
        member = self.members[node_id]
        if self.pid(node_id) is not None:
            raise ValueError(f"node {node_id} runs already")
        file = str(self._properties_file(node_id))
        if member.kind == APACHE:
            flags = (*SERVER_FLAGS, f"-Xmx{self.heap}", f"-Xms{self.heap}")
            command = java_command(SERVER, file, flags=flags, logging="server")
        else:
            command = [str(PROGRAM), "serve", file]
        if member.output is not None:
            member.output.close()
        member.output = self._log_file(node_id).open("ab")
        member.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=member.output, stderr=subprocess.STDOUT, start_new_session=True
        )

    def stop_node(self, node_id: int) -> None:
        self._end(node_id, signal.SIGTERM)

    def kill_node(self, node_id: int) -> None:
        self._end(node_id, signal.SIGKILL)

    # -- what only a mixed cluster has

    def becomes(self, node_id: int, kind: Kind) -> None:
        """Serve the node's folder by the other program from the next start on."""
        if self.pid(node_id) is not None:
            raise ValueError(f"node {node_id} runs")
        self.members[node_id].kind = kind

    def format(self) -> None:
        cluster_id = random_cluster_id()
        for node_id in self.members:
            self.log_directory(node_id).mkdir(parents=True)
            lines = [f"{key}={value}\n" for key, value in self._node_properties(node_id).items()]
            file = self._properties_file(node_id)
            file.write_text("".join(lines))
            tool(
                STORAGE, "format", "--config", str(file), "--cluster-id", cluster_id, "--release-version", self.release
            )

    def check_alive(self) -> None:
        """Raise, with the end of its log, if a node that was started has ended."""
        for node_id, member in self.members.items():
            if member.process is not None and member.process.poll() is not None:
                tail = "\n".join(self.log(node_id).splitlines()[-30:])
                raise NodeEnded(f"{member.kind} node {node_id} ended with {member.process.returncode}:\n{tail}")

    # -- inside

    def _properties_file(self, node_id: int) -> Path:
        return self.directory / f"node-{node_id}" / "server.properties"

    def _log_file(self, node_id: int) -> Path:
        return self.directory / f"node-{node_id}" / "server.log"

    def _node_properties(self, node_id: int) -> dict[str, str]:
        member = self.members[node_id]
        voters = ",".join(
            f"{each}@{HOST}:{other.port + 1}" for each, other in self.members.items() if "controller" in other.roles
        )
        listeners = {
            "broker": f"PLAINTEXT://{HOST}:{member.port}",
            "controller": f"CONTROLLER://{HOST}:{member.port + 1}",
        }
        own = ",".join(listeners[role] for role in member.roles.split(","))
        return {
            "process.roles": member.roles,
            "node.id": str(node_id),
            "listeners": own,
            "advertised.listeners": own,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.log_directory(node_id)),
            "offsets.topic.replication.factor": str(min(3, len(self.node_ids))),
            "offsets.topic.num.partitions": "3",
            "group.initial.rebalance.delay.ms": "0",
            **self.properties,
        }

    def _end(self, node_id: int, how: signal.Signals) -> None:
        member = self.members[node_id]
        process, member.process = member.process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _kill_all(self) -> None:
        for member in self.members.values():
            if member.process is not None and member.process.poll() is None:
                member.process.kill()
                member.process.wait()

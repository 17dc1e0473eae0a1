"""Combined nodes of either kind in one cluster with dynamic voters (KIP-853), on 127.0.0.1.

Owns their folders and processes: `tanist format` and `tanist serve` for ours, `kafka-storage` and `kafka.Kafka` for
Apache Kafka's, with the same server.properties. Every process is ended by `stop`, at the latest at the interpreter's
exit.
"""

from __future__ import annotations

import atexit
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal, TypeAlias

from tests.interop import apache
from tests.interop.cluster import HOST, free_ports
from tests.interop.tanist_cluster import PROGRAM, tanist
from tests.interop.waiting import wait_for

Kind: TypeAlias = Literal["ours", "apache"]
HEAP = ("-Xmx320m", "-Xms320m")


@dataclass(slots=True)
class Member:
    node_id: int
    kind: Kind
    port: int
    controller_port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    output: IO[bytes] | None = None

    @property
    def properties_file(self) -> Path:
        return self.folder / "server.properties"

    @property
    def log_file(self) -> Path:
        return self.folder / "server.log"

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def controller_address(self) -> str:
        return f"{HOST}:{self.controller_port}"

    @property
    def directory_id(self) -> str:
        text = (self.folder / "data" / "meta.properties").read_text()
        return next(line.partition("=")[2] for line in text.splitlines() if line.startswith("directory.id="))


@dataclass(slots=True)
class DynamicCluster:
    """Node 1 is the first voter; the others join."""

    directory: Path
    kinds: Sequence[Kind]
    properties: Mapping[str, str] = field(default_factory=dict)
    members: dict[int, Member] = field(default_factory=dict, init=False)
    name: str = "dynamic"

    def __post_init__(self) -> None:
        count = len(self.kinds)
        first = free_ports(2 * count)
        for index, kind in enumerate(self.kinds):
            folder = self.directory / f"node-{index + 1}"
            self.members[index + 1] = Member(index + 1, kind, first + index, first + count + index, folder)
        atexit.register(self.stop)

    @property
    def bootstrap(self) -> str:
        return ",".join(member.address for member in self.members.values())

    @property
    def controllers(self) -> str:
        return ",".join(member.controller_address for member in self.members.values())

    @property
    def node_ids(self) -> Sequence[int]:
        return tuple(self.members)

    def address(self, node_id: int) -> tuple[str, int]:
        return HOST, self.members[node_id].port

    def pid(self, node_id: int) -> int | None:
        process = self.members[node_id].process
        return process.pid if process is not None and process.poll() is None else None

    def log_directory(self, node_id: int) -> Path:
        return self.members[node_id].folder / "data"

    def format(self) -> None:
        cluster_id = apache.random_cluster_id()
        for member in self.members.values():
            member.folder.mkdir(parents=True)
            lines = [f"{name}={value}\n" for name, value in self._properties(member).items()]
            member.properties_file.write_text("".join(lines))
            how = "--standalone" if member.node_id == 1 else "--no-initial-controllers"
            arguments = ("format", "--config", str(member.properties_file), "--cluster-id", cluster_id, how)
            if member.kind == "ours":
                tanist(*arguments)
            else:
                apache.tool(apache.STORAGE, *arguments)

    def _properties(self, member: Member) -> dict[str, str]:
        listeners = f"PLAINTEXT://{member.address},CONTROLLER://{member.controller_address}"
        return {
            "process.roles": "broker,controller",
            "node.id": str(member.node_id),
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.quorum.bootstrap.servers": self.controllers,
            "log.dirs": str(member.folder / "data"),
            "offsets.topic.replication.factor": "1",
            "group.initial.rebalance.delay.ms": "0",
        } | dict(self.properties)

    def start(self, *node_ids: int) -> None:
        for node_id in node_ids or tuple(self.members):
            member = self.members[node_id]
            if member.kind == "ours":
                command = [str(PROGRAM), "serve", str(member.properties_file)]
            else:
                flags = (*apache.SERVER_FLAGS, *HEAP)
                command = apache.java_command(apache.SERVER, str(member.properties_file), flags=flags, logging="server")
            member.output = member.log_file.open("ab")
            member.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=member.output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def end(self, node_id: int, how: signal.Signals = signal.SIGTERM) -> None:
        member = self.members[node_id]
        process, member.process = member.process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if member.output is not None:
            member.output.close()

    def start_node(self, node_id: int) -> None:
        self.start(node_id)

    def stop_node(self, node_id: int) -> None:
        self.end(node_id)

    def kill_node(self, node_id: int) -> None:
        self.end(node_id, signal.SIGKILL)

    def stop(self) -> None:
        for node_id in self.members:
            self.end(node_id, signal.SIGKILL)

    # -- Apache Kafka's tool

    def quorum_tool(self, *arguments: str, config: Member | None = None, controllers: str | None = None) -> str:
        """`kafka-metadata-quorum`, which must succeed; what it printed."""
        more = () if config is None else ("--command-config", str(config.properties_file))
        at = ("--bootstrap-controller", controllers or self.controllers)
        return apache.tool(apache.METADATA_QUORUM, *more, *at, *arguments).stdout

    def add(self, node_id: int) -> None:
        """`add-controller`, again until the new controller has caught up."""
        member = self.members[node_id]

        def added() -> bool:
            arguments = ("--command-config", str(member.properties_file), "--bootstrap-controller", self.controllers)
            done = apache.try_tool(apache.METADATA_QUORUM, *arguments, "add-controller")
            return done.returncode == 0 or "DuplicateVoter" in done.stdout + done.stderr

        wait_for(added, f"controller {node_id} is added", timeout_s=120)

    def remove(self, node_id: int) -> None:
        directory_id = self.members[node_id].directory_id
        self.quorum_tool(
            "remove-controller", "--controller-id", str(node_id), "--controller-directory-id", directory_id
        )

    def voters(self) -> set[int]:
        """As DescribeQuorum answers on any controller's listener."""
        text = self.quorum_tool("describe", "--replication")
        rows = [line.split() for line in text.splitlines()[1:] if line.strip()]
        return {int(row[0]) for row in rows if row[-1] in ("Leader", "Follower")}

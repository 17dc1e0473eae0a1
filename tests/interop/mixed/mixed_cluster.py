"""One cluster of Apache Kafka's nodes and ours: each node is of one kind and has its roles, and may change its kind.

A node's kind decides the program that serves its folders. Both kinds get the same properties, and start on what the
other kind has left there. Every process is ended by `stop`, at the latest at the interpreter's exit.
"""

from __future__ import annotations

import atexit
import base64
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from tests.interop.apache import PIN, SERVER, SERVER_FLAGS, STORAGE, java_command, random_cluster_id, tool
from tests.interop.cluster import HOST, free_ports, wait_ready
from tests.interop.tanist_cluster import tanist

Kind = Literal["apache", "tanist"]
APACHE: Kind = "apache"
TANIST: Kind = "tanist"
WHOSE: Mapping[Kind, str] = {APACHE: "Apache's", TANIST: "our"}
Quorum = Literal["static", "dynamic"]
PROGRAM = Path(sys.executable).with_name("tanist")
STOP_S = 60.0
LAST_STOP_S = 8.0
"""At the end: the last voters wait in vain for a quorum that has gone before them."""


class NodeEnded(AssertionError):
    """A node's process ended by itself."""


@dataclass(slots=True)
class Member:
    """One node: its program from its next start on, its roles, and its process while it runs."""

    kind: Kind
    roles: str = "broker,controller"
    port: int = 0
    directory_id: str = ""
    process: subprocess.Popen[bytes] | None = None
    output: IO[bytes] | None = None

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles


@dataclass(slots=True)
class MixedCluster:
    """Nodes by their id; `members` says what each is at first.

    `quorum`: "static" is `controller.quorum.voters` (kraft.version 0), "dynamic" is KIP-853 (kraft.version 1). There
    `first_voters` (all controllers, if it is None) are the voters at first; other controllers may join them later.
    `log_dirs`: how many log directories each node has.
    """

    directory: Path
    members: Mapping[int, Member]
    properties: Mapping[str, str] = field(default_factory=dict)
    release: str = PIN.release
    heap: str = "256m"
    quorum: Quorum = "static"
    first_voters: Sequence[int] | None = None
    log_dirs: int = 1
    name: str = "mixed"

    def __post_init__(self) -> None:
        first = free_ports(2 * len(self.members))
        for index, member in enumerate(self.members.values()):
            member.port = first + 2 * index
            member.directory_id = _random_id()
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
        """The first of the node's log directories."""
        return self.log_directories(node_id)[0]

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
        for wanted in (True, False):
            enders = [
                threading.Thread(target=self._end, args=(node_id, signal.SIGTERM, LAST_STOP_S))
                for node_id, member in self.members.items()
                if member.is_broker == wanted
            ]
            for ender in enders:
                ender.start()
            for ender in enders:
                ender.join()

    def start_node(self, node_id: int) -> None:
        member = self.members[node_id]
        if self.pid(node_id) is not None:
            raise ValueError(f"node {node_id} runs already")
        file = str(self.properties_file(node_id))
        if member.kind == APACHE:
            flags = (*SERVER_FLAGS, f"-Xmx{self.heap}", f"-Xms{self.heap}")
            command = java_command(SERVER, file, flags=flags, logging="server")
        else:
            command = [str(PROGRAM), "serve", file]
        member.output = self._log_file(node_id).open("ab")
        member.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=member.output, stderr=subprocess.STDOUT, start_new_session=True
        )

    def stop_node(self, node_id: int) -> None:
        self._end(node_id, signal.SIGTERM)

    def kill_node(self, node_id: int) -> None:
        self._end(node_id, signal.SIGKILL)

    # -- what only a mixed cluster has

    @property
    def controllers(self) -> str:
        """What tools call the bootstrap controllers."""
        return ",".join(self.controller_address(each) for each, member in self.members.items() if member.is_controller)

    def controller_address(self, node_id: int) -> str:
        return f"{HOST}:{self.members[node_id].port + 1}"

    def log_directories(self, node_id: int) -> Sequence[Path]:
        folder = self.directory / f"node-{node_id}"
        return [folder / "data", *(folder / f"data-{number}" for number in range(2, self.log_dirs + 1))]

    def log(self, node_id: int) -> str:
        """All that the node has printed, of both kinds."""
        file = self._log_file(node_id)
        return file.read_text(errors="replace") if file.exists() else ""

    def becomes(self, node_id: int, kind: Kind) -> None:
        """Serve the node's folder by the other program from the next start on."""
        self.members[node_id].kind = kind

    def of(self, kind: Kind) -> Sequence[int]:
        """The nodes of a kind."""
        return tuple(node_id for node_id, member in self.members.items() if member.kind == kind)

    def send(self, node_id: int, how: signal.Signals) -> None:
        """A signal that a process survives, or not; nobody waits for its end."""
        process = self.members[node_id].process
        if process is None:
            raise ValueError(f"node {node_id} does not run")
        process.send_signal(how)

    def format(self) -> None:
        cluster_id = random_cluster_id()
        for node_id in self.members:
            for folder in self.log_directories(node_id):
                folder.mkdir(parents=True)
            lines = [f"{key}={value}\n" for key, value in self._node_properties(node_id).items()]
            self.properties_file(node_id).write_text("".join(lines))
        # Two at a time, for a Java each.
        pending = list(self.members)
        failures: list[BaseException] = []

        def some() -> None:
            while pending and not failures:
                try:
                    self._format_node(pending.pop(), cluster_id)
                except BaseException as failure:
                    failures.append(failure)

        workers = [threading.Thread(target=some) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if failures:
            raise failures[0]

    def check_alive(self) -> None:
        """Raise, with the end of its log, if a node that was started has ended."""
        for node_id, member in self.members.items():
            if member.process is not None and member.process.poll() is not None:
                tail = "\n".join(self.log(node_id).splitlines()[-30:])
                raise NodeEnded(f"{member.kind} node {node_id} ended with {member.process.returncode}:\n{tail}")

    def properties_file(self, node_id: int) -> Path:
        return self.directory / f"node-{node_id}" / "server.properties"

    # -- inside

    def _log_file(self, node_id: int) -> Path:
        return self.directory / f"node-{node_id}" / "server.log"

    def _controller_ids(self) -> list[int]:
        return [node_id for node_id, member in self.members.items() if member.is_controller]

    def _format_node(self, node_id: int, cluster_id: str) -> None:
        member = self.members[node_id]
        arguments = ["format", "--config", str(self.properties_file(node_id)), "--cluster-id", cluster_id]
        if self.quorum == "dynamic" and member.is_controller:
            arguments += self._first_voters(node_id)
        if member.kind == APACHE:
            tool(STORAGE, *arguments, "--release-version", self.release)
        else:
            tanist(*arguments, "--feature", f"metadata.version={self.release}")

    def _first_voters(self, node_id: int) -> Iterator[str]:
        voters = self._controller_ids() if self.first_voters is None else self.first_voters
        if node_id not in voters:
            yield "--no-initial-controllers"
            return
        yield "--initial-controllers"
        yield ",".join(f"{each}@{self.controller_address(each)}:{self.members[each].directory_id}" for each in voters)

    def _node_properties(self, node_id: int) -> dict[str, str]:
        member = self.members[node_id]
        listeners = {
            "broker": f"PLAINTEXT://{HOST}:{member.port}",
            "controller": f"CONTROLLER://{self.controller_address(node_id)}",
        }
        own = ",".join(listeners[role] for role in member.roles.split(","))
        voters = ",".join(f"{each}@{self.controller_address(each)}" for each in self._controller_ids())
        quorum = {
            "static": {"controller.quorum.voters": voters},
            "dynamic": {"controller.quorum.bootstrap.servers": self.controllers},
        }
        return {
            "process.roles": member.roles,
            "node.id": str(node_id),
            "listeners": own,
            "advertised.listeners": own,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": ",".join(map(str, self.log_directories(node_id))),
            "offsets.topic.replication.factor": str(min(3, len(self.node_ids))),
            "offsets.topic.num.partitions": "3",
            "group.initial.rebalance.delay.ms": "0",
            **quorum[self.quorum],
            **self.properties,
        }

    def _end(self, node_id: int, how: signal.Signals, patience_s: float = STOP_S) -> None:
        member = self.members[node_id]
        process, member.process = member.process, None
        if process is None:
            return
        if process.poll() is None:
            # A stopped process does not act on SIGTERM.
            process.send_signal(signal.SIGCONT)
            process.send_signal(how)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if member.output is not None:
            member.output.close()
            member.output = None

    def _kill_all(self) -> None:
        for member in self.members.values():
            if member.process is not None and member.process.poll() is None:
                member.process.kill()
                member.process.wait()


def _random_id() -> str:
    """As Kafka writes the ids of directories; not with a dash in front, which tools take for an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text

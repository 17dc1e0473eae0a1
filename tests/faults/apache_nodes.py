"""Three brokers and a controller of Apache Kafka in a folder, and what `tanist jepsen` breaks them with.

    python -m tests.faults.apache_nodes DIR up [--elr off]         prints the brokers' addresses
    python -m tests.faults.apache_nodes DIR start|crash|lose|pause|resume NODE
    python -m tests.faults.apache_nodes DIR command                prints the options for `tanist jepsen`
    python -m tests.faults.apache_nodes DIR down

The controller has a process of its own and is never harmed, as in a cluster that `tanist jepsen` makes; sessions and
lags are as short as there.

`lose` is what a loss of power may leave of a dead broker. We cannot drop Apache's page cache from outside, and a killed
process loses nothing of it; nor does anybody know what of a file the system has written by itself. What is known is
what Kafka promises: the recovery point, up to which it has synced. All above it is cut off, which a loss of power may
do and need not. The metadata log is left as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tanist.lab.jepsen.own import CONFIG
from tanist.runtime.cluster.processes import ProcessMark, start_time
from tanist.wire.batch import HEADER_BYTES, iterate_headers
from tests.interop.apache import SERVER, SERVER_FLAGS, STORAGE, VERSION, java_command, random_cluster_id, tool
from tests.interop.cluster import HOST, ROOT, free_ports
from tests.interop.raw import ProtocolError, RawClient
from tests.interop.waiting import wait_for

BROKERS = (1, 2, 3)
CONTROLLER = 1001
_HEAP = {True: "160m", False: "320m"}
_READY_S = 80.0
_STATE = "nodes.json"
_RECOVERY_POINTS = "recovery-point-offset-checkpoint"
_PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)")
_SEGMENT = re.compile(r"\d{20}\.log")


@dataclass(slots=True)
class Nodes:
    """What is known of the folder's nodes between commands."""

    folder: Path
    first_port: int
    elr: bool
    processes: dict[int, ProcessMark]

    @classmethod
    def load(cls, folder: Path) -> Nodes:
        found = json.loads((folder / _STATE).read_text())
        marks = {int(node): ProcessMark(**mark) for node, mark in found["processes"].items()}
        return cls(folder, found["first_port"], found["elr"], marks)

    def save(self) -> None:
        content = {
            "first_port": self.first_port,
            "elr": self.elr,
            "processes": {node: asdict(mark) for node, mark in self.processes.items()},
        }
        (self.folder / _STATE).write_text(json.dumps(content))

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{self.port(node)}" for node in BROKERS)

    def port(self, node: int) -> int:
        return self.first_port + (0 if node == CONTROLLER else node)

    def data(self, node: int) -> Path:
        return self.folder / f"node-{node}" / "data"

    # -- the whole

    def format(self) -> None:
        cluster_id = random_cluster_id()
        for node in (CONTROLLER, *BROKERS):
            self.data(node).mkdir(parents=True)
            lines = [f"{key}={value}\n" for key, value in self._properties(node).items()]
            self._properties_file(node).write_text("".join(lines))
            feature = ["--feature", f"eligible.leader.replicas.version={int(self.elr)}"] if node == CONTROLLER else []
            tool(STORAGE, "format", "--config", str(self._properties_file(node)), "--cluster-id", cluster_id, *feature)

    def up(self) -> None:
        for node in (CONTROLLER, *BROKERS):
            self._launch(node)
        for node in BROKERS:
            self._await(node)

    def down(self) -> None:
        for mark in self.processes.values():
            mark.signal(signal.SIGCONT)
            mark.kill()

    # -- one node

    def start(self, node: int) -> None:
        self._launch(node)
        self._await(node)

    def crash(self, node: int) -> None:
        self.processes[node].kill()

    def pause(self, node: int) -> None:
        self.processes[node].signal(signal.SIGSTOP)

    def resume(self, node: int) -> None:
        self.processes[node].signal(signal.SIGCONT)

    def lose(self, node: int) -> str:
        """Cut the logs of a dead node to what it had synced; says what went."""
        if self.processes[node].alive:
            raise SystemExit(f"node {node} runs: a loss of power is for one that was killed")
        lost = [count for count in (cut for cut in lose_unsynced(self.data(node))) if count]
        return f"{sum(lost):,} bytes in {len(lost)} files lost"

    # -- inner

    def _properties_file(self, node: int) -> Path:
        return self.folder / f"node-{node}" / "server.properties"

    def _properties(self, node: int) -> dict[str, str]:
        controller = node == CONTROLLER
        name = "CONTROLLER" if controller else "PLAINTEXT"
        properties = {
            "process.roles": "controller" if controller else "broker",
            "node.id": str(node),
            "listeners": f"{name}://{HOST}:{self.port(node)}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"{CONTROLLER}@{HOST}:{self.port(CONTROLLER)}",
            "log.dirs": str(self.data(node)),
            "offsets.topic.replication.factor": "3",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
        }
        if not controller:
            properties["advertised.listeners"] = f"PLAINTEXT://{HOST}:{self.port(node)}"
            properties["inter.broker.listener.name"] = "PLAINTEXT"
        return properties | CONFIG

    def _launch(self, node: int) -> None:
        known = self.processes.get(node)
        if known is not None and known.alive:
            raise SystemExit(f"node {node} runs already")
        heap = _HEAP[node == CONTROLLER]
        command = java_command(
            SERVER,
            str(self._properties_file(node)),
            flags=(*SERVER_FLAGS, f"-Xmx{heap}", f"-Xms{heap}"),
            logging="server",
        )
        with (self.folder / f"node-{node}" / "server.log").open("ab") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        self.processes[node] = ProcessMark(process.pid, start_time(process.pid) or "gone")
        self.save()

    def _await(self, node: int) -> None:
        """Until the broker itself counts itself among the living."""

        def takes_part() -> bool:
            if not self.processes[node].alive:
                tail = (self.folder / f"node-{node}" / "server.log").read_text(errors="replace").splitlines()[-15:]
                raise SystemExit(f"node {node} has ended:\n" + "\n".join(tail))
            try:
                with RawClient(HOST, self.port(node)) as client:
                    return node in client.metadata(()).brokers
            except (OSError, ProtocolError):
                return False

        wait_for(takes_part, f"broker {node} takes part", timeout_s=_READY_S)


def lose_unsynced(data: Path) -> list[int]:
    """Cut the segments below a log directory at the recovery points; how many bytes of each went."""
    points = recovery_points(data)
    cuts = []
    for folder in sorted(path for path in data.iterdir() if path.is_dir()):
        found = _PARTITION.fullmatch(folder.name)
        if found is None or found["topic"] == "__cluster_metadata":
            continue
        point = points.get((found["topic"], int(found["partition"])), 0)
        for segment in sorted(path for path in folder.iterdir() if _SEGMENT.fullmatch(path.name)):
            size = segment.stat().st_size
            kept = _position_of(segment, point)
            if kept < size:
                os.truncate(segment, kept)
                cuts.append(size - kept)
    return cuts


def recovery_points(data: Path) -> dict[tuple[str, int], int]:
    """(topic, partition) -> the offset up to which it was synced, as far as the broker has said."""
    try:
        lines = (data / _RECOVERY_POINTS).read_text().splitlines()
    except FileNotFoundError:
        return {}
    entries = [line.rsplit(" ", 2) for line in lines[2:]]
    return {(topic, int(partition)): int(offset) for topic, partition, offset in entries}


def _position_of(segment: Path, offset: int) -> int:
    """Where the first batch lies that has records from `offset` on."""
    content = memoryview(segment.read_bytes())
    if len(content) < HEADER_BYTES:
        return 0
    for position, header in iterate_headers(content):
        if header.next_offset > offset:
            return position
    return len(content)


def options(folder: Path) -> list[str]:
    """For `tanist jepsen`: where the cluster is, and how it is broken."""
    nodes = Nodes.load(folder)
    arguments = [
        "--name",
        f"Apache Kafka {VERSION}, ELR {'on' if nodes.elr else 'off'}",
        "--bootstrap",
        nodes.bootstrap,
    ]
    program = f"cd {shlex.quote(str(ROOT))} && {shlex.quote(sys.executable)} -m tests.faults.apache_nodes"
    for what in ("start", "crash", "lose", "pause", "resume"):
        arguments += [f"--{what}", f"{program} {shlex.quote(str(folder))} {what} {{node}}"]
    return arguments


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.apache_nodes", description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up")
    up.add_argument("--elr", choices=("on", "off"), default="on")
    for name in ("down", "command"):
        commands.add_parser(name)
    for name in ("start", "crash", "lose", "pause", "resume"):
        commands.add_parser(name).add_argument("node", type=int, choices=BROKERS)
    chosen = parser.parse_args(arguments)
    folder = chosen.folder.absolute()
    if chosen.command == "up":
        bring_up(folder, elr=chosen.elr == "on")
        print(Nodes.load(folder).bootstrap)
    elif chosen.command == "command":
        print(shlex.join(["tanist", "jepsen", *options(folder)]))
    elif chosen.command == "down":
        Nodes.load(folder).down()
    else:
        said = getattr(Nodes.load(folder), chosen.command)(chosen.node)
        if said is not None:
            print(said)


def bring_up(folder: Path, *, elr: bool) -> Nodes:
    """A new cluster; if it does not come up nothing is left running."""
    folder.mkdir(parents=True, exist_ok=True)
    nodes = Nodes(folder, free_ports(1 + len(BROKERS)), elr, {})
    nodes.format()
    try:
        nodes.up()
    except BaseException:
        nodes.down()
        raise
    return nodes


if __name__ == "__main__":
    main()

"""Apache Kafka as a reference: its jars, its tools, and clusters of its nodes as processes.

The jars come from Maven Central (`versions.py` and `pom.xml` beside this file pin them) into `.cache/kafka-VERSION/`,
by themselves, the first time they are asked for. Nothing but a Java of 17 or later and Maven is taken from the machine;
`missing()` says which of them lacks.

Every process started here is ended by its own pid, by `stop()` and at the latest when the interpreter exits.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from tests.interop import maven, versions
from tests.interop.cluster import CACHE, HOST, free_ports, wait_ready
from tests.interop.versions import Pin
from tests.interop.waiting import wait_for

PIN = versions.chosen()
VERSION = PIN.version
POM = Path(__file__).with_name("pom.xml")
LEAST_JAVA = 17

# Kafka's own start scripts' flags, without the heap, which is the caller's.
SERVER_FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
# A tool lives for a second: compile little, collect simply.
TOOL_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
# A tool that loads a broker is compiled as a broker is.
LOAD_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-Djava.awt.headless=true")

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = PIN.config_command
METADATA_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
REASSIGN_PARTITIONS = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
LEADER_ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
BROKER_API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
STORAGE = "kafka.tools.StorageTool"
METADATA_SHELL = "org.apache.kafka.shell.MetadataShell"
SERVER = "kafka.Kafka"

_LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.target = {target}
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
"""


class ToolFailed(AssertionError):
    """A tool of Apache Kafka's ended with another exit code than 0."""


class NodeDied(AssertionError):
    """A node's process ended by itself."""


def missing() -> str | None:
    """Why Apache Kafka cannot be run here, None if it can."""
    java = shutil.which("java")
    if java is None:
        return f"needs Java {LEAST_JAVA} or later (java is not on PATH)"
    banner = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', banner)
    if version is None or int(version[1]) < LEAST_JAVA:
        return f"needs Java {LEAST_JAVA} or later, found {banner.splitlines()[0] if banner else 'none'}"
    if not maven.can_fetch(POM, jar_folder(), _settings(PIN)):
        return "needs Maven to fetch Apache Kafka's jars (mvn is not on PATH)"
    return None


def jar_folder(pin: Pin = PIN) -> Path:
    """Where the jars are if they have been fetched."""
    return CACHE / f"kafka-{pin.version}"


def jars(pin: Pin = PIN) -> Path:
    """The folder of jars, and of the configurations of their logging."""
    return maven.fetched(POM, jar_folder(pin), _write_logging, _settings(pin))


def _settings(pin: Pin) -> Sequence[str]:
    return (pin.maven, "-Pshell") if pin.has_shell else (pin.maven,)


def _write_logging(folder: Path) -> None:
    for target, name, level in (("SYSTEM_OUT", "server", "info"), ("SYSTEM_ERR", "tools", "warn")):
        (folder / f"{name}.properties").write_text(_LOGGING.format(target=target, level=level))


def java_command(
    main: str,
    *arguments: str,
    flags: Sequence[str],
    logging: str = "tools",
    pin: Pin = PIN,
    classes: Path | None = None,
) -> list[str]:
    """The command line that runs a main class with the jars, and a folder of other classes, on its class path."""
    folder = jars(pin)
    path = f"{folder}/*" if classes is None else f"{classes}:{folder}/*"
    log4j = f"-Dlog4j2.configurationFile={folder / logging}.properties"
    return ["java", *flags, log4j, "-cp", path, main, *arguments]


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool printed, and how it ended."""

    command: str
    returncode: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        return f"{self.command}\nexit code {self.returncode}\n{self.stdout}\n{self.stderr}"


def try_tool(
    main: str,
    *arguments: str,
    stdin: str | None = None,
    timeout_s: float = 90.0,
    flags: Sequence[str] = TOOL_FLAGS,
    pin: Pin = PIN,
) -> ToolOutput:
    """Run a tool to its end, whatever its exit code."""
    command = java_command(main, *arguments, flags=flags, pin=pin)
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False)
    return ToolOutput(" ".join([main, *arguments]), done.returncode, done.stdout, done.stderr)


def tool(
    main: str,
    *arguments: str,
    stdin: str | None = None,
    timeout_s: float = 90.0,
    flags: Sequence[str] = TOOL_FLAGS,
    pin: Pin = PIN,
) -> ToolOutput:
    """Run a tool that must succeed."""
    output = try_tool(main, *arguments, stdin=stdin, timeout_s=timeout_s, flags=flags, pin=pin)
    if output.returncode != 0:
        raise ToolFailed(str(output))
    return output


class RunningTool:
    """A tool in the background, whose output can be waited for. Leaving the context kills it if it still runs."""

    def __init__(self, main: str, *arguments: str, flags: Sequence[str] = TOOL_FLAGS) -> None:
        self.command = " ".join([main, *arguments])
        self._process = subprocess.Popen(
            java_command(main, *arguments, flags=flags),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        if self._process.stdout is None:
            raise ValueError("the tool was started without a pipe")
        for line in self._process.stdout:
            self._lines.append(line)

    def __enter__(self) -> RunningTool:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def wait_for_line(self, text: str, *, timeout_s: float = 60.0) -> str:
        """The first line that contains the text."""

        def seen() -> str | None:
            return next((line for line in list(self._lines) if text in line), None)

        return wait_for(seen, f"{self.command} prints {text}", timeout_s=timeout_s)

    def finish(self, *, timeout_s: float = 90.0) -> str:
        """Wait for its end, which must be a success; all it printed."""
        self._process.wait(timeout_s)
        self._reader.join()
        output = "".join(self._lines)
        if self._process.returncode != 0:
            raise ToolFailed(f"{self.command}: exit code {self._process.returncode}\n{output}")
        return output


def reassign(bootstrap: str, plan: Mapping[str, object], *, timeout_s: float = 60.0) -> str:
    """kafka-reassign-partitions: execute the plan, and verify until it says that it is complete; its last words."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(plan, file)
        file.flush()
        common = ("--bootstrap-server", bootstrap, "--reassignment-json-file", file.name)
        tool(REASSIGN_PARTITIONS, *common, "--execute")

        def complete() -> str | None:
            reported = tool(REASSIGN_PARTITIONS, *common, "--verify").stdout
            return None if "is still in progress" in reported else reported

        return wait_for(complete, "the reassignment completes", timeout_s=timeout_s)


def random_cluster_id() -> str:
    """A fresh cluster id, as Apache's own tool makes them."""
    return tool(STORAGE, "random-uuid").stdout.strip()


@dataclass(slots=True)
class _Node:
    node_id: int
    port: int
    controller_port: int
    directory: Path
    process: subprocess.Popen[bytes] | None = None
    output: IO[bytes] | None = None

    @property
    def properties_file(self) -> Path:
        return self.directory / "server.properties"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log_file(self) -> Path:
        return self.directory / "server.log"


@dataclass(slots=True)
class ApacheCluster:
    """Combined KRaft nodes (broker and controller each), ids from 1, on 127.0.0.1.

    `quorum` is "static" (`controller.quorum.voters`, kraft.version 0) or, for one node, "standalone" (KIP-853, the
    way the quick start formats it: kraft.version 1).
    """

    directory: Path
    nodes: int = 3
    properties: Mapping[str, str] = field(default_factory=dict)
    heap: str = "512m"
    quorum: Literal["static", "standalone"] = "static"
    first_port: int | None = None
    name: str = "apache"
    pin: Pin = PIN
    classes: Path | None = None
    """A folder of classes of plug-ins."""
    _members: dict[int, _Node] = field(default_factory=dict, init=False)
    _formatted: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.quorum == "standalone" and self.nodes != 1:
            raise ValueError("a standalone quorum has one node")
        first = self.first_port if self.first_port is not None else free_ports(2 * self.nodes)
        for index in range(self.nodes):
            node_id = index + 1
            folder = self.directory / f"node-{node_id}"
            self._members[node_id] = _Node(node_id, first + index, first + self.nodes + index, folder)
        self._formatted = all((node.data / "meta.properties").exists() for node in self._members.values())
        atexit.register(self._kill_all)

    @property
    def node_ids(self) -> Sequence[int]:
        return tuple(self._members)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{node.port}" for node in self._members.values())

    def address(self, node_id: int) -> tuple[str, int]:
        return HOST, self._members[node_id].port

    def pid(self, node_id: int) -> int | None:
        process = self._members[node_id].process
        return process.pid if process is not None and process.poll() is None else None

    def log_directory(self, node_id: int) -> Path:
        return self._members[node_id].data

    def properties_file(self, node_id: int) -> Path:
        """The node's server.properties."""
        return self._members[node_id].properties_file

    def node_properties(self, node_id: int) -> dict[str, str]:
        """What the node's server.properties says."""
        node = self._members[node_id]
        voters = ",".join(f"{each.node_id}@{HOST}:{each.controller_port}" for each in self._members.values())
        internal_replicas = str(min(3, self.nodes))
        properties = {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://{HOST}:{node.port},CONTROLLER://{HOST}:{node.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{node.port},CONTROLLER://{HOST}:{node.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(node.data),
            "offsets.topic.replication.factor": internal_replicas,
            "transaction.state.log.replication.factor": internal_replicas,
            "share.coordinator.state.topic.replication.factor": internal_replicas,
            "transaction.state.log.min.isr": str(min(2, self.nodes)),
            "group.initial.rebalance.delay.ms": "0",
        }
        if self.quorum == "static":
            properties["controller.quorum.voters"] = voters
        else:
            properties["controller.quorum.bootstrap.servers"] = f"{HOST}:{node.controller_port}"
        return properties | dict(self.properties)

    def format(self) -> None:
        """Write the properties and format the folders, once."""
        if self._formatted:
            return
        cluster_id = random_cluster_id()
        for node in self._members.values():
            node.data.mkdir(parents=True, exist_ok=True)
            lines = [f"{key}={value}\n" for key, value in self.node_properties(node.node_id).items()]
            node.properties_file.write_text("".join(lines))
            how = ["--standalone"] if self.quorum == "standalone" else []
            tool(
                STORAGE, "format", "--config", str(node.properties_file), "--cluster-id", cluster_id, *how, pin=self.pin
            )
        self._formatted = True

    def start(self) -> None:
        self.format()
        try:
            for node_id in self._members:
                self.start_node(node_id)
            wait_ready(self, timeout_s=180.0, alive=self.check_alive)
        except BaseException:
            self.stop()
            raise

    def start_node(self, node_id: int) -> None:
        node = self._members[node_id]
        if self.pid(node_id) is not None:
            raise ValueError(f"node {node_id} runs already")
        flags = (*SERVER_FLAGS, f"-Xmx{self.heap}", f"-Xms{self.heap}")
        command = java_command(
            SERVER, str(node.properties_file), flags=flags, logging="server", pin=self.pin, classes=self.classes
        )
        self._close_output(node)
        node.output = node.log_file.open("ab")
        node.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=node.output,
            stderr=subprocess.STDOUT,
            # Out of our process group: a Ctrl-C is answered by `stop`, not by three nodes at once.
            start_new_session=True,
        )

    def check_alive(self) -> None:
        """Raise, with the end of its log, if a node that was started has ended."""
        for node in self._members.values():
            if node.process is not None and node.process.poll() is not None:
                tail = node.log_file.read_text(errors="replace").splitlines()[-30:]
                raise NodeDied(f"node {node.node_id} ended with {node.process.returncode}:\n" + "\n".join(tail))

    def stop_node(self, node_id: int) -> None:
        self._end(self._members[node_id], signal.SIGTERM)

    def kill_node(self, node_id: int) -> None:
        self._end(self._members[node_id], signal.SIGKILL)

    def _end(self, node: _Node, how: signal.Signals, timeout_s: float = 60.0) -> None:
        process = node.process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        node.process = None
        self._close_output(node)

    def stop(self) -> None:
        # All at once, and not for long: the last voters wait in vain for a quorum that has gone before them.
        enders = [
            threading.Thread(target=self._end, args=(node, signal.SIGTERM, 8.0)) for node in self._members.values()
        ]
        for ender in enders:
            ender.start()
        for ender in enders:
            ender.join()

    def _kill_all(self) -> None:
        for node in self._members.values():
            if node.process is not None and node.process.poll() is None:
                node.process.kill()
                node.process.wait()

    @staticmethod
    def _close_output(node: _Node) -> None:
        if node.output is not None:
            node.output.close()
            node.output = None


def environment_note() -> str:
    """One line for reports: which Java runs Apache Kafka, on how many cores."""
    banner = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    return f"Apache Kafka {VERSION}, {banner[0] if banner else 'no java'}, {os.cpu_count()} cores"

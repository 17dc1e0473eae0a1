"""The world of a story about a cluster of Apache Kafka: three brokers, and a controller that becomes one of tanist.

Its commands are those of `tests.stories.stage`, and besides:

* `kafka-topics ...`, `kafka-leader-election ...`: Apache Kafka's tools, with the brokers' addresses.
* `tanist migrate next ...`, `back ...`: the operator does what they ask for, while they wait.
* `crash ID`, `start ID`: SIGKILL, and the start of the program that the node has now.
* `destroy ID`: SIGKILL, and the folder is gone. `replace ID`: a new machine with an empty folder.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from tanist.runtime.client.client import Address
from tests.interop import apache
from tests.interop.mixed.mixed_cluster import APACHE, PROGRAM, TANIST, Member, MixedCluster
from tests.stories.plain import plain
from tests.stories.prompt import Prompt
from tests.stories.stage import LiveStage

CONTROLLER = 11
_TOOLS = {"kafka-topics": apache.TOPICS, "kafka-leader-election": apache.LEADER_ELECTION}
_WAITING = re.compile(r"waiting for node (\d+)")


class ApacheStage(LiveStage):
    """A story's commands on a cluster that is up from the beginning."""

    patience_s = 300.0
    """A broker's JVM may take minutes to start on a busy machine."""

    def __init__(self, folder: Path, prompt: Prompt) -> None:
        super().__init__(folder, prompt)
        members = {each: Member(APACHE, "broker") for each in (1, 2, 3)} | {CONTROLLER: Member(APACHE, "controller")}
        self.cluster = MixedCluster(folder / "cluster", members)
        self.cluster.start()

    def run(self, command: str) -> str:
        words = shlex.split(command)
        own = {"crash": self._crash, "start": self._start, "destroy": self._destroy, "replace": self._replace}
        if words[0] in own:
            return plain(own[words[0]](int(words[1])))
        if words[0] in _TOOLS:
            return plain(self._tool(words))
        if words[:2] == ["tanist", "migrate"]:
            return plain(self._migrate(words))
        return self._placed(super().run(command))

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        for node_id in self.cluster.members:
            self.cluster.kill_node(node_id)

    # -- what the stage asks of a cluster

    def _names_brokers(self) -> bool:
        return True

    def _addresses(self) -> list[Address]:
        return [self.cluster.address(node_id) for node_id in self._up()]

    def _up(self) -> list[int]:
        return [node_id for node_id in self.cluster.node_ids if self.cluster.pid(node_id) is not None]

    # -- commands

    def _crash(self, node_id: int) -> str:
        self.cluster.kill_node(node_id)
        return f"node {node_id}: crashed"

    def _start(self, node_id: int) -> str:
        self.cluster.start_node(node_id)
        return f"node {node_id}: started"

    def _destroy(self, node_id: int) -> str:
        self.cluster.kill_node(node_id)
        shutil.rmtree(self.cluster.log_directory(node_id))
        return f"node {node_id}: crashed, and its disk is lost"

    def _replace(self, node_id: int) -> str:
        meta = (self.cluster.log_directory(CONTROLLER) / "meta.properties").read_text()
        (cluster_id,) = re.findall(r"^cluster\.id=(.*)$", meta, re.MULTILINE)
        self.cluster.log_directory(node_id).mkdir()
        file = str(self.cluster.directory / f"node-{node_id}" / "server.properties")
        apache.tool(apache.STORAGE, "format", "--config", file, "--cluster-id", cluster_id)
        return self._start(node_id)

    def _tool(self, words: list[str]) -> str:
        bootstrap = ",".join(f"{host}:{port}" for host, port in self._addresses())
        done = apache.try_tool(_TOOLS[words[0]], "--bootstrap-server", bootstrap, *words[1:])
        if done.returncode:
            raise apache.ToolFailed(str(done))
        return done.stdout

    def _migrate(self, words: list[str]) -> str:
        """The command, and what it asks the operator to do."""
        kind = TANIST if words[2] == "next" else APACHE
        environment = {**os.environ, "TANIST_BOOTSTRAP": ",".join(f"{h}:{p}" for h, p in self._addresses())}
        lines: list[str] = []
        command = [str(PROGRAM), *words[1:]]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as process:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                if (waiting := _WAITING.match(line)) is not None:
                    node_id = int(waiting[1])
                    self.cluster.stop_node(node_id)
                    self.cluster.becomes(node_id, kind)
                    self.cluster.start_node(node_id)
        printed = "\n".join(lines)
        return self._placed(printed if process.returncode == 0 else f"{printed}\n(exit code {process.returncode})")

    def _placed(self, printed: str) -> str:
        """The folders of this test as those of a machine."""
        for node_id in self.cluster.members:
            printed = printed.replace(str(self.cluster.log_directory(node_id)), "/var/lib/kafka")
        return printed

"""The world of one story: a folder, a shell prompt in it, and whatever cluster the story brings up.

Commands of a story:

* `tanist ...`: the command line, in a process of its own. `tanist up` is given a free `--port`; all else is as written.
* `seq 1 100 | tanist produce TOPIC`: the same, with what the left side prints. Numbers that `produce` says were sent
  are noted as acknowledged.
* `account TOPIC`: everything that was acknowledged, compared with everything that a consumer gets.
* `wait-until TOPIC leader=2 isr=2,3 elr= ...`: until every broker that can be asked tells of these; then prints what
  `tanist topics describe TOPIC --explain` says of its partitions.
* `wait-until-metric ID NAME LEAST`: until a node's metric is that much, or more. There is no other way to wait.
* `pause ID`, `resume ID`: SIGSTOP and SIGCONT. A paused broker is like one that the network cuts off: it is silent,
  keeps all that it has in memory, and when it is back it does not know that it was away.
* `old-client VERB ...`, `new-client VERB ...`: a transactional producer (`transactional`).
* anything else is bash's.

`$CONTROLLER` is the id of the active controller.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from tanist.cli.commands.topic_states import describe
from tanist.cli.output.topic_description import topic_lines
from tanist.client.positions import EARLIEST, LATEST
from tanist.runtime.client import admin
from tanist.runtime.client.account import compare
from tanist.runtime.client.admin import PartitionDescription
from tanist.runtime.client.client import Address, Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.records import list_offset, read
from tanist.runtime.cluster.cluster_file import ClusterFile, NodeEntry, load
from tests.interop.cluster import free_ports
from tests.interop.tanist_cluster import node_metric
from tests.interop.waiting import wait_for
from tests.stories.plain import plain
from tests.stories.prompt import Prompt
from tests.stories.transactional import TransactionalClient

WAIT_S = 40.0
_ASK_S = 5.0
_MOST_NODES = 12

_SENT = re.compile(r"^(\d+) records? sent$", re.MULTILINE)
_CONDITIONS: dict[str, Callable[[PartitionDescription], tuple[int, ...] | None]] = {
    "leader": lambda partition: () if partition.leader < 0 else (partition.leader,),
    "isr": lambda partition: partition.isr,
    "elr": lambda partition: partition.elr,
    "last_known_elr": lambda partition: partition.last_known_elr,
    "offline": lambda partition: partition.offline,
}


class LiveStage:
    """A story's commands, carried out."""

    patience_s = WAIT_S
    """How long a condition may take to come true."""

    def __init__(self, folder: Path, prompt: Prompt) -> None:
        self._folder = folder
        self._data = folder / "tanist-data"
        self._prompt = prompt
        self._port = free_port()
        self._paused: set[int] = set()
        self._acknowledged: dict[str, list[int]] = {}
        """By all in-sync replicas, per topic, in the order of sending."""
        self._taken: dict[str, list[int]] = {}
        """Acknowledged by the leader alone (acks=1)."""
        self._clients: dict[Address, Client] = {}
        self._transactional_clients: dict[str, TransactionalClient] = {}
        self._closing: list[Client] = []

    def run(self, command: str) -> str:
        controller = self._controller() if "$CONTROLLER" in command else None
        words = shlex.split(command.replace("$CONTROLLER", str(controller)))
        own: dict[str, Callable[[list[str]], str]] = {
            "wait-until": self._wait_until,
            "wait-until-metric": self._wait_until_metric,
            "account": self._account,
            "pause": self._pause,
            "resume": self._resume,
            "old-client": partial(self._transactional, "old-client"),
            "new-client": partial(self._transactional, "new-client"),
        }
        if words[0] in own:
            printed = own[words[0]](words[1:])
        elif words[0] == "tanist" or (words[0] == "seq" and "tanist" in words):
            printed = self._tanist(words)
        else:
            printed = self._bash(command)
        if controller is not None:
            printed = re.sub(rf"\b{controller}\b", "$CONTROLLER", printed)
        return plain(printed)

    def close(self) -> None:
        """Kill what the story has left running."""
        for client in (*self._clients.values(), *self._closing):
            client.close()
        for node in self._cluster().running if self._data.exists() else ():
            if node.process is not None:
                node.process.kill()

    # -- commands

    def _tanist(self, words: list[str]) -> str:
        given, numbers = b"", []
        if words[0] == "seq":
            pipe = words.index("|")
            given = subprocess.run(words[:pipe], check=True, stdout=subprocess.PIPE).stdout
            numbers = [int(line) for line in given.split()]
            words = words[pipe + 1 :]
        arguments = words[1:]
        environment = {}
        if arguments[0] == "up":
            arguments += ["--port", str(self._port)]
        elif self._names_brokers():
            environment["TANIST_BOOTSTRAP"] = ",".join(f"{host}:{port}" for host, port in self._addresses())
        printed, code = self._prompt.run(arguments, folder=self._folder, environment=environment, given=given)
        sent = _SENT.search(printed)
        if arguments[0] == "produce" and sent is not None and code == 0:
            if int(sent[1]) != len(numbers):
                raise RuntimeError(f"{len(numbers)} records were to be sent: {printed}")
            (self._taken if "--acks" in arguments else self._acknowledged).setdefault(arguments[1], []).extend(numbers)
        return _with_code(printed, code)

    def _bash(self, command: str) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=os.environ | {"PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        return _with_code(done.stdout, done.returncode)

    def _wait_until(self, words: list[str]) -> str:
        topic, conditions = words[0], [_condition(word) for word in words[1:]]
        if not conditions:
            raise ValueError("wait-until needs a condition")
        last: list[str] = []

        def holds() -> bool:
            last.clear()
            for address in self._addresses():
                try:
                    (found,) = admin.describe_topics(self._client(address), [topic])
                except (Unreachable, KafkaError, Unsupported) as error:
                    last.append(f"{address}: {error}")
                    return False
                for partition in found.partitions:
                    last.append(f"{address}: {partition}")
                    for name, wanted in conditions:
                        value = _CONDITIONS[name](partition)
                        if value is None or set(value) != wanted:
                            return False
            return bool(last)

        try:
            wait_for(holds, "the condition", timeout_s=self.patience_s)
        except AssertionError:
            seen = "\n".join(last)
            raise TimeoutError(f"not within {self.patience_s:.0f} s; the last that was seen:\n{seen}") from None
        with closing(Client(self._addresses(), timeout_s=_ASK_S)) as client:
            (described,) = describe(client, [topic], explained=True)
            return "\n".join(line.strip("\t") for line in topic_lines(described) if line.startswith("\t"))

    def _wait_until_metric(self, words: list[str]) -> str:
        node_id, name, least = words
        cluster = self._cluster()

        def holds() -> bool:
            value = node_metric(cluster, int(node_id), name, timeout_s=_ASK_S)
            return value is not None and value >= float(least)

        wait_for(holds, f"{name} of node {node_id} to be {least}", timeout_s=WAIT_S)
        return f"node {node_id}: {name} is {least} or more"

    def _account(self, words: list[str]) -> str:
        (topic,) = words
        acknowledged, stored = self._acknowledged.get(topic, []), list(self._stored(topic))
        lines = [str(compare(acknowledged, stored))]
        if taken := self._taken.get(topic, []):
            there = len(set(taken) & set(stored))
            lines.append(f"{len(taken)} had only the leader's word (acks=1): {there} of them in the log")
        return "\n".join(lines)

    def _stored(self, topic: str) -> Iterator[int]:
        with closing(Client(self._addresses(), timeout_s=WAIT_S)) as client:
            (described,) = admin.describe_topics(client, [topic])
            if len(described.partitions) != 1:
                raise ValueError(f"{topic} has more than one partition")
            start, end = (list_offset(client, topic, 0, where) for where in (EARLIEST, LATEST))
            for record in read(client, topic, 0, start, end):
                yield int(record.value or b"-1")

    def _pause(self, words: list[str]) -> str:
        node = self._cluster().node(int(words[0]))
        if node.process is None or not node.process.signal(signal.SIGSTOP):
            raise RuntimeError(f"node {node.node_id} is not running")
        self._paused.add(node.node_id)
        return f"node {node.node_id}: paused"

    def _resume(self, words: list[str]) -> str:
        node = self._cluster().node(int(words[0]))
        if node.process is None or not node.process.signal(signal.SIGCONT):
            raise RuntimeError(f"node {node.node_id} is not running")
        self._paused.discard(node.node_id)
        return f"node {node.node_id}: resumed"

    def _transactional(self, name: str, words: list[str]) -> str:
        known = self._transactional_clients.get(name)
        if known is None:
            client = Client(self._addresses(), timeout_s=WAIT_S)
            known = self._transactional_clients[name] = TransactionalClient(client, name, bumps=name == "new-client")
            self._closing.append(client)
        return known.run(words)

    # -- the cluster

    def _cluster(self) -> ClusterFile:
        cluster = load(self._data)
        if cluster is None:
            raise RuntimeError("there is no cluster yet")
        return cluster

    def _names_brokers(self) -> bool:
        """Whether commands get the addresses of the brokers to ask: those that are paused would hold them up."""
        return bool(self._paused)

    def _askable(self) -> list[NodeEntry]:
        return [node for node in self._cluster().running if node.is_broker and node.node_id not in self._paused]

    def _addresses(self) -> list[Address]:
        return [("127.0.0.1", node.broker_port) for node in self._askable()]

    def _client(self, address: Address) -> Client:
        if address not in self._clients:
            self._clients[address] = Client([address], timeout_s=_ASK_S)
        return self._clients[address]

    def _controller(self) -> int:
        def known() -> int | None:
            with closing(Client(self._addresses(), timeout_s=_ASK_S)) as client:
                try:
                    leader = admin.quorum_leader(client)
                except (Unreachable, KafkaError):
                    return None
            # For a moment brokers still tell of one that was killed.
            return leader if leader is not None and self._cluster().node(leader).alive else None

        return wait_for(known, "an active controller", timeout_s=WAIT_S)


def free_port() -> int:
    """A first port for a cluster, so low that those for metrics, 3000 above, are no ports of outgoing connections."""
    while (port := free_ports(_MOST_NODES)) > 28_000:
        pass
    return port


def _condition(word: str) -> tuple[str, set[int]]:
    name, equals, value = word.partition("=")
    if not equals or name not in _CONDITIONS:
        raise ValueError(f"{word!r} is not a condition: {', '.join(_CONDITIONS)}")
    return name, {int(broker) for broker in value.split(",") if broker not in ("", "none")}


def _with_code(printed: str, code: int) -> str:
    return printed if code == 0 else f"{printed.rstrip()}\n(exit code {code})"

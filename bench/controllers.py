"""`python -m bench.controllers`: three controllers and nothing else, with a hundred thousand partitions.

    python -m bench.controllers                             tanist, 100,000
    python -m bench.controllers --sides tanist,apache

The brokers are played: they register and send heartbeats. *Created*: from the first of the CreateTopics, of 5,000
partitions each, to the last answer. *Slowest answer*: of a heartbeat, sent every 20 ms all the while, in which
snapshots are written too. *Failover*: from a SIGKILL of the active controller until another has made a topic. *Back*:
from the command that starts the killed one again until it lags behind by no record.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from tanist.lab.scenarios import requests
from tanist.runtime.client.client import BrokerConnection, Unreachable
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.broker_registration_request import Listener
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from tanist.wire.schema import Request
from tests.interop import apache
from tests.interop.cluster import HOST, cpu_seconds, free_ports, interrupt_on_sigterm, resident_bytes
from tests.interop.controllers.nodes import NODE_ID, ApacheController, ControllerNode, TanistController
from tests.interop.controllers.side import FEATURES, UP_TO_DATE
from tests.interop.waiting import wait_for

TOPIC_PARTITIONS = 5_000
BROKERS = (1, 2, 3)
PROBE_S = 0.02
IDLE_S = 10.0
TIMEOUT_S = 120.0
SNAPSHOT_BYTES = 4 << 20
"""`metadata.log.max.record.bytes.between.snapshots`, so that snapshots are written meanwhile."""

_TROUBLE = (OSError, WireError, Unreachable)


@dataclass(slots=True)
class Quorum:
    """Three controllers, asked for whatever the active one alone answers."""

    nodes: list[ControllerNode]
    epochs: dict[int, int] = field(default_factory=dict)
    """Of the played brokers."""
    listeners: list[socket.socket] = field(default_factory=list)
    """Where the played brokers listen: one that nobody finds is fenced at once."""
    _active: int = 0
    _connection: BrokerConnection | None = None

    @property
    def active(self) -> ControllerNode:
        return self.nodes[self._active]

    def ask(self, request: Request, error_of: Callable[[Any], int]) -> Any:
        """The active controller's answer; `TimeoutError` if none answers."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                if self._connection is None:
                    self._connection = self.active.connect(TIMEOUT_S)
                response = self._connection.ask(request, TIMEOUT_S)
                if error_of(response) != ErrorCode.NOT_CONTROLLER:
                    return response
            except _TROUBLE:
                pass
            self.forget()
            self._active = (self._active + 1) % len(self.nodes)
            time.sleep(0.005)
        raise TimeoutError(f"no controller answers in {TIMEOUT_S:.0f} s")

    def forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def register(self) -> None:
        """Have the played brokers registered and unfenced."""
        for broker_id in BROKERS:
            listener = socket.create_server((HOST, 0))
            self.listeners.append(listener)
            request = replace(
                requests.registration(
                    broker_id,
                    cluster_id=self.nodes[0].cluster_id,
                    incarnation=uuid4(),
                    directories=(UUID(int=(7 << 64) + broker_id),),
                    features=FEATURES,
                ),
                listeners=(Listener(name="PLAINTEXT", host=HOST, port=listener.getsockname()[1]),),
            )
            response = self.ask(request, lambda answer: int(answer.error_code))
            if response.error_code:
                raise AssertionError(f"broker {broker_id} is not registered: {response}")
            self.epochs[broker_id] = response.broker_epoch
            wait_for(partial(self._is_unfenced, broker_id), f"broker {broker_id} is unfenced")

    def _is_unfenced(self, broker_id: int) -> bool:
        return not self.beat(broker_id).is_fenced

    def beat(self, broker_id: int) -> Any:
        return self.ask(heartbeat(broker_id, self.epochs[broker_id]), lambda answer: int(answer.error_code))

    def create(self, name: str, partitions: int) -> None:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=len(BROKERS))
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=int(TIMEOUT_S * 1000))
        response = self.ask(request, lambda answer: int(answer.topics[0].error_code))
        error = response.topics[0].error_code
        if error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise AssertionError(f"{name} is not made: {response.topics[0]}")

    def lag_of(self, node_id: int) -> int:
        """Records that a voter lacks, as the active controller knows."""
        part = TopicData(topic_name="__cluster_metadata", partitions=(PartitionData(partition_index=0),))
        response = self.ask(DescribeQuorumRequest(topics=(part,)), _quorum_error)
        found = response.topics[0].partitions[0]
        ends = {each.replica_id: each.log_end_offset for each in found.current_voters}
        return int(max(ends.values()) - max(0, ends.get(node_id, 0)))


def _quorum_error(answer: Any) -> int:
    if answer.error_code:
        return int(answer.error_code)
    part = answer.topics[0].partitions[0]
    return int(ErrorCode.NOT_CONTROLLER) if part.error_code else 0


def heartbeat(broker_id: int, epoch: int) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=UP_TO_DATE)


class Probe(threading.Thread):
    """Heartbeats of one broker to one controller, and the slowest answer."""

    def __init__(self, node: ControllerNode, broker_id: int, epoch: int) -> None:
        super().__init__(daemon=True)
        self._node = node
        self._request = heartbeat(broker_id, epoch)
        self._ended = threading.Event()
        self.slowest_s = 0.0

    def run(self) -> None:
        with suppress(*_TROUBLE):
            connection = self._node.connect(TIMEOUT_S)
            try:
                while not self._ended.wait(PROBE_S):
                    began = time.perf_counter()
                    connection.ask(self._request, TIMEOUT_S)
                    self.slowest_s = max(self.slowest_s, time.perf_counter() - began)
            finally:
                connection.close()

    def end(self) -> float:
        self._ended.set()
        self.join()
        return self.slowest_s


def quorum_of(target: str, folder: Path) -> Quorum:
    """Three controllers of either kind, not yet started."""
    kind = ApacheController if target == "apache" else TanistController
    cluster_id = apache.random_cluster_id()
    first = free_ports(3)
    ids = [NODE_ID + index for index in range(3)]
    voters = ",".join(f"{node_id}@{HOST}:{first + index}" for index, node_id in enumerate(ids))
    nodes: list[ControllerNode] = []
    for index, node_id in enumerate(ids):
        settings = {
            "node.id": str(node_id),
            "controller.quorum.voters": voters,
            "broker.session.timeout.ms": str(int(TIMEOUT_S * 1000)),
            "metadata.log.max.record.bytes.between.snapshots": str(SNAPSHOT_BYTES),
        }
        nodes.append(kind(f"{target} {node_id}", folder / str(node_id), cluster_id, settings, port=first + index))
    return Quorum(nodes)


def measure(target: str, folder: Path, partitions: int) -> dict[str, float]:
    quorum = quorum_of(target, folder)
    try:
        with ThreadPoolExecutor() as pool:  # one alone may not serve before there is a quorum
            list(pool.map(ControllerNode.start, quorum.nodes))
        return _measure(quorum, partitions)
    finally:
        quorum.forget()
        for listener in quorum.listeners:
            listener.close()
        for node in quorum.nodes:
            node.stop()


def _measure(quorum: Quorum, partitions: int) -> dict[str, float]:
    quorum.register()
    probe = Probe(quorum.active, BROKERS[0], quorum.epochs[BROKERS[0]])
    probe.start()
    began = time.perf_counter()
    for start in range(0, partitions, TOPIC_PARTITIONS):
        quorum.create(f"t{start // TOPIC_PARTITIONS}", min(TOPIC_PARTITIONS, partitions - start))
    created_s = time.perf_counter() - began
    time.sleep(IDLE_S)
    pids = [node.pid for node in quorum.nodes]
    before, since = cpu_seconds(pids), time.perf_counter()
    time.sleep(IDLE_S)
    idle = (cpu_seconds(pids) - before) / (time.perf_counter() - since) / len(pids)
    slowest_s = probe.end()
    snapshots = [path.stat().st_size for path in quorum.active.folder.rglob("*.checkpoint") if path.name[0] == "0"]
    memory = max(resident_bytes([pid]) for pid in pids)
    victim = quorum.active
    began = time.perf_counter()
    victim.kill()
    quorum.create("after", 1)
    failover_s = time.perf_counter() - began
    began = time.perf_counter()
    victim.start()
    node_id = int(victim.extra["node.id"])
    wait_for(lambda: quorum.lag_of(node_id) == 0, "the killed one is back", timeout_s=TIMEOUT_S, poll_s=0.05)
    return {
        "created_s": created_s,
        "slowest_answer_ms": slowest_s * 1000,
        "snapshot_mb": max(snapshots, default=0) / 1e6,
        "rss_mb": memory / 1e6,
        "idle_cpu_percent": idle * 100,
        "failover_s": failover_s,
        "back_s": time.perf_counter() - began,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.controllers", description=__doc__.split("\n")[0])
    parser.add_argument("--sides", help="what is measured (tanist)", default="tanist")
    parser.add_argument("--partitions", help="how many (100000)", default="100000")
    parser.add_argument("--data", type=Path, help="where the controllers keep their data (a temporary folder)")
    chosen = parser.parse_args()
    interrupt_on_sigterm()
    for count in map(int, chosen.partitions.split(",")):
        for target in chosen.sides.split(","):
            with tempfile.TemporaryDirectory(prefix="tanist-bench-", dir=chosen.data) as folder:
                found = measure(target, Path(folder), count)
            print(
                f"{target}, {count:,}: " + ", ".join(f"{name} {value:.2f}" for name, value in found.items()),
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""tanist's own cluster for the test: three brokers and three controllers, in processes of their own.

The controllers are separate, so that a leader can lose its followers and keep its controller, as it kept ZooKeeper in
Jepsen's test. Sessions and lags are shorter than Kafka's defaults; otherwise five minutes would have few elections.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tanist.faults import Where, names_of
from tanist.lab.jepsen.target import Reach
from tanist.runtime.client.client import Address
from tanist.runtime.cluster.addresses import properties_to_brokers
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.cluster_file import load, load_existing
from tanist.runtime.cluster.fault_requests import FaultRequests
from tanist.runtime.faults.settings import CLIENTS, BadDisk, DiskState, Partition, Slow, side

BROKERS = 3
CONTROLLERS = 3
CONFIG = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "2000",
}
TRANSACTIONAL_CONFIG = {
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "500",
}
"""Where clients have transactions and groups: internal topics of fewer partitions, which are there sooner."""
_PORTS = range(20_000, 28_000)
_LATE_MS = 200


class OwnCluster:
    """Up from the beginning; `close` kills all its processes."""

    name = "tanist"
    abilities = frozenset(names_of(Where.JEPSEN))

    def __init__(self, folder: Path, *, elr: bool, secure: bool = False) -> None:
        """`secure`: with TLS, users and an authorizer; the test is the administrator."""
        self.data: Path | None = folder
        self._cluster = LocalCluster(folder)
        self._orders = FaultRequests(folder)
        self._folder = folder
        try:
            self._cluster.up(
                brokers=BROKERS,
                controllers=CONTROLLERS,
                port=random.SystemRandom().choice(_PORTS),
                config=CONFIG | TRANSACTIONAL_CONFIG,
                features={} if elr else {"eligible.leader.replicas.version": 0},
                secure=secure,
                ends_with_us=True,
            )
            entries = load_existing(folder)
            self.properties = properties_to_brokers(entries, folder)
        except BaseException:
            self.close()
            raise
        self.node_ids: Sequence[int] = [node.node_id for node in entries.brokers]
        self.addresses: Sequence[Address] = [(entries.host, node.broker_port) for node in entries.brokers]

    def alive(self, node_id: int) -> bool:
        return load_existing(self._folder).node(node_id).alive

    def kill(self, node_id: int) -> None:
        self._cluster.crash(node_id)

    def lose_power(self, node_id: int) -> str:
        cuts = self._cluster.crash(node_id, lose_page_cache=True)
        return f"{sum(cut.lost_bytes for cut in cuts):,} bytes in {len(cuts)} files lost"

    def start(self, node_id: int) -> None:
        self._cluster.start(node_id)

    def pause(self, node_id: int) -> None:
        self._orders.pause(node_id)

    def cut(self, source: Sequence[int], target: Sequence[int], reach: Reach) -> None:
        beyond = [*target, CLIENTS] if reach == "network" else target
        self._orders.set(Partition(side(source), side(beyond), reach == "one-way"))

    def everybody_else(self, node_id: int) -> Sequence[int]:
        return [node.node_id for node in load_existing(self._folder).nodes if node.node_id != node_id]

    def slow(self, node_id: int, to: Literal["nodes", "clients"]) -> None:
        others = self.everybody_else(node_id) if to == "nodes" else [CLIENTS]
        self._orders.set(Slow(side([node_id]), side(others), False, _LATE_MS, _LATE_MS // 4, 0))

    def disk(self, node_id: int, state: DiskState) -> None:
        late_ms = _LATE_MS if state == "slow" else 0
        self._orders.set(BadDisk(node_id, state, None, late_ms, writes=state == "slow"))

    def heal(self) -> None:
        self._orders.heal()

    def close(self) -> None:
        entries = load(self._folder)
        for node in entries.running if entries is not None else ():
            if node.process is not None:
                node.process.kill()
        self._cluster.let_go()

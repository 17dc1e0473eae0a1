"""Runs of processes: a cluster of its own for each, whose brokers are killed, lose their page cache, or stop.

Owns what a run of a seed does: the faults and their brokers are drawn; when they strike is not. A run waits for
conditions, and ends when all replicas are in sync again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from tanist.events.event import Event
from tanist.lab.trace.mapping import trace_of
from tanist.lab.trace.ordering import causal
from tanist.lab.trace.recording import of_processes
from tanist.lab.trace.runs import Traced
from tanist.runtime.client import admin
from tanist.runtime.client.client import KafkaError, Unreachable
from tanist.runtime.client.records import Producer
from tanist.runtime.cluster.addresses import client_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.cluster_file import ClusterFile, load_existing
from tanist.runtime.cluster.node_events import events_of, merged
from tanist.sim.world.clock import stream
from tanist.wire.batch import NewRecord

TOPIC: Final = "events"
KINDS: Final = ("crash", "power-loss", "stop")
CONFIG: Final = {
    "tanist.events.fine": "true",
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
    "replica.lag.time.max.ms": "2000",
    "min.insync.replicas": "2",
}
_TROUBLE: Final = (KafkaError, Unreachable)
_SEND_PATIENCE_S: Final = 1.0
_PATIENCE_S: Final = 120.0
_PAUSE_S: Final = 0.1


def of_processes_killed(seed: int) -> Traced:
    """The run of a seed. `ClusterError` if the cluster cannot start; `TimeoutError` if replicas do not come back."""
    with TemporaryDirectory(prefix="tanist-trace-") as name:
        folder = Path(name)
        local = LocalCluster(folder)
        try:
            local.up(brokers=3, controllers=1, port=0, config=CONFIG, ends_with_us=True)
            done = _Run(local, stream(seed, "trace live")).play()
        finally:
            local.down(patience_s=0.0)
        observed = list(of_processes(_events(load_existing(folder), folder)))
    partition = f"{TOPIC}-0"
    return Traced(f"live {seed}: {done}", trace_of(list(causal(observed, partition)), partition, strategy="Balanced"))


def _events(cluster: ClusterFile, folder: Path) -> list[tuple[int, int, Event]]:
    with events_of(folder, cluster.nodes) as sources:
        return [(each.wall_ms, each.node_id, each.event) for each in merged(sources)]


class _Run:
    def __init__(self, local: LocalCluster, rng: Random) -> None:
        self._local = local
        self._rng = rng
        self._did: list[str] = []
        self._client = client_of(load_existing(local.folder), local.folder)
        self._producer = Producer(self._client)

    def play(self) -> str:
        with self._client as client:
            admin.create_topic(client, TOPIC, partitions=1, replication_factor=3)
            for _ in range(self._rng.randint(2, 3)):
                self._until(lambda: len(self._partition().isr) == 3)
                self._send(self._rng.randint(1, 4))
                self._break_some()
            self._until(lambda: len(self._partition().isr) == 3)
            self._send(2)
        return ", ".join(self._did)

    def _break_some(self) -> None:
        """One broker or more, one after the other, with what clients write meanwhile."""
        down: list[int] = []
        for _ in range(self._rng.choice((1, 2, 2, 3))):
            partition = self._partition()
            chosen = self._rng.choice([each for each in partition.replicas if each not in down])
            kind = self._rng.choice(KINDS)
            self._did.append(f"{kind} {chosen}{' (leads)' if chosen == partition.leader else ''}")
            if kind == "stop":
                self._local.stop(chosen)
            else:
                self._local.crash(chosen, lose_page_cache=kind == "power-loss")
            down.append(chosen)
            if len(down) == len(partition.replicas):
                break  # nobody is left to be asked
            self._until(lambda chosen=chosen: chosen not in self._partition().isr)  # type: ignore[misc]
            self._send(self._rng.randint(0, 3))
        self._rng.shuffle(down)
        for node_id in down:
            self._local.start(node_id)

    def _send(self, count: int) -> None:
        for _ in range(count):
            with suppress(*_TROUBLE):  # too few replicas are in sync
                self._producer.send(TOPIC, 0, [NewRecord(value=b"event")], timeout_s=_SEND_PATIENCE_S)

    def _partition(self) -> admin.PartitionDescription:
        (topic,) = admin.describe_topics(self._client, [TOPIC])
        return topic.partitions[0]

    def _until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            with suppress(*_TROUBLE):
                if holds():
                    return
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {', '.join(self._did)}: {self._partition()}")
            time.sleep(_PAUSE_S)

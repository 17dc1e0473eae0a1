"""A constant load on a mixed cluster, the faults of a test, and the judgement on both.

The load is that of `tests.faults.load`: idempotent, acks=all, every acknowledgement noted with its offset and time. In
the end the history checker compares the notes with the log (`tests.faults.recorded`), and the segment files of all
replicas are compared byte by byte, file by file. `Watch.row` has what a test tells of itself (docs/mixed.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tanist.lab.history import Verdict
from tests.faults.history import longest_gap_s
from tests.faults.load import Load, read_all
from tests.faults.recorded import LOST, counted, judged
from tests.interop.cluster import metadata, wait_in_sync, wait_ready
from tests.interop.mixed.mixed_cluster import MixedCluster
from tests.interop.raw import RawClient
from tests.interop.waiting import wait_for

TOPIC = "watched"
RATE = 200.0
CALM_S = 1.0
RECOVERY_S = 300.0
_DECEIVED: Mapping[str, Any] = {
    # A leader that was stopped keeps its connections; by default librdkafka gives it a minute.
    "socket.timeout.ms": 5000,
    "topic.metadata.refresh.interval.ms": 5000,
}
ONE_IN_FLIGHT: Mapping[str, Any] = {"max.in.flight.requests.per.connection": 1}
"""For a leader that comes back by a clean restart: it knows the last batch of a producer only, and librdkafka ends over
an older one that it repeats (docs/interop.md, Faults)."""


@dataclass(slots=True)
class Row:
    """What a test has to tell: a row of the table in docs/mixed.md."""

    test: str
    rounds: int
    faults: int = 0
    acknowledged: int = 0
    lost: int = 0
    other_anomalies: int = 0
    longest_silence_s: float = 0.0
    """Between two acknowledgements, of all partitions together."""
    partition_silence_s: float = 0.0
    """Of the worst partition."""
    note: str = ""

    def __str__(self) -> str:
        return (
            f"| {self.test} | {self.rounds} | {self.faults} | {self.acknowledged:,} | {self.lost} | "
            f"{self.other_anomalies} | {self.longest_silence_s:.1f} | "
            f"{self.partition_silence_s:.1f} | {self.note} |"
        )


@dataclass(slots=True)
class Watch:
    """A load under way, and what was seen of it."""

    cluster: MixedCluster
    topic: str
    partitions: int
    load: Load
    row: Row
    began_s: float
    verdict: Verdict = field(default_factory=Verdict)

    def say(self, what: str) -> None:
        """For a reader (`-s`), and in the report of a failure."""
        print(f"{time.monotonic() - self.began_s:7.1f} s  {what}", flush=True)

    def wait_acknowledged(self, what: str, *, since_s: float | None = None, timeout_s: float = RECOVERY_S) -> None:
        """A record of each partition is acknowledged, that was so after a moment: now, if none is given."""
        since = time.monotonic() if since_s is None else since_s
        wait_for(
            lambda: self.load.acknowledged_since(since) == set(range(self.partitions)),
            f"acknowledgements of all partitions {what}",
            timeout_s=timeout_s,
        )
        self.say(f"acknowledgements of all partitions {what}")

    def wait_calm(self) -> None:
        """All replicas in sync, and a while with acknowledgements of each partition."""
        wait_ready(self.cluster, timeout_s=RECOVERY_S)
        wait_in_sync(self.cluster, self.topic, timeout_s=RECOVERY_S)
        began_s = time.monotonic()
        wait_for(
            lambda: (
                time.monotonic() >= began_s + CALM_S
                and self.load.acknowledged_since(began_s) == set(range(self.partitions))
            ),
            "a while of calm with acknowledgements of all partitions",
            timeout_s=RECOVERY_S,
        )
        self.say("calm")

    def strike(self, node_id: int, end: Callable[[int], None]) -> None:
        """A node ends, the others go on acknowledging without it, it starts and is in sync."""
        self.wait_calm()
        self.row.faults += 1
        end(node_id)
        self.say(f"node {node_id} has ended")
        # Acknowledgements of its last moments may be under way still: those of a while after are meant.
        self.wait_acknowledged(f"without node {node_id}", since_s=time.monotonic() + 0.2)
        self.cluster.start_node(node_id)
        wait_for(lambda: self._is_registered(node_id), f"node {node_id} is back", timeout_s=RECOVERY_S)
        self.wait_calm()

    def leader(self, partition: int = 0) -> int:
        return self.leaders()[partition]

    def leaders(self) -> Mapping[int, int]:
        for node_id in self.cluster.node_ids:
            if self.cluster.pid(node_id) is not None:
                return metadata(self.cluster, node_id, (self.topic,)).leaders(self.topic)
        raise AssertionError("no broker runs")

    def finish(self) -> None:
        """Stop the load, and judge."""
        self.load.stop()
        self.cluster.check_alive()
        wait_in_sync(self.cluster, self.topic, timeout_s=RECOVERY_S)
        log = read_all(self.cluster, self.topic, self.partitions)
        self.verdict, anomalies = judged(self.topic, self.load.acks, log, self.load.sent)
        self.row.acknowledged = self.verdict.acknowledged
        self.row.lost = counted(self.verdict, LOST)
        self.row.other_anomalies = sum(found.count for found in self.verdict.findings) - self.row.lost
        self.row.longest_silence_s = self._silence_s(range(self.partitions))
        self.row.partition_silence_s = max(self._silence_s((each,)) for each in range(self.partitions))
        unequal = wait_same_files(self.cluster, self.topic)
        self.row.note = "; ".join(filter(None, (self.row.note, *unequal)))
        assert not anomalies, anomalies
        assert not unequal, unequal
        assert self.row.acknowledged > 100

    def _silence_s(self, partitions: Collection[int]) -> float:
        """From the first acknowledgement to the last."""
        times = [ack.at_s for ack in self.load.acks if ack.partition in partitions]
        return longest_gap_s(times, min(times), max(times)) if times else 0.0

    def _is_registered(self, node_id: int) -> bool:
        self.cluster.check_alive()
        if not self.cluster.members[node_id].is_broker:
            return True
        return node_id in metadata(self.cluster, node_id, ()).brokers


def create_topic(
    cluster: MixedCluster, topic: str, partitions: int, replicas: int, config: Mapping[str, str] | None = None
) -> None:
    """Small segments: the replicas' files are compared over several rolls."""
    chosen = {"min.insync.replicas": "2", "segment.bytes": str(1 << 20), **(config or {})}
    with RawClient(*cluster.address(cluster.node_ids[0]), timeout_s=30.0) as client:
        client.create_topic(topic, partitions, replicas, chosen)


@contextmanager
def watched(
    cluster: MixedCluster,
    row: Row,
    *,
    partitions: int = 4,
    replicas: int = 3,
    create: bool = True,
    topic: str = TOPIC,
    rate: float = RATE,
    settings: Mapping[str, Any] | None = None,
) -> Iterator[Watch]:
    """A load on a topic of a cluster that is up, judged at the end. `create` False: the topic is there already.

    `settings`: more of the producer's.
    """
    if create:
        create_topic(cluster, topic, partitions, replicas)
    wait_in_sync(cluster, topic, timeout_s=RECOVERY_S)
    load = Load(cluster, topic, partitions, rate, {**_DECEIVED, **(settings or {})})
    watch = Watch(cluster, topic, partitions, load, row, time.monotonic())
    load.start()
    try:
        yield watch
        watch.wait_calm()
    except BaseException:
        # The failure that came first is the one to report.
        load.abandon()
        raise
    watch.finish()


# -- the replicas' files


def files_of(cluster: MixedCluster, node_id: int, topic: str, partition: int) -> dict[str, bytes]:
    """The segments of a replica by name, from the log directory that has it."""
    folders = [folder / f"{topic}-{partition}" for folder in cluster.log_directories(node_id)]
    found = [folder for folder in folders if folder.is_dir()]
    if len(found) != 1:
        raise AssertionError(f"{topic}-{partition} is in {len(found)} log directories of node {node_id}")
    return {file.name: file.read_bytes() for file in sorted(found[0].glob("*.log"))}


def differences(cluster: MixedCluster, topic: str, partitions: Mapping[int, Collection[int]]) -> list[str]:
    """Where two replicas of a partition hold different bytes."""
    found = []
    for partition, replicas in partitions.items():
        first, *others = sorted(replicas)
        expected = files_of(cluster, first, topic, partition)
        for other in others:
            seen = files_of(cluster, other, topic, partition)
            joined, whole = b"".join(seen.values()), b"".join(expected.values())
            # Files may differ: after a truncation below what a reader was given, a log of ours goes on in a new one.
            if joined != whole:
                sizes = f"{len(joined)} and {len(whole)} bytes"
                found.append(f"partition {partition}: nodes {other} and {first} differ ({sizes})")
    return found


def wait_same_files(cluster: MixedCluster, topic: str) -> Sequence[str]:
    """The differences that stay: a follower may be one fetch behind in the moment after the load has ended."""
    states = metadata(cluster, cluster.node_ids[0], (topic,)).topics[topic]
    replicas = {state.partition: state.replicas for state in states}
    try:
        wait_for(lambda: not differences(cluster, topic, replicas), "all replicas are the same bytes", timeout_s=20)
    except AssertionError:
        return differences(cluster, topic, replicas)
    return ()


def write_row(row: Row, file: Path | None) -> None:
    """Print it, and add it to a file."""
    print(row, flush=True)
    if file is not None:
        with file.open("a") as output:
            output.write(f"{row}\n")

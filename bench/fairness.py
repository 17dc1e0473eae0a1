"""`python -m bench.fairness`: what heavy neighbours do to the latency of a small producer, and to the broker's memory.

    python -m bench.fairness                        tanist beside Apache Kafka, logs of 4 GB, three rounds
    python -m bench.fairness --gb 6 --only pipeline,readers
    python -m bench.fairness --sides tanist,../before --rounds 1
    python -m bench.fairness --sides tanist --only alone,follower --gb 20    40 GB of disk

The small producer sends 100 records a second, one in each request, at fixed times whatever the answers do (an open
loop: a latency counts from the time at which its request was due). It is measured alone, and beside

* pipeline: one connection that has a thousand produces of 1 MB in flight;
* elsewhere: the same pipeline, to a broker of another cluster on the machine: what the small producer loses then, it
  loses to the machine's processors, memory and disk, and no broker can give it back;
* readers: fifty connections that read a log in memory from its start, 1 MB at a time;
* cold: eight such readers, while the log is dropped from the page cache piece by piece, all of it once a second, so
  that the broker must read it from the disk (a kernel short of memory drops the oldest first, and not all at once);
* idle: five thousand connections that are open and send nothing;
* follower: a broker that was down while a log was written, and catches up;
* replicated: with three replicas of the small producer's topic, the pipeline to another topic of three that has
  the same leader. (`replicated-alone`: without it.)

All but `elsewhere` and the last two share one combined node with it, these a cluster of three. The sides do not stand
side by side: one runs all its rounds, and one more before them to be warm, then the other. What the disk has to write
of one row is written before the next begins. Memory is the broker's resident set at its highest, looked at five times a
second. An idle client's share of the processors is not equal on a machine of two: the neighbours' own
processes take part of them, so compare the sides, and not the rows with `alone`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import stands
from bench.__main__ import labels_of_one_or_two, names_among
from bench.load import LoadSpec, percentile
from bench.measure import GIGABYTE, MEGABYTE, load
from bench.stands import Side
from bench.workloads import MB
from tests.interop.cluster import Cluster, interrupt_on_sigterm, metadata, resident_bytes, wait_in_sync
from tests.interop.raw import LATEST, RawClient

PROBE, LOG, PIPELINE = "probe", "long", "pipeline"
REPLICATED, REPLICATED_ALONE = "replicated", "replicated-alone"
RATE = 100.0
PIPELINED = 1_000
READERS = 50
COLD_READERS = 8
DROP_S = 1.0
DROP_BYTES = 32 << 20
IDLE = 5_000
BIG_BYTES = 1_000_000
"""A batch that fits the default `message.max.bytes`."""
SAMPLE_S = 0.2
CATCH_UP_S = 600.0
SETTLE_S = 3.0
"""After a row: the file system discards the blocks of deleted topics, gigabytes of them."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One round beside one neighbour."""

    p50_ms: float
    p99_ms: float
    max_ms: float
    resident_mb: float
    neighbour: float | None = None
    """Of the follower: the seconds until it was in sync."""

    @classmethod
    def of(cls, latencies_us: Sequence[float], resident_mb: float, neighbour: float | None = None) -> Measured:
        ordered = sorted(latencies_us)
        p50_us, p99_us = percentile(ordered, 0.50), percentile(ordered, 0.99)
        return cls(p50_us / 1e3, p99_us / 1e3, ordered[-1] / 1e3, resident_mb, neighbour)


class Memory:
    """The resident set of one node at its highest, while it is watched."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.bytes = 0

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            with suppress(OSError):
                self.bytes = max(self.bytes, resident_bytes([self._pid]))
            if self._stop.wait(SAMPLE_S):
                return


@dataclass(slots=True)
class Stand:
    """A side, and where its small producer writes."""

    side: Side
    seconds: float
    size_bytes: int

    def probe(self, cluster: Cluster, node: int, topic: str) -> Measured:
        """The small producer, for as long as each measurement takes."""
        return Measured.of(*self.sample(cluster, node, topic, self.seconds))

    def sample(self, cluster: Cluster, node: int, topic: str, seconds: float) -> tuple[Sequence[float], float]:
        """(latencies in microseconds, resident MB) of the small producer, for so long."""
        host, port = cluster.address(node)
        spec = LoadSpec(
            host, port, topic, "produce", connections=8, seconds=seconds, rate=RATE, batch_bytes=180,
            value_bytes=100, acks=-1,
        )  # fmt: skip
        pid = cluster.pid(node)
        if pid is None:
            raise RuntimeError(f"{cluster.name}: node {node} does not run")
        with Memory(pid) as memory, load(spec) as started:
            started.go()
            found = started.result()
        return found.latencies_us, memory.bytes / MEGABYTE

    def fill(self, cluster: Cluster, leader: int, topic: str) -> None:
        """Write the long log, in batches of 16 KB."""
        host, port = cluster.address(leader)
        written = 0
        while written < self.size_bytes:
            spec = LoadSpec(host, port, topic, "produce", 16, seconds=2.0, warm_seconds=0.0, batch_bytes=16 << 10)
            with load(spec) as started:
                started.go()
                written += started.result().bytes


@contextmanager
def beside(spec: LoadSpec) -> Iterator[None]:
    """A neighbour, which must not end before the small producer has."""
    with load(spec) as started:
        started.go()
        yield
        if started.ended:
            raise RuntimeError("the neighbour ended before the small producer")


def alone(stand: Stand) -> Measured:
    return stand.probe(stand.side.single, _only_node(stand), PROBE)


def pipeline(stand: Stand) -> Measured:
    return _beside_pipeline(stand, stand.side.single)


def elsewhere(stand: Stand) -> Measured:
    return _beside_pipeline(stand, stand.side.cluster(3))


def _beside_pipeline(stand: Stand, cluster: Cluster) -> Measured:
    leader = stands.create_topic(cluster, PIPELINE, 1)
    try:
        with _pipeline_to(stand, cluster, leader, acks=1):
            return alone(stand)
    finally:
        stands.delete_topic(cluster, PIPELINE)


def _pipeline_to(stand: Stand, cluster: Cluster, leader: int, acks: int) -> AbstractContextManager[None]:
    host, port = cluster.address(leader)
    spec = LoadSpec(
        host, port, PIPELINE, "produce", connections=1, depth=PIPELINED, seconds=stand.seconds + 60, warm_seconds=0.1,
        batch_bytes=BIG_BYTES, value_bytes=10_000, acks=acks,
    )  # fmt: skip
    return beside(spec)


def replicated(stand: Stand, *, lonely: bool = False) -> Measured:
    cluster = stand.side.cluster(3)
    leader = stands.create_topic(cluster, PIPELINE, 3)
    probe = _topic_led_by(cluster, leader, 3)
    try:
        stand.sample(cluster, leader, probe, 2.0)  # both followers are there
        if lonely:
            return stand.probe(cluster, leader, probe)
        with _pipeline_to(stand, cluster, leader, acks=-1):
            return stand.probe(cluster, leader, probe)
    finally:
        stands.delete_topic(cluster, PIPELINE)
        stands.delete_topic(cluster, probe)


@contextmanager
def dropped(folder: Path) -> Iterator[None]:
    """A folder's files, all on the disk, leave the page cache piece by piece, over and over."""
    pieces = [(path, at) for path in sorted(folder.glob("*.log")) for at in range(0, path.stat().st_size, DROP_BYTES)]
    stop = threading.Event()

    def drop() -> None:
        for path, at in itertools.cycle(pieces):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), at, DROP_BYTES, os.POSIX_FADV_DONTNEED)
            if stop.wait(DROP_S / len(pieces)):
                return

    thread = threading.Thread(target=drop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def cold(stand: Stand) -> Measured:
    with dropped(_long_log(stand)):
        return _beside_readers(stand, COLD_READERS)


def readers(stand: Stand) -> Measured:
    for path in _long_log(stand).glob("*.log"):  # what was written since has pushed some of it out of the page cache
        with path.open("rb", buffering=0) as file:
            while file.read(DROP_BYTES):
                pass
    return _beside_readers(stand, READERS)


def _long_log(stand: Stand) -> Path:
    return stand.side.single.log_directory(_only_node(stand)) / f"{LOG}-0"


def _beside_readers(stand: Stand, count: int) -> Measured:
    cluster, node = stand.side.single, _only_node(stand)
    host, port = cluster.address(node)
    with RawClient(host, port, timeout_s=30) as client:
        records = client.list_offset(LOG, 0, LATEST)
    step = max(1, records * MB // stand.size_bytes)
    spec = LoadSpec(
        host, port, LOG, "fetch", connections=count, seconds=stand.seconds + 60, warm_seconds=0.1, max_bytes=MB,
        offset_range=(0, records - step, step),
    )  # fmt: skip
    with beside(spec):
        return stand.probe(cluster, node, PROBE)


def idle(stand: Stand) -> Measured:
    cluster, node = stand.side.single, _only_node(stand)
    with ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(socket.create_connection(cluster.address(node), timeout=30))
        return stand.probe(cluster, node, PROBE)


def follower(stand: Stand) -> Measured:
    """Beside the leader that a follower catches up from. The time is that of the whole catch-up.

    Two replicas: a third would change nothing but how much of the disk a log of 20 GB takes.
    """
    cluster = stand.side.cluster(3)
    leader = stands.create_topic(cluster, LOG, 2, {"min.insync.replicas": "1"})
    probe = _topic_led_by(cluster, leader, 1)
    (replicas,) = (partition.replicas for partition in metadata(cluster, leader, (LOG,)).topics[LOG])
    late = next(node for node in replicas if node != leader)
    cluster.stop_node(late)
    stand.fill(cluster, leader, LOG)
    began_s = time.monotonic()
    took: list[float] = []

    def caught_up() -> None:
        cluster.start_node(late)
        wait_in_sync(cluster, LOG, timeout_s=CATCH_UP_S)
        took.append(time.monotonic() - began_s)

    waiting = threading.Thread(target=caught_up, daemon=True)
    waiting.start()
    resident_mb = 0.0
    latencies_us: list[float] = []
    while waiting.is_alive():
        more_us, more_mb = stand.sample(cluster, leader, probe, 2.0)
        resident_mb = max(resident_mb, more_mb)
        latencies_us += more_us
    waiting.join()
    if not took:
        raise RuntimeError(f"{cluster.name}: broker {late} has not caught up in {CATCH_UP_S:.0f} s")
    stands.delete_topic(cluster, LOG)
    stands.delete_topic(cluster, probe)
    return Measured.of(latencies_us, resident_mb, took[0])


def _only_node(stand: Stand) -> int:
    return stand.side.single.node_ids[0]


def _topic_led_by(cluster: Cluster, leader: int, replicas: int) -> str:
    """A topic of one partition that this broker leads: new ones are placed by turns."""
    for number in range(20):
        topic = f"{PROBE}-{number}"
        if stands.create_topic(cluster, topic, replicas) == leader:
            return topic
        stands.delete_topic(cluster, topic)
    raise RuntimeError(f"{cluster.name}: no topic was placed on broker {leader}")


NEIGHBOURS: dict[str, Callable[[Stand], Measured]] = {
    "alone": alone,
    "pipeline": pipeline,
    "elsewhere": elsewhere,
    "readers": readers,
    "cold": cold,
    "idle": idle,
    "follower": follower,
    REPLICATED_ALONE: partial(replicated, lonely=True),
    REPLICATED: replicated,
}

WITH_TRIPLE = {"elsewhere", "follower", REPLICATED_ALONE, REPLICATED}

Found = dict[tuple[str, str], list[Measured]]
"""Of side and neighbour."""


def run(
    labels: dict[str, str], directory: Path, only: Sequence[str], size_bytes: int, rounds: int, seconds: float
) -> Found:
    """All rounds of a side, then those of the other: each stands alone on the machine.

    Idle JVMs beside a broker cost a small producer more than its neighbours do. The cluster of three stands for the
    rows that need it only. A first round warms the side, and does not count.
    """
    found: Found = {}
    for label, target in labels.items():
        for with_triple in (False, True):
            part = [name for name in only if (name in WITH_TRIPLE) == with_triple]
            if part:
                with stands.standing({label: target}, directory, with_triple=with_triple) as (side,):
                    _measure(Stand(side, seconds, size_bytes), part, rounds, found)
                shutil.rmtree(directory / f"{label}-single")
    return found


def _measure(stand: Stand, names: Sequence[str], rounds: int, found: Found) -> None:
    label, single = stand.side.label, stand.side.single
    stands.create_topic(single, PROBE, 1)
    if "readers" in names or "cold" in names:
        stand.fill(single, stands.create_topic(single, LOG, 1), LOG)
    for number in range(rounds + 1):
        for name in names:
            os.sync()
            time.sleep(SETTLE_S)
            measured = NEIGHBOURS[name](stand)
            if number:
                found.setdefault((label, name), []).append(measured)
                print(f"  {name}, {label}: {_line(measured)}", flush=True)


def _line(measured: Measured) -> str:
    more = "" if measured.neighbour is None else f", in sync after {measured.neighbour:.1f} s"
    return (
        f"p50 {measured.p50_ms:.2f} ms, p99 {measured.p99_ms:.2f} ms, longest {measured.max_ms:.1f} ms, "
        f"{measured.resident_mb:,.0f} MB resident{more}"
    )


def report(found: Found, labels: Sequence[str], only: Sequence[str]) -> None:
    """The medians of the rounds; p99 also in multiples of the lonely one of as many replicas."""
    columns = [f"{label}: p50 | {label}: p99 | {label}: memory" for label in labels]
    print(f"\n| beside | {' | '.join(columns)} |")
    print(f"|---|{'---|' * (3 * len(labels))}")

    def median(label: str, name: str, value: Callable[[Measured], float]) -> float:
        return statistics.median(map(value, found[label, name]))

    for name in only:
        lonely = REPLICATED_ALONE if name.startswith(REPLICATED) else "alone"
        cells = []
        for label in labels:
            p99 = median(label, name, lambda each: each.p99_ms)
            times = f" ({p99 / median(label, lonely, lambda each: each.p99_ms):.1f})" if lonely in only else ""
            cells.append(
                f"{median(label, name, lambda each: each.p50_ms):.2f} ms | {p99:.2f} ms{times} | "
                f"{median(label, name, lambda each: each.resident_mb):,.0f} MB"
            )
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fairness", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--sides", type=labels_of_one_or_two, default="tanist,apache", help="one, or two to compare (tanist,apache)"
    )
    parser.add_argument(
        "--only", type=names_among(NEIGHBOURS), default=",".join(NEIGHBOURS), help="some of the neighbours"
    )
    parser.add_argument("--gb", type=float, default=4.0, help="size of the long logs (4)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement (10)")
    parser.add_argument("--data", type=Path, help="where the brokers keep their data (a temporary folder)")
    chosen = parser.parse_args()
    interrupt_on_sigterm()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory(prefix="tanist-bench-", dir=chosen.data) as folder:
        size_bytes = int(chosen.gb * GIGABYTE)
        found = run(chosen.sides, Path(folder), chosen.only, size_bytes, chosen.rounds, chosen.seconds)
    report(found, list(chosen.sides), chosen.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())

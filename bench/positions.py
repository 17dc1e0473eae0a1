"""`python -m bench.positions`: what a fetch costs at the tail of a long log, in its middle, and right after a restart.

    python -m bench.positions                       tanist beside Apache Kafka, a log of 6 GB, three rounds
    python -m bench.positions --gb 2 --sides tanist,../before --rounds 1

One node of each kind with one partition of 16 KB batches. Each workload reads a window of 64 MB over and over, so that
only the place differs and not what the processor's caches hold; `through` reads the whole log once and again, one
answer after the other. All of the log is in the page cache. The rounds are taken by turns (A B, B A), and after them
each node is stopped and started, and the first thing that it does is a round of the same.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import frames, stands
from bench.__main__ import labels_of
from bench.load import LoadSpec
from bench.measure import GIGABYTE, in_turn, run_load
from bench.stands import Side
from bench.workloads import FETCHED_BATCH_BYTES, FETCHED_LOG_BYTES, KB, MB
from tests.interop.cluster import interrupt_on_sigterm, wait_ready
from tests.interop.raw import LATEST, RawClient
from tests.interop.waiting import wait_for

TOPIC = "positions"
WARM_S = 6.0


@dataclass(frozen=True, slots=True)
class Load:
    """One size of fetch."""

    name: str
    max_bytes: int
    connections: int


LOADS = (Load("32 KB, 16 x 1", 32 * KB, 16), Load("1 MB, 4 x 1", MB, 4))
PLACES = ("tail", "middle", "through")


@dataclass(slots=True)
class Filled:
    """A side and its log."""

    side: Side
    records: int
    bytes: int
    per_batch: int
    batch_bytes: int

    def offsets(self, place: str, max_bytes: int) -> tuple[int, int, int]:
        """(first, end, step) of the fetch offsets: each answer begins where the one before has ended."""
        batches = self.records // self.per_batch
        window = batches if place == "through" else FETCHED_LOG_BYTES // self.batch_bytes
        step = max(1, max_bytes // self.batch_bytes)
        # Not so near the end that an answer would be short of its maximum.
        first = {"tail": batches - window - step, "middle": batches // 2, "through": 0}[place]
        last = min(first + window, batches - step)
        return first * self.per_batch, last * self.per_batch, step * self.per_batch


def fill(side: Side, size_bytes: int) -> Filled:
    """Write the log."""
    cluster = side.single
    leader = stands.create_topic(cluster, TOPIC, 1, {"segment.bytes": str(1 << 30)})
    host, port = cluster.address(leader)
    batch = frames.batch_of_size(FETCHED_BATCH_BYTES, 100, int(time.time() * 1000))
    written = 0
    while written < size_bytes:
        spec = LoadSpec(
            host, port, TOPIC, "produce", 16, seconds=2.0, warm_seconds=0.0, batch_bytes=FETCHED_BATCH_BYTES
        )
        written += run_load(cluster, spec)[0].bytes
    with RawClient(host, port, timeout_s=30) as client:
        records = client.list_offset(TOPIC, 0, LATEST)
    per_batch = int.from_bytes(batch[57:61], "big")
    return Filled(side, records, records // per_batch * len(batch), per_batch, len(batch))


def measure(filled: Filled, load: Load, place: str, seconds: float) -> float:
    """Microseconds of the broker's CPU for a fetch."""
    cluster = filled.side.single
    host, port = cluster.address(cluster.node_ids[0])
    spec = LoadSpec(
        host, port, TOPIC, "fetch", load.connections, seconds=seconds, max_bytes=load.max_bytes,
        offset_range=filled.offsets(place, load.max_bytes),
    )  # fmt: skip
    result, cpu = run_load(cluster, spec)
    return cpu / result.requests * 1e6


def restart(side: Side) -> None:
    cluster = side.single
    node = cluster.node_ids[0]
    cluster.stop_node(node)
    cluster.start_node(node)
    wait_ready(cluster)

    def serves() -> bool:
        with RawClient(*cluster.address(node), timeout_s=30) as client:
            return client.list_offset(TOPIC, 0, LATEST) > 0

    wait_for(serves, f"{side.label} serves again", timeout_s=60)


Costs = dict[tuple[str, str, str, str], list[float]]
"""Of side, load, place, and before or after the restart."""


def run(labels: dict[str, str], directory: Path, size_bytes: int, rounds: int, seconds: float) -> Costs:
    costs: Costs = {}

    def once(filled: Filled, load: Load, place: str, when: str) -> None:
        cost = measure(filled, load, place, seconds)
        costs.setdefault((filled.side.label, load.name, place, when), []).append(cost)
        print(f"  {filled.side.label}: {load.name}, {place}, {when}: {cost:,.1f} us of CPU", flush=True)

    with stands.standing(labels, directory, with_triple=False) as sides:
        logs = {side.label: fill(side, size_bytes) for side in sides}
        for filled in logs.values():
            print(f"{filled.side.label}: {filled.bytes / GIGABYTE:.1f} GB are written", flush=True)
            for load in LOADS:
                for place in PLACES:
                    measure(filled, load, place, WARM_S / len(PLACES))
        for number in range(rounds):
            for load in LOADS:
                for place in PLACES:
                    for side in in_turn(sides, number):
                        once(logs[side.label], load, place, "running")
        for number in range(rounds):
            for side in in_turn(sides, number):
                for load in LOADS:
                    for place in ("tail", "middle"):
                        restart(side)
                        once(logs[side.label], load, place, "restarted")
    return costs


def report(costs: Costs, labels: Sequence[str]) -> None:
    """A line for each load and place: the sides' medians, and how they compare to the side's own tail."""
    print(f"\n| fetch | where | {' | '.join(labels)} |")
    print(f"|---|---|{'---|' * len(labels)}")
    for load in LOADS:
        for when, place in [("running", each) for each in PLACES] + [("restarted", "tail"), ("restarted", "middle")]:
            cells = []
            for label in labels:
                cost = statistics.median(costs[label, load.name, place, when])
                tail = statistics.median(costs[label, load.name, "tail", "running"])
                cells.append(f"{cost:,.1f} µs ({cost / tail:.2f})")
            print(f"| {load.name} | {place}{', right after a restart' if when == 'restarted' else ''} "
                  f"| {' | '.join(cells)} |")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.positions", description=__doc__.split("\n")[0])
    parser.add_argument("--sides", type=labels_of, default="tanist,apache", help="what is compared (tanist,apache)")
    parser.add_argument("--gb", type=float, default=6.0, help="size of the log (6)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement (2)")
    parser.add_argument("--data", type=Path, help="where the brokers keep their data (a temporary folder)")
    chosen = parser.parse_args()
    interrupt_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="tanist-bench-", dir=chosen.data) as folder:
        costs = run(chosen.sides, Path(folder), int(chosen.gb * GIGABYTE), chosen.rounds, chosen.seconds)
    report(costs, list(chosen.sides))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m bench.partitions`: a cluster of three with thousands of partitions of three replicas each.

    python -m bench.partitions                         tanist, 3,000 and then 10,000
    python -m bench.partitions --sides tanist,apache --partitions 3000

One topic. *Created*: from the request until each broker has all logs and a record with acks=all is taken in a sample of
partitions. *Idle*: CPU of a broker, and resident memory, while nobody asks anything. *Elsewhere*: from a SIGKILL of a
broker until the others name none of its partitions as led by it. *In sync*: from the command that starts it again until
all ISRs have three members.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import frames, stands
from bench.__main__ import labels_of_one_or_two
from tests.interop.cluster import Cluster, cpu_seconds, interrupt_on_sigterm, metadata, pids, resident_bytes
from tests.interop.raw import RawClient

TOPIC = "many"
IDLE_S = 10.0
SETTLE_S = 15.0
SAMPLE = 20
PATIENCE_S = 180.0


def seconds_until(reached: Callable[[], bool], poll_s: float) -> float:
    started = time.perf_counter()
    while not reached():
        if time.perf_counter() - started > PATIENCE_S:
            raise TimeoutError(f"not reached in {PATIENCE_S:.0f} s")
        time.sleep(poll_s)
    return time.perf_counter() - started


def takes_records(cluster: Cluster, partitions: int) -> bool:
    """Whether a record with acks=all is taken in each of a sample of partitions."""
    leaders = metadata(cluster, cluster.node_ids[0], (TOPIC,)).leaders(TOPIC)
    batch = frames.record_batch([b"x"], int(time.time() * 1000))
    for index in range(0, partitions, max(1, partitions // SAMPLE)):
        produce = frames.produce(TOPIC, index, batch, -1)
        (frame,) = produce.requests
        with RawClient(*cluster.address(leaders[index]), timeout_s=60) as client:
            answer = client.exchange(frame)
        if produce.error_of(answer):
            return False
    return True


def measure(label: str, target: str, directory: Path, partitions: int) -> dict[str, float]:
    cluster = stands.triple(target, directory)
    try:
        cluster.start()
        return _measure(cluster, partitions)
    finally:
        cluster.stop()


def _measure(cluster: Cluster, partitions: int) -> dict[str, float]:
    started = time.perf_counter()
    with RawClient(*cluster.address(cluster.node_ids[0]), timeout_s=PATIENCE_S) as client:
        client.create_topic(TOPIC, partitions, 3, {})
    answered = time.perf_counter() - started

    def has_logs(node_id: int) -> bool:
        return sum(1 for each in cluster.log_directory(node_id).iterdir() if each.name.startswith(TOPIC)) == partitions

    seconds_until(lambda: all(map(has_logs, cluster.node_ids)), 0.05)
    seconds_until(lambda: takes_records(cluster, partitions), 0.1)
    created = time.perf_counter() - started
    time.sleep(SETTLE_S)
    servers = pids(cluster)
    before, since = cpu_seconds(servers), time.perf_counter()
    time.sleep(IDLE_S)
    idle = (cpu_seconds(servers) - before) / (time.perf_counter() - since) / len(servers)
    memory = max(resident_bytes([pid]) for pid in servers)
    victim, other = cluster.node_ids[-1], cluster.node_ids[0]
    cluster.kill_node(victim)
    elsewhere = seconds_until(lambda: victim not in metadata(cluster, other, (TOPIC,)).leaders(TOPIC).values(), 0.02)
    started = time.perf_counter()
    cluster.start_node(victim)
    seconds_until(lambda: all(len(each.isr) == 3 for each in metadata(cluster, other, (TOPIC,)).topics[TOPIC]), 0.25)
    return {
        "answered_s": answered,
        "created_s": created,
        "idle_cpu_percent": idle * 100,
        "rss_mb": memory / 1e6,
        "elsewhere_s": elsewhere,
        "in_sync_s": time.perf_counter() - started,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.partitions", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--sides", type=labels_of_one_or_two, default="tanist", help="what is measured, at most two (tanist)"
    )
    parser.add_argument("--partitions", help="how many (3000,10000)", default="3000,10000")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--data", type=Path, help="where the brokers keep their data (a temporary folder)")
    chosen = parser.parse_args()
    interrupt_on_sigterm()
    # ext4 uses no inode again for minutes after its file was deleted, and looks at each of those that are in the way:
    # whatever is made after a hundred thousand deletions takes several times as long. So all is deleted at the end.
    with tempfile.TemporaryDirectory(prefix="tanist-bench-", dir=chosen.data) as folder:
        for number, count in enumerate(map(int, chosen.partitions.split(",") * chosen.rounds)):
            for label, target in chosen.sides.items():
                found = measure(label, target, Path(folder) / f"{number}-{label}", count)
                row = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
                print(f"{label}, {count:,}: {row}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m bench.soak`: an hour of everything at once, a picture of what the nodes need, a check of the contents.

    python -m bench.soak --minutes 60
    python -m bench.soak --minutes 60 --out soak       soak.json, soak.svg
    python -m bench.soak --minutes 60 --secure         with TLS, SCRAM, ACLs and quotas (`soak_secure`)

Three brokers. Meanwhile: an idempotent load on a topic that is cut by size, with small segments; members of a group who
read it and commit; a compacted topic whose keys are overwritten all the time; small metadata snapshots; every minute
a broker is killed and started again, or all leaders move, or (in a secure cluster) all certificates are exchanged. Node
1 is spared: its lines are of one process, and have to stay flat once the topics are as large as retention lets them
become. Sampled: resident memory, open files, threads and connections of each node, what waits in its queues, the
lateness of its event loop, and the latency of a producer of one record at a time. At the end every record that was
acknowledged must have been read, and each key must have its last value.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.load import percentile
from bench.soak_picture import Line, picture
from bench.soak_secure import GREEDY, Visitors
from tanist.runtime.cluster.cluster_file import load_existing
from tests.clients import install
from tests.faults.load import Load, number_of, read_to_end
from tests.interop.cluster import client_settings, interrupt_on_sigterm, wait_in_sync, wait_ready
from tests.interop.secure_cluster import SecureCluster
from tests.interop.tanist_cluster import TanistCluster, node_metrics
from tests.interop.waiting import wait_for

FLOW, KEYS, PROBE, GROUP = "flow", "keys", "probe", "readers"
PARTITIONS = 6
KEY_COUNT = 1_000
SAMPLE_S = 5.0
DISTURB_S = 60.0
SPARED = 1
"""The node that is not killed."""
DOWN_S = 3.0
PATIENCE_S = 120.0
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    FLOW: (PARTITIONS, {"retention.bytes": str(16 << 20), "segment.bytes": str(2 << 20)}),
    KEYS: (3, {"cleanup.policy": "compact", "segment.bytes": str(1 << 20), "min.cleanable.dirty.ratio": "0.1"}),
    PROBE: (1, {"retention.bytes": str(4 << 20), "segment.bytes": str(1 << 20)}),
}
FROM_METRICS = {
    "connections": "kafka_server_socket_server_metrics_connection_count",
    "purgatory": 'tanist_queue_depth{queue="purgatory"}',
    "refusals": 'tanist_queue_depth{queue="delayed_refusals"}',
    "quota_counters": "tanist_quota_counters",
    "throttles": "tanist_throttles_total",
}
"""What is sampled of a node's own metrics: the sum of those that begin so."""
PROPERTIES = {
    "min.insync.replicas": "2",
    "log.retention.check.interval.ms": "5000",
    "log.cleaner.backoff.ms": "5000",
    "offsets.topic.num.partitions": "3",
    "metadata.log.max.record.bytes.between.snapshots": "20000",
}


@dataclass(slots=True)
class Background:
    """Threads that run until the end; the first failure of one is raised in it."""

    stopping: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def start(self, body: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                body()
            except BaseException as failure:
                self.failures.append(failure)

        thread = threading.Thread(target=guarded, daemon=True)
        self.threads.append(thread)
        thread.start()

    def stop(self) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)
        if self.failures:
            raise self.failures[0]


@dataclass(slots=True)
class Seen:
    """The numbers that the group's members have read, of each partition."""

    numbers: list[set[int]] = field(default_factory=lambda: [set() for _ in range(PARTITIONS)])

    def missing(self, load: Load) -> int:
        return sum(ack.number not in self.numbers[ack.partition] for ack in list(load.acks))


def read_as_member(cluster: TanistCluster, seen: Seen, stopping: threading.Event) -> None:
    from confluent_kafka import Consumer

    consumer = Consumer(client_settings(cluster) | {"group.id": GROUP, "auto.offset.reset": "earliest"})
    consumer.subscribe([FLOW])
    try:
        while not stopping.is_set():
            for message in consumer.consume(500, timeout=0.5):
                if message.error() is None:
                    seen.numbers[message.partition()].add(number_of(message.value(), message.partition()))
    finally:
        consumer.close()


def overwrite_keys(cluster: TanistCluster, rate: float, last: dict[int, int], stopping: threading.Event) -> None:
    """`last` gets the newest acknowledged value of each key."""
    from confluent_kafka import Producer

    producer = Producer(client_settings(cluster) | {"enable.idempotence": True})
    began_s, number = time.monotonic(), 0
    while not stopping.is_set():
        while number < (time.monotonic() - began_s) * rate:
            key, value = number % KEY_COUNT, number

            def delivered(error: Any, _: Any, key: int = key, value: int = value) -> None:
                if error is None:
                    last[key] = max(value, last.get(key, -1))

            producer.produce(KEYS, b"%d" % value, b"%d" % key, on_delivery=delivered)
            number += 1
        producer.poll(0.02)
    producer.flush(PATIENCE_S)


def probe(cluster: TanistCluster, took_ms: list[float], stopping: threading.Event) -> None:
    """One record at a time, every 50 ms; `took_ms` is emptied by who samples."""
    from confluent_kafka import Producer

    producer = Producer(client_settings(cluster) | {"enable.idempotence": True, "linger.ms": 0})
    while not stopping.wait(0.05):
        began_s = time.monotonic()
        producer.produce(PROBE, b"probe")
        producer.flush(PATIENCE_S)
        took_ms.append((time.monotonic() - began_s) * 1000)


def node_sample(cluster: TanistCluster, node_id: int) -> dict[str, float]:
    """What one node needs now; nothing if it is down."""
    pid = cluster.pid(node_id)
    if pid is None:
        return {}
    found: dict[str, float] = {}
    with suppress(OSError, ValueError, IndexError, KeyError):
        status = Path(f"/proc/{pid}/status").read_text()
        found["rss_mb"] = int(status.partition("VmRSS:")[2].split()[0]) / 1024
        found["threads"] = int(status.partition("Threads:")[2].split()[0])
        found["files"] = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        shown = node_metrics(load_existing(cluster.directory), node_id, timeout_s=2)
        found["lateness_ms"] = shown["tanist_loop_lateness_max_ms"]
        for name, prefix in FROM_METRICS.items():
            found[name] = sum(value for metric, value in shown.items() if metric.startswith(prefix))
    return found


def sample(cluster: TanistCluster, took_ms: list[float], rows: list[dict[str, Any]], stopping: threading.Event) -> None:
    began_s = time.monotonic()
    while not stopping.wait(SAMPLE_S):
        taken, took_ms[:] = sorted(took_ms), []
        row: dict[str, Any] = {"at_s": round(time.monotonic() - began_s, 1)}
        if taken:
            row["p50_ms"] = round(statistics.median(taken), 2)
            row["p99_ms"] = round(percentile(taken, 0.99), 2)
        row["nodes"] = {str(node_id): node_sample(cluster, node_id) for node_id in cluster.node_ids}
        rows.append(row)


def disturb(cluster: TanistCluster, visitors: Visitors | None, rng: random.Random, counts: dict[str, int]) -> None:
    """One broker is killed and comes back, or every partition's leader moves to its preferred replica."""
    if visitors is not None and rng.random() < 0.3:
        visitors.cluster.rotate_certificates()
        counts["exchanges of all certificates"] = counts.get("exchanges of all certificates", 0) + 1
        return
    if rng.random() < 0.5:
        cluster.tanist("elect", "--type", "preferred", "--all-topic-partitions")
        counts["elections of preferred leaders"] = counts.get("elections of preferred leaders", 0) + 1
        return
    node_id = rng.choice([each for each in cluster.node_ids if each != SPARED])
    cluster.kill_node(node_id)
    time.sleep(DOWN_S)
    cluster.start_node(node_id)
    wait_ready(cluster, timeout_s=PATIENCE_S)
    for topic in TOPICS:
        wait_in_sync(cluster, topic, timeout_s=PATIENCE_S)
    counts["brokers killed"] = counts.get("brokers killed", 0) + 1


def last_values(cluster: TanistCluster) -> dict[int, int]:
    """The last value of each key in the compacted topic."""
    return {int(each.key()): int(each.value()) for each in read_to_end(cluster, KEYS, TOPICS[KEYS][0])}


def run(cluster: TanistCluster, *, seconds: float, rate: float, seed: int) -> dict[str, Any]:
    from confluent_kafka.admin import AdminClient, NewTopic

    visitors = Visitors(cluster) if isinstance(cluster, SecureCluster) else None
    topics = TOPICS if visitors is None else {**TOPICS, GREEDY: TOPICS[PROBE]}
    admin = AdminClient(client_settings(cluster, as_admin=True))
    for future in admin.create_topics(
        [NewTopic(name, count, 3, config=set_) for name, (count, set_) in topics.items()]
    ).values():
        future.result(30)
    for topic in TOPICS:
        wait_in_sync(cluster, topic)
    seen, last, took_ms, counts = Seen(), dict[int, int](), list[float](), dict[str, int]()
    rows: list[dict[str, Any]] = []
    rng = random.Random(seed)
    load = Load(cluster, FLOW, PARTITIONS, rate)
    writers, readers = Background(), Background()
    load.start()
    for _ in range(2):
        readers.start(lambda: read_as_member(cluster, seen, readers.stopping))
    writers.start(lambda: overwrite_keys(cluster, rate / 2, last, writers.stopping))
    writers.start(lambda: probe(cluster, took_ms, writers.stopping))
    writers.start(lambda: sample(cluster, took_ms, rows, writers.stopping))
    if visitors is not None:
        visitors.arrive()
        writers.start(lambda: visitors.come_and_go(writers.stopping))
        writers.start(lambda: visitors.write_without_permission(writers.stopping))
        writers.start(lambda: visitors.write_too_much(writers.stopping))
        writers.start(lambda: visitors.change(writers.stopping))
    began_s = time.monotonic()
    try:
        while (left_s := began_s + seconds - time.monotonic()) > 0:
            time.sleep(min(DISTURB_S, left_s))
            if began_s + seconds - time.monotonic() > DISTURB_S / 2:
                disturb(cluster, visitors, rng, counts)
            for failure in (*writers.failures, *readers.failures):
                raise failure
    except BaseException:
        load.abandon()
        raise
    load.stop()
    writers.stop()
    with suppress(AssertionError):  # what is missing then is counted
        wait_for(lambda: not seen.missing(load), "the group has read everything", timeout_s=PATIENCE_S)
    readers.stop()
    found = last_values(cluster)
    seconds_taken = time.monotonic() - began_s
    return {
        "seconds": round(seconds_taken),
        "seed": seed,
        "acknowledged": len(load.acks),
        "never read": seen.missing(load),
        "keys": len(last),
        "keys with an old value": sum(found.get(key, -1) < value for key, value in last.items()),
        "disturbances": counts,
        "let in wrongly": visitors is not None and visitors.wrong,
        "visitors": None if visitors is None else visitors.account(seconds_taken),
        "node 1, median of the second and of the last quarter, maximum": flatness(rows),
        "rows": rows,
    }


def flatness(rows: Sequence[dict[str, Any]]) -> dict[str, tuple[float, float, float]]:
    """Of each line of the node that is spared."""
    found = {}
    samples = [row["nodes"][str(SPARED)] for row in rows]
    quarter = len(samples) // 4
    for name in ("rss_mb", "files", "threads", "lateness_ms", *FROM_METRICS):
        second, last = (
            [each[name] for each in part if name in each]
            for part in (samples[quarter : 2 * quarter], samples[-quarter:] if quarter else samples)
        )
        everything = [each[name] for each in samples if name in each]
        if second and last:
            found[name] = (
                round(statistics.median(second), 1),
                round(statistics.median(last), 1),
                round(max(everything), 1),
            )
    return found


def lines_of(rows: Sequence[dict[str, Any]], node_ids: Sequence[int]) -> list[tuple[str, list[Line]]]:
    def of_nodes(name: str) -> list[Line]:
        return [
            Line(f"node {node_id}", [(row["at_s"], row["nodes"][str(node_id)].get(name)) for row in rows])
            for node_id in node_ids
        ]

    def latency(name: str) -> tuple[str, list[Line]]:
        points = [(row["at_s"], row.get(f"{name}_ms")) for row in rows]
        return f"latency of one record with acks=all, {name}, ms", [Line(name, points)]

    return [
        ("resident memory, MB", of_nodes("rss_mb")),
        ("open files", of_nodes("files")),
        ("threads", of_nodes("threads")),
        ("connections that were accepted", of_nodes("connections")),
        ("requests that wait", of_nodes("purgatory")),
        ("lateness of the event loop, ms (greatest of 30 to 60 s)", of_nodes("lateness_ms")),
        latency("p50"),
        latency("p99"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--secure", action="store_true", help="TLS, SCRAM, ACLs and quotas")
    parser.add_argument("--rate", type=float, default=500.0, help="records a second")
    parser.add_argument("--out", type=Path, default=Path("soak"), help="OUT.json and OUT.svg")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    chosen = parser.parse_args(arguments)
    interrupt_on_sigterm()
    install.activate()
    with tempfile.TemporaryDirectory(prefix="tanist-soak-") as folder:
        cluster = (SecureCluster if chosen.secure else TanistCluster)(Path(folder), properties=PROPERTIES)
        try:
            cluster.start()
            found = run(cluster, seconds=chosen.minutes * 60, rate=chosen.rate, seed=chosen.seed)
        finally:
            cluster.stop()
    chosen.out.with_suffix(".json").write_text(json.dumps(found) + "\n")
    chosen.out.with_suffix(".svg").write_text(picture(lines_of(found["rows"], cluster.node_ids)))
    rows = found.pop("rows")
    print(json.dumps(found, indent=1))
    print(f"{len(rows)} samples: {chosen.out.with_suffix('.json')}, {chosen.out.with_suffix('.svg')}")
    return 1 if found["never read"] or found["keys with an old value"] or found["let in wrongly"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m bench.transactions`: transactional producers, tanist beside a warm Apache Kafka.

    python -m bench.transactions                    three rounds of each size, after a warm-up
    python -m bench.transactions --quick            one short round: too short for a JVM to be warm

One combined node of each kind, side by side, at the same server.properties. The producer is librdkafka at its defaults,
in this process, one for each side; it writes to a topic of eight partitions. A transaction is so many records; the next
begins when the commit has been answered. Reported for each size, as the median of the rounds: records and transactions
a second, how long commits take (p50, p99), and the broker's CPU for each transaction.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.load import percentile
from bench.measure import in_turn
from bench.stands import single_node
from tests.clients import install
from tests.interop import apache
from tests.interop.cluster import Cluster, cpu_seconds, interrupt_on_sigterm, pids, wait_in_sync
from tests.interop.raw import RawClient

PARTITIONS = 8
TOPIC = "transactions"
PROPERTIES = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "8",
    "log.retention.bytes": str(256 << 20),
}
SIZES = tuple((count, size) for count in (1, 100, 10_000) for size in (100, 1000))
PATIENCE_S = 60.0
WARM_TRANSACTIONS = 2_000
"""Of one record each, so often is the coordinator's path taken before anything is measured."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One round of one side and size."""

    transactions_per_s: float
    records_per_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """Of the broker, for each transaction."""


METRICS: tuple[tuple[str, Callable[[Measured], float]], ...] = (
    ("transactions/s", lambda each: each.transactions_per_s),
    ("records/s", lambda each: each.records_per_s),
    ("commit p50 ms", lambda each: each.p50_ms),
    ("commit p99 ms", lambda each: each.p99_ms),
    ("broker's CPU us/transaction", lambda each: each.cpu_us),
)


def producer_of(cluster: Cluster) -> Any:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": f"bench-{cluster.name}",
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.init_transactions(PATIENCE_S)
    return producer


def transact(producer: Any, count: int, value: bytes, first: int) -> float:
    """One transaction; how long its commit took, in seconds."""
    producer.begin_transaction()
    for number in range(first, first + count):
        producer.produce(TOPIC, value, partition=number % PARTITIONS)
    producer.flush(PATIENCE_S)
    began_s = time.perf_counter()
    producer.commit_transaction(PATIENCE_S)
    return time.perf_counter() - began_s


def measure(cluster: Cluster, producer: Any, count: int, size: int, seconds: float) -> Measured:
    value = bytes(size)
    servers = pids(cluster)
    took: list[float] = []
    before, began_s = cpu_seconds(servers), time.perf_counter()
    while time.perf_counter() - began_s < seconds or len(took) < 3:
        took.append(transact(producer, count, value, len(took)))
    passed_s, used_s = time.perf_counter() - began_s, cpu_seconds(servers) - before
    ordered = sorted(took)
    return Measured(
        transactions_per_s=len(took) / passed_s,
        records_per_s=len(took) * count / passed_s,
        p50_ms=statistics.median(ordered) * 1000,
        p99_ms=percentile(ordered, 0.99) * 1000,
        cpu_us=used_s * 1e6 / len(took),
    )


def warm(producer: Any, transactions: int) -> None:
    for number in range(transactions):
        transact(producer, 1, b"warm", number)
    for number in range(transactions // 100):
        transact(producer, 1000, bytes(100), number)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.transactions", description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each round")
    parser.add_argument("--quick", action="store_true", help="one round of a second")
    chosen = parser.parse_args(arguments)
    rounds, seconds = (1, 1.0) if chosen.quick else (chosen.rounds, chosen.seconds)
    reason = apache.missing()
    if reason is not None:
        print(f"the bench {reason}", file=sys.stderr)
        return 2
    interrupt_on_sigterm()
    install.activate()
    found: dict[tuple[int, int], dict[str, list[Measured]]] = {}
    with tempfile.TemporaryDirectory(prefix="tanist-bench-transactions-") as folder:
        sides = {target: single_node(target, Path(folder) / target, PROPERTIES) for target in ("tanist", "apache")}
        try:
            producers = {}
            for target, cluster in sides.items():
                cluster.start()
                with RawClient(*cluster.address(cluster.node_ids[0])) as client:
                    client.create_topic(TOPIC, PARTITIONS, 1, {})
                wait_in_sync(cluster, TOPIC)
                producers[target] = producer_of(cluster)
                warm(producers[target], WARM_TRANSACTIONS // (20 if chosen.quick else 1))
            for count, size in SIZES:
                by_side = found.setdefault((count, size), {target: [] for target in sides})
                for number in range(rounds):
                    # A B, B A, A B: whatever the machine does besides hits both.
                    for target in in_turn(sides, number):
                        one = measure(sides[target], producers[target], count, size, seconds)
                        by_side[target].append(one)
                        print(f"{count} x {size} B {target}: {one}", flush=True)
        finally:
            for cluster in sides.values():
                cluster.stop()
    print(table(found))
    return 0


def table(found: dict[tuple[int, int], dict[str, list[Measured]]]) -> str:
    lines = [
        "| records of a transaction | metric | tanist | apache | tanist/apache |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for (count, size), sides in found.items():
        for metric, value in METRICS:
            ours, theirs = (statistics.median(map(value, sides[side])) for side in ("tanist", "apache"))
            lines.append(
                f"| {count:,} of {size:,} B | {metric} | {ours:,.4g} | {theirs:,.4g} | **{ours / theirs:.2f}** |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

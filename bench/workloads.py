"""What is measured: the raw workloads, Kafka's own tools, and the thresholds that the product has set itself.

A workload is the same bytes for both sides. Everything here is data; `measure.py` runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# Metrics, and which way is better.
LOWER = {
    "cpu_us_per_request",
    "cpu_s_per_gb",
    "p50_us",
    "p99_us",
    "ready_s",
    "idle_rss_mb",
    "idle_cpu_percent",
    "p50_ms",
    "p99_ms",
}
HIGHER = {"requests_per_s", "mb_per_s", "records_per_s"}


@dataclass(frozen=True, slots=True)
class Raw:
    """A workload of the raw load generator."""

    name: str
    title: str
    kind: Literal["produce", "fetch"]
    replicas: int
    connections: int
    depth: int = 1
    acks: int = 1
    batch_bytes: int = 0
    value_bytes: int = 100
    max_bytes: int = 0
    rate: float = 0.0
    seconds: float = 4.0
    metrics: tuple[str, ...] = ("requests_per_s", "p50_us", "p99_us", "cpu_us_per_request")
    warm_connections: int = 16
    warm_requests: int = 30_000
    quick: bool = True
    """Whether the two-minute run has it."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A run of one of the field's own tools, as a client of the broker."""

    name: str
    title: str
    tool: Literal["producer-perf", "consumer-perf", "kcat"]
    replicas: int
    records: int
    record_bytes: int
    metrics: tuple[str, ...]
    acks: str = "all"


@dataclass(frozen=True, slots=True)
class Threshold:
    """What tanist/Apache has to be for one metric, and what it is meant to become."""

    workload: str
    metric: str
    ratio: float
    goal: float | None = None


KB, MB = 1 << 10, 1 << 20
FETCHED_LOG_BYTES = 64 * MB
FETCHED_BATCH_BYTES = 16 * KB

RAW = (
    Raw("produce-100B-16x1", "Produce, one record of 100 B, 16 connections x 1 in flight", "produce", 1, 16),
    Raw(
        "produce-100B-16x8",
        "Produce, one record of 100 B, 16 connections x 8 in flight",
        "produce",
        1,
        16,
        depth=8,
        quick=False,
    ),
    Raw("produce-16KB-16x1", "Produce, batches of 16 KB, 16 x 1", "produce", 1, 16, batch_bytes=16 * KB),
    Raw("fetch-32KB-16x1", "Fetch of 32 KB, 16 x 1", "fetch", 1, 16, max_bytes=32 * KB),
    Raw(
        "produce-1MB-4x1",
        "Produce, batches of 1 MB, 4 x 1",
        "produce",
        1,
        4,
        batch_bytes=1_000_000,
        value_bytes=1000,
        seconds=2.0,
        metrics=("mb_per_s", "p50_us", "p99_us", "cpu_s_per_gb"),
        warm_connections=4,
        warm_requests=3_000,
    ),
    Raw(
        "fetch-1MB-4x1",
        "Fetch of 1 MB, 4 x 1",
        "fetch",
        1,
        4,
        max_bytes=1 * MB,
        metrics=("mb_per_s", "p50_us", "p99_us", "cpu_s_per_gb"),
        warm_connections=4,
        warm_requests=5_000,
    ),
    Raw(
        "rf3-closed-1x1",
        "RF 3, acks=all, one record, 1 connection x 1 in flight",
        "produce",
        3,
        1,
        acks=-1,
        metrics=("requests_per_s", "p50_us", "p99_us", "cpu_us_per_request"),
    ),
    Raw(
        "rf3-200-per-s",
        "RF 3, acks=all, one record, 200 requests/s at fixed times",
        "produce",
        3,
        8,
        acks=-1,
        rate=200.0,
        metrics=("p50_us", "p99_us", "cpu_us_per_request"),
    ),
    Raw(
        "rf3-closed-16x1",
        "RF 3, acks=all, one record, 16 x 1",
        "produce",
        3,
        16,
        acks=-1,
        quick=False,
    ),
)

TOOLS = (
    Tool(
        "producer-perf-100B",
        "ProducerPerformance, 1,000,000 records of 100 B, RF 1, producer at its defaults",
        "producer-perf",
        1,
        1_000_000,
        100,
        ("records_per_s", "p50_ms", "p99_ms", "cpu_s_per_gb"),
    ),
    Tool(
        "producer-perf-1KB-rf3",
        "ProducerPerformance, 200,000 records of 1 KB, RF 3, producer at its defaults",
        "producer-perf",
        3,
        200_000,
        1000,
        ("records_per_s", "p50_ms", "p99_ms", "cpu_s_per_gb"),
    ),
    Tool(
        "consumer-perf-1KB",
        "ConsumerPerformance, 300,000 records of 1 KB, RF 1",
        "consumer-perf",
        1,
        300_000,
        1000,
        ("records_per_s", "cpu_s_per_gb"),
    ),
    Tool(
        "kcat-1KB",
        "kcat (librdkafka), 300,000 records of 1 KB by assignment, RF 1",
        "kcat",
        1,
        300_000,
        1000,
        ("records_per_s", "cpu_s_per_gb"),
    ),
)

THRESHOLDS = (
    Threshold("produce-100B-16x1", "cpu_us_per_request", 0.6, 0.35),
    Threshold("produce-16KB-16x1", "cpu_us_per_request", 0.5, 0.3),
    Threshold("fetch-32KB-16x1", "cpu_us_per_request", 0.5, 0.33),
    Threshold("rf3-closed-1x1", "p50_us", 1.0),
    Threshold("rf3-closed-1x1", "p99_us", 1.0, 0.33),
    Threshold("rf3-200-per-s", "p50_us", 1.0),
    Threshold("rf3-200-per-s", "p99_us", 1.0, 0.33),
    Threshold("produce-1MB-4x1", "mb_per_s", 1.0),
    Threshold("fetch-1MB-4x1", "mb_per_s", 1.0),
)


@dataclass(frozen=True, slots=True)
class Effort:
    """How long everything takes: the whole run, or the two-minute one."""

    rounds: int
    seconds_factor: float
    warm_slice_s: float
    warm_max_s: float
    """Each workload runs on each side, unmeasured, before its first round: in slices, until it gets no cheaper."""

    tools: bool
    start_rounds: int
    idle_seconds: float

    @property
    def quick(self) -> bool:
        return not self.tools


FULL = Effort(5, 1.0, 3.0, 45.0, tools=True, start_rounds=5, idle_seconds=5.0)
QUICK = Effort(3, 0.25, 1.0, 12.0, tools=False, start_rounds=1, idle_seconds=2.0)

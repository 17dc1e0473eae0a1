"""Runs workloads on the sides in turn (A B, B A, A B, ...) and reads the servers' CPU clocks around each run.

Every round of a workload writes to a topic of its own, which is deleted after: no side's log grows with the rounds. The
CPU of a side is that of all its nodes; with replicas that is the followers' work too.
"""

from __future__ import annotations

import json
import math
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from bench import frames, stands
from bench.load import LoadResult, LoadSpec
from bench.stands import Side
from bench.workloads import FETCHED_BATCH_BYTES, FETCHED_LOG_BYTES, Effort, Raw, Tool
from tests.interop import apache
from tests.interop.cluster import ROOT, Cluster, cpu_seconds, resident_bytes
from tests.interop.raw import LATEST, RawClient

GIGABYTE = 1e9
MEGABYTE = 1e6
# A log that is fetched is read from these many places, so that no connection reads what another has just read.
FETCH_OFFSETS = 64
# A side is warm when a slice costs at least this part of the slice before.
WARM_ENOUGH = 0.93
# From this batch size on every round has a topic of its own.
OWN_TOPIC_BYTES = 10_000

Say = Callable[[str], None]
T = TypeVar("T")


@dataclass(slots=True)
class Measured:
    """The rounds of one workload: label -> metric -> one value a round."""

    name: str
    title: str
    metrics: tuple[str, ...]
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, label: str, values: dict[str, float]) -> None:
        for metric, value in values.items():
            self.values.setdefault(label, {}).setdefault(metric, []).append(value)

    def of(self, label: str, metric: str) -> list[float]:
        return self.values.get(label, {}).get(metric, [])


@contextmanager
def topic_on(cluster: Cluster, replicas: int) -> Iterator[Place]:
    """A fresh topic, deleted in the end with its files: the next run is to find the page cache as this one did."""
    topic = f"bench-{random.Random().getrandbits(40):010x}"
    leader = stands.create_topic(cluster, topic, replicas)
    try:
        yield Place(topic, leader)
    finally:
        stands.delete_topic(cluster, topic)


def in_turn(sides: Iterable[T], number: int) -> list[T]:
    """The order of a round: who goes first changes, so that a drift of the machine favours nobody."""
    ordered = list(sides)
    return ordered if number % 2 == 0 else ordered[::-1]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a load goes: a topic of one partition, its leader, and the offsets to fetch from, if it is for fetching."""

    topic: str
    leader: int
    offsets: tuple[int, ...] = ()


def fill(cluster: Cluster, place: Place) -> Place:
    """Write the log that a fetch workload reads; offsets all over it, at which full answers begin."""
    batch = frames.batch_of_size(FETCHED_BATCH_BYTES, 100, int(time.time() * 1000))
    count = FETCHED_LOG_BYTES // len(batch)
    (frame,) = frames.produce(place.topic, 0, batch, 1).requests
    with RawClient(*cluster.address(place.leader), timeout_s=30) as client:
        for _ in range(count):
            client.exchange(frame)
        records = client.list_offset(place.topic, 0, LATEST)
    per_batch = records // count
    # Not so near the end that an answer would be short of its maximum.
    usable = int(count * 0.9)
    offsets = (index * usable // FETCH_OFFSETS * per_batch for index in range(FETCH_OFFSETS))
    return replace(place, offsets=tuple(offsets))


class Load:
    """A load generator that has been started, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def go(self) -> None:
        """Let it send."""
        if self._process.stdin is None:
            raise RuntimeError("the load generator was started without pipes")
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def line(self) -> str:
        """The next line that it prints."""
        if self._process.stdout is None or self._process.stderr is None:
            raise RuntimeError("the load generator was started without pipes")
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the load generator failed: {self._process.stderr.read()}")
        return line

    def result(self) -> LoadResult:
        """Wait for its measurements."""
        return LoadResult(**json.loads(self.line()))


@contextmanager
def load(spec: LoadSpec) -> Iterator[Load]:
    """The load generator, connected; `go` lets it send."""
    command = [sys.executable, "-m", "bench.load", json.dumps(asdict(spec))]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            started = Load(process)
            if started.line().strip() != "ready":
                raise RuntimeError("the load generator does not say that it is ready")
            yield started
        finally:
            process.kill()


def run_load(cluster: Cluster, spec: LoadSpec) -> tuple[LoadResult, float]:
    """One run of the generator: its measurements, and the servers' CPU seconds meanwhile."""
    servers = stands.processes(cluster)
    with load(spec) as started:
        before = cpu_seconds(servers)
        started.go()
        line = started.line()
        after = cpu_seconds(servers)
    return LoadResult(**json.loads(line)), after - before


def spec_of(work: Raw, cluster: Cluster, place: Place, seconds: float) -> LoadSpec:
    """What the generator sends for a workload."""
    host, port = cluster.address(place.leader)
    return LoadSpec(
        host=host,
        port=port,
        topic=place.topic,
        kind=work.kind,
        connections=work.connections,
        depth=work.depth,
        seconds=seconds,
        rate=work.rate,
        batch_bytes=work.batch_bytes,
        value_bytes=work.value_bytes,
        acks=work.acks,
        offsets=place.offsets,
        max_bytes=work.max_bytes,
    )


class RawRunner:
    """The rounds of one raw workload."""

    def __init__(self, workload: Raw, effort: Effort) -> None:
        self.workload = workload
        self.effort = effort

    @contextmanager
    def _place(self, side: Side) -> Iterator[Place]:
        """Where all rounds of a side go."""
        cluster = side.cluster(self.workload.replicas)
        with topic_on(cluster, self.workload.replicas) as place:
            yield fill(cluster, place) if self.workload.kind == "fetch" else place

    @contextmanager
    def _place_of_a_round(self, side: Side, place: Place) -> Iterator[Place]:
        """A topic of its own for a round that writes much, so that no side's log grows with the rounds."""
        if self.workload.batch_bytes < OWN_TOPIC_BYTES:
            yield place
            return
        with topic_on(side.cluster(self.workload.replicas), self.workload.replicas) as fresh:
            yield fresh

    def _warm(self, side: Side, place: Place) -> Warmth:
        """Run unmeasured until the path has been taken often and a request gets no cheaper: the JVM has compiled it.

        A fixed time would be unfair to a broker that compiles slowly on a busy machine. The load is a closed loop over
        many connections even where the workload is not: what is compiled is the same, and gets there sooner.
        """
        effort, work = self.effort, self.workload
        cluster = side.cluster(work.replicas)
        spec = spec_of(work, cluster, place, effort.warm_slice_s)
        spec = replace(spec, rate=0.0, connections=max(work.connections, work.warm_connections))
        requests, seconds, last = 0, 0.0, math.inf
        while seconds < effort.warm_max_s:
            with self._place_of_a_round(side, place) as fresh:
                result, cpu = run_load(cluster, replace(spec, topic=fresh.topic))
            cost = cpu / result.requests
            requests += result.requests
            seconds += effort.warm_slice_s
            if requests >= work.warm_requests and cost >= WARM_ENOUGH * last:
                break
            last = cost
        return Warmth(requests, seconds)

    def once(self, side: Side, seconds: float, place: Place) -> dict[str, float]:
        cluster = side.cluster(self.workload.replicas)
        with self._place_of_a_round(side, place) as fresh:
            result, cpu = run_load(cluster, spec_of(self.workload, cluster, fresh, seconds))
        return {
            "requests_per_s": result.requests / result.seconds,
            "mb_per_s": result.bytes / result.seconds / MEGABYTE,
            "p50_us": result.p50_us,
            "p99_us": result.p99_us,
            "max_us": result.max_us,
            "cpu_us_per_request": cpu / result.requests * 1e6,
            "cpu_s_per_gb": cpu / (result.bytes / GIGABYTE),
            "server_cpu_share": cpu / result.seconds,
            "client_cpu_share": result.client_cpu_seconds / result.seconds,
        }

    def measure(self, sides: Sequence[Side], say: Say) -> Measured:
        measured = Measured(self.workload.name, self.workload.title, self.workload.metrics)
        with ExitStack() as stack:
            places = {side.label: stack.enter_context(self._place(side)) for side in sides}
            for side in sides:
                warmth = self._warm(side, places[side.label])
                measured.notes.append(f"{side.label} was warmed up by {warmth}")
                say(f"  {self.workload.name} {side.label}: warmed up by {warmth}")
            seconds = self.workload.seconds * self.effort.seconds_factor
            for number in range(self.effort.rounds):
                for side in in_turn(sides, number):
                    values = self.once(side, seconds, places[side.label])
                    measured.add(side.label, values)
                    shown = "  ".join(f"{metric} {values[metric]:,.1f}" for metric in self.workload.metrics)
                    say(f"  {self.workload.name} {number + 1}/{self.effort.rounds} {side.label}: {shown}")
        return measured


@dataclass(frozen=True, slots=True)
class Warmth:
    """How much a side has done unmeasured."""

    requests: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.requests:,} requests in {self.seconds:g} s"


class ToolRunner:
    """The rounds of one workload of the field's own tools. A tool is a fresh process each time, and warms itself."""

    def __init__(self, workload: Tool, effort: Effort) -> None:
        self.workload = workload
        self.effort = effort

    def measure(self, sides: Sequence[Side], say: Say) -> Measured:
        measured = Measured(self.workload.name, self.workload.title, self.workload.metrics)
        if self.workload.tool == "kcat" and shutil.which("kcat") is None:
            measured.notes.append("kcat is not installed")
            say(f"{self.workload.title}: left out, kcat is not installed")
            return measured
        say(f"{self.workload.title}: one run of each side to warm up")
        for number in range(-1, self.effort.rounds):
            for side in in_turn(sides, number):
                values = self._once(side)
                if number < 0:
                    continue  # The server's warm-up.
                measured.add(side.label, values)
                shown = "  ".join(f"{metric} {values[metric]:,.1f}" for metric in self.workload.metrics)
                say(f"  {self.workload.name} {number + 1}/{self.effort.rounds} {side.label}: {shown}")
        return measured

    def _once(self, side: Side) -> dict[str, float]:
        cluster = side.cluster(self.workload.replicas)
        with topic_on(cluster, self.workload.replicas) as place:
            topic = place.topic
            if self.workload.tool != "producer-perf":
                self._produce(cluster, topic)
            servers = stands.processes(cluster)
            before = cpu_seconds(servers)
            values = getattr(self, "_" + self.workload.tool.replace("-", "_"))(cluster, topic)
            cpu = cpu_seconds(servers) - before
        values["cpu_s_per_gb"] = cpu / (self.workload.records * self.workload.record_bytes / GIGABYTE)
        return dict(values)

    def _produce(self, cluster: Cluster, topic: str) -> str:
        work = self.workload
        return apache.tool(
            apache.PRODUCER_PERFORMANCE, "--bootstrap-server", cluster.bootstrap, "--topic", topic,
            "--num-records", str(work.records), "--record-size", str(work.record_bytes), "--throughput", "-1",
            "--command-property", f"acks={work.acks}", timeout_s=300, flags=apache.LOAD_FLAGS,
        ).stdout  # fmt: skip

    def _producer_perf(self, cluster: Cluster, topic: str) -> dict[str, float]:
        summary = self._produce(cluster, topic).strip().splitlines()[-1]
        found = re.search(r"([\d.]+) records/sec .* (\d+) ms 50th, .* (\d+) ms 99th", summary)
        if found is None or not summary.startswith(f"{self.workload.records} records sent"):
            raise RuntimeError(f"ProducerPerformance ended with: {summary}")
        return {"records_per_s": float(found[1]), "p50_ms": float(found[2]), "p99_ms": float(found[3])}

    def _consumer_perf(self, cluster: Cluster, topic: str) -> dict[str, float]:
        output = apache.tool(
            apache.CONSUMER_PERFORMANCE, "--bootstrap-server", cluster.bootstrap, "--topic", topic,
            "--num-records", str(self.workload.records), "--hide-header", "--timeout", "30000",
            timeout_s=300, flags=apache.LOAD_FLAGS,
        ).stdout  # fmt: skip
        fields = [part.strip() for part in output.strip().splitlines()[-1].split(",")]
        # The last column is records a second of fetch time, which leaves the group's rebalance out.
        return {"records_per_s": float(fields[-1])}

    def _kcat(self, cluster: Cluster, topic: str) -> dict[str, float]:
        command = ["kcat", "-b", cluster.bootstrap, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-u",
                   "-f", "%o\n"]  # fmt: skip
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, timeout=300, check=True)
        elapsed = time.perf_counter() - started
        count = done.stdout.count(b"\n")
        if count != self.workload.records:
            raise RuntimeError(f"kcat read {count} of {self.workload.records} records")
        return {"records_per_s": count / elapsed}


def measure_start(labels: dict[str, str], directory: Path, effort: Effort, say: Say) -> Measured:
    """From the start of the process to the first answer with itself in it; a fresh folder each time."""
    measured = Measured("start", "Start of one node, until it is ready", ("ready_s",))
    for number in range(effort.start_rounds):
        for label, target in labels.items():
            seconds = stands.seconds_to_ready(target, directory / f"start-{label}-{number}")
            measured.add(label, {"ready_s": seconds})
            say(f"  start {number + 1}/{effort.start_rounds} {label}: {seconds:.2f} s")
    return measured


def measure_idle(sides: Sequence[Side], effort: Effort, *, with_triple: bool, say: Say) -> list[Measured]:
    """Memory and CPU of nodes that nobody talks to, before anything else is asked of them."""
    found = []
    for replicas, title in ((1, "One node, idle"), (3, "Three nodes, idle, together")):
        if replicas == 3 and not with_triple:
            continue
        measured = Measured(f"idle-{replicas}", title, ("idle_rss_mb", "idle_cpu_percent"))
        for side in sides:
            servers = stands.processes(side.cluster(replicas))
            before, started = cpu_seconds(servers), time.perf_counter()
            time.sleep(effort.idle_seconds)
            used = (cpu_seconds(servers) - before) / (time.perf_counter() - started)
            memory = resident_bytes(servers) / MEGABYTE
            measured.add(side.label, {"idle_rss_mb": memory, "idle_cpu_percent": used * 100})
            say(f"  {measured.name} {side.label}: {memory:.0f} MB, {used * 100:.1f} % CPU")
        found.append(measured)
    return found

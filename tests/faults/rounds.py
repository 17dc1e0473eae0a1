"""Rounds of killing and restarting random brokers under a constant load, and the account of it.

    python -m tests.faults.rounds --target tanist --rounds 20
    python -m tests.faults.rounds --target tanist --target apache --how stop --rounds 5
    python -m tests.faults.rounds --secure

Topic: 4 partitions, 3 replicas, min.insync.replicas 2; acks=all, idempotent. In each round a broker (leader and
controller as may be) gets SIGKILL, or SIGTERM; when all partitions acknowledge again it is restarted, and the next
round begins when every replica is back in the ISR. In the end the history checker finds nothing (no acknowledged
record lost, none duplicated, none out of order), and all replicas' segments are the same bytes. Reported besides: the
longest silence between two acknowledgements after each fault.

A killed process is missed at once, for the kernel resets its connections. SIGSTOP (`--how pause`) is harder: the broker
keeps its connections, says nothing until its session has run out, and then wakes up believing that it still leads.

Others are done with tanist's own faults (docs/faults.md), so to tanist only: `partition` takes the broker off the
network, away from clients too; in `isolated` clients still reach it, so they must not believe it; in `one-way` it hears
the others, and they do not hear it; `slow` delays all that it exchanges with the others by 200 ms; on `disk-full` it
goes down, and is started when there is space again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tanist.lab.history import Anomaly, Verdict
from tests.clients import install
from tests.faults.history import Spread, longest_gap_s
from tests.faults.load import Load, read_all
from tests.faults.recorded import LOST, counted, judged
from tests.interop import target as targets
from tests.interop.cluster import (
    Cluster,
    active_controller,
    client_settings,
    interrupt_on_sigterm,
    metadata,
    wait_in_sync,
    wait_ready,
)
from tests.interop.secure_cluster import SecureCluster
from tests.interop.tanist_cluster import TanistCluster, tanist
from tests.interop.waiting import wait_for

TOPIC = "rounds"
PARTITIONS = 4
RATE = 400.0
# How long the load runs undisturbed before a fault: acknowledgements to measure the silence against.
CALM_S = 1.0
RECOVERY_S = 120.0

Fault = Literal["crash", "stop", "pause", "partition", "isolated", "one-way", "slow", "disk-full"]
SIGNALS: dict[Fault, str] = {"crash": "SIGKILL", "stop": "SIGTERM", "pause": "SIGSTOP"}
TANISTS: dict[Fault, tuple[str, ...]] = {
    "partition": ("partition", "{}", "--clients"),
    "isolated": ("partition", "{}"),
    "one-way": ("partition", "{}", "--one-way"),
    "slow": ("slow", "{}", "--latency", "200ms"),
    "disk-full": ("disk", "{}", "full"),
}
"""The commands of the faults that only tanist has."""
FAULTS = (*SIGNALS, *TANISTS)

_SILENT = {"socket.timeout.ms": 5000}
"""By default librdkafka gives a leader that says nothing a minute, which would hide what the cluster itself takes."""
_DECEIVED = {"request.timeout.ms": 2000, "topic.metadata.refresh.interval.ms": 1000}
"""A leader that is cut off believes that it leads, tells clients so, and lets them wait for acknowledgements. When they
time out librdkafka does not ask who leads: otherwise it does so every five minutes."""
SETTINGS: dict[Fault, dict[str, Any]] = {
    "pause": _SILENT,
    "partition": _SILENT,
    "isolated": _DECEIVED,
    "one-way": _DECEIVED,
}
"""Of the producer, besides its defaults."""


@dataclass(frozen=True, slots=True)
class Round:
    """One fault, and the silence it caused."""

    node_id: int
    was_controller: bool
    led: int
    gap_s: float
    partition_gap_s: float
    in_sync_s: float


@dataclass(slots=True)
class Report:
    """The account of a run."""

    target: str
    fault: Fault
    seed: int
    rounds: list[Round] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)
    anomalies: list[str] = field(default_factory=list)
    """The verdict in words."""
    delivery_errors: list[str] = field(default_factory=list)
    unequal_replicas: list[str] = field(default_factory=list)

    @property
    def violations(self) -> list[str]:
        return [*self.anomalies, *self.unequal_replicas]

    def __str__(self) -> str:
        gaps = Spread.of([each.gap_s for each in self.rounds])
        partition_gaps = Spread.of([each.partition_gap_s for each in self.rounds])
        in_sync = Spread.of([each.in_sync_s for each in self.rounds])
        lines = [
            f"{self.target}: {len(self.rounds)} rounds of {SIGNALS.get(self.fault, self.fault)} (seed {self.seed}), "
            f"{sum(each.was_controller for each in self.rounds)} of them at the active controller, "
            f"{sum(each.led > 0 for each in self.rounds)} at a leader",
            f"  longest silence after each, s:  all partitions together  {gaps}",
            f"                                  worst single partition   {partition_gaps}",
            f"  all replicas in sync again, s after the restart:         {in_sync}",
            f"  {self.verdict.acknowledged} acknowledged, {self.verdict.records_polled} stored; "
            f"lost {counted(self.verdict, LOST)}, duplicated {counted(self.verdict, Anomaly.DUPLICATE)}, "
            f"out of order {counted(self.verdict, Anomaly.NONMONOTONIC_SEND)}, "
            f"never sent {counted(self.verdict, Anomaly.PHANTOM)}; "
            f"deliveries that failed {len(self.delivery_errors)}; "
            f"replicas that differ {len(self.unequal_replicas)}",
        ]
        return "\n".join(lines + [f"  ! {violation}" for violation in self.violations[:20]])

    def as_json(self) -> dict[str, object]:
        summary = {
            "gap_s": asdict(Spread.of([each.gap_s for each in self.rounds])),
            "partition_gap_s": asdict(Spread.of([each.partition_gap_s for each in self.rounds])),
        }
        verdict = {"acknowledged": self.verdict.acknowledged, "stored": self.verdict.records_polled}
        return {**asdict(self), "verdict": verdict, **summary, "violations": self.violations}


def create_topic(cluster: Cluster, topic: str = TOPIC) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient(client_settings(cluster, as_admin=True))
    # Small segments: the replicas' files are compared over several rolls.
    config = {"min.insync.replicas": "2", "segment.bytes": str(1 << 20)}
    (future,) = admin.create_topics([NewTopic(topic, PARTITIONS, 3, config=config)]).values()
    future.result(30)
    wait_in_sync(cluster, topic)


def differences(cluster: Cluster) -> list[str]:
    """Where two replicas of a partition hold different segment files."""
    found = []
    for partition in range(PARTITIONS):
        segments = {}
        for node_id in cluster.node_ids:
            folder = cluster.log_directory(node_id) / f"{TOPIC}-{partition}"
            segments[node_id] = {file.name: file.read_bytes() for file in sorted(folder.glob("*.log"))}
        first, *others = cluster.node_ids
        for other in others:
            if segments[other] == segments[first]:
                continue
            joined, expected = b"".join(segments[other].values()), b"".join(segments[first].values())
            detail = f"{len(joined)} and {len(expected)} bytes"
            if joined == expected:
                detail = f"the same bytes in other files: {sorted(segments[other])} and {sorted(segments[first])}"
            found.append(f"partition {partition}: nodes {other} and {first} differ ({detail})")
    return found


def process_of(cluster: Cluster, node_id: int) -> int:
    """The process of a node that runs."""
    pid = cluster.pid(node_id)
    if pid is None:
        raise RuntimeError(f"node {node_id} does not run")
    return pid


def strike(cluster: Cluster, fault: Fault, node_id: int) -> None:
    if fault == "crash":
        cluster.kill_node(node_id)
    elif fault == "stop":
        cluster.stop_node(node_id)
    elif fault == "pause":
        os.kill(process_of(cluster, node_id), signal.SIGSTOP)
    else:
        order(cluster, *(word.format(node_id) for word in TANISTS[fault]))
        if fault == "disk-full":
            wait_for(
                lambda: cluster.pid(node_id) is None, f"node {node_id} goes down without space", timeout_s=RECOVERY_S
            )


def revive(cluster: Cluster, fault: Fault, node_id: int) -> None:
    if fault == "pause":
        os.kill(process_of(cluster, node_id), signal.SIGCONT)
    elif fault in TANISTS:
        order(cluster, "heal")
        if cluster.pid(node_id) is None:
            cluster.start_node(node_id)
    else:
        cluster.start_node(node_id)


def order(cluster: Cluster, *arguments: str) -> None:
    """One of tanist's own faults."""
    if not isinstance(cluster, TanistCluster):
        raise ValueError(f"{cluster.name} has no `tanist {arguments[0]}`")
    tanist(*arguments, "--data", str(cluster.directory))


def fault_round(cluster: Cluster, load: Load, fault: Fault, node_id: int) -> Round:
    """Strike one broker, wait for the load to recover, bring it back, wait until it is in sync."""
    calm_from_s = time.monotonic()
    everything = set(range(PARTITIONS))
    wait_for(
        lambda: time.monotonic() >= calm_from_s + CALM_S and load.acknowledged_since(calm_from_s) == everything,
        "a second of calm with acknowledgements of all partitions",
        timeout_s=RECOVERY_S,
    )
    led = sum(leader == node_id for leader in metadata(cluster, cluster.node_ids[0], (TOPIC,)).leaders(TOPIC).values())
    was_controller = active_controller(cluster) == node_id
    struck_s = time.monotonic()
    strike(cluster, fault, node_id)
    try:
        # Acknowledgements of its last moments can still be under way: those of a while after are meant.
        dead_s = time.monotonic()
        wait_for(
            lambda: load.acknowledged_since(dead_s + 0.2) == everything,
            f"acknowledgements of all partitions after node {node_id} has gone",
            timeout_s=RECOVERY_S,
        )
    finally:
        # Even when they never come: a process that is paused cannot be stopped in order.
        restarted_s = time.monotonic()
        revive(cluster, fault, node_id)
    wait_ready(cluster, timeout_s=RECOVERY_S)
    wait_in_sync(cluster, TOPIC, timeout_s=RECOVERY_S)
    end_s = time.monotonic()
    acks = list(load.acks)
    return Round(
        node_id=node_id,
        was_controller=was_controller,
        led=led,
        gap_s=longest_gap_s([ack.at_s for ack in acks], struck_s, end_s),
        partition_gap_s=max(
            longest_gap_s([ack.at_s for ack in acks if ack.partition == partition], struck_s, end_s)
            for partition in everything
        ),
        in_sync_s=end_s - restarted_s,
    )


def run(
    cluster: Cluster,
    *,
    fault: Fault,
    rounds: int,
    seed: int,
    rate: float = RATE,
    verbose: bool = False,
    before_each: Callable[[], None] = lambda: None,
) -> Report:
    """All the rounds on a cluster that is up, and the judgement. `before_each` is done under load."""
    report = Report(cluster.name, fault, seed)
    rng = random.Random(seed)
    create_topic(cluster)
    load = Load(cluster, TOPIC, PARTITIONS, rate, SETTINGS.get(fault, {}))
    load.start()
    try:
        for number in range(rounds):
            before_each()
            done = fault_round(cluster, load, fault, rng.choice(cluster.node_ids))
            report.rounds.append(done)
            if verbose:
                what = f"node {done.node_id}, led {done.led}{', controller' if done.was_controller else ''}"
                silence = f"silence {done.gap_s:.2f} s, worst partition {done.partition_gap_s:.2f} s"
                print(f"  {number + 1:2}: {what}: {silence}, in sync after {done.in_sync_s:.1f} s", flush=True)
    finally:
        load.stop()
    report.delivery_errors = load.errors
    wait_in_sync(cluster, TOPIC)
    report.verdict, report.anomalies = judged(TOPIC, load.acks, read_all(cluster, TOPIC, PARTITIONS), load.sent)
    report.unequal_replicas = differences(cluster)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.rounds", description=__doc__.split("\n\n")[0])
    parser.add_argument("--target", action="append", choices=targets.TARGETS, help="may be given twice; default tanist")
    parser.add_argument("--how", choices=FAULTS, default="crash", help="crash, stop and pause are signals")
    parser.add_argument("--secure", action="store_true", help="TLS, SCRAM and ACLs; certificates change in between")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=RATE, help="records a second, over all partitions")
    parser.add_argument("--json", type=Path, help="write the reports there too")
    chosen = parser.parse_args(arguments)
    interrupt_on_sigterm()
    install.activate()
    reports = []
    for name in chosen.target or ["tanist"]:
        with tempfile.TemporaryDirectory(prefix=f"rounds-{name}-") as folder:
            cluster = SecureCluster(Path(folder)) if chosen.secure else targets.make(name, Path(folder))
            more = {"before_each": cluster.rotate_certificates} if isinstance(cluster, SecureCluster) else {}
            try:
                cluster.start()
                report = run(
                    cluster,
                    fault=chosen.how,
                    rounds=chosen.rounds,
                    seed=chosen.seed,
                    rate=chosen.rate,
                    verbose=True,
                    **more,
                )
            finally:
                cluster.stop()
        print(report, flush=True)
        reports.append(report)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([report.as_json() for report in reports], indent=1) + "\n")
    return 1 if any(report.violations for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())

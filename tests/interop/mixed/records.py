"""Records written to and read from a mixed cluster, and its replicas' files: what the tests count and compare."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.interop.cluster import metadata
from tests.interop.mixed.mixed_cluster import PROGRAM, MixedCluster
from tests.interop.raw import PartitionState
from tests.interop.waiting import wait_for

SEGMENT = "00000000000000000000.log"


def produce(cluster: MixedCluster, topic: str, values: list[str]) -> None:
    """Write the values to partition 0 with acks=all; all are acknowledged."""
    command = [str(PROGRAM), "produce", topic, "--partition", "0", "--bootstrap", cluster.bootstrap]
    done = subprocess.run(
        command,
        input="".join(f"{value}\n" for value in values),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(f"not all of {len(values)} records were acknowledged:\n{done.stdout}{done.stderr}")


def consume(cluster: MixedCluster, topic: str) -> list[str]:
    """All values of partition 0, from the start; five seconds without another one are its end."""
    command = [
        str(PROGRAM), "consume", topic, "--partition", "0", "--from-beginning", "--timeout", "5",
        "--bootstrap", cluster.bootstrap,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{topic} cannot be read:\n{done.stdout}{done.stderr}")
    return done.stdout.splitlines()


def partition(cluster: MixedCluster, topic: str) -> PartitionState | None:
    """Partition 0 as the first broker that runs tells it."""
    for node_id in cluster.node_ids:
        if cluster.pid(node_id) is not None:
            try:
                states = metadata(cluster, node_id, (topic,)).topics.get(topic, ())
            except OSError:
                continue
            if states:
                return states[0]
    return None


def wait_isr(cluster: MixedCluster, topic: str, expected: set[int]) -> None:
    def has_isr() -> bool:
        state = partition(cluster, topic)
        return state is not None and set(state.isr) == expected

    wait_for(has_isr, f"the ISR of {topic} is {sorted(expected)}", timeout_s=90)


def wait_leader(cluster: MixedCluster, topic: str, *, timeout_s: float = 120.0) -> int:
    def led() -> PartitionState | None:
        state = partition(cluster, topic)
        return state if state is not None and state.leader >= 0 else None

    return wait_for(led, f"{topic} has a leader", timeout_s=timeout_s).leader


def wait_same_bytes(cluster: MixedCluster, topic: str) -> None:
    """All brokers' first segments of partition 0 are the same bytes; the brokers have been calm."""

    def contents() -> list[bytes]:
        return [_segment(cluster, node_id, topic).read_bytes() for node_id in cluster.node_ids]

    wait_for(lambda: len(set(contents())) == 1, f"all replicas of {topic} are the same bytes", timeout_s=60)


def _segment(cluster: MixedCluster, node_id: int, topic: str) -> Path:
    return cluster.log_directory(node_id) / f"{topic}-0" / SEGMENT

"""The brokers on the bench: the same topology and the same server.properties for each side, the JVM's heap fixed.

A side is "tanist", "apache", or the path of another checkout of tanist with its `.venv`, as one combined node and as a
cluster of three. The same target may stand on both sides, as when Apache is measured against itself to prove the bench.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.interop.apache import ApacheCluster
from tests.interop.cluster import Cluster, free_ports, metadata, pids, wait_in_sync, wait_ready
from tests.interop.raw import RawClient
from tests.interop.tanist_cluster import PROGRAM, TanistCluster, TanistNode, tanist
from tests.interop.waiting import wait_for

HEAP = "512m"
READY_POLL_S = 0.002
TOPIC_CONFIG = {"segment.bytes": str(256 << 20), "retention.ms": "-1"}
# A deleted topic's files are to be gone soon after, for the page cache's sake; the default is a minute.
BROKER_CONFIG = {"log.segment.delete.delay.ms": "1000"}


@dataclass(slots=True)
class Side:
    """One broker on the bench."""

    label: str
    """What the report calls it."""

    target: str
    single: Cluster
    triple: Cluster | None = None

    def cluster(self, replicas: int) -> Cluster:
        if replicas == 1:
            return self.single
        if self.triple is None:
            raise ValueError("this side stands without its cluster of three")
        return self.triple


def program_of(target: str) -> Path:
    """The command `tanist` of this checkout, or of another one."""
    return PROGRAM if target == "tanist" else Path(target) / ".venv" / "bin" / "tanist"


def single_node(target: str, directory: Path, properties: Mapping[str, str] | None = None) -> Cluster:
    """One combined node of either kind, formatted, not yet started. Their server.properties differ in ports only."""
    apache = ApacheCluster(
        directory,
        nodes=1,
        properties=BROKER_CONFIG | dict(properties or {}),
        heap=HEAP,
        first_port=free_ports(2),
        name=Path(target).name,
    )
    if target == "apache":
        apache.format()
        return apache
    return formatted(apache, program_of(target))


def formatted(node: ApacheCluster, program: Path, *features: str) -> TanistNode:
    """The one node of Apache's as one of ours, with its properties, its folder formatted by `program`."""
    properties_file = node.properties_file(1)
    properties_file.parent.mkdir(parents=True)
    properties_file.write_text("".join(f"{key}={value}\n" for key, value in node.node_properties(1).items()))
    cluster_id = tanist("random-uuid").strip()
    levels = [part for feature in features for part in ("--feature", feature)]
    tanist("format", "--config", str(properties_file), "--cluster-id", cluster_id, *levels, program=program)
    return TanistNode(properties_file, program=program)


def triple(target: str, directory: Path) -> Cluster:
    """Three combined nodes of either kind, with nothing set but what `tanist up` sets for three brokers."""
    settings = BROKER_CONFIG | {"min.insync.replicas": "2", "default.replication.factor": "3"}
    if target == "apache":
        return ApacheCluster(directory, nodes=3, heap=HEAP, properties=settings)
    return TanistCluster(directory, nodes=3, properties=settings, program=program_of(target))


@contextmanager
def standing(labels: Mapping[str, str], directory: Path, *, with_triple: bool) -> Iterator[list[Side]]:
    """All sides up and ready, label -> target; all of them down again in the end, whatever happened."""
    with ExitStack() as stack:
        sides = []
        for label, target in labels.items():
            single = single_node(target, directory / f"{label}-single")
            stack.callback(single.stop)
            single.start()
            side = Side(label, target, single)
            if with_triple:
                side.triple = triple(target, directory / f"{label}-triple")
                stack.callback(side.triple.stop)
                side.triple.start()
            sides.append(side)
        yield sides


def create_topic(cluster: Cluster, topic: str, replicas: int, config: Mapping[str, str] | None = None) -> int:
    """A topic of one partition; gives its leader's id, once all replicas are in sync."""
    settings = TOPIC_CONFIG | {"min.insync.replicas": str(min(replicas, 2))} | dict(config or {})
    with RawClient(*cluster.address(cluster.node_ids[0])) as client:
        client.create_topic(topic, 1, replicas, settings)
    state = wait_in_sync(cluster, topic)
    leader = state.leaders(topic)[0]

    def serves() -> bool:
        with RawClient(*cluster.address(leader)) as client:
            return client.list_offset(topic, 0, -1) == 0

    wait_for(serves, f"{cluster.name}: the leader of {topic} serves")
    return leader


def delete_topic(cluster: Cluster, topic: str) -> None:
    """Delete, and wait until its files are gone: what they hold of the page cache is to be free for the next run."""
    with RawClient(*cluster.address(cluster.node_ids[0])) as client:
        client.delete_topic(topic)
    for node_id in cluster.node_ids:
        folder = cluster.log_directory(node_id)

        def gone(folder: Path = folder, node_id: int = node_id) -> bool:
            if topic in metadata(cluster, node_id).topics:
                return False
            return not any(each.name.startswith(f"{topic}-0") for each in folder.iterdir())

        wait_for(gone, f"{cluster.name}: the files of {topic} are gone", timeout_s=90, poll_s=0.1)


def seconds_to_ready(target: str, directory: Path) -> float:
    """From the start of a fresh node's process until it answers Metadata with itself in it. Then it is stopped."""
    node = single_node(target, directory)
    try:
        started = time.perf_counter()
        node.start_node(node.node_ids[0])
        wait_ready(node, poll_s=READY_POLL_S)
        return time.perf_counter() - started
    finally:
        node.stop()


def processes(cluster: Cluster) -> list[int]:
    """The process ids of the cluster's nodes; raises if one is missing."""
    found = pids(cluster)
    if len(found) != len(cluster.node_ids):
        raise RuntimeError(f"{cluster.name}: {len(found)} of {len(cluster.node_ids)} nodes run")
    return found

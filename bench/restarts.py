"""`python -m bench.restarts`: how long a node takes until it serves its logs again, beside Apache Kafka, on one folder.

    python -m bench.restarts                                  9,900 logs of 16 KB, and four of 12.5 GB
    python -m bench.restarts --logs 3000x16k --rounds 1

One combined node. tanist makes the topic and writes it, then both sides take turns at the same folder, with the same
server.properties. *Ready*: from the start of the process until Metadata names a leader of each partition, and the log
ends of a sample of partitions, the first and the last among them, are as written. The states of the folder:

* clean: the node before has stopped in order.
* killed: as a SIGKILL leaves it: no mark of a clean stop, and of each log the last segment to be recovered.
* power lost: no mark and no recovery points, and the system has dropped the segments from its page cache: every
  batch is read from the disk, and its CRC checked. That is the worst case; most logs have recovery points after a loss.

The page cache is as large as the machine's memory: of 50 GB it holds what was read or written last.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import frames, stands
from bench.starts import forget_pages, parse_logs
from tanist.log.checkpoints import CLEAN_SHUTDOWN, RECOVERY_POINT_CHECKPOINT, decode_offsets, encode_offsets
from tanist.log.names import LOG_SUFFIX, offset_of
from tests.interop import apache
from tests.interop.cluster import Cluster, cpu_seconds, free_ports, interrupt_on_sigterm, pids, resident_bytes
from tests.interop.raw import LATEST, RawClient
from tests.interop.tanist_cluster import PROGRAM
from tests.interop.waiting import wait_for

TOPIC = "kept"
VALUE_BYTES = 1_000
BATCH_BYTES = 1_000_000
"""At most: it fits the default `message.max.bytes`."""
SAMPLE = 20
PATIENCE_S = 900.0
POLL_S = 0.01
SIDES = ("tanist", "apache")
_WITHOUT_ELR = "eligible.leader.replicas.version=0"
"""The one replica of a partition leads again after a crash: this is about logs, not about elections."""


class Folder:
    """The data of one node, which both sides can serve."""

    def __init__(self, directory: Path, partitions: int) -> None:
        self._apache = apache.ApacheCluster(
            directory, nodes=1, properties=stands.BROKER_CONFIG, heap=stands.HEAP, first_port=free_ports(2)
        )
        self._tanist = stands.formatted(self._apache, PROGRAM, _WITHOUT_ELR)
        self.partitions = partitions
        self.ends: dict[int, int] = {}
        """The log end offsets of the sample."""

    @property
    def data(self) -> Path:
        return self._apache.log_directory(1)

    def node(self, side: str) -> Cluster:
        return self._tanist if side == "tanist" else self._apache

    def stop(self) -> None:
        self._tanist.stop()
        self._apache.stop()

    def fill(self, size_bytes: int) -> None:
        """Make the topic, and write so many bytes into each partition."""
        node = self._tanist
        node.start()
        now_ms = int(time.time() * 1000)
        batch = frames.batch_of_size(min(size_bytes, BATCH_BYTES), VALUE_BYTES, now_ms)
        with RawClient(*node.address(1), timeout_s=PATIENCE_S) as client:
            client.create_topic(TOPIC, self.partitions, 1, {"retention.ms": "-1"})
            self._await(lambda: self._has_leaders(client), node)
            for index in range(self.partitions):
                produce = frames.produce(TOPIC, index, batch, 1)
                for _ in range(max(1, size_bytes // len(batch))):
                    answer = client.exchange(produce.requests[0])
                    if error := produce.error_of(answer):
                        raise RuntimeError(f"{TOPIC}-{index} does not take a batch: error {error}")
            step = max(1, self.partitions // SAMPLE)
            sample = {*range(0, self.partitions, step), self.partitions - 1}
            self.ends = {index: client.list_offset(TOPIC, index, LATEST) for index in sorted(sample)}
        self._end(node)

    def _has_leaders(self, client: RawClient) -> bool:
        leaders = client.metadata((TOPIC,)).leaders(TOPIC)
        return len(leaders) == self.partitions and all(leader == 1 for leader in leaders.values())

    def _serves(self, node: Cluster) -> bool:
        with RawClient(*node.address(1), timeout_s=PATIENCE_S) as client:
            if not self._has_leaders(client):
                return False
            found = {index: client.list_offset(TOPIC, index, LATEST) for index in self.ends}
        if found != self.ends:
            raise RuntimeError(f"{node.name} has other log ends than were written: {found}, not {self.ends}")
        return True

    def _await(self, reached: Callable[[], bool], node: Cluster) -> None:
        def looked() -> bool:
            if node.pid(1) is None:
                raise RuntimeError(f"{node.name} has ended: see the log in {self.data.parent}")
            return reached()

        wait_for(looked, f"{node.name} serves", timeout_s=PATIENCE_S, poll_s=POLL_S)

    # -- states

    def clean(self) -> None:
        """As the last node has left it."""
        if not (self.data / CLEAN_SHUTDOWN).exists():
            raise RuntimeError(f"no clean stop has left {self.data}")

    def killed(self) -> None:
        (self.data / CLEAN_SHUTDOWN).unlink()
        path = self.data / RECOVERY_POINT_CHECKPOINT
        points = decode_offsets(path.read_bytes(), str(path))
        for (topic, index), point in points.items():
            names = [each.name for each in (self.data / f"{topic}-{index}").glob(f"*{LOG_SUFFIX}")]
            bases = [base for name in names if (base := offset_of(name, LOG_SUFFIX)) is not None]
            points[topic, index] = min(point, max(bases, default=0))
        path.write_bytes(encode_offsets(points))

    def power_lost(self) -> None:
        (self.data / CLEAN_SHUTDOWN).unlink()
        (self.data / RECOVERY_POINT_CHECKPOINT).unlink()
        forget_pages(self.data)

    def start(self, side: str) -> dict[str, float]:
        """Start a node on the folder, wait until it serves, and stop it in order."""
        node = self.node(side)
        started = time.perf_counter()
        node.start_node(1)
        self._await(lambda: self._serves(node), node)
        found = {"ready_s": time.perf_counter() - started}
        servers = pids(node)
        found["cpu_s"] = cpu_seconds(servers)
        found["rss_mb"] = resident_bytes(servers) / 1e6
        found["stop_s"] = self._end(node)
        return found

    def _end(self, node: Cluster) -> float:
        """Stop a node in order, however long that takes: thousands of logs are synced."""
        pid = node.pid(1)
        if pid is None:
            raise RuntimeError(f"{node.name} has ended by itself: see the log in {self.data.parent}")
        started = time.perf_counter()
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: node.pid(1) is None, f"{node.name} has stopped", timeout_s=PATIENCE_S, poll_s=POLL_S)
        node.stop_node(1)
        return time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.restarts", description=__doc__.split("\n")[0])
    parser.add_argument("--logs", help="how many, x bytes of each (9900x16k,4x12800m)", default="9900x16k,4x12800m")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sides", help="tanist,apache", default="tanist,apache")
    parser.add_argument("--data", type=Path, help="where the logs are made (a temporary folder)")
    chosen = parser.parse_args()
    reason = apache.missing()
    if reason is not None:
        print(f"the bench {reason}", file=sys.stderr)
        return 2
    sides = chosen.sides.split(",")
    if not set(sides) <= set(SIDES):
        parser.error(f"sides are {', '.join(SIDES)}")
    interrupt_on_sigterm()
    for kind, partitions, size_bytes in parse_logs(chosen.logs):
        with tempfile.TemporaryDirectory(prefix="tanist-bench-", dir=chosen.data) as name:
            folder = Folder(Path(name), partitions)
            try:
                folder.fill(size_bytes)
                for state in (folder.clean, folder.killed, folder.power_lost):
                    rounds: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
                    for number in range(chosen.rounds):
                        for side in sides if number % 2 == 0 else reversed(sides):
                            state()
                            rounds[side].append(folder.start(side))
                    for side, found in rounds.items():
                        row = ", ".join(
                            f"{key} {statistics.median(each[key] for each in found):.2f} "
                            f"({min(each[key] for each in found):.2f}-{max(each[key] for each in found):.2f})"
                            for key in found[0]
                        )
                        print(f"{kind}, {state.__name__.replace('_', ' ')}, {side}: {row}", flush=True)
            finally:
                folder.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

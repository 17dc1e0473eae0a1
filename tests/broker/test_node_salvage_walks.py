"""Elections without regard to losses, again and again: what was acknowledged is in the topic or in a quarantine."""

from __future__ import annotations

import itertools
import random

import pytest

from tanist.log.salvage.manifest import QUARANTINE
from tanist.log.salvage.quarantine import Quarantine
from tanist.wire.batch import decode_batch, iterate_headers
from tests.broker.cluster_rig import Cluster

PARTITIONS = 3
UNCLEAN = {
    "unclean.leader.election.enable": "true",
    "unclean.recovery.strategy": "Aggressive",
    "unclean.leader.election.interval.ms": "500",
    "min.insync.replicas": "1",
}


class Walk:
    """Brokers 4 and 5 hold a topic; they are killed and started, separated and reunited, and written to."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = Cluster(nodes=5, seed=seed, config=UNCLEAN)
        self.cluster.create_topic("t", assignment=[[4, 5], [5, 4], [4, 5]])
        self.numbers = itertools.count()
        self.acknowledged: list[set[bytes]] = [set() for _ in range(PARTITIONS)]

    def step(self) -> None:
        hosts, rng = self.cluster.world.hosts, self.rng
        kind = rng.random()
        broker = rng.choice([4, 5])
        if kind < 0.5:
            self.produce(rng.randrange(PARTITIONS))
        elif kind < 0.7:
            (hosts[broker].kill if hosts[broker].up else hosts[broker].start)()
        elif kind < 0.8:
            self.cluster.cut(4, 5)
            self.cluster.reset(4, 5)
        elif kind < 0.85:
            self.cluster.heal()
        self.cluster.run(rng.choice([0, 20, 300, 3_000]))

    def produce(self, partition: int) -> None:
        value = b"%d" % next(self.numbers)
        leader = self.cluster.leader("t", partition)
        if leader is not None:
            answer = self.cluster.produce("t", [value], partition=partition, acks=1, to=leader, timeout_ms=500)
            if answer is not None and answer.error_code == 0:
                self.acknowledged[partition].add(value)

    def end(self) -> None:
        self.cluster.heal()
        for host in self.cluster.world.hosts.values():
            if not host.up:
                host.start()
        self.cluster.until(lambda: all(self.whole(partition) for partition in range(PARTITIONS)), 120_000)

    def whole(self, partition: int) -> bool:
        leader = self.cluster.leader("t", partition)
        hosted = None if leader is None else self.cluster.hosted("t", partition)[leader]
        if hosted is None or hosted.leader is None or len(hosted.leader.isr) < 2:
            return False
        return hosted.leader.high_watermark == hosted.log.log_end_offset

    def salvaged(self, partition: int) -> set[bytes]:
        values: set[bytes] = set()
        for node_id in (4, 5):
            disk = self.cluster.host(node_id).disk
            keeper = Quarantine(disk.view(self.cluster.client.process), "/data", node_id, itertools.count())
            for entry in keeper.entries():
                if entry.partition != partition:
                    continue
                for file in entry.files:
                    view = memoryview(disk.content(f"/data/{QUARANTINE}/{entry.entry_id}/{file.name}"))
                    for at, header in iterate_headers(view):
                        batch = decode_batch(view[at : at + header.size_bytes])
                        values |= {bytes(record.value or b"") for record in batch}
        return values


@pytest.mark.parametrize("block", range(2))
def test_no_acknowledged_record_is_lost_for_good(block: int) -> None:
    lost = 0
    for seed in range(block * 4, block * 4 + 4):
        walk = Walk(seed)
        for _ in range(40):
            walk.step()
        walk.end()
        for partition in range(PARTITIONS):
            there = set(walk.cluster.values("t", partition=partition))
            missing = walk.acknowledged[partition] - there
            lost += len(missing)
            assert missing <= walk.salvaged(partition), f"seed {seed}, partition {partition}"
    assert lost > 0, "nothing was at stake"

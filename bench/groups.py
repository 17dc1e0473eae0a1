"""`python -m bench.groups`: how long a hundred members take to join and settle, and how many commits a second count.

    python -m bench.groups                      tanist beside Apache Kafka, three rounds
    python -m bench.groups --members 30 --rounds 1

One combined node of each kind, side by side, at the same server.properties, and `group.initial.rebalance.delay.ms=0`
so that nobody waits for nothing. The members are the simulator's (`tanist.sim.workload.group_members`) on real
sockets, all in this process, so they share the two cores with both brokers; they are the same for both sides.

*Settled*: all members have been started at once, and each has its two of the partitions. *Commits*: each member
commits one offset after the other, and waits for each answer. Each round has its own group and topic.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measure import in_turn
from bench.stands import single_node
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.network import SocketNetwork
from tanist.sim.workload.group_client import ClientContext, GroupPartition, Witness
from tanist.sim.workload.group_members import SimGroupMember
from tests.interop import apache
from tests.interop.cluster import Cluster, cpu_seconds, interrupt_on_sigterm, pids, wait_in_sync
from tests.interop.raw import RawClient

PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "6",
}
KINDS = ("classic", "consumer")
SETTLE_MS = 180_000
LOOK_MS = 10
SHARE = 2
"""Partitions of each member, when all have their share."""
SESSION_MS = 45_000


class CommitCount(Witness):
    """Counts commits, and nothing else."""

    def __init__(self) -> None:
        self.acknowledged_commits = 0

    def committed(self, client: str, group_partition: GroupPartition, offset: int, tag: str) -> None:
        self.acknowledged_commits += 1


@dataclass(frozen=True, slots=True)
class Measured:
    """One round of one side."""

    settled_s: float
    commits_per_s: float
    cpu_us: float
    """Of the broker, for each commit: what else the machine does changes this least."""


class NeverSettled(Exception):
    """Not every member had its share in time."""


def measure(cluster: Cluster, kind: str, name: str, members: int, commit_s: float) -> Measured:
    """One group, from the first request to the last commit."""
    partitions = SHARE * members
    with RawClient(*cluster.address(cluster.node_ids[0])) as client:
        client.create_topic(name, partitions, 1, {})
    wait_in_sync(cluster, name)
    loop, witness = Loop(), CommitCount()
    network = SocketNetwork(loop)
    bootstrap = [cluster.address(node_id) for node_id in cluster.node_ids]
    group: list[SimGroupMember] = [
        SimGroupMember(
            ClientContext(loop, network, bootstrap, random.Random(n), witness),
            f"{name}/{n}",
            name,
            (name,),
            is_classic=kind == "classic",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            pause_ms=0,
        )
        for n in range(members)
    ]
    began_ms = loop.now_ms()
    settled_ms = 0
    before = 0
    cpu_s = 0.0

    def look() -> None:
        nonlocal settled_ms, before, cpu_s
        owned = {partition for member in group for partition in member.owned}
        if len(owned) == partitions and all(len(member.owned) == SHARE for member in group):
            settled_ms, before, cpu_s = loop.now_ms(), witness.acknowledged_commits, cpu_seconds(pids(cluster))
            loop.call_at(settled_ms + round(commit_s * 1000), loop.stop)
        elif loop.now_ms() > began_ms + SETTLE_MS:
            loop.stop()
        else:
            loop.call_at(loop.now_ms() + LOOK_MS, look)

    def leave() -> None:
        for member in group:
            member.leave()
        loop.call_at(loop.now_ms() + 500, loop.stop)

    for member in group:
        loop.call_soon(member.start)
    look()
    loop.run()
    took_ms, commits = loop.now_ms() - settled_ms, witness.acknowledged_commits - before
    used_s = cpu_seconds(pids(cluster)) - cpu_s
    loop.call_soon(leave)
    loop.run()
    network.close()
    loop.close()
    if not settled_ms:
        raise NeverSettled(f"{cluster.name}: {kind} group of {members}: not within {SETTLE_MS // 1000} s")
    return Measured((settled_ms - began_ms) / 1000, commits * 1000 / took_ms, used_s * 1e6 / max(commits, 1))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.groups", description=__doc__.split("\n\n")[0])
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commit-seconds", type=float, default=5.0)
    chosen = parser.parse_args(arguments)
    reason = apache.missing()
    if reason is not None:
        print(f"the bench {reason}", file=sys.stderr)
        return 2
    interrupt_on_sigterm()
    found: dict[tuple[str, str], list[Measured]] = {}
    with tempfile.TemporaryDirectory(prefix="tanist-bench-groups-") as folder:
        sides = {target: single_node(target, Path(folder) / target, PROPERTIES) for target in ("tanist", "apache")}
        try:
            for cluster in sides.values():
                cluster.start()
            for number in range(chosen.rounds):
                # A B, B A, A B: whatever the machine does besides hits both.
                ordered = in_turn(sides, number)
                for kind in KINDS:
                    for target in ordered:
                        one = measure(sides[target], kind, f"{kind}-{number}", chosen.members, chosen.commit_seconds)
                        found.setdefault((kind, target), []).append(one)
                        print(
                            f"{kind:9} {target:7} round {number + 1}: settled in {one.settled_s:.2f} s, "
                            f"{one.commits_per_s:.0f} commits/s, {one.cpu_us:.0f} us of CPU each",
                            flush=True,
                        )
        finally:
            for cluster in sides.values():
                cluster.stop()
    for kind in KINDS:
        for target in sides:
            rounds = found[(kind, target)]
            print(
                f"{kind:9} {target:7} median of {len(rounds)}: {chosen.members} members settled in "
                f"{statistics.median(each.settled_s for each in rounds):.2f} s, "
                f"{statistics.median(each.commits_per_s for each in rounds):.0f} commits/s, "
                f"{statistics.median(each.cpu_us for each in rounds):.0f} us of the broker's CPU each"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Seeded runs of three to five nodes under loss, reordering, duplication, partitions and crashes that lose unsynced
data.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tanist.quorum import QuorumRules, RaftConfig
from tests.quorum.quorum_checker import Checker
from tests.quorum.quorum_network import Faults, Network

FAST = RaftConfig(
    election_timeout_ms=100,
    fetch_timeout_ms=200,
    election_backoff_max_ms=100,
    request_timeout_ms=100,
    retry_backoff_ms=20,
    fetch_max_wait_ms=100,
    lost_leader_backoff_ms=20,
    fetch_max_bytes=300,
    fetch_snapshot_max_bytes=150,
)
SHAPES = [((1, 2, 3), ()), ((1, 2, 3), (11,)), ((1, 2, 3, 4, 5), ()), ((1, 2), (11,))]


def run(
    seed: int, *, rules: QuorumRules | None = None, fault_ms: int = 700, network_class: type[Network] = Network
) -> Checker:
    """Faults for a while, then none; safety throughout, liveness at the end."""
    voters, observers = SHAPES[seed % len(SHAPES)]
    faults = Faults(
        loss=[0, 2, 10][seed % 3], duplicate=[0, 10][seed % 2], straggle=[0, 10][seed // 2 % 2], delay_ms=6, sync_ms=8
    )
    network = network_class(seed, voters, observers, config=FAST, faults=faults, rules=rules, report_lost=seed % 5 != 0)
    checker = Checker(network)
    network.start()
    nodes = list(network.machines)
    rng = network.rng
    written = 0
    end_ms = 150 + fault_ms
    network.run_for(150)
    while network.now_ms < end_ms:
        network.run_for(5 + rng.below(30))
        what = rng.below(100)
        node_id = nodes[rng.below(len(nodes))]
        if what < 55:
            leader = network.leader()
            if leader is not None:
                written += 1
                network.append(leader.node_id, b"%d" % written)
        elif what < 68:
            leader = network.leader()
            network.crash(leader.node_id if leader is not None and rng.rng(50) else node_id)
        elif what < 82:
            for machine in network.machines.values():
                if machine.node is None:
                    network.start(machine.node_id)
        elif what < 88:
            split = 1 + rng.below(len(nodes) - 1)
            network.partition(nodes[:split], nodes[split:])
        elif what < 94:
            network.snapshot(node_id)
        elif what < 96:
            leader = network.leader()
            if leader is not None:
                network.do(leader.node_id, leader.resign(network.now_ms))
        else:
            network.heal()
    network.heal()
    for machine in network.machines.values():
        if machine.node is None:
            network.start(machine.node_id)
    network.run_until(checker.agreed, 5_000)
    leader = network.leader()
    assert leader is not None
    assert network.append(leader.node_id, b"last") is not None
    network.run_until(lambda: all(m.applied[-1:] == [b"last"] for m in network.machines.values()), 5_000)
    checker.finish()
    return checker


SEEDS = int(os.environ.get("TANIST_QUORUM_SEEDS", "300"))
BLOCK = 30


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_safe_under_faults_and_live_after_them(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + BLOCK):
        try:
            seen += run(seed).seen
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
    assert seen["BecameQuorumLeader"] > BLOCK * 2, "the faults hardly ever unseated a leader"
    assert min(seen[name] for name in ("SteppedDown", "MetadataLogTruncated", "SnapshotDownloaded")) > 0, seen

"""Runs of the simulator within what the public model of KIP-996 knows: a quorum of static voters.

Voters are killed and stop and start again, and keep their logs; messages are late or lost; leaders change. No machine
loses its power, no voter joins or leaves, and a run is too short for a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tanist.faults import in_drawing_order
from tanist.lab.simulation.breaking import quorum_broken
from tanist.lab.trace.quorum_mapping import QuorumTrace, quorum_trace_of
from tanist.lab.trace.quorum_recording import QuorumRecorder
from tanist.lab.trace.runs import unheard
from tanist.sim.run.chaos_run import Plan
from tanist.sim.run.config import TOPIC, ChaosConfig
from tanist.sim.workload.operations import Topic
from tanist.sim.world.clock import stream

_KINDS = ("crash-controller", "crash", "stop", "partition", "partition-one-way", "pause", "slow", "reset")


def config(seed: int) -> ChaosConfig:
    """What a seed draws."""
    rng = stream(seed, "quorum trace")
    kinds = {"crash-controller", *rng.sample(_KINDS, rng.randint(3, len(_KINDS)))}
    voters = range(11, 11 + rng.choice((3, 3, 3, 5)))
    return ChaosConfig(
        roles={1: "broker", **dict.fromkeys(voters, "controller")},
        topics=(Topic(TOPIC, 1, 1),),
        min_insync_replicas=1,
        producers=1,
        observers=0,
        pause_ms=1_000,
        fault_time_ms=rng.choice((4_000, 8_000)),
        kinds=in_drawing_order(kinds),
        fault_pause_ms=(50, rng.choice((500, 1_500))),
        down_max=2,
        latency_us=rng.choice(((50, 300), (500, 5_000), (2_000, 30_000))),
    )


@dataclass(frozen=True, slots=True)
class TracedQuorum:
    """A run, and its trace."""

    name: str
    trace: QuorumTrace
    broken: bool = False
    """A rule was broken in it."""


def of_seed(seed: int) -> TracedQuorum:
    return _traced(f"quorum {seed}", seed)


def of_rule(rule: str, seed: int) -> Iterator[TracedQuorum]:
    """The run of a seed with a rule of the quorum whole, and with it broken."""
    yield _traced(f"{rule} whole, quorum {seed}", seed)
    with quorum_broken(rule):
        yield _traced(f"{rule} broken, quorum {seed}", seed, breaks=True)


def _traced(name: str, seed: int, *, breaks: bool = False) -> TracedQuorum:
    run = Plan.drawn(seed, config(seed)).begin()
    if breaks:
        unheard(run)
    recorder = QuorumRecorder(run.world)
    with recorder.watching():
        run.run()
    return TracedQuorum(name, quorum_trace_of(recorder.all, recorder.voters), breaks)

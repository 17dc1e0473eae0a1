"""Random runs within what the public model knows: one partition, and no faults but those that it has.

Its brokers end and start again, are fenced and unfenced, and keep their logs; fetches, answers and requests are late or
lost; leaders and ISRs change. There is no unclean recovery, and no change of replicas or of min.insync.replicas. A run
is short: TLC keeps all of its states.
"""

from __future__ import annotations

from tanist.faults import in_drawing_order
from tanist.sim.run.chaos_run import ChaosRun, Plan
from tanist.sim.run.config import TOPIC, ChaosConfig
from tanist.sim.workload.operations import Topic
from tanist.sim.world.clock import stream
from tanist.sim.world.world import COMBINED

PARTITION = f"{TOPIC}-0"
_KINDS = ("stop", "crash", "crash-leader", "partition", "partition-one-way", "pause", "slow", "reset")


def config(seed: int) -> ChaosConfig:
    """What a seed draws."""
    rng = stream(seed, "trace")
    apart = rng.random() < 0.5
    roles = {**dict.fromkeys((1, 2, 3), "broker"), 11: "controller"} if apart else dict.fromkeys((1, 2, 3), COMBINED)
    return ChaosConfig(
        roles=roles,
        topics=(Topic(TOPIC, 1, 3, (("unclean.recovery.strategy", "None"),)),),
        producers=1,
        observers=0,
        pause_ms=rng.choice((200, 400)),
        kinds=in_drawing_order(rng.sample(_KINDS, rng.randint(2, len(_KINDS)))),
        fault_pause_ms=(50, rng.choice((500, 1_500))),
        down_max=rng.choice((1, 2, 3)),
        latency_us=rng.choice(((50, 300), (500, 5_000))),
        properties={
            "broker.session.timeout.ms": "1500",
            "broker.heartbeat.interval.ms": "300",
            "replica.lag.time.max.ms": rng.choice(("1000", "3000")),
            "unclean.recovery.manager.enabled": "false",
        },
    )


def begin(seed: int) -> ChaosRun:
    """The run of a seed, ready to be played."""
    return Plan.drawn(seed, config(seed)).begin()

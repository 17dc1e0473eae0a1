"""The Last Replica Standing: KIP-966's motivation, T0 to T4, played by whole nodes in virtual time.

Owns one play with two endings: the same steps, from the same seed, on a cluster as Kafka was before KIP-966, and on one
with it. Before the KIP means without Eligible Leader Replicas, and with a high watermark that goes on while the ISR is
below min.insync.replicas: the first is a feature's level, the second is switched on here for the purpose. It reports
the partition's state after each step and, in the end, which acknowledged records exist. Only the steps are fixed
beforehand; the cluster decides everything.

(The KIP's brokers 0, 1 and 2 are 1, 2 and 3.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tanist.controller.image.partition_state import PartitionState
from tanist.lab.mutations.patching import replaced
from tanist.lab.stage import Ending, Setup, Stage

__all__ = ["Ending", "Scene", "play", "setup", "steps"]

TOPIC = "orders"
MIN_ISR = 2
SEED = 6
"""A seed whose loss of power takes all unsynced records: the seed decides how many are lost."""

_CONFIG = {
    "min.insync.replicas": str(MIN_ISR),
    "broker.session.timeout.ms": "2500",
    "broker.heartbeat.interval.ms": "500",
    "log.flush.interval.messages": "100",
}


@dataclass(frozen=True, slots=True)
class Scene:
    """The partition's state after a step."""

    when: str
    """T0 to T4, or empty: the beginning, the end."""
    what: str
    """The step, as text."""
    at_ms: int
    """Virtual time since the cluster was ready."""
    state: PartitionState
    offline: frozenset[int]
    min_isr: int = MIN_ISR


def setup(*, elr: bool) -> Setup:
    return Setup(TOPIC, (1, 2, 3), 3, _CONFIG, {"flush.messages": "100"}, elr, before_the_kip=not elr)


def steps(stage: Stage, ends: tuple[int, int, int] = (100, 150, 160)) -> Iterator[tuple[str, str]]:
    """Each step, as (when, what is done), before it is taken.

    `ends`: so many records are written before T0, before T1 and before T2.
    """
    first, second, third = ends
    yield "", f"{first} records are written with acks=all"
    stage.write(1, first)
    yield "T0", f"the network cuts broker 1 off; {second - first} more records are written"
    stage.isolate(1)
    stage.until_state(lambda state: state.isr == (2, 3))
    stage.write(first + 1, second)
    yield "T1", f"the network cuts broker 2 off as well; {third - second} more records are written"
    stage.isolate(2)
    stage.until_state(lambda state: state.isr == (3,))
    stage.write(second + 1, third)
    yield "T2", "broker 3 loses its power"
    stage.host(3).lose_power()
    stage.until_state(lambda state: not state.has_leader)
    yield "T3", "the network is whole again"
    stage.heal()
    stage.run(5_000)
    yield "T4", "broker 3 starts again"
    stage.host(3).start()
    stage.until_state(lambda state: len(state.isr) == len(state.replicas))


def play(*, elr: bool, seed: int = SEED) -> list[Scene | Ending]:
    """Play it. `ScriptError` if a step does not happen."""
    stage = Stage(setup(elr=elr), seed)
    with replaced(stage.setup.breaking):
        return list(_scenes(stage))


def _scenes(stage: Stage) -> Iterator[Scene | Ending]:
    stage.begin()
    taken: tuple[str, str] | None = None
    for step in steps(stage):
        if taken is not None:
            yield _scene(stage, *taken)
        taken = step
    if taken is not None:
        yield _scene(stage, *taken)
    yield stage.ending()


def _scene(stage: Stage, when: str, what: str) -> Scene:
    brokers = stage.image.brokers
    offline = frozenset(broker_id for broker_id in stage.setup.replicas if not brokers[broker_id].active)
    return Scene(when, what, stage.world.now_ms - stage.ready_ms, stage.state, offline)

"""A random walk over the stage: from a seed, hundreds of steps of what may happen, safety checked after each.

Cheaper than the hypothesis machine by a factor of ten, and it has no taste in what it tries, so it finds what needs a
long and unlikely course of events. A seed always walks the same way.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable
from itertools import accumulate

from tanist.lab.scenarios.replica import LAG_MS
from tanist.replica.partition import Partition
from tests.replica.replica_stage import Stage


def _produce(stage: Stage, broker: int, rng: random.Random) -> None:
    stage.append(broker, rng.choice((1, 2)), rng.choice((1, -1)))


def _deliver(stage: Stage, _: int, rng: random.Random) -> None:
    if stage.messages:
        stage.deliver(rng.choice(stage.messages))


def _lose(stage: Stage, _: int, rng: random.Random) -> None:
    if stage.messages:
        stage.drop(rng.choice(stage.messages))


def _restart(stage: Stage, broker: int, rng: random.Random) -> None:
    stage.restart(broker, checkpoint=rng.choice((0, None)))


def _time_passes(stage: Stage, _: int, rng: random.Random) -> None:
    stage.now_ms += rng.choice((1, LAG_MS // 2, LAG_MS + 1))


def _heal(stage: Stage, _: int, __: random.Random) -> None:
    """Things go well for a while: without that most walks end early, with everybody fenced."""
    for broker in stage.ids:
        if stage.controller.brokers[broker].fenced:
            stage.controller.unfence(broker)
    stage.learn_all()
    for broker in stage.ids * 2:
        stage.fetch(broker)
    stage.settle_proposals()


STEPS: tuple[tuple[int, Callable[[Stage, int, random.Random], object]], ...] = (
    (150, _produce),
    (130, lambda stage, broker, _: stage.send_fetch(broker)),
    (220, _deliver),
    (50, _lose),
    (130, lambda stage, broker, _: stage.fetch(broker)),
    (20, lambda stage, broker, _: stage.ask(broker)),
    (100, lambda stage, broker, _: stage.learn_next(broker)),
    (40, lambda stage, broker, _: stage.learn(broker)),
    (30, lambda stage, broker, _: stage.controller.fence(broker)),
    (60, lambda stage, broker, _: stage.controller.unfence(broker)),
    (20, lambda stage, broker, _: stage.controller.prefer(broker)),
    (20, _heal),
    (5, lambda stage, broker, _: stage.controller.shut_down(broker)),
    (10, _restart),
    (15, _time_passes),
    (10, lambda stage, broker, _: stage.check_lag(broker)),
    (20, lambda stage, _, __: stage.settle_proposals()),
)
_BOUNDS = list(accumulate(weight for weight, _ in STEPS))


def walk(
    seed: int, steps: int, partition_class: type[Partition] = Partition, stage_class: type[Stage] = Stage
) -> Stage:
    """Walk `steps` steps; raises `Violation` where safety ends."""
    rng = random.Random(seed)
    min_isr, fetch_max = rng.choice((2, 2, 2, 1, 3)), rng.choice((None, None, 1))
    stage = stage_class(3, min_isr, partition_class, fetch_max_entries=fetch_max)
    for _ in range(steps):
        step = STEPS[bisect(_BOUNDS, rng.randrange(_BOUNDS[-1]))][1]
        step(stage, rng.choice(stage.ids), rng)
        stage.check()
    return stage

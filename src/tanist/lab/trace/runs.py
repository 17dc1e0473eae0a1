"""Runs of the simulator within what the public model and our additions to it know: one partition, and their faults.

Brokers end and start again, are fenced and unfenced, and keep their logs; fetches, answers and requests are late or
lost; leaders and ISRs change. With losses, machines lose power, which takes the ends of logs, and partitions are
recovered uncleanly. There is no change of replicas or of min.insync.replicas. A run is short: TLC keeps all of its
states.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from tanist.events.event import Event
from tanist.faults import in_drawing_order
from tanist.lab import last_replica_standing
from tanist.lab.simulation.breaking import broken, directed
from tanist.lab.stage import Stage
from tanist.lab.trace.mapping import Trace, trace_of
from tanist.lab.trace.recording import Recorder
from tanist.sim import events as sim_events
from tanist.sim.run.chaos_run import ChaosRun, Plan
from tanist.sim.run.config import TOPIC, ChaosConfig
from tanist.sim.workload.operations import Topic
from tanist.sim.world.clock import stream
from tanist.sim.world.world import COMBINED, Host, Watcher

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
        pause_ms=rng.choice((300, 600)),
        fault_time_ms=6_000,
        kinds=in_drawing_order(rng.sample(_KINDS, rng.randint(2, len(_KINDS)))),
        fault_pause_ms=(50, rng.choice((300, 1_000))),
        down_max=rng.choice((1, 2, 3)),
        latency_us=rng.choice(((50, 300), (500, 5_000))),
        properties={
            "broker.session.timeout.ms": "1500",
            "broker.heartbeat.interval.ms": "300",
            "replica.lag.time.max.ms": rng.choice(("1000", "3000")),
            "unclean.recovery.manager.enabled": "false",
        },
    )


def config_with_losses(seed: int) -> ChaosConfig:
    """What a seed draws where machines lose power as well, and partitions are recovered uncleanly."""
    plain, rng = config(seed), stream(seed, "trace losses")
    strategy = rng.choice(("Balanced", "Aggressive", "None"))
    return replace(
        plain,
        topics=(Topic(TOPIC, 1, 3, (("unclean.recovery.strategy", strategy),)),),
        kinds=in_drawing_order({*plain.kinds, "power-loss", "blackout"}),
        down_max=3,
        properties={**plain.properties, "unclean.recovery.manager.enabled": "true"},
    )


def begin(seed: int, *, losses: bool = False) -> ChaosRun:
    """The run of a seed, ready to be played."""
    return Plan.drawn(seed, config_with_losses(seed) if losses else config(seed)).begin()


@dataclass(frozen=True, slots=True)
class Traced:
    """A run, and its trace."""

    name: str
    trace: Trace
    broken: bool = False
    """A rule was broken in it."""


def of_seed(seed: int, *, losses: bool = False) -> Traced:
    return _traced(f"seed {seed}{' with losses' if losses else ''}", begin(seed, losses=losses))


def of_rule(rule: str, seed: int, *, losses: bool = False) -> Iterator[Traced]:
    """The run in which a broken rule shows, with the rule whole and with it broken."""
    scripted = directed(rule)
    for breaks in (False, True):
        with broken(rule if breaks else None):
            run = scripted(seed) if scripted is not None else begin(seed, losses=losses)
            yield _traced(f"{rule} {'broken' if breaks else 'whole'}, seed {seed}", run, breaks=breaks)


class _Unheard(Watcher):
    """A checker of ours that does not end the run: the model alone judges one with a broken rule."""

    def __init__(self, checker: Watcher) -> None:
        self._checker = checker

    def turn_ended(self, host: Host) -> None:
        with suppress(Exception):
            self._checker.turn_ended(host)

    def went_down(self, host: Host, *, lost_power: bool, mid_turn: bool) -> None:
        with suppress(Exception):
            self._checker.went_down(host, lost_power=lost_power, mid_turn=mid_turn)

    def observed(self, host: Host, event: Event) -> None:
        with suppress(Exception):
            self._checker.observed(host, event)

    def happened(self, event: sim_events.Event) -> None:
        with suppress(Exception):
            self._checker.happened(event)


def unheard(run: ChaosRun) -> None:
    """Let no checker of ours end the run."""
    run.world.watchers[:] = [_Unheard(each) if each is run.checkers else each for each in run.world.watchers]


def _traced(name: str, run: ChaosRun, *, breaks: bool = False) -> Traced:
    if breaks:
        unheard(run)
    recorder = Recorder(run.world)
    run.run()
    trace = trace_of(recorder.all, PARTITION, min_isr=run.config.min_insync_replicas, strategy=_strategy(run.config))
    return Traced(name, trace, breaks)


def _strategy(config: ChaosConfig) -> str | None:
    if config.properties.get("unclean.recovery.manager.enabled") == "false":
        return None
    settings = dict(next(each for each in config.topics if each.name == TOPIC).configs)
    switch = "Aggressive" if settings.get("unclean.leader.election.enable") == "true" else "Balanced"
    return settings.get("unclean.recovery.strategy", switch)


def last_standing() -> Traced:
    """The scenario of KIP-966: the last replica loses its power, and the end of its log."""
    stage = Stage(last_replica_standing.setup(elr=True), last_replica_standing.SEED)
    recorder = Recorder(stage.world)
    stage.begin()
    for _ in last_replica_standing.steps(stage, (5, 8, 10)):
        pass
    stage.write(11, 12)
    trace = trace_of(recorder.all, f"{last_replica_standing.TOPIC}-0", min_isr=last_replica_standing.MIN_ISR)
    return Traced("the last replica standing", trace)

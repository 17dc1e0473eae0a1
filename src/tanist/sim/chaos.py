"""A run of the simulator: a cluster under load, faults by chance, then peace, then judgement.

Everything is drawn from the seed: which faults there are, when, and to whom. Safety is checked after every turn
(`checkers`); when the faults have ended the cluster must become whole again within a bounded time, and then the
clients' history is held against what is committed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tanist.sim.checkers import SafetyChecker, SafetyViolation
from tanist.sim.clients import Consumer, Producer, SimClient
from tanist.sim.history import History
from tanist.sim.world import Host, World
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

TOPIC = "events"


@dataclass(frozen=True)
class ChaosConfig:
    """What a run is like. Times in virtual milliseconds."""

    nodes: int = 3
    partitions: int = 2
    replication_factor: int = 3
    min_insync_replicas: int = 2
    fault_time_ms: int = 12_000
    settle_time_ms: int = 40_000
    producers: int = 2
    pause_ms: int = 60
    faults: tuple[str, ...] = (
        "kill",
        "power",
        "stop",
        "partition",
        "one_way",
        "freeze",
        "slow",
        "reset",
        "skew",
    )
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Outcome:
    """What came of a run."""

    seed: int
    digest: str = ""
    violation: SafetyViolation | None = None
    sends: int = 0
    acknowledged: int = 0
    reads: int = 0
    events: int = 0
    virtual_ms: int = 0
    faults: int = 0


class Nemesis:
    """Brings faults, and mends them. At most one node is down at a time, so that the cluster can go on."""

    def __init__(self, world: World, config: ChaosConfig, chance: random.Random, is_whole: Callable[[], bool]) -> None:
        self._world = world
        self._is_whole = is_whole
        self._config = config
        self._chance = chance
        count = chance.randint(1, len(config.faults))
        # Swarm testing: each run has faults of its own; a mixture of all hides what each of them finds.
        self._kinds = sorted(chance.sample(config.faults, count))
        self._stopped = False
        self.faults = 0

    def start(self) -> None:
        self._next()

    def _next(self) -> None:
        if not self._stopped:
            self._world.scheduler.after(self._chance.randint(100_000, 2_500_000), self._strike)

    def _strike(self) -> None:
        if self._stopped:
            return
        self.faults += 1
        kind = self._chance.choice(self._kinds)
        host = self._chance.choice(list(self._world.hosts.values()))
        other = self._chance.choice([h for h in self._world.hosts.values() if h is not host])
        duration_us = self._chance.choice([50_000, 400_000, 1_500_000, 4_000_000])
        getattr(self, f"_{kind}")(host, other, duration_us)
        self._next()

    def _after(self, duration_us: int, mend: Callable[[], None]) -> None:
        self._world.scheduler.after(duration_us, mend)

    def _somebody_is_down(self) -> bool:
        return any(
            not host.up or (host.process is not None and host.process.frozen) for host in self._world.hosts.values()
        )

    def _start_again(self, host: Host) -> None:
        if not host.up:
            host.start()

    def _kill(self, host: Host, other: Host, duration_us: int) -> None:
        if not self._somebody_is_down():
            host.kill()
            self._after(duration_us, lambda: self._start_again(host))

    def _power(self, host: Host, other: Host, duration_us: int) -> None:
        """Lose a page cache; never another before all replicas are in sync, or the guarantee is off (m-1 losses)."""
        if not self._somebody_is_down() and self._is_whole():
            host.lose_power()
            self._after(duration_us, lambda: self._start_again(host))

    def _stop(self, host: Host, other: Host, duration_us: int) -> None:
        if not self._somebody_is_down():
            host.stop()

            def start_when_stopped() -> None:
                if host.up:
                    self._after(200_000, start_when_stopped)
                else:
                    host.start()

            self._after(duration_us, start_when_stopped)

    def _freeze(self, host: Host, other: Host, duration_us: int) -> None:
        if not self._somebody_is_down():
            host.freeze()
            self._after(duration_us, host.thaw)

    def _partition(self, host: Host, other: Host, duration_us: int) -> None:
        """Cut a node off from all others, or from one."""
        others = [h for h in self._world.hosts.values() if h is not host]
        cut = others if self._chance.random() < 0.5 else [other]
        for there in cut:
            self._world.network.block(host.name, there.name)
            self._world.network.block(there.name, host.name)
        self._world.note(host.name, "FAULT", f"cut off from {', '.join(h.name for h in cut)}")

        def mend() -> None:
            for there in cut:
                self._world.network.heal(host.name, there.name)
                self._world.network.heal(there.name, host.name)
            self._world.note(host.name, "FAULT", "connected again")

        self._after(duration_us, mend)

    def _one_way(self, host: Host, other: Host, duration_us: int) -> None:
        self._world.network.block(host.name, other.name)
        self._world.note(host.name, "FAULT", f"cannot reach {other.name}")
        self._after(duration_us, lambda: self._world.network.heal(host.name, other.name))

    def _slow(self, host: Host, other: Host, duration_us: int) -> None:
        links = self._world.network.conditions.slow_links
        link = (host.name, other.name)
        links[link] = self._chance.choice([5_000, 50_000, 400_000])
        self._world.note(host.name, "FAULT", f"slow towards {other.name}")

        def mend() -> None:
            links.pop(link, None)

        self._after(duration_us, mend)

    def _reset(self, host: Host, other: Host, duration_us: int) -> None:
        self._world.network.reset_some(host.name, other.name)
        self._world.note(host.name, "FAULT", f"connections to {other.name} reset")

    def _skew(self, host: Host, other: Host, duration_us: int) -> None:
        host.wall_skew_ms = self._chance.choice([-60_000, -500, 500, 60_000])
        if host.node is not None and host.up:
            host.node.clock.wall_skew_ms = host.wall_skew_ms  # type: ignore[attr-defined]  # it is a SimClock
        self._world.note(host.name, "FAULT", f"wall clock off by {host.wall_skew_ms} ms")

    def end(self) -> None:
        """No more faults; everything is mended."""
        self._stopped = True
        self._world.network.conditions.slow_links.clear()
        self._world.network.heal()
        for host in self._world.hosts.values():
            if host.process is not None and host.process.frozen:
                host.thaw()


class Run:
    """One seed."""

    def __init__(
        self,
        seed: int,
        config: ChaosConfig | None = None,
        trace: Callable[[int, str, str, str], None] | None = None,
    ) -> None:
        self.config = config = config or ChaosConfig()
        self.chance = random.Random(seed ^ 0x5EED)
        self.world = World(
            seed,
            nodes=config.nodes,
            config={
                "default.replication.factor": str(config.replication_factor),
                "min.insync.replicas": str(config.min_insync_replicas),
                "replica.lag.time.max.ms": "3000",
                **config.properties,
            },
            trace=trace,
        )
        self.checker = SafetyChecker(self.world)
        self.history = History()
        self.nemesis = Nemesis(self.world, config, self.chance, self._whole)
        self.outcome = Outcome(seed)

    def run(self) -> Outcome:
        """Play the run to its end; a violation is in the outcome."""
        try:
            self._play()
        except SafetyViolation as violation:
            self.world.note("checker", "VIOLATION", str(violation))
            self.outcome.violation = violation
        world, outcome = self.world, self.outcome
        outcome.digest = world.digest
        outcome.events = world.scheduler.events
        outcome.virtual_ms = world.now_ms
        outcome.sends = len(self.history.sends)
        outcome.acknowledged = len(self.history.acknowledged)
        outcome.reads = len(self.history.reads)
        outcome.faults = self.nemesis.faults
        return outcome

    def _play(self) -> None:
        world, config = self.world, self.config
        world.start()
        self._must(world.ready, 30_000, "L1", "the cluster does not become ready")
        self._create_topic()
        producers = [
            Producer(world, f"producer{n}", self.history, TOPIC, config.partitions, pause_ms=config.pause_ms)
            for n in range(config.producers)
        ]
        consumer = Consumer(world, "consumer", self.history, TOPIC, config.partitions)
        for producer in producers:
            producer.start()
        consumer.start()
        self.nemesis.start()
        world.run_for(config.fault_time_ms)
        self.nemesis.end()
        self._must(self._all_up, config.settle_time_ms, "L1", "not every node is back")
        world.run_for(1_000)
        for producer in producers:
            producer.stop()
        self._must(lambda: all(p.idle for p in producers), config.settle_time_ms, "L3", "a produce is never answered")
        self._must(self._whole, config.settle_time_ms, "L6", "not all replicas are in sync again")
        self.checker.check_converged()
        ends = {p: self._end_of(p) for p in range(config.partitions)}
        self._must(
            lambda: all(consumer.positions[p] >= end for p, end in ends.items()),
            config.settle_time_ms,
            "L12",
            f"the consumer does not come to the ends {ends}, it is at {consumer.positions}",
        )
        consumer.stop()
        for producer in producers:
            if producer.fatal:
                self._fail("S20", f"{producer.name}: {producer.fatal}")
        self.checker.check_history(self.history)

    def _must(self, condition: Callable[[], bool], within_ms: int, property_id: str, message: str) -> None:
        if not self.world.run_until(condition, within_ms=within_ms):
            self._fail(property_id, message)

    def _fail(self, property_id: str, message: str) -> None:
        raise SafetyViolation(property_id, message, self.world.scheduler.now_us)

    def _create_topic(self) -> None:
        admin = SimClient(self.world, "admin", self.history)
        done: list[bool] = []
        request = CreateTopicsRequest(
            topics=(
                CreatableTopic(
                    name=TOPIC,
                    num_partitions=self.config.partitions,
                    replication_factor=self.config.replication_factor,
                ),
            ),
            timeout_ms=10_000,
        )

        def answered(response: Any) -> None:
            if response is not None and response.topics[0].error_code in (0, 36):
                done.append(True)
            else:
                admin.later(100, ask)

        def ask() -> None:
            admin.any_broker().call(request, 7, 10_000, answered)

        admin.run(ask)
        self._must(lambda: bool(done), 20_000, "L2", "a topic cannot be created")

    def _all_up(self) -> bool:
        return len(self.world.nodes()) == self.config.nodes and self.world.ready()

    def _whole(self) -> bool:
        """Every replica is in its ISR, and has and knows all."""
        for node in self.world.nodes():
            hosted = [h for h in node.replicas if h.topic == TOPIC]
            if len(hosted) != self.config.partitions * self.config.replication_factor // self.config.nodes:
                return False
            for each in hosted:
                metadata = each.replica.metadata
                if metadata is None or len(metadata.isr) != self.config.replication_factor:
                    return False
                if each.replica.high_watermark != each.log.log_end_offset:
                    return False
        leaders = {(h.index, h.log.log_end_offset) for n in self.world.nodes() for h in n.replicas if h.topic == TOPIC}
        return len(leaders) == self.config.partitions

    def _end_of(self, partition: int) -> int:
        return max(h.replica.high_watermark for n in self.world.nodes() for h in n.replicas if h.index == partition)


def run(seed: int, config: ChaosConfig | None = None) -> Outcome:
    """Play one seed."""
    return Run(seed, config).run()

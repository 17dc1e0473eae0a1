"""A run of the simulator: a cluster under load, faults by chance, then peace, then judgement.

Everything is drawn from the seed, from streams of their own: what the cluster and its clients are like, which faults
there are, when, and to whom. Safety is checked after every turn (`checkers`); when the faults have ended the cluster
must become whole again within a bounded time.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tanist.sim.checkers import Checkers
from tanist.sim.clients import Consumer, Producer, SimClient
from tanist.sim.clock import stream
from tanist.sim.faults import KINDS, Fault, Nemesis, draw_faults
from tanist.sim.history import History
from tanist.sim.network import NetworkConditions
from tanist.sim.violation import Violation
from tanist.sim.world import Trace, World
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

TOPIC = "events"

_TOPIC_ALREADY_EXISTS = 36


@dataclass(frozen=True)
class ChaosConfig:
    """What a run is like. Times in virtual milliseconds."""

    nodes: int = 3
    partitions: int = 2
    replication_factor: int = 3
    min_insync_replicas: int = 2
    fault_time_ms: int = 12_000
    settle_time_ms: int = 60_000
    producers: int = 2
    """With idempotence and acks=all."""
    careless_producers: int = 0
    """With acks=1: what they write may be lost, and makes logs diverge."""
    pause_ms: int = 60
    kinds: tuple[str, ...] = tuple(KINDS)
    fault_pause_ms: tuple[int, int] = (100, 2_500)
    down_max: int = 1
    may_lose: bool = False
    """Faults may go beyond what the protocol promises to survive; what is given up must be known to be."""
    latency_us: tuple[int, int] = (50, 300)
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def drawn(cls, seed: int) -> ChaosConfig:
        """Swarm testing: each run has faults and sizes of its own; a mixture of all hides what each of them finds."""
        chance = stream(seed, "config")
        kinds = chance.sample(tuple(KINDS), chance.randint(2, len(KINDS)))
        session_ms = chance.choice((3_000, 9_000))
        properties = {
            "broker.session.timeout.ms": str(session_ms),
            "broker.heartbeat.interval.ms": str(session_ms // 6),
            "replica.lag.time.max.ms": str(chance.choice((1_000, 3_000, 10_000))),
        }
        if chance.random() < 0.3:
            properties["metadata.log.max.record.bytes.between.snapshots"] = "1500"
        if chance.random() < 0.3:
            properties["log.flush.interval.messages"] = "1"
        return cls(
            partitions=chance.randint(1, 3),
            producers=chance.randint(1, 2),
            careless_producers=chance.choice((0, 0, 1)),
            pause_ms=chance.choice((20, 60, 60, 150)),
            kinds=tuple(sorted(kinds)),
            down_max=chance.choice((1, 1, 2, 3)),
            may_lose=chance.random() < 0.15,
            latency_us=chance.choice(((50, 300), (50, 300), (500, 5_000))),
            properties=properties,
        )


@dataclass
class Outcome:
    """What came of a run."""

    seed: int
    digest: str = ""
    violation: Violation | None = None
    sends: int = 0
    acknowledged: int = 0
    reads: int = 0
    events: int = 0
    checks: int = 0
    virtual_ms: int = 0
    faults: int = 0
    unclean: int = 0
    """How often committed records were given up, with everybody's knowledge."""


class Run:
    """One seed."""

    def __init__(
        self,
        seed: int,
        config: ChaosConfig | None = None,
        *,
        faults: list[Fault] | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.seed = seed
        self.config = config = config or ChaosConfig.drawn(seed)
        self.world = World(
            seed,
            nodes=config.nodes,
            config={
                "default.replication.factor": str(config.replication_factor),
                "min.insync.replicas": str(config.min_insync_replicas),
                **config.properties,
            },
            conditions=NetworkConditions(latency_us=config.latency_us),
            trace=trace,
        )
        self.history = History()
        self.checkers = Checkers(self.world, self.history)
        if faults is None:
            low_ms, high_ms = config.fault_pause_ms
            faults = draw_faults(
                stream(seed, "faults"),
                config.kinds,
                list(self.world.hosts),
                config.fault_time_ms * 1000,
                (low_ms * 1000, high_ms * 1000),
            )
        self.faults = faults
        self.checkers.replicas.may_lose = config.may_lose
        self.nemesis = Nemesis(self.world, faults, self.checkers.replicas, down_max=config.down_max)
        self.outcome = Outcome(seed)

    def run(self) -> Outcome:
        """Play the run to its end; a violation is in the outcome."""
        world, outcome = self.world, self.outcome
        try:
            self._play()
        except Violation as violation:
            outcome.violation = violation
        except Exception:  # the node's own: no input may make it raise
            outcome.violation = Violation("crash", traceback.format_exc(limit=-6), world.now_us)
        if outcome.violation is not None:
            world.note("checker", "VIOLATION", str(outcome.violation))
        outcome.digest = world.digest
        outcome.events = world.scheduler.events
        outcome.virtual_ms = world.now_ms
        outcome.sends = len(self.history.sends)
        outcome.acknowledged = self.history.acknowledged_count
        outcome.reads = len(self.history.reads)
        outcome.faults = len(self.nemesis.done)
        outcome.checks = self.checkers.replicas.changes + self.checkers.metadata.changes
        outcome.unclean = sum(truth.unclean for truth in self.checkers.replicas.truths.values())
        return outcome

    def _play(self) -> None:
        world, config = self.world, self.config
        world.start()
        self._must(world.ready, 30_000, "L1", lambda: "the cluster does not become ready")
        self._create_topic()
        producers = self._producers()
        consumer = Consumer(world, "consumer", self.history, TOPIC, config.partitions)
        for producer in producers:
            producer.start()
        consumer.start()
        self.nemesis.start()
        world.run_for(config.fault_time_ms)
        self.nemesis.end()
        self._must(self._all_up, config.settle_time_ms, "L1", self._who_is_not_up)
        self.checkers.healed()
        self._must(self._all_lead, config.settle_time_ms, "L4", lambda: "a partition has no leader")
        goals = {producer: producer.finished + 2 for producer in producers}
        self._must(
            lambda: all(producer.finished >= goal for producer, goal in goals.items()),
            config.settle_time_ms,
            "L5",
            lambda: "writes are not accepted again",
        )
        for producer in producers:
            producer.stop()
        self._must(
            lambda: all(producer.idle for producer in producers),
            config.settle_time_ms,
            "L3",
            lambda: "a produce is never answered",
        )
        self._must(self._is_whole, config.settle_time_ms, "L6", self._who_is_not_whole)
        ends = {p: self._end_of(p) for p in range(config.partitions)}
        self._must(
            lambda: all(consumer.positions[p] >= end for p, end in ends.items()),
            config.settle_time_ms,
            "L12",
            lambda: f"the consumer does not come to the ends {ends}, it is at {consumer.positions}",
        )
        consumer.stop()
        self._must(
            self.checkers.metadata.all_applied, config.settle_time_ms, "L2", lambda: "not all have the newest metadata"
        )
        world.run_for(1_000)
        self.checkers.check_converged()
        self.checkers.check_clients()
        self.checkers.check_calm()

    def _producers(self) -> list[Producer]:
        config = self.config
        careful = [
            Producer(self.world, f"producer{n}", self.history, TOPIC, config.partitions, pause_ms=config.pause_ms)
            for n in range(config.producers)
        ]
        careless = [
            Producer(
                self.world,
                f"careless{n}",
                self.history,
                TOPIC,
                config.partitions,
                pause_ms=config.pause_ms,
                acks=1,
                idempotent=False,
            )
            for n in range(config.careless_producers)
        ]
        return careful + careless

    def _must(
        self, condition: Callable[[], bool], within_ms: int, property_id: str, message: Callable[[], str]
    ) -> None:
        if not self.world.run_until(condition, within_ms=within_ms):
            self._fail(property_id, message())

    def _fail(self, property_id: str, message: str) -> NoReturn:
        raise Violation(property_id, message, self.world.now_us)

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
            if response is not None and response.topics[0].error_code in (0, _TOPIC_ALREADY_EXISTS):
                done.append(True)
            else:
                admin.later(100, ask)

        def ask() -> None:
            admin.any_broker().call(request, 7, 10_000, answered)

        admin.run(ask)
        self._must(lambda: bool(done), 20_000, "L2", lambda: "a topic cannot be created")

    # -- what must come to hold

    def _all_up(self) -> bool:
        return len(self.world.nodes()) == self.config.nodes and self.world.ready()

    def _who_is_not_up(self) -> str:
        missing: list[str] = []
        for host in self.world.hosts.values():
            if not host.up or host.node is None:
                missing.append(f"{host.name} is down ({host.fatal or 'not started'})")
            elif host.node.lifecycle.state.value != "RUNNING":
                missing.append(f"{host.name} is {host.node.lifecycle.state.value}")
        return f"not every node is back: {', '.join(missing) or 'no controller'}"

    def _all_lead(self) -> bool:
        return all(state.leader >= 0 for state in self.checkers.replicas.states.values())

    def _is_whole(self) -> bool:
        """Every replica is in its ISR, and has and knows all."""
        if not self.checkers.replicas.is_whole():
            return False
        for node in self.world.nodes():
            for hosted in node.replicas:
                truth = self.checkers.replicas.truths[(hosted.topic_id, hosted.index)]
                if not truth.high_watermark == hosted.replica.high_watermark == hosted.log.log_end_offset:
                    return False
        return True

    def _who_is_not_whole(self) -> str:
        lacking = [
            f"{truth.name} on {node.node_id} at {hosted.log.log_end_offset} (high watermark "
            f"{hosted.replica.high_watermark}) of {truth.high_watermark}"
            for node in self.world.nodes()
            for hosted in node.replicas
            for truth in [self.checkers.replicas.truths[(hosted.topic_id, hosted.index)]]
            if not truth.high_watermark == hosted.replica.high_watermark == hosted.log.log_end_offset
        ]
        isrs = [
            f"{self.checkers.replicas.truth(key).name}: ISR {state.isr} of {state.replicas}"
            for key, state in self.checkers.replicas.states.items()
            if len(state.isr) < len(state.replicas)
        ]
        return f"not all replicas are in sync again: {'; '.join(isrs + lacking)}"

    def _end_of(self, partition: int) -> int:
        return max(truth.high_watermark for key, truth in self.checkers.replicas.truths.items() if key[1] == partition)


def run(seed: int, config: ChaosConfig | None = None) -> Outcome:
    """Play one seed."""
    return Run(seed, config).run()

"""A run of the simulator: a cluster under load with random faults and operators, then the liveness phase.

Everything is drawn from the seed, in separate random streams: the cluster and its clients (`profiles`), the faults with
their times and hosts, the operations (`drawing`). Safety is checked after every turn (`checkers`). After
the faults the cluster must become whole again within bounded time (`checkers.liveness`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tanist.sim.checkers.answers import AnswerChecks
from tanist.sim.checkers.checkers import Checkers
from tanist.sim.checkers.compaction import POLICY, key_of
from tanist.sim.checkers.liveness import LIVENESS_STREAM, LivenessPhase
from tanist.sim.checkers.violation import CannotJudge, Violation
from tanist.sim.events import PropertyViolated
from tanist.sim.faults.nemesis import Nemesis
from tanist.sim.faults.schedule import Fault
from tanist.sim.run.additions import large_write_bytes, new_log_ms, small_windows
from tanist.sim.run.coverage import Counts
from tanist.sim.run.drawing import faults_of, operations_of
from tanist.sim.run.profiles import ChaosConfig
from tanist.sim.situations.table import watch_situations
from tanist.sim.workload.history import History
from tanist.sim.workload.inquirer import Inquirer
from tanist.sim.workload.operations import TRIM_OPERATIONS, VOTER_OPERATIONS, Admin, Operation
from tanist.sim.workload.producer import Producer, no_key
from tanist.sim.workload.readers import EARLIEST, LATEST, Consumer, Observer
from tanist.sim.workload.trimmer import Trimmer
from tanist.sim.workload.voter_operations import VoterAdmin
from tanist.sim.world.clock import stream
from tanist.sim.world.link_conditions import NetworkConditions
from tanist.sim.world.world import Trace, World

_INQUIRY_MS = 100

__all__ = ["ChaosConfig", "ChaosRun", "SeedResult", "run"]


@dataclass
class SeedResult:
    """The result of the run of one seed."""

    seed: int
    digest: str = ""
    violation: Violation | None = None
    sends: int = 0
    acknowledged: int = 0
    lost: int = 0
    """Records that were acknowledged, and lost since in a reported unclean election."""
    reads: int = 0
    events: int = 0
    checks: int = 0
    virtual_ms: int = 0
    faults: int = 0
    unclean: int = 0
    """Number of unclean elections that lost committed records."""
    counts: Counts = field(default_factory=Counter)


class ChaosRun:
    """One seed."""

    def __init__(
        self,
        seed: int,
        config: ChaosConfig | None = None,
        *,
        faults: list[Fault] | None = None,
        operations: list[Operation] | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.seed = seed
        self.config = config = config or ChaosConfig.drawn(seed)
        self.world = World(
            seed,
            roles=config.roles,
            directories=config.directories,
            config={"min.insync.replicas": str(config.min_insync_replicas), **config.properties},
            conditions=NetworkConditions(latency_us=config.latency_us),
            trace=trace,
            voters=config.voters,
        )
        for node_id in config.plain:
            self.world.hosts[node_id].private_requests = False
        self.value_bytes = 0
        """The length of each value that is produced; 0: any."""
        self._set_clocks()
        self._set_slices()
        self._set_large_writes()
        self._set_new_logs()
        self._set_windows()
        self.history = History()
        self.checkers = Checkers(self.world, self.history, trims=config.trims)
        faults = faults_of(seed, config) if faults is None else faults
        self.faults = faults
        self.operations = operations_of(seed, config) if operations is None else operations
        replicas = self.checkers.replicas
        oracle, promise = replicas.oracle, replicas.elections.promise
        voters = None if self.checkers.voters is None else self.checkers.voters.oracle
        self.nemesis = Nemesis(
            self.world, faults, oracle, promise, down_max=config.down_max, may_lose=config.may_lose, voters=voters
        )
        self.admin = Admin(self.world, self.history, oracle, promise, config.topics, config.throttle_bytes)
        self.voter_admin = None if voters is None else VoterAdmin(self.world, self.history, voters)
        self.trimmer = Trimmer(self.world, self.history, oracle, config.topics) if config.trims else None
        self.inquirers = self._inquirers() if config.inquirers else []
        self.outcome = SeedResult(seed)

    def _set_clocks(self) -> None:
        rng, most_ms = stream(self.seed, "clocks"), self.config.skew_ms_max
        for host in self.world.hosts.values():
            host.wall_skew_ms = rng.randint(-most_ms, most_ms)

    def _set_slices(self) -> None:
        """In a run of four, nodes need many turns for what is many partitions' work elsewhere."""
        rng = stream(self.seed, "slices")
        if rng.random() < 0.25:
            for host in self.world.hosts.values():
                host.slice_max = rng.choice((None, 1, 2, 5))

    def _set_large_writes(self) -> None:
        large_bytes = large_write_bytes(self.seed)
        if large_bytes is not None:
            for host in self.world.hosts.values():
                host.disk.large_write_bytes = large_bytes

    def _set_new_logs(self) -> None:
        took_ms = new_log_ms(self.seed)
        for host in self.world.hosts.values():
            host.new_log_ms = took_ms

    def _set_windows(self) -> None:
        drawn = small_windows(self.seed)
        if drawn is not None:
            self.world.network.conditions.window_bytes, self.value_bytes = drawn

    def run(self) -> SeedResult:
        """Play the run to its end; a violation is in the result."""
        world, outcome = self.world, self.outcome
        watch_situations(world)
        for inquirer in self.inquirers:
            inquirer.start()
        try:
            self._play()
        except Violation as violation:
            outcome.violation = violation
        except CannotJudge as reason:
            world.counts[f"run ended: {reason}"] += 1
        except Exception as error:  # of a node: no input may make it raise
            outcome.violation = Violation.of_error(error, world.now_us)
        if outcome.violation is not None:
            world.emit(PropertyViolated(str(outcome.violation)))
        outcome.digest = world.digest
        outcome.events = world.scheduler.events
        outcome.virtual_ms = world.now_ms
        outcome.sends = len(self.history.sends)
        outcome.acknowledged = self.history.acknowledged_count
        outcome.lost = self.checkers.lost_acknowledged()
        outcome.reads = len(self.history.reads)
        outcome.faults = len(self.nemesis.done)
        outcome.checks = self.checkers.replicas.changes + self.checkers.metadata.changes
        outcome.unclean = sum(oracle.unclean for oracle in self.checkers.replicas.oracles.values())
        outcome.counts = world.counts
        return outcome

    def _play(self) -> None:
        world, config = self.world, self.config
        liveness = self._liveness_phase()
        world.start()
        liveness.must(world.ready, "L1", lambda: "the cluster does not become ready")
        created: list[bool] = []
        self.admin.create_topics(lambda: created.append(True))
        liveness.must(lambda: bool(created), "L2", lambda: "the topics cannot be created")
        producers, consumers, observers = self._producers(), self._consumers(), self._observers()
        clients: list[Producer | Consumer | Observer] = [*producers, *consumers, *observers]
        for client in clients:
            client.start()
        self.nemesis.start()
        self._start_operators()
        world.run_for(config.fault_time_ms // 2)
        late = self._consumers("late", config.late_consumers)
        for consumer in late:
            consumer.reads_again = True
            consumer.start()
        consumers += late
        world.run_for(config.fault_time_ms - config.fault_time_ms // 2)
        for consumer in late:
            consumer.reads_again = False
        liveness.run(stream(self.seed, LIVENESS_STREAM), config.left_out, producers, consumers, observers)

    def _liveness_phase(self) -> LivenessPhase:
        return LivenessPhase(
            self.world,
            self.checkers,
            self.nemesis,
            self.admin,
            self.config.settle_time_ms,
            voter_admin=self.voter_admin,
            trimmer=self.trimmer,
        )

    def _start_operators(self) -> None:
        """Each gets the operations of its own kinds."""
        others = VOTER_OPERATIONS.keys() | TRIM_OPERATIONS.keys()
        self.admin.start([each for each in self.operations if each.kind not in others])
        if self.trimmer is not None:
            self.trimmer.start([each for each in self.operations if each.kind in TRIM_OPERATIONS])
        if self.voter_admin is not None:
            self.voter_admin.start([each for each in self.operations if each.kind in VOTER_OPERATIONS])

    def _producers(self) -> list[Producer]:
        config, made = self.config, []
        for topic in config.topics:
            for n in range(config.producers + config.careless_producers):
                careful = n < config.producers
                made.append(
                    Producer(
                        self.world,
                        f"{topic.name}/{'producer' if careful else 'careless'}{n}",
                        self.history,
                        topic.name,
                        topic.partitions,
                        pause_ms=config.pause_ms,
                        event_age_ms=config.event_age_ms if careful else 0,
                        acks=-1 if careful else 1,
                        idempotent=careful,
                        value_bytes=self.value_bytes,
                        key_of=key_of if (POLICY, "compact") in topic.configs else no_key,
                    )
                )
        return made

    def _consumers(self, name: str = "consumer", number: int = 1) -> list[Consumer]:
        return [
            Consumer(
                self.world,
                f"{topic.name}/{name}{n or ''}",
                self.history,
                topic.name,
                topic.partitions,
                reset=EARLIEST if self.config.trims else LATEST,
            )
            for topic in self.config.topics
            for n in range(number)
        ]

    def _inquirers(self) -> list[Inquirer]:
        witness = AnswerChecks(self.world, self.checkers.replicas)
        return [
            Inquirer(self.world, f"{host.name}/inquirer", self.history, host.node_id, witness, pause_ms=_INQUIRY_MS)
            for host in self.world.brokers
        ]

    def _observers(self) -> list[Observer]:
        return [
            Observer(
                self.world,
                f"{topic.name}/observer{n}",
                self.history,
                topic.name,
                topic.partitions,
                self.checkers.committed_before,
                pause_ms=2 * self.config.pause_ms,
            )
            for topic in self.config.topics
            for n in range(self.config.observers)
        ]


def run(seed: int, config: ChaosConfig | None = None) -> SeedResult:
    """Play one seed."""
    return ChaosRun(seed, config).run()

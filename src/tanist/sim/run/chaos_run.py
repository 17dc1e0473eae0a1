"""A plan of the simulator, and its run: a cluster under load with random faults and operators, then the liveness phase.

Everything is drawn from the seed, in separate random streams: the cluster, its conditions and its clients, the faults
with their times and hosts, the operations (`drawing`). So a run is its seed, its configuration, its faults and its
operations, and nothing else. Safety is checked after every turn (`checkers`). After the faults the cluster must become
whole again within bounded time (`checkers.liveness`), as its clients see it (`workload`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tanist.controller.features import SHARE_VERSION, STREAMS_VERSION
from tanist.ports import NEVER_LARGE
from tanist.sim.checkers.answers import AnswerChecks
from tanist.sim.checkers.checkers import Checkers
from tanist.sim.checkers.liveness import LivenessPhase
from tanist.sim.checkers.violation import CannotJudge, Violation
from tanist.sim.events import PropertyViolated
from tanist.sim.faults.nemesis import Nemesis
from tanist.sim.faults.schedule import Fault
from tanist.sim.run.access import SecuredPart, give_logins
from tanist.sim.run.config import GROUPS, RECORDS, SHARES, STREAMS, TRANSACTIONS, ChaosConfig
from tanist.sim.run.coverage import Counts
from tanist.sim.run.drawing import config_of, faults_of, operations_of
from tanist.sim.run.groups import Groups
from tanist.sim.run.quotas import QuotaPart
from tanist.sim.run.records import Records
from tanist.sim.run.shares import Shares
from tanist.sim.run.streams import Streams
from tanist.sim.run.transactions import Transactions
from tanist.sim.run.workload import Workload
from tanist.sim.secured import PROPERTIES as SECURED
from tanist.sim.situations import watch_situations
from tanist.sim.workload.history import History
from tanist.sim.workload.inquirer import Inquirer
from tanist.sim.workload.operations import (
    ACCESS_OPERATIONS,
    QUOTA_OPERATIONS,
    SHARE_OPERATIONS,
    TRIM_OPERATIONS,
    VOTER_OPERATIONS,
    Admin,
    Operation,
)
from tanist.sim.workload.trimmer import Trimmer
from tanist.sim.workload.voter_operations import VoterAdmin
from tanist.sim.world.link_conditions import NetworkConditions
from tanist.sim.world.scheduler import MICROSECONDS
from tanist.sim.world.world import Trace, World

_INQUIRY_MS = 100

__all__ = ["ChaosConfig", "ChaosRun", "Plan", "SeedResult", "run"]

WORKLOADS: Mapping[str, type[Records] | type[Groups] | type[Transactions] | type[Shares] | type[Streams]] = {
    RECORDS: Records,
    GROUPS: Groups,
    TRANSACTIONS: Transactions,
    SHARES: Shares,
    STREAMS: Streams,
}
"""The workload of a configuration, by its name."""
GROUP_FEATURES: Mapping[str, Mapping[str, int]] = {SHARES: {SHARE_VERSION: 2}, STREAMS: {STREAMS_VERSION: 1}}
"""The features of groups that clusters of a workload have; no others have them."""


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
    states: Mapping[str, int] = field(default_factory=dict)
    """Of a run that records them (`sim.states`): the states of its partitions, and their times on the clock of its
    faults."""
    plan: Plan | None = None
    """What was played, where it is not what the seed draws."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One run, before it begins. It must never depend on anything but its own fields.

    A seed draws a plan. A plan can then be cut down without drawing again: its remaining faults and operations happen
    as before, because each purpose has its own random stream (`sim.world.clock.stream`). Shrinking makes plans smaller,
    and a scenario file holds one.
    """

    seed: int
    config: ChaosConfig
    faults: tuple[Fault, ...]
    operations: tuple[Operation, ...]

    @classmethod
    def drawn(cls, seed: int, config: ChaosConfig | None = None) -> Plan:
        """The faults and operations that a seed draws for its own configuration, or for another one."""
        config = config or config_of(seed)
        return cls(seed, config, tuple(faults_of(seed, config)), tuple(operations_of(seed, config)))

    def begin(self) -> ChaosRun:
        """The run, ready to be played."""
        return ChaosRun(self.seed, self.config, faults=list(self.faults), operations=list(self.operations))

    @property
    def length(self) -> int:
        """Number of faults and operations."""
        return len(self.faults) + len(self.operations)

    @property
    def events(self) -> list[Fault | Operation]:
        """Faults and operations in order of time. The sort is stable, so equal times keep their order."""
        return sorted((*self.faults, *self.operations), key=lambda each: each.at_us)

    def with_events(self, events: Sequence[Fault | Operation]) -> Plan:
        """The same with these faults and operations."""
        return replace(
            self,
            faults=tuple(each for each in events if isinstance(each, Fault)),
            operations=tuple(each for each in events if isinstance(each, Operation)),
        )


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
        self.config = config = config or config_of(seed)
        self.world = World(
            seed,
            roles=config.roles,
            directories=config.directories,
            config={
                "min.insync.replicas": str(config.min_insync_replicas),
                **(SECURED if config.secured else {}),
                **config.properties,
            },
            own_config=config.own_properties,
            conditions=NetworkConditions(
                latency_us=config.latency_us,
                window_bytes=config.window_bytes,
                receive_bytes={f"node{node_id}": size for node_id, size in config.receive_bytes.items()},
                stall_us=config.stall_ms * MICROSECONDS,
            ),
            trace=trace,
            voters=config.voters,
            groups=GROUP_FEATURES.get(config.workload, {}),
        )
        if config.secured:
            give_logins(self.world)
        for host in self.world.hosts.values():
            host.wall_skew_ms = config.skews_ms.get(host.node_id, 0)
            host.disk.large_write_bytes = config.large_write_bytes or NEVER_LARGE
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
        self.admin = Admin(
            self.world, self.history, oracle, promise, config.topics, config.throttle_bytes, config.move_bytes
        )
        self.voter_admin = None if voters is None else VoterAdmin(self.world, self.history, voters)
        self.trimmer = Trimmer(self.world, self.history, oracle, config.topics) if config.trims else None
        self.inquirers = self._inquirers() if config.inquirers else []
        self.workload: Workload = WORKLOADS[config.workload](self)
        self.secured = SecuredPart(self.world, self.history, self.checkers, self.admin) if config.secured else None
        self.quotas = None
        if config.secured and config.quotas:
            self.quotas = QuotaPart(self.world, self.history, self.checkers, self.admin)
        self.outcome = SeedResult(seed)
        self.load_began_us = 0
        """The times of faults and operations are from here on."""

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
        world = self.world
        liveness = LivenessPhase(
            world,
            self.checkers,
            self.nemesis,
            self.admin,
            self.config.settle_time_ms,
            voter_admin=self.voter_admin,
            trimmer=self.trimmer,
            access_admin=None if self.secured is None else self.secured.operator,
            subjects=() if self.secured is None else self.secured.subjects,
            quota_admin=None if self.quotas is None else self.quotas.operator,
            quota_clients=() if self.quotas is None else self.quotas.clients,
            dialers=() if self.quotas is None else self.quotas.dialers,
        )
        world.start()
        liveness.must(world.ready, "L1", lambda: "the cluster does not become ready")
        created: list[bool] = []
        self.admin.create_topics(lambda: created.append(True))
        liveness.must(lambda: bool(created), "L2", lambda: "the topics cannot be created")
        if self.secured is not None:
            self.secured.begin(liveness)
        if self.quotas is not None:
            self.quotas.begin(liveness)
        self.workload.play(liveness)

    def begin_faults(self) -> None:
        """From now on faults happen and operators work. Each operator gets the operations of its own kinds."""
        self.load_began_us = self.world.now_us
        self.nemesis.start()
        others = {*VOTER_OPERATIONS, *TRIM_OPERATIONS, *SHARE_OPERATIONS, *ACCESS_OPERATIONS, *QUOTA_OPERATIONS}
        self.admin.start([each for each in self.operations if each.kind not in others])
        if self.secured is not None:
            self.secured.start(self.operations)
        if self.quotas is not None:
            self.quotas.start(self.operations)
        if self.trimmer is not None:
            self.trimmer.start([each for each in self.operations if each.kind in TRIM_OPERATIONS])
        if self.voter_admin is not None:
            self.voter_admin.start([each for each in self.operations if each.kind in VOTER_OPERATIONS])

    def _inquirers(self) -> list[Inquirer]:
        witness = AnswerChecks(self.world, self.checkers.replicas)
        return [
            Inquirer(self.world, f"{host.name}/inquirer", self.history, host.node_id, witness, pause_ms=_INQUIRY_MS)
            for host in self.world.brokers
        ]


def run(seed: int, config: ChaosConfig | None = None) -> SeedResult:
    """Play one seed."""
    return Plan.drawn(seed, config).begin().run()

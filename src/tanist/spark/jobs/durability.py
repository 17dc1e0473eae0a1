"""How likely a cluster loses acknowledged records, or is unavailable: the simulator, seed by seed, as Spark tasks.

Owns the settings that are compared (replication factor, min.insync.replicas, recovery strategy), the faults that all of
them get alike, and the estimate: of N seeds so many lost something, with Wilson's interval at 95 %. Every
setting meets the same seeds, so that they differ by what they are and not by luck.

A seed is a cluster of whole nodes, ten virtual seconds or so of load and faults, and a liveness phase. The result is
the probability *in such a run*: faults here come by the second, not by the month. It tells settings apart, and
forecasts nothing. A run that breaks a rule of the protocol is counted apart from one that loses records which it may
lose.

A seed that lost something can be kept as a scenario, which `tanist lab replay FILE` plays again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise, product
from math import sqrt
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from tanist.lab.simulation.scenario import Scenario, save
from tanist.sim.faults.schedule import KINDS
from tanist.sim.run.chaos_run import Plan
from tanist.sim.run.config import TOPIC, ChaosConfig
from tanist.sim.workload.history import History, Send
from tanist.sim.workload.operations import Topic
from tanist.sim.world.world import COMBINED
from tanist.spark.jobs import Progress
from tanist.spark.jobs.audit.arrow_columns import columns_of
from tanist.spark.jobs.dealt import dealt, usual_tasks
from tanist.spark.jobs.outcomes import OUTCOME, Outcomes, SettingKey
from tanist.spark.jobs.preconditions import NothingToJudge

STRATEGIES: Final = ("None", "Balanced", "Aggressive")
FAULTS_USUAL: Final = ("crash", "power-loss", "blackout", "partition", "stop", "pause", "crash-leader")
OUTAGE_MS: Final = 3_000
"""A partition that acknowledges nothing for so long is unavailable."""
SEEDS_SHOWN: Final = 20
_Z: Final = 1.959963984540054
"""Of the normal distribution, for 95 %."""


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """The setting that is estimated."""

    replication_factor: int = 3
    min_insync_replicas: int = 2
    strategy: str = "Balanced"

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ValueError(f"the strategy is one of {', '.join(STRATEGIES)}, not {self.strategy!r}")
        if not 1 <= self.min_insync_replicas <= self.replication_factor:
            raise ValueError(
                f"min.insync.replicas is {self.min_insync_replicas}: with {self.replication_factor} replicas it is "
                f"from 1 to {self.replication_factor}"
            )

    def __str__(self) -> str:
        return f"RF {self.replication_factor}, min ISR {self.min_insync_replicas}, {self.strategy}"


@dataclass(frozen=True, slots=True)
class FaultProfile:
    """The load and the faults, the same for every setting."""

    kinds: tuple[str, ...] = FAULTS_USUAL
    pause_ms: tuple[int, int] = (200, 2_500)
    """Between two faults."""
    down_max: int = 3
    """So many brokers may be down at once."""
    load_ms: int = 10_000

    def __post_init__(self) -> None:
        unknown = sorted(set(self.kinds).difference(KINDS))
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: the faults are {', '.join(KINDS)}")

    def config(self, setting: ReplicationSettings) -> ChaosConfig:
        """A run of the simulator."""
        topic = Topic(TOPIC, 2, setting.replication_factor, (("unclean.recovery.strategy", setting.strategy),))
        return ChaosConfig(
            roles=dict.fromkeys(range(1, max(3, setting.replication_factor) + 1), COMBINED),
            topics=(topic,),
            min_insync_replicas=setting.min_insync_replicas,
            fault_time_ms=self.load_ms,
            kinds=self.kinds,
            fault_pause_ms=self.pause_ms,
            down_max=self.down_max,
            may_lose=True,
            properties={
                "unclean.recovery.manager.enabled": "true",
                "broker.session.timeout.ms": "1500",
                "broker.heartbeat.interval.ms": "300",
                "replica.lag.time.max.ms": "1000",
            },
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """A probability out of so many runs, with its interval at 95 %."""

    hits: int
    runs: int

    @property
    def share(self) -> float:
        return self.hits / self.runs if self.runs else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's: right for few hits too, and for none."""
        if not self.runs:
            return 0.0, 1.0
        runs, share = self.runs, self.share
        centre = share + _Z**2 / (2 * runs)
        spread = _Z * sqrt(share * (1 - share) / runs + _Z**2 / (4 * runs**2))
        scale = 1 + _Z**2 / runs
        low = 0.0 if self.hits == 0 else max(0.0, (centre - spread) / scale)
        high = 1.0 if self.hits == runs else min(1.0, (centre + spread) / scale)
        return low, high

    def __str__(self) -> str:
        low, high = self.interval
        return f"{100 * self.share:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


@dataclass(slots=True)
class Row:
    """The estimates of one setting."""

    setting: ReplicationSettings
    loss: Estimate
    outage: Estimate
    acknowledged: int = 0
    lost: int = 0
    outage_share: float = 0.0
    """Of the time under load, over all partitions."""
    losing_seeds: list[int] = field(default_factory=list)
    """The first of those that lost."""
    violations: dict[int, str] = field(default_factory=dict)
    """Seeds in which a rule of the protocol was broken: no estimate, but bugs. They count as runs without a loss."""


@dataclass(slots=True)
class DurabilityResult:
    fault_profile: FaultProfile
    seeds: range
    rows: list[Row] = field(default_factory=list)

    @property
    def unjudged(self) -> list[ReplicationSettings]:
        """Settings in which nothing was acknowledged, so that nothing could be lost."""
        return [row.setting for row in self.rows if not row.acknowledged]


def settings(
    replication_factors: Iterable[int], min_insync_replicas: Iterable[int], strategies: Iterable[str]
) -> list[ReplicationSettings]:
    """All that can be of these. `NothingToJudge` if that is none."""
    factors, leasts = sorted(set(replication_factors)), sorted(set(min_insync_replicas))
    found = [
        ReplicationSettings(factor, least, strategy)
        for factor, least, strategy in product(factors, leasts, dict.fromkeys(strategies))
        if least <= factor
    ]
    if not found:
        raise NothingToJudge(
            f"min.insync.replicas={leasts[0]} needs more than {factors[-1]} replicas: there is no setting to play"
        )
    return found


def durability(
    spark: SparkSession,
    asked: Sequence[ReplicationSettings],
    seeds: range,
    fault_profile: FaultProfile = FaultProfile(),
    *,
    output: str | Path | None = None,
    progress: Progress = lambda _: None,
) -> DurabilityResult:
    """Play each seed in each setting.

    `output`: a folder for the outcome of every run, as Parquet. What is there already is not played again, and each
    chunk of runs is there as soon as it was played.
    """
    if not asked or not seeds:
        raise NothingToJudge("there is nothing to play: name at least one setting and one seed")
    listed, folder = list(asked), None if output is None else Path(output)
    outcomes = Outcomes([_key(each) for each in listed], seeds, asdict(fault_profile), folder)
    runs, done = len(listed) * len(seeds), sum(outcomes.of(_key(each)).num_rows for each in listed)
    progress(f"{runs} runs: {len(seeds)} seeds in {len(listed)} settings" + (f"; {done} are there" if done else ""))
    play = partial(_play, listed, fault_profile)
    for shares in outcomes.shares(_cores(spark)):
        outcomes.add(dealt(spark, shares, play, OUTCOME).toArrow())
        done += sum(map(len, shares))
        progress(f"{done} of {runs} runs are played")
    return DurabilityResult(fault_profile, seeds, [_row(outcomes.of(_key(each)), each) for each in listed])


def _key(setting: ReplicationSettings) -> SettingKey:
    return setting.replication_factor, setting.min_insync_replicas, setting.strategy


def _cores(spark: SparkSession) -> int:
    if is_remote():
        return usual_tasks(spark)
    return max(1, int(spark.sparkContext.defaultParallelism))


def _play(
    listed: Sequence[ReplicationSettings], fault_profile: FaultProfile, share: Sequence[tuple[int, int]]
) -> Iterator[Any]:
    """In a task."""
    import pyarrow as pa

    rows = [(*_key(listed[number]), seed, *played(seed, listed[number], fault_profile)) for number, seed in share]
    kinds = columns_of(OUTCOME)
    yield pa.record_batch(
        [pa.array(column, kind) for column, kind in zip(zip(*rows), kinds.values(), strict=True)], list(kinds)
    )


def plan_of(seed: int, setting: ReplicationSettings, fault_profile: FaultProfile) -> Plan:
    return Plan.drawn(seed, fault_profile.config(setting))


def played(seed: int, setting: ReplicationSettings, fault_profile: FaultProfile) -> tuple[Any, ...]:
    """One run: what `OUTCOME` has behind the seed."""
    run = plan_of(seed, setting, fault_profile).begin()
    outcome = run.run()
    return (
        outcome.acknowledged, outcome.lost, outcome.unclean, outage_ms(run.history, fault_profile.load_ms),
        fault_profile.load_ms * 2, outcome.faults, None if outcome.violation is None else str(outcome.violation)[:500],
    )  # fmt: skip


def outage_ms(history: History, load_ms: int, *, least_ms: int = OUTAGE_MS) -> int:
    """How long partitions acknowledged nothing, of all stretches of `least_ms` or more while there was load."""
    first_us = min((send.invoked_us for send in history.sends), default=0)
    end_us = first_us + load_ms * 1000
    total = 0
    for times in _acknowledged_at(history.sends).values():
        moments = [first_us, *(moment for moment in sorted(times) if moment < end_us), end_us]
        total += sum(later - earlier for earlier, later in pairwise(moments) if later - earlier >= least_ms * 1000)
    return total // 1000


def _acknowledged_at(sends: Iterable[Send]) -> Mapping[tuple[str, int], list[int]]:
    found: dict[tuple[str, int], list[int]] = {}
    for send in sends:
        of = found.setdefault((send.topic, send.partition), [])
        if send.outcome == "ok" and send.promised:
            of.append(send.completed_us)
    return found


def _row(mine: Any, setting: ReplicationSettings) -> Row:
    import pyarrow.compute as pc

    def total(name: str) -> int:
        return int(pc.sum(mine.column(name)).as_py() or 0)

    def first(condition: Any) -> list[dict[str, Any]]:
        return list(mine.filter(condition).slice(0, SEEDS_SHOWN).to_pylist())

    runs, losing, out = mine.num_rows, pc.field("lost") > 0, pc.field("outage_ms") > 0
    load_ms = total("load_ms")
    return Row(
        setting, Estimate(mine.filter(losing).num_rows, runs), Estimate(mine.filter(out).num_rows, runs),
        total("acknowledged"), total("lost"), total("outage_ms") / load_ms if load_ms else 0.0,
        [row["seed"] for row in first(losing)],
        {row["seed"]: row["violation"] for row in first(pc.field("violation").is_valid())},
    )  # fmt: skip


def keep_losing(result: DurabilityResult, folder: Path, *, most: int = 3) -> list[Path]:
    """Of each setting the first seeds that lost, as scenarios for `tanist lab replay`."""
    written = []
    for row in result.rows:
        for seed in row.losing_seeds[:most]:
            plan = plan_of(seed, row.setting, result.fault_profile)
            name = f"{row.setting}".lower().replace(", ", "-").replace(" ", "-")
            path = folder / f"{name}-seed-{seed}.json"
            save(Scenario(plan, title=f"{row.setting}: acknowledged records are lost (seed {seed})"), path)
            written.append(path)
    return written

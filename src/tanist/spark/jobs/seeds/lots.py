"""What seeds are played as: kinds of runs, and their terms.

Owns the kinds: those of `tanist lab run`, and `settings`, which compares replication factors, min.insync.replicas and
recovery strategies. All settings meet the same seeds with the same load and faults, so that they differ by what they
are and not by luck. A seed is ten virtual seconds or so of load and faults, and a liveness phase. Faults come by the
second, not by the month: a probability is that *in such a run*. It compares settings, and forecasts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import product
from typing import Any, Final

from tanist.lab.simulation.breaking import rules
from tanist.lab.simulation.running import Terms
from tanist.sim.faults.schedule import KINDS as FAULT_KINDS
from tanist.sim.run.config import TOPIC, ChaosConfig
from tanist.sim.run.drawing import Restriction
from tanist.sim.workload.operations import Topic
from tanist.sim.world.world import COMBINED
from tanist.spark.jobs.preconditions import NothingToJudge, Unfit

PLAIN, SETTINGS = "plain", "settings"
OF_THE_LAB: Final = (
    PLAIN, "groups", "transactions", "share-groups", "streams", "voters", "trimming", "exceptions", "secured"
)  # fmt: skip
"""Each but the first is an option of `tanist lab run`."""
KINDS: Final = (*OF_THE_LAB, SETTINGS)
STRATEGIES: Final = ("None", "Balanced", "Aggressive")
FAULTS_USUAL: Final = ("crash", "power-loss", "blackout", "partition", "stop", "pause", "crash-leader")


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """The setting that is compared with others."""

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
    pause_ms: tuple[int, ...] = (200, 2_500)
    """Between two faults, at least and at most."""
    down_max: int = 3
    """So many brokers may be down at once."""
    load_ms: int = 10_000

    def __post_init__(self) -> None:
        unknown = sorted(set(self.kinds).difference(FAULT_KINDS))
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: the faults are {', '.join(FAULT_KINDS)}")

    def config(self, setting: ReplicationSettings) -> ChaosConfig:
        """A run of the simulator."""
        topic = Topic(TOPIC, 2, setting.replication_factor, (("unclean.recovery.strategy", setting.strategy),))
        least_ms, most_ms = self.pause_ms
        return ChaosConfig(
            roles=dict.fromkeys(range(1, max(3, setting.replication_factor) + 1), COMBINED),
            topics=(topic,),
            min_insync_replicas=setting.min_insync_replicas,
            fault_time_ms=self.load_ms,
            kinds=self.kinds,
            fault_pause_ms=(least_ms, most_ms),
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
class TermsOfSetting(Terms):
    setting: ReplicationSettings = ReplicationSettings()
    faults: FaultProfile = FaultProfile()

    def config(self, seed: int) -> ChaosConfig:
        return self.faults.config(self.setting)

    @property
    def expected(self) -> Mapping[str, str]:
        """None: what they reach depends on the setting."""
        return {}


@dataclass(frozen=True, slots=True)
class Lot:
    """Seeds that are played alike. A row of the table names it by both fields."""

    kind: str = PLAIN
    terms: str = "{}"
    """JSON."""

    @classmethod
    def of(cls, kind: str, **terms: Any) -> Lot:
        made = cls(
            kind, json.dumps({name: value for name, value in terms.items() if value not in (None, [])}, sort_keys=True)
        )
        made.played()
        return made

    @classmethod
    def of_setting(cls, setting: ReplicationSettings, faults: FaultProfile = FaultProfile()) -> Lot:
        return cls.of(SETTINGS, **asdict(setting), **asdict(faults))

    def played(self) -> Terms:
        """The terms as the lab knows them. `ValueError` if there are none such."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(self.terms).items()
        }
        if self.kind == SETTINGS:
            setting = {name: given.pop(name) for name in asdict(ReplicationSettings())}
            return TermsOfSetting(setting=ReplicationSettings(**setting), faults=FaultProfile(**given))
        restriction = Restriction(only=frozenset(given.get("faults", ())))
        kind = {} if self.kind == PLAIN else {self.kind.replace("-", "_"): True}
        return Terms.of(restriction=restriction, mutation=given.get("mutation"), **kind)

    @property
    def profile(self) -> FaultProfile:
        """Of settings."""
        played = self.played()
        return played.faults if isinstance(played, TermsOfSetting) else FaultProfile()

    @property
    def name(self) -> str:
        """For people."""
        played = self.played()
        if isinstance(played, TermsOfSetting):
            profile, usual = played.faults, FaultProfile()
            others = [", ".join(profile.kinds)] if profile.kinds != usual.kinds else []
            others += [f"{profile.down_max} down"] if profile.down_max != usual.down_max else []
            return "; ".join([str(played.setting), *others])
        others = [", ".join(sorted(played.restriction.only))] if played.restriction.only else []
        others += [f"{played.mutation} broken"] if played.mutation else []
        return "; ".join([self.kind, *others])

    @property
    def key(self) -> str:
        """For names of files."""
        return f"{self.kind}-{sha256(self.terms.encode()).hexdigest()[:8]}"


def asked(
    kinds: Sequence[str],
    *,
    factors: Sequence[int] = (),
    least: Sequence[int] = (),
    strategies: Sequence[str] = (),
    down_max: int | None = None,
    faults: Sequence[str] = (),
    mutation: str | None = None,
) -> list[Lot]:
    """The lots by the options of a command. An option of settings asks for settings."""
    of_settings = bool(factors or least or strategies) or down_max is not None
    wanted = list(dict.fromkeys([*kinds, *[SETTINGS] * of_settings])) or [PLAIN]
    if mutation is not None and SETTINGS in wanted:
        raise Unfit("settings are compared as they are: give --mutate without them")
    if mutation is not None and mutation not in rules():
        raise Unfit(f"there is no rule {mutation}: `tanist lab mutants` has them")
    found = [Lot.of(kind, faults=sorted(faults), mutation=mutation) for kind in wanted if kind != SETTINGS]
    if SETTINGS in wanted:
        usual = FaultProfile()
        profile = replace(
            usual, kinds=tuple(faults) or usual.kinds, down_max=usual.down_max if down_max is None else down_max
        )
        found += settings(factors or (3,), least or (1, 2), strategies or STRATEGIES, profile)
    return found


def settings(
    replication_factors: Iterable[int],
    min_insync_replicas: Iterable[int],
    strategies: Iterable[str],
    faults: FaultProfile = FaultProfile(),
) -> list[Lot]:
    """All that can be of these. `NothingToJudge` if that is none."""
    factors, leasts = sorted(set(replication_factors)), sorted(set(min_insync_replicas))
    found = [
        Lot.of_setting(ReplicationSettings(factor, least, strategy), faults)
        for factor, least, strategy in product(factors, leasts, dict.fromkeys(strategies))
        if least <= factor
    ]
    if not found:
        raise NothingToJudge(
            f"min.insync.replicas={leasts[0]} needs more than {factors[-1]} replicas: there is no setting to play"
        )
    return found

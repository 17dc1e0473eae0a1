"""A what-if question: a replication factor, a min ISR, a strategy, and a budget of events.

Owns `Question`, the rows of its table (`SETTINGS`), and the situations from which schedules begin. Must never search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tanist.controller.partitions.recovery_strategy import Strategy
from tanist.faults import Price
from tanist.lab.model.partition.components import Budget
from tanist.lab.model.partition.configuration import ACKS_ALL, Configuration

MOST_REPLICAS = 5
MOST_UNCLEAN = 3
DEFAULT_STATES = 16_000
"""With the other defaults well under a minute of one core."""

STRATEGIES: Mapping[str, Strategy] = {each.value.lower(): each for each in Strategy}

_FENCINGS = 1
_CLEAN_SHUTDOWNS = 1
_WRITES = 1
"""The budget of each schedule besides unclean shutdowns."""


class QuestionError(ValueError):
    """The question is not valid; the text says how to change it."""


@dataclass(frozen=True, slots=True)
class SettingsRow:
    """A row: the settings of a cluster and its producers."""

    name: str
    says: str
    acks: int = ACKS_ALL
    elr: bool = True
    recovery_manager: bool = True
    strategy: Strategy | None = None
    """None: the one of the question."""


SETTINGS = (
    SettingsRow("acks-1", "acks=1", acks=1),
    SettingsRow(
        "before-elr",
        "acks=all, eligible.leader.replicas.version=0",
        elr=False,
        recovery_manager=False,
        strategy=Strategy.NONE,
    ),
    SettingsRow(
        "elr", "acks=all, unclean.recovery.manager.enabled=false", recovery_manager=False, strategy=Strategy.NONE
    ),
    SettingsRow("balanced", "acks=all, unclean.recovery.strategy=Balanced", strategy=Strategy.BALANCED),
    SettingsRow("aggressive", "acks=all, unclean.recovery.strategy=Aggressive", strategy=Strategy.AGGRESSIVE),
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question. `QuestionError` if it is not valid."""

    replication_factor: int = 3
    min_isr: int = 2
    strategy: Strategy = Strategy.BALANCED
    unclean: int = MOST_UNCLEAN
    """The table has a column for each number of unclean shutdowns up to this."""
    depth: int | None = None
    states: int = DEFAULT_STATES
    """Number of states that are visited for one cell."""

    races: bool = False
    """Whether metadata and answers may be late (`schedules`)."""

    def __post_init__(self) -> None:
        if not 1 <= self.replication_factor <= MOST_REPLICAS:
            raise QuestionError(
                f"a replication factor of {self.replication_factor} is not enumerated: ask for 1 to {MOST_REPLICAS}"
            )
        if self.min_isr < 1:
            raise QuestionError(f"min.insync.replicas is {self.min_isr}: it is 1 or more")
        if self.min_isr > self.replication_factor:
            raise QuestionError(
                f"min.insync.replicas {self.min_isr} is more than the {self.replication_factor} replicas: no record "
                "would ever be acknowledged. Ask for more replicas, or for a smaller min ISR"
            )
        if not 0 <= self.unclean <= MOST_UNCLEAN:
            raise QuestionError(f"{self.unclean} unclean shutdowns are not enumerated: ask for up to {MOST_UNCLEAN}")
        if self.states < 1 or (self.depth is not None and self.depth < 1):
            raise QuestionError("a bound of less than one state, or one step, enumerates nothing")

    def highlighted(self) -> SettingsRow:
        """The row of the question's strategy."""
        name = "elr" if self.strategy is Strategy.NONE else self.strategy.value.lower()
        return next(setting for setting in SETTINGS if setting.name == name)

    def situations(self) -> Iterator[Situation]:
        """A record is acknowledged, and the ISR has all replicas, one fewer, and so on down to one."""
        for in_sync in range(self.replication_factor, 0, -1):
            yield Situation(in_sync, tuple(self._way_to(in_sync)))

    def _way_to(self, in_sync: int) -> Iterator[str]:
        """Fence all but `in_sync` brokers: before the record if it can be acknowledged without them, else after it."""
        replicas = self.replication_factor
        committed_by = max(in_sync, self.min_isr)
        for broker in range(replicas, committed_by, -1):
            yield f"fence {broker}"
        if committed_by < replicas:
            yield "learn 1"
        yield "write 1"
        for broker in range(2, committed_by + 1):
            yield f"fetch {broker}"
        for broker in range(2, committed_by + 1):
            yield f"fetch {broker}"
        for broker in range(committed_by, in_sync, -1):
            yield f"fence {broker}"
        if in_sync < committed_by:
            yield "learn 1"

    def configuration(self, setting: SettingsRow, unclean: int, start: tuple[str, ...]) -> Configuration:
        """The model's configuration for one cell."""
        return Configuration(
            name=f"what-if-{setting.name}-{unclean}",
            about=f"{setting.says}; {unclean} unclean shutdown(s)",
            budget=budget(unclean),
            brokers=self.replication_factor,
            replication_factor=self.replication_factor,
            min_isr=self.min_isr,
            strategy=self.strategy if setting.strategy is None else setting.strategy,
            recovery_manager=setting.recovery_manager,
            elr=setting.elr,
            acks=setting.acks,
            start=start,
        )


@dataclass(frozen=True, slots=True)
class Situation:
    """A state from which schedules begin."""

    in_sync: int
    start: tuple[str, ...]


def budget(unclean: int) -> Budget:
    """The budget of a schedule. Events without a limit may happen any number of times."""
    return Budget(writes=_WRITES, losses=unclean, fences=_FENCINGS, restarts=_CLEAN_SHUTDOWNS)


def bounds() -> str:
    """The budget as text, except the unclean shutdowns."""
    return f"{_WRITES} more record, {_FENCINGS} {Price.FENCING.value}, {_CLEAN_SHUTDOWNS} {Price.CLEAN.value}"

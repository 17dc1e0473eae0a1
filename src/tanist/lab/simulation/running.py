"""Many seeds, in one process or in several, and their totals.

Owns the terms by which seeds are played, the processes, and the sums. A seed starts only when a process is free, so
that a deadline has a meaning. The behaviour of a seed depends on the seed and the terms alone, never on the process
that plays it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from tanist.lab.simulation.breaking import broken, directed, profile
from tanist.sim.run.chaos_run import WORKLOADS, ChaosRun, Plan, SeedResult, run
from tanist.sim.run.config import GROUPS, RECORDS, SHARES, STREAMS, TRANSACTIONS, ChaosConfig
from tanist.sim.run.coverage import ACCESS_EXPECTED, lacking
from tanist.sim.run.drawing import NO_RESTRICTION, Restriction, config_of

OPTIONS: Mapping[str, str] = {
    "groups": GROUPS,
    "transactions": TRANSACTIONS,
    "share_groups": SHARES,
    "streams": STREAMS,
}
"""Option of a command -> the workload that it chooses."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms by which seeds are played."""

    restriction: Restriction = NO_RESTRICTION
    mutation: str | None = None
    """The rule that is broken, of `tanist lab mutants`."""
    workload: str = RECORDS
    voters: bool = False
    """Every seed has voters that change, and not only those that draw them."""
    trimming: bool = False
    """In every seed records go, by retention and DeleteRecords, and not only in those that draw it."""
    secured: bool = False
    """In every seed everybody authenticates, and subjects do what entries allow, and not only in those that draw it."""
    exceptions: bool = False
    """In every seed nodes' own code raises exceptions, and not only in those that draw it."""

    def __post_init__(self) -> None:
        """`ValueError` if there are no seeds of such a kind."""
        additions = self.voters or self.trimming or self.secured or self.exceptions
        if self.mutation is not None and (self.workload != RECORDS or additions):
            raise ValueError("a broken rule has runs of its own, in which it shows: give --mutate alone")
        if self.workload == GROUPS and self.trimming:
            raise ValueError("the topics of groups hold no records, so there is nothing to trim")
        if self.workload == SHARES and self.trimming:
            raise ValueError("the workload of share groups does not know of records that are deleted")
        if self.workload == STREAMS and self.trimming:
            raise ValueError("the topics of Streams groups hold no records, so there is nothing to trim")
        if self.exceptions and self.restriction.only:
            raise ValueError("exceptions are faults of the kind raise: name it among the faults instead")

    @classmethod
    def of(cls, **options: Any) -> Terms:
        """The terms by the options of a command."""
        chosen = [OPTIONS[option] for option in OPTIONS if options.pop(option, False)]
        if len(chosen) > 1:
            raise ValueError("a run has one workload: give one of --groups, --transactions, --share-groups, --streams")
        return cls(workload=chosen[0] if chosen else RECORDS, **options)

    @property
    def expected(self) -> Mapping[str, str]:
        """Situation -> its meaning: a large range of seeds must reach each of them."""
        expected = WORKLOADS[self.workload].expected
        return {**expected, **ACCESS_EXPECTED} if self.secured else expected

    @property
    def scripted(self) -> bool:
        """Whether the broken rule has a script of its own, so that no seed draws a plan."""
        return self.mutation is not None and directed(self.mutation) is not None

    def config(self, seed: int) -> ChaosConfig:
        """The configuration that a seed draws, restricted."""
        if self.mutation is not None:
            return self.restriction.applied(profile(self.mutation)(seed))
        drawn = config_of(
            seed,
            self.workload,
            voters=self.voters,
            trims=self.trimming,
            secured=self.secured,
            exceptions=self.exceptions,
        )
        return self.restriction.applied(drawn)

    def drawn(self, seed: int) -> Plan:
        """The plan that a seed draws, whether the broken rule has a script or not."""
        return Plan.drawn(seed, self.config(seed))

    def plan(self, seed: int) -> Plan | None:
        """The plan that a seed plays, if it plays one."""
        return None if self.scripted else self.drawn(seed)

    def begin(self, seed: int) -> ChaosRun:
        """The run of a seed. The rule must be `broken` around this, too."""
        if self.mutation is not None and (scripted := directed(self.mutation)) is not None:
            return scripted(seed)
        return self.drawn(seed).begin()


def outcomes(seeds: range, terms: Terms, jobs: int, in_time: Callable[[], bool]) -> Iterator[SeedResult]:
    """The results, as they come. No seed starts when it is not `in_time`."""
    if jobs <= 1 or len(seeds) == 1:
        for seed in seeds:
            if not in_time():
                return
            yield play_seed(seed, terms)
        return
    left = iter(seeds)
    with ProcessPoolExecutor(max_workers=min(jobs, len(seeds), os.cpu_count() or jobs)) as pool:
        under_way: set[Future[SeedResult]] = set()
        try:
            while True:
                while len(under_way) < 2 * jobs and in_time():
                    following = next(left, None)
                    if following is None:
                        break
                    under_way.add(pool.submit(play_seed, following, terms))
                if not under_way:
                    return
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                yield from sorted((future.result() for future in done), key=lambda outcome: outcome.seed)
        finally:
            pool.shutdown(cancel_futures=True)


def play_seed(seed: int, terms: Terms) -> SeedResult:
    """One seed, in this process."""
    if terms.mutation is None:
        return run(seed, terms.config(seed))
    with broken(terms.mutation):
        return terms.begin(seed).run()


@dataclass(slots=True)
class Totals:
    """The totals of all seeds."""

    seeds: int = 0
    failed: list[SeedResult] = field(default_factory=list)
    events: int = 0
    virtual_ms: int = 0
    faults: int = 0
    acknowledged: int = 0
    given_up: int = 0
    situations: Counter[str] = field(default_factory=Counter)
    digests: dict[int, str] = field(default_factory=dict)

    def add(self, outcome: SeedResult) -> None:
        self.seeds += 1
        self.events += outcome.events
        self.virtual_ms += outcome.virtual_ms
        self.faults += outcome.faults
        self.acknowledged += outcome.acknowledged
        self.given_up += outcome.lost
        self.situations.update(outcome.counts)
        self.digests[outcome.seed] = outcome.digest
        if outcome.violation is not None:
            self.failed.append(outcome)

    @property
    def virtual_hours(self) -> float:
        return self.virtual_ms / 3_600_000


def never_reached(totals: Totals, terms: Terms) -> list[str]:
    """Situations that no seed reached, though a large range must."""
    return lacking(totals.situations, terms.expected)

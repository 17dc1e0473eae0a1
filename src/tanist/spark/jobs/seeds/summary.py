"""What the table of seeds says: of each lot its cost, the growth of its coverage, and its violations; of each setting
how likely it loses records, or is unavailable.

Everything is counted by Spark. What comes to the driver is bounded by the situations and properties that there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import sqrt
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tanist.spark.jobs.seeds.job import first_seeds
from tanist.spark.jobs.seeds.lots import SETTINGS, Lot
from tanist.spark.jobs.seeds.table import SeedTable

_LOT: Final = ("kind", "terms")
_Z: Final = 1.959963984540054
"""Of the normal distribution, for 95 %."""


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


@dataclass(frozen=True, slots=True)
class Violations:
    """Of one property."""

    property_id: str
    seeds: int
    first_seed: int
    text: str
    """Of the first seed."""


@dataclass(slots=True)
class Summary:
    """Of a lot."""

    lot: Lot
    seeds: int
    events: int = 0
    virtual_ms: int = 0
    cpu_s: float = 0.0
    acknowledged: int = 0
    lost: int = 0
    loss: Estimate = Estimate(0, 0)
    """Seeds that lost acknowledged records."""
    outage: Estimate = Estimate(0, 0)
    outage_share: float = 0.0
    """Of the time under load, over all partitions."""
    losing_seeds: list[int] = field(default_factory=list)
    """The first."""
    violations: list[Violations] = field(default_factory=list)
    growth: list[tuple[int, int]] = field(default_factory=list)
    """After so many seeds, in the order of their numbers, so many of the expected situations had been reached."""
    never: dict[str, str] = field(default_factory=dict)
    """Expected situations that no seed has reached, and their meanings."""

    @property
    def situations(self) -> int:
        return self.growth[-1][1] if self.growth else 0

    @property
    def expected(self) -> int:
        return len(self.lot.played().expected)

    @property
    def events_per_s(self) -> float:
        """Of a core."""
        return self.events / self.cpu_s if self.cpu_s else 0.0

    @property
    def core_hours(self) -> float:
        """Of 1,000 seeds."""
        return self.cpu_s / 3.6 / self.seeds if self.seeds else 0.0

    @property
    def violating(self) -> int:
        return sum(each.seeds for each in self.violations)

    @property
    def is_judged(self) -> bool:
        """Whether something was acknowledged, so that it could be lost."""
        return self.acknowledged > 0

    def scenarios(self, table: SeedTable) -> list[Path]:
        """The files of the first seeds that failed, or lost."""
        failed = [table.failure(self.lot, each.first_seed) for each in self.violations]
        lost = [table.loss(self.lot, seed) for seed in self.losing_seeds]
        return [path for path in (*failed, *lost) if path.exists()]

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.lot.kind, "terms": self.lot.terms, "seeds": self.seeds, "events": self.events,
            "virtual_ms": self.virtual_ms, "cpu_s": round(self.cpu_s, 3), "acknowledged": self.acknowledged,
            "lost": self.lost, "lost_in": self.loss.hits, "unavailable_in": self.outage.hits,
            "unavailable_share": self.outage_share, "losing_seeds": self.losing_seeds,
            "violations": {each.property_id: each.seeds for each in self.violations},
            "situations": self.situations, "never_reached": list(self.never),
        }  # fmt: skip


def summaries(spark: SparkSession, table: SeedTable) -> list[Summary]:
    """Of all lots that the table has of its code."""
    frame = table.frame(spark)
    found = _totals(frame)
    for lot, seed, violates in first_seeds(spark, table):
        if not violates:
            found[lot].losing_seeds.append(seed)
    _grow(spark, frame, found)
    return [found[lot] for lot in sorted(found, key=lambda lot: (lot.kind == SETTINGS, lot.kind, lot.name))]


def _totals(frame: DataFrame) -> dict[Lot, Summary]:
    sums = ("events", "virtual_ms", "cpu_s", "acknowledged", "lost", "outage_ms", "load_ms")
    by_property = frame.groupBy(*_LOT, "property").agg(
        F.count("*").alias("seeds"),
        F.count_if(F.col("lost") > 0).alias("losing"),
        F.count_if(F.col("outage_ms") > 0).alias("out"),
        F.min("seed").alias("first"),
        F.min_by("violation", "seed").alias("text"),
        *(F.sum(name).alias(name) for name in sums),
    )
    rows: dict[Lot, list[dict[str, Any]]] = {}
    for row in _rows(by_property.orderBy("property")):
        rows.setdefault(_lot(row), []).append(row)
    return {lot: _summary(lot, of) for lot, of in rows.items()}


def _summary(lot: Lot, rows: Sequence[Mapping[str, Any]]) -> Summary:
    """Of rows by property."""

    def total(name: str) -> Any:
        return sum(row[name] for row in rows)

    seeds, load_ms = total("seeds"), total("load_ms")
    return Summary(
        lot, seeds, total("events"), total("virtual_ms"), total("cpu_s"), total("acknowledged"), total("lost"),
        Estimate(total("losing"), seeds), Estimate(total("out"), seeds),
        total("outage_ms") / load_ms if load_ms else 0.0,
        violations=[
            Violations(row["property"], row["seeds"], row["first"], row["text"]) for row in rows if row["property"]
        ],
    )  # fmt: skip


def _grow(spark: SparkSession, frame: DataFrame, found: Mapping[Lot, Summary]) -> None:
    """Which seed was the first to reach each situation, and how many seeds that were before it."""
    reached = frame.select(*_LOT, "seed", F.explode(F.map_keys("situations")).alias("name"))
    firsts: dict[Lot, dict[str, int]] = {lot: {} for lot in found}
    for row in _rows(reached.groupBy(*_LOT, "name").agg(F.min("seed").alias("seed"))):
        firsts[_lot(row)][row["name"]] = row["seed"]
    steps = {
        lot: sorted({first for name, first in of.items() if name in lot.played().expected})
        for lot, of in firsts.items()
    }
    counts = _between(spark, frame, steps)
    for lot, summary in found.items():
        expected, mine = lot.played().expected, firsts[lot]
        summary.never = {name: expected[name] for name in expected if name not in mine}
        names = [sum(mine.get(name) == step for name in expected) for step in steps[lot]]
        summary.growth = list(zip(counts[lot], accumulate(names), strict=True))
        if summary.growth:
            summary.growth.append((summary.seeds, summary.growth[-1][1]))


def _between(spark: SparkSession, frame: DataFrame, steps: Mapping[Lot, list[int]]) -> dict[Lot, list[int]]:
    """How many seeds there are up to each step."""
    known = spark.createDataFrame(
        [(lot.kind, lot.terms, of) for lot, of in steps.items()], "kind string, terms string, steps array<bigint>"
    )
    before = F.size(F.filter("steps", lambda step: step < F.col("seed"))).alias("before")
    counted: dict[Lot, dict[int, int]] = {lot: {} for lot in steps}
    for row in _rows(frame.join(F.broadcast(known), list(_LOT)).select(*_LOT, before).groupBy(*_LOT, "before").count()):
        counted[_lot(row)][row["before"]] = row["count"]
    return {
        lot: list(accumulate(counted[lot].get(number, 0) for number in range(len(of)))) for lot, of in steps.items()
    }


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return list(frame.toArrow().to_pylist())


def _lot(row: Mapping[str, Any]) -> Lot:
    return Lot(row["kind"], row["terms"])

"""Plays seeds as Spark tasks into a table, and shrinks those that fail.

A task plays the seeds of a block that the table does not have, and puts them there itself: to the driver come two
numbers from each task. So the driver has as much to do for a million seeds as for a hundred at a time, a killed job has
all blocks but those that were being played, and the same job again goes on behind them. Workers need the same paths and
the same code as the driver.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from tanist.lab.simulation.breaking import broken
from tanist.lab.simulation.failure import examine
from tanist.lab.simulation.running import play_seed
from tanist.lab.simulation.scenario import Scenario, save
from tanist.lab.simulation.shrinking import Limits
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.workload.history import History, Send
from tanist.spark.jobs import Progress
from tanist.spark.jobs.dealt import dealt, usual_tasks
from tanist.spark.jobs.preconditions import NothingToJudge, Unfit
from tanist.spark.jobs.seeds.lots import SETTINGS, Lot
from tanist.spark.jobs.seeds.table import BLOCK, SeedTable, code_of_runs

OUTAGE_MS: Final = 3_000
"""A partition that acknowledges nothing for so long is unavailable."""
EXAMPLES: Final = 3
"""Of each lot so many failures of a property, and so many losses, are kept as scenarios."""
_TASKS_A_CORE: Final = 4
"""Of one Spark job: cores are idle only behind the last of them."""
_TEXT_MAX: Final = 1_000

Share = tuple[int, int, int, int]
"""Number of the lot, block, and the first and last seed of it that are asked for."""


def play_seeds(
    spark: SparkSession,
    table: SeedTable,
    lots: Sequence[Lot],
    seeds: range,
    *,
    shrink_s: float = 60.0,
    progress: Progress = lambda _: None,
) -> None:
    """Each seed in each lot. What the table has is not played again."""
    if not lots or not seeds:
        raise NothingToJudge("there is nothing to play: name at least one kind and one seed")
    runs = len(lots) * len(seeds)
    done, violations = sum(last - first + 1 for _, _, first, last in _shares(table, lots, seeds, there=True)), 0
    progress(f"{runs:,} runs, code {table.code}" + (f"; {done:,} are there" if done else ""))
    left, play = _shares(table, lots, seeds), partial(_play, table.folder, table.code, list(lots))
    while chunk := list(islice(left, _TASKS_A_CORE * _cores(spark))):
        counts = dealt(spark, chunk, play, "violations bigint").toArrow()
        found = sum(counts.column("violations").to_pylist())
        done, violations = done + sum(last - first + 1 for _, _, first, last in chunk), violations + found
        progress(f"{done:,} of {runs:,} runs are there, {violations:,} new violations")
        if found:
            _keep_scenarios(spark, table, shrink_s, progress)
    # Those of a job that was killed before it had kept them, too.
    _keep_scenarios(spark, table, shrink_s, progress)


def _shares(table: SeedTable, lots: Sequence[Lot], seeds: range, *, there: bool = False) -> Iterator[Share]:
    """The parts of blocks that may lack seeds, or those that lack none. All lots have a block before the next."""
    for block in range(seeds[0] // BLOCK, seeds[-1] // BLOCK + 1):
        first, last = max(seeds[0], block * BLOCK), min(seeds[-1], (block + 1) * BLOCK - 1)
        for number, lot in enumerate(lots):
            if table.has(lot, block, first, last) == there:
                yield number, block, first, last


def _cores(spark: SparkSession) -> int:
    return usual_tasks(spark) if is_remote() else max(1, int(spark.sparkContext.defaultParallelism))


def _play(folder: Path, code: str, lots: Sequence[Lot], share: Share) -> Iterator[Any]:
    """In a task."""
    import pyarrow as pa

    if code_of_runs() != code:
        raise Unfit(f"this worker has other code of tanist ({code_of_runs()}) than the driver ({code})")
    number, block, first, last = share
    table, lot = SeedTable(folder, code), lots[number]
    there = set(table.block(lot, block).column("seed").to_pylist())
    rows = [played(seed, lot) for seed in range(first, last + 1) if seed not in there]
    if rows:
        table.put(lot, block, rows)
    yield pa.record_batch({"violations": pa.array([sum(row["property"] is not None for row in rows)], pa.int64())})


def played(seed: int, lot: Lot) -> dict[str, Any]:
    """One run: a row of the table."""
    terms, began_s = lot.played(), time.process_time()
    with broken(terms.mutation):
        run = terms.begin(seed)
        outcome = run.run()
    violation = outcome.violation
    return {
        "seed": seed,
        "property": None if violation is None else violation.property_id,
        "violation": None if violation is None else str(violation)[:_TEXT_MAX],
        "digest": outcome.digest,
        "situations": [(name, count) for name, count in sorted(outcome.counts.items()) if count],
        "events": outcome.events,
        "virtual_ms": outcome.virtual_ms,
        "cpu_s": time.process_time() - began_s,
        "faults": outcome.faults,
        "acknowledged": outcome.acknowledged,
        "lost": outcome.lost,
        "unclean": outcome.unclean,
        "outage_ms": outage_ms(run.history, run.config.fault_time_ms),
        "load_ms": _load_ms(run),
    }


def _load_ms(run: ChaosRun) -> int:
    return run.config.fault_time_ms * sum(topic.partitions for topic in run.config.topics)


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


def first_seeds(spark: SparkSession, table: SeedTable) -> list[tuple[Lot, int, bool]]:
    """Of each lot the lowest seeds that violate each property, and of settings those that lost records without that.

    With each, whether it is a violation.
    """
    turn = F.row_number().over(Window.partitionBy("kind", "terms", "property").orderBy("seed"))
    found = table.frame(spark).where(f"property IS NOT NULL OR kind = '{SETTINGS}' AND lost > 0")
    first = found.withColumn("turn", turn).where(F.col("turn") <= EXAMPLES)
    rows = first.select("kind", "terms", "seed", F.col("property").isNotNull().alias("violates")).orderBy("seed")
    return [(Lot(row["kind"], row["terms"]), row["seed"], row["violates"]) for row in rows.toArrow().to_pylist()]


def _keep_scenarios(spark: SparkSession, table: SeedTable, shrink_s: float, progress: Progress) -> None:
    """Of the first seeds that failed or lost, those that have no file yet. Failures are shrunk, each by a task."""
    shares = []
    for lot, seed, violates in first_seeds(spark, table):
        plan = lot.played().plan(seed)
        if plan is not None and violates and not table.failure(lot, seed).exists():
            shares.append((lot.kind, lot.terms, seed))
        elif plan is not None and not violates and not table.loss(lot, seed).exists():
            title = f"{lot.name}: acknowledged records are lost (seed {seed})"
            save(Scenario(plan, title=title), table.loss(lot, seed))
    if shares:
        progress(f"shrinking {len(shares)} of the seeds that failed")
        dealt(spark, shares, partial(_shrink, table.folder, table.code, shrink_s), "seed bigint").toArrow()


def _shrink(folder: Path, code: str, seconds: float, share: tuple[str, str, int]) -> Iterator[Any]:
    """In a task."""
    import pyarrow as pa

    kind, text, seed = share
    lot = Lot(kind, text)
    terms, path = lot.played(), SeedTable(folder, code).failure(lot, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent) as scratch:
        limits = Limits(seconds=seconds) if seconds > 0 else None
        examine(play_seed(seed, terms), terms, Path(scratch), limits, time.monotonic)
        os.replace(Path(scratch, path.name), path)
    yield pa.record_batch({"seed": pa.array([seed], pa.int64())})

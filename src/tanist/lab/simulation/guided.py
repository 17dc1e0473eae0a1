"""Guided draws: plans that have reached new states are kept, and edited, so that the next runs go on from there.

Plain seeds draw each plan without regard to the runs before it. A guided draw records which states (`sim.states`) each
run was in. A plan that has reached new ones joins the *corpus*. The next plan is drawn by a fresh seed, or it is one of
the corpus with a few edits (`edits`). Plans whose states are rare, and which have been edited seldom, come first.

Owns the choice and the corpus, which may be kept in a folder of scenario files. A draw is decided by its first seed,
its terms and the corpus with which it begins, and never by the number of processes: each plan is made when a fixed
number of runs before it have not ended.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from tanist.lab.simulation.breaking import broken
from tanist.lab.simulation.edits import edited
from tanist.lab.simulation.running import Terms
from tanist.lab.simulation.scenario import Scenario, from_document, load, save
from tanist.sim.run.chaos_run import Plan, SeedResult
from tanist.sim.states import StateRecorder
from tanist.sim.world.clock import stream
from tanist.text import counted

UNDER_WAY: Final = 8
"""So many plans are made before the result of the first of them counts."""
FRESH_SHARE: Final = 0.3
"""Of all plans, those that a seed draws. With 1.0 the draw is a plain one, whose states are counted."""
_TITLE: Final = "States that no run before it had been in"


class Point(NamedTuple):
    """A point of the curve."""

    runs: int
    events: int
    states: int


@dataclass(slots=True)
class Kept:
    """A plan of the corpus."""

    plan: Plan
    new_states: tuple[str, ...]
    """Those that it was the first to reach."""
    edits: int = 0
    """How often it was edited."""


class Guide:
    """Chooses plans, and learns from their runs. Its owner plays them, in order."""

    def __init__(
        self,
        first_seed: int,
        draw: Callable[[int], Plan],
        *,
        folder: Path | None = None,
        fresh_share: float = FRESH_SHARE,
    ) -> None:
        """`draw`: the plan of a fresh seed. `folder`: where the corpus is read from and kept."""
        self.corpus: list[Kept] = []
        self.states: Counter[str] = Counter()
        """State -> the number of runs that were in it."""
        self.curve: list[Point] = []
        self._first_seed = first_seed
        self._draw = draw
        self._folder = folder
        self._fresh_share = fresh_share
        self._made = 0
        self._parents: deque[Kept | None] = deque()
        """Of the plans whose runs have not ended."""
        for path in sorted(folder.glob("*.json")) if folder is not None else ():
            kept = from_document(load(path))
            self.corpus.append(Kept(kept.plan, kept.notes))
            self.states.update(kept.notes)

    def plan(self) -> Plan:
        """The next one to play."""
        number, self._made = self._made, self._made + 1
        rng = stream(self._first_seed + number, "guide")
        parent = None
        plan = self._draw(self._first_seed + number)
        if self.corpus and rng.random() >= self._fresh_share:
            weights = [self._weight(each) for each in self.corpus]
            parent = rng.choices(self.corpus, weights)[0]
            parent.edits += 1
            donor = plan if rng.random() < 0.5 else rng.choice(self.corpus).plan
            plan = edited(parent.plan, rng, donor)
        self._parents.append(parent)
        return plan

    def learn(self, plan: Plan, outcome: SeedResult) -> None:
        """A plan was played. In the order in which they were made."""
        parent = self._parents.popleft()
        new = tuple(sorted(outcome.states - self.states.keys()))
        self.states.update(outcome.states)
        last = self.curve[-1] if self.curve else Point(0, 0, 0)
        self.curve.append(Point(last.runs + 1, last.events + outcome.events, len(self.states)))
        if new and outcome.violation is None:
            if parent is not None:
                parent.edits = 0
            self.corpus.append(Kept(plan, new))
            if self._folder is not None:
                number = self._first_seed + last.runs
                save(Scenario(plan, title=_TITLE, notes=new), self._folder / f"{number}.json")

    def __str__(self) -> str:
        """The curve in a sentence: the states after all runs, half of them, a quarter, and so on."""
        if not self.curve:
            return "no run was played"
        places = [len(self.curve) >> each for each in (3, 2, 1, 0) if len(self.curve) >> each]
        points = ", ".join(f"{self.curve[n - 1].states:,} after {counted(n, 'run')}" for n in places)
        return f"states of partitions: {points}; {counted(len(self.corpus), 'plan')} kept"

    def _weight(self, kept: Kept) -> float:
        return sum(1 / self.states[each] for each in kept.new_states) / (1 + kept.edits)


def outcomes(guide: Guide, seeds: range, terms: Terms, jobs: int, in_time: Callable[[], bool]) -> Iterator[SeedResult]:
    """The results, in order; of a failed run with its plan. No run starts when it is not `in_time`."""
    left = iter(seeds)
    under_way: deque[tuple[int, Plan, Future[SeedResult] | None]] = deque()
    pool = ProcessPoolExecutor(max_workers=min(jobs, os.cpu_count() or jobs)) if jobs > 1 else None
    try:
        while True:
            while len(under_way) < UNDER_WAY and in_time():
                seed = next(left, None)
                if seed is None:
                    break
                plan = guide.plan()
                under_way.append((seed, plan, None if pool is None else pool.submit(play_plan, plan, terms.mutation)))
            if not under_way:
                return
            seed, plan, future = under_way.popleft()
            outcome = play_plan(plan, terms.mutation) if future is None else future.result()
            guide.learn(plan, outcome)
            yield replace(outcome, seed=seed, plan=None if outcome.violation is None else plan)
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def play_plan(plan: Plan, mutation: str | None) -> SeedResult:
    """One plan, in this process, with its states."""
    with broken(mutation):
        run = plan.begin()
        recorder = StateRecorder(run.world, run.checkers.replicas.oracle)
        run.world.watchers.append(recorder)
        return replace(run.run(), states=frozenset(recorder.reached))

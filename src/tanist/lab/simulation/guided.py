"""Guided draws: plans that have reached new states are kept, and the next runs go on from there.

Plain seeds draw each plan without regard to the runs before it. A guided draw records which states (`sim.states`) each
run was in. A plan that has reached new ones joins the *corpus*. The next plan is drawn by a fresh seed, or it is one of
the corpus, edited (`edits`) behind the moment at which it reached a state: the run returns to the state, and goes on in
another way. Rare states, and those that were seldom gone on from, come first. Fresh seeds and edits share the runs by
what they have brought: new states by events.

Owns the choice and the corpus, which may be kept in a folder of scenario files. A draw is decided by its first seed,
its terms and the corpus with which it begins, and never by the number of processes: each plan is made when a fixed
number of runs before it have not ended.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
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
_TITLE: Final = "States that no run before it had been in"
_LEAST_SHARE: Final = 0.2
"""Of the runs, of fresh seeds and of edits, whatever they bring."""
_FORGETS: Final = 0.97
"""What a run has brought counts less with each later run of its way."""


class Point(NamedTuple):
    """A point of the curve."""

    runs: int
    events: int
    states: int


@dataclass(slots=True)
class Kept:
    """A plan of the corpus."""

    plan: Plan
    new_states: Mapping[str, int]
    """Those that it was the first to reach, and when, in microseconds on the clock of its faults."""
    edits: Counter[str] = field(default_factory=Counter)
    """State -> how often runs have gone on from it since that last brought a new one."""


@dataclass(slots=True)
class _Way:
    """What fresh seeds have brought, or edits. At first as much as any."""

    states: float = 1.0
    events: float = 1.0

    def add(self, states: int, events: int) -> None:
        self.states, self.events = _FORGETS * self.states + states, _FORGETS * self.events + events


class Guide:
    """Chooses plans, and learns from their runs. Its owner plays them, in order."""

    def __init__(
        self, first_seed: int, draw: Callable[[int], Plan], *, folder: Path | None = None, plain: bool = False
    ) -> None:
        """`draw`: the plan of a fresh seed. `folder`: where the corpus is read from and kept.

        `plain`: all plans are fresh seeds', and their states are counted.
        """
        self.corpus: list[Kept] = []
        self.states: Counter[str] = Counter()
        """State -> the number of runs that were in it."""
        self.curve: list[Point] = []
        self._first_seed = first_seed
        self._draw = draw
        self._folder = folder
        self._plain = plain
        self._made = 0
        self._fresh, self._edited = _Way(), _Way()
        self._origins: deque[tuple[Kept, str] | None] = deque()
        """Of the plans whose runs have not ended: the plan and the state that they go on from."""
        for path in sorted(folder.glob("*.json")) if folder is not None else ():
            scenario = from_document(load(path))
            self.corpus.append(Kept(scenario.plan, dict(map(_state_of, scenario.notes))))
            self.states.update(self.corpus[-1].new_states.keys())

    def plan(self) -> Plan:
        """The next one to play."""
        number, self._made = self._made, self._made + 1
        rng = stream(self._first_seed + number, "guide")
        plan = self._draw(self._first_seed + number)
        origin = None if self._plain or rng.random() < self._fresh_share else self._origin(rng)
        if origin is not None:
            kept, state = origin
            kept.edits[state] += 1
            donor = plan if rng.random() < 0.5 else rng.choice(self.corpus).plan
            plan = edited(kept.plan, kept.new_states[state], rng, donor)
        self._origins.append(origin)
        return plan

    def learn(self, plan: Plan, outcome: SeedResult) -> None:
        """A plan was played. In the order in which they were made."""
        origin = self._origins.popleft()
        new = {state: at_us for state, at_us in outcome.states.items() if state not in self.states}
        self.states.update(outcome.states.keys())
        last = self.curve[-1] if self.curve else Point(0, 0, 0)
        self.curve.append(Point(last.runs + 1, last.events + outcome.events, len(self.states)))
        (self._fresh if origin is None else self._edited).add(len(new), outcome.events)
        if not new or outcome.violation is not None:
            return
        if origin is not None:
            kept, state = origin
            kept.edits[state] = 0
        self.corpus.append(Kept(plan, new))
        if self._folder is not None:
            notes = tuple(f"{at_us}{_AT}{state}" for state, at_us in new.items())
            save(Scenario(plan, title=_TITLE, notes=notes), self._folder / f"{self._first_seed + last.runs}.json")

    def __str__(self) -> str:
        """The curve in a sentence: the states after all runs, half of them, a quarter, and so on."""
        if not self.curve:
            return "no run was played"
        places = [len(self.curve) >> each for each in (3, 2, 1, 0) if len(self.curve) >> each]
        points = ", ".join(f"{self.curve[n - 1].states:,} after {counted(n, 'run')}" for n in places)
        return f"states of partitions: {points}; {counted(len(self.corpus), 'plan')} kept"

    @property
    def _fresh_share(self) -> float:
        fresh, others = self._fresh.states / self._fresh.events, self._edited.states / self._edited.events
        return min(max(fresh / (fresh + others), _LEAST_SHARE), 1 - _LEAST_SHARE)

    def _origin(self, rng: Random) -> tuple[Kept, str] | None:
        """A plan of the corpus, and a state that it was the first to reach, while there were faults."""
        origins = [
            (kept, state)
            for kept in self.corpus
            for state, at_us in kept.new_states.items()
            if at_us < kept.plan.config.fault_time_ms * 1000
        ]
        weights = [1 / self.states[state] ** 2 / (1 + kept.edits[state]) for kept, state in origins]
        return rng.choices(origins, weights)[0] if origins else None


_AT: Final = " us: "


def _state_of(note: str) -> tuple[str, int]:
    """A state and its time, as the corpus's files have them. `ValueError` for anything else."""
    at_us, _, state = note.partition(_AT)
    return state, int(at_us)


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
        outcome = run.run()
    states = {state: max(0, at_us - run.load_began_us) for state, at_us in recorder.reached.items()}
    return replace(outcome, states=states)

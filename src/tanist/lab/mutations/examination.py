"""The examination: break one rule after the other, and find out whether, and where, the lab catches it.

Owns the definition of caught. By the simulator: a seed whose run violates a property with the rule broken, and none
with the unbroken rule. By the model checker: a counterexample that violates one of the rule's properties. The result is
a `Row`; `table` prints it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from tanist.lab.model import CONFIGURATIONS, Limits, check
from tanist.lab.mutations import model
from tanist.lab.mutations.catalogue import MUTANTS
from tanist.lab.mutations.directed import Directed
from tanist.lab.mutations.model_transactions import MODEL_TRANSACTION_MUTATIONS
from tanist.lab.mutations.quorum import QUORUM_MUTATIONS
from tanist.lab.mutations.simulator import Mutation, applied
from tanist.sim.checkers.violation import Violation
from tanist.sim.run.chaos_run import SeedResult

SIMULATOR, MODEL = "simulator", "model"
WAYS = (SIMULATOR, MODEL)

MODELLED: Mapping[str, model.Mutation] = {**model.MUTATIONS, **QUORUM_MUTATIONS, **MODEL_TRANSACTION_MUTATIONS}
"""What the model checker can be asked about."""
_STATES_MAX = 1_000_000
"""About half a gigabyte."""
_MODEL_SECONDS_MAX = 300.0


class FaultyWithout(Exception):
    """A run proves nothing about a broken rule: it fails with the unbroken rule too, or the patch itself fails."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How the simulator caught it."""

    property_id: str
    seed: int
    events: int
    message: str


@dataclass(frozen=True, slots=True)
class Counterexample:
    """How the model checker caught it."""

    property_id: str
    configuration: str
    steps: int
    states: int
    message: str


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one mutation."""

    name: str
    rule: str
    equivalent: str = ""
    simulated: Seen | None = None
    seeds_tried: int = 0
    """0 if the simulator was not asked."""
    simulator_seconds: float = 0.0
    directed: str = ""
    checked: Counterexample | None = None
    model_asked: bool = False
    model_seconds: float = 0.0
    fault: str = ""
    """The violation of the same run with the unbroken rule, if there is one."""

    @property
    def missed(self) -> bool:
        """The simulator or the model checker was asked, should have caught it, and did not."""
        if self.fault:
            return True
        if self.equivalent:
            return False
        return (self.seeds_tried > 0 and self.simulated is None) or (self.model_asked and self.checked is None)

    @property
    def asked(self) -> bool:
        return self.seeds_tried > 0 or self.model_asked

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"missed": self.missed}


def is_modelled(name: str) -> bool:
    """Whether the model covers the rule."""
    return name in MODELLED


def play(mutation: Mutation, seed: int) -> SeedResult:
    """One seed with the rule broken."""
    with applied(mutation):
        return mutation.play(seed).run()


def healthy(mutation: Mutation, seed: int) -> Violation | None:
    """The violation of the same run with the unbroken rule; it must be None, or the run proves nothing."""
    run = mutation.play(seed)
    violation = run.run().violation
    if violation is None and isinstance(run, Directed) and not run.completed:
        return Violation("script", run.world.now_us, f"{mutation.directed} waits in vain at line {run.line}")
    return violation


def hunt(mutation: Mutation, seeds: Iterable[int], deadline_s: float | None = None) -> tuple[Seen | None, int]:
    """The first seed that shows the mutation, if there is one; and the number of tried seeds."""
    tried = 0
    for seed in seeds:
        if deadline_s is not None and time.monotonic() > deadline_s:
            break
        tried += 1
        outcome = play(mutation, seed)
        if outcome.violation is None:
            continue
        if _is_our_own(outcome.violation):
            raise FaultyWithout(f"seed {seed}: what stands in the rule's place fails: {outcome.violation}")
        fault = healthy(mutation, seed)
        if fault is not None:
            raise FaultyWithout(f"seed {seed} fails with the rules as they are: {fault}")
        return Seen(outcome.violation.property_id, seed, outcome.events, str(outcome.violation)), tried
    return None, tried


def _is_our_own(violation: Violation) -> bool:
    """A crash in the patch of the rule: the product has changed, and the patch does not fit any more."""
    return bool(violation.frames) and violation.frames[-1].startswith("lab/mutations/rules_of_")


def search(mutation: model.Mutation) -> Counterexample | None:
    """The model checker's shortest counterexample with the broken rule."""
    limits = Limits(states=_STATES_MAX, seconds=_MODEL_SECONDS_MAX)
    with model.applied(mutation):
        outcome = check(CONFIGURATIONS[mutation.configuration], limits, unwatched=mutation.unwatched).outcome
    found = outcome.counterexample
    if found is None or found.violation.name not in mutation.caught_by:
        return None
    return Counterexample(
        found.violation.name, mutation.configuration, len(found.steps), outcome.states, str(found.violation)
    )


def examine(name: str, ways: Sequence[str], seeds: range, deadline_s: float | None = None) -> Row:
    """One mutation."""
    mutation = MUTANTS[name]
    simulated: Seen | None = None
    tried = 0
    fault = ""
    began_s = time.monotonic()
    if SIMULATOR in ways:
        try:
            simulated, tried = hunt(mutation, seeds, deadline_s)
        except FaultyWithout as found:
            fault, tried = str(found), 1
    simulator_s = time.monotonic() - began_s
    checked: Counterexample | None = None
    in_time = deadline_s is None or time.monotonic() < deadline_s
    asks_model = MODEL in ways and is_modelled(name) and in_time
    began_s = time.monotonic()
    if asks_model:
        checked = search(MODELLED[name])
    return Row(
        name,
        mutation.rule,
        mutation.equivalent,
        simulated,
        tried,
        simulator_s,
        mutation.directed,
        checked,
        asks_model,
        time.monotonic() - began_s if asks_model else 0.0,
        fault,
    )


def examine_all(
    names: Sequence[str], ways: Sequence[str], seeds: range, *, deadline_s: float | None = None, jobs: int = 1
) -> Iterator[Row]:
    """Mutations in the given order, several at a time: each is broken in a process of its own."""
    if jobs <= 1:
        for name in names:
            yield examine(name, ways, seeds, deadline_s)
        return
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        try:
            count = len(names)
            yield from pool.map(examine, names, [ways] * count, [seeds] * count, [deadline_s] * count)
        finally:
            pool.shutdown(cancel_futures=True)

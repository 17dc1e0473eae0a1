"""One check: a configuration, its model, a search, and the result.

Owns `check` and its report, for people (`lines`) and for programs (`as_json`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from tanist.lab.model.partition.configuration import Configuration
from tanist.lab.model.partition.model import PartitionModel
from tanist.lab.model.quorum.model import QuorumConfiguration, QuorumModel
from tanist.lab.model.search import NO_LIMITS, Counterexample, Limits, SearchResult, search
from tanist.lab.model.steps import TraceFormat
from tanist.lab.model.transactions.model import TransactionModel, TransactionsConfiguration

AnyConfiguration: TypeAlias = Configuration | QuorumConfiguration | TransactionsConfiguration
AnyModel: TypeAlias = PartitionModel | QuorumModel | TransactionModel


@dataclass(frozen=True, slots=True)
class Checked:
    """A configuration, its model, and the result of the search."""

    configuration: AnyConfiguration
    outcome: SearchResult
    model: AnyModel
    unwatched: frozenset[str] = frozenset()
    """Properties that were not checked."""

    @property
    def trace_format(self) -> TraceFormat:
        return self.model.trace_format

    @property
    def passed(self) -> bool:
        return self.outcome.counterexample is None


def check(
    configuration: AnyConfiguration,
    limits: Limits = NO_LIMITS,
    *,
    unwatched: frozenset[str] = frozenset(),
    on_level: Callable[[SearchResult], None] | None = None,
) -> Checked:
    """Search a configuration. Properties in `unwatched` are not checked."""
    model = model_of(configuration, unwatched)
    outcome = search(model, limits, on_level=on_level)
    return Checked(configuration, outcome, model, unwatched)


def model_of(configuration: AnyConfiguration, unwatched: frozenset[str] = frozenset()) -> AnyModel:
    """The model that a configuration describes."""
    if isinstance(configuration, Configuration):
        return PartitionModel(configuration, unwatched)
    if isinstance(configuration, TransactionsConfiguration):
        return TransactionModel(configuration, unwatched)
    return QuorumModel(configuration, unwatched)


def lines(checked: Checked) -> Iterator[str]:
    """The report."""
    outcome = checked.outcome
    name = checked.configuration.name
    without = f"; not watched: {', '.join(sorted(checked.unwatched))}" if checked.unwatched else ""
    figures = (
        f"{outcome.states:,} states, {outcome.steps:,} steps, depth {outcome.depth}, {outcome.seconds:.1f} s, "
        f"{outcome.rate:,.0f} states/s"
    )
    if outcome.counterexample is not None:
        yield from _story(checked, outcome.counterexample)
        yield f"FAILED    {name}: {figures}"
    elif outcome.exhausted:
        yield f"EXHAUSTED {name}: {figures}; there are no more{without}"
    else:
        yield f"PASSED    {name}: {figures}; stopped by the limit on {outcome.stopped_by}{without}"


def _story(checked: Checked, counterexample: Counterexample) -> Iterator[str]:
    trace_format = checked.trace_format
    start = checked.configuration.start
    if start:
        yield f"From where {'; '.join(start)}:"
    yield from (f"      {line}" for line in trace_format.picture(counterexample.first))
    before = counterexample.first
    for number, (label, after) in enumerate(counterexample.steps, 1):
        yield f"{number:3}. {trace_format.sentence(label, before, after)}"
        why = trace_format.why(label, before, after)
        if why is not None:
            yield f"     because {why}"
        yield from (f"      {line}" for line in trace_format.picture(after))
        before = after
    yield f"{counterexample.violation.name} does not hold: {counterexample.violation.why}"


def as_json(checked: Checked) -> dict[str, Any]:
    outcome, trace_format = checked.outcome, checked.trace_format
    found = outcome.counterexample
    return {
        "configuration": checked.configuration.name,
        "states": outcome.states,
        "steps": outcome.steps,
        "depth": outcome.depth,
        "levels": outcome.levels,
        "exhausted": outcome.exhausted,
        "stopped_by": outcome.stopped_by or None,
        "seconds": round(outcome.seconds, 3),
        "states_per_second": round(outcome.rate),
        "counterexample": None if found is None else _story_values(trace_format, found),
    }


def _story_values(trace_format: TraceFormat, counterexample: Counterexample) -> dict[str, Any]:
    steps = []
    before = counterexample.first
    for label, after in counterexample.steps:
        step = {
            "step": str(label),
            "what": trace_format.sentence(label, before, after),
            "why": trace_format.why(label, before, after),
        }
        steps.append({**step, **trace_format.values(after)})
        before = after
    return {
        "property": counterexample.violation.name,
        "why": counterexample.violation.why,
        "first": trace_format.values(counterexample.first),
        "steps": steps,
    }

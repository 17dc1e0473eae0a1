"""The report of scenarios: a line for each failure and each deviation, and the counts; or all of it as plain values.

Owns only the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tanist.lab.scenarios.outcome import Difference, ScenarioResult, Verdict


def lines(outcomes: Iterable[ScenarioResult]) -> list[str]:
    """A line for each failure, then one for each rule by which a scenario deviates."""
    failures: list[str] = []
    departures: list[str] = []
    for outcome in outcomes:
        if outcome.verdict is Verdict.FAILED:
            why = outcome.reason if outcome.reason is not None else str(outcome.differences[0])
            failures.append(f"FAILED    {outcome.id}  {why}")
        elif outcome.verdict is Verdict.DEVIATES:
            departures += [
                f"DEVIATES  {outcome.id}  {_by_rule(first)}" for first in _first_by_rule(outcome.differences)
            ]
    return failures + departures


def _by_rule(difference: Difference) -> str:
    return f"{difference.deviation} | {difference}"


def _first_by_rule(differences: Sequence[Difference]) -> list[Difference]:
    """The first difference by each rule; later ones follow from it."""
    first: dict[object, Difference] = {}
    for difference in differences:
        first.setdefault(difference.deviation, difference)
    return list(first.values())


def summary(outcomes: Iterable[ScenarioResult]) -> str:
    counts = Counter(outcome.verdict for outcome in outcomes)
    text = f"{counts[Verdict.PASSED]} passed, {counts[Verdict.FAILED]} failed"
    deviating = counts[Verdict.DEVIATES]
    return f"{text}, {deviating} deviate" if deviating else text


def as_json(outcomes: Sequence[ScenarioResult]) -> dict[str, Any]:
    counts = Counter(outcome.verdict for outcome in outcomes)
    return {
        **{verdict.value: counts[verdict] for verdict in Verdict},
        "scenarios": [_outcome(outcome) for outcome in outcomes],
    }


def _outcome(outcome: ScenarioResult) -> dict[str, Any]:
    row: dict[str, Any] = {"id": outcome.id, "kind": outcome.kind, "verdict": outcome.verdict.value}
    if outcome.reason is not None:
        row["reason"] = outcome.reason
    if outcome.differences:
        row["differences"] = [
            {
                "what": each.what,
                "expected": each.expected,
                "seen": each.seen,
                **({} if each.deviation is None else {"fact": each.deviation.fact, "rule": each.deviation.we}),
            }
            for each in outcome.differences
        ]
    return row

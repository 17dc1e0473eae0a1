"""All schedules of a question, cell by cell: lost records, and partitions without a leader.

Owns `answer`. A cell is searched breadth first from each situation with the model of its row. A state counts as bad
only if producers or consumers would notice (`model.partition.losses`). A second search finds the shortest way to the
worst state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tanist.lab.model.partition.losses import Loss, Losses, Until
from tanist.lab.model.search import Limits, search
from tanist.lab.model.steps import State, Violation
from tanist.lab.model_scenario import LOSS, document
from tanist.lab.what_if.question import SETTINGS, Question, SettingsRow, budget
from tanist.lab.what_if.schedules import Schedules


@dataclass(frozen=True, slots=True)
class Cell:
    """The result of a setting with a number of unclean shutdowns."""

    setting: SettingsRow
    unclean: int
    states: int = 0
    depth: int | None = None
    """All schedules up to this many events were enumerated from each situation. None: all schedules."""
    lost: int = 0
    acknowledged: int = 0
    """Of the worst schedule: the number of lost records, and of all records."""
    waits: frozenset[Until] = frozenset()
    scenario: dict[str, Any] | None = None
    """The shortest way to the worst, for `model_scenario.moments`."""

    @property
    def safe(self) -> bool | None:
        """None: not known. No schedule was long enough for so many unclean shutdowns, and none loses a record."""
        if self.lost:
            return False
        return True if self.depth is None or self.depth >= max(1, self.unclean) else None

    @property
    def name(self) -> str:
        return f"{self.setting.name}-{self.unclean}"


@dataclass(frozen=True, slots=True)
class Table:
    """The answer."""

    question: Question
    cells: tuple[Cell, ...]

    def settings(self) -> tuple[SettingsRow, ...]:
        """Its rows."""
        return tuple(dict.fromkeys(cell.setting for cell in self.cells))

    def row(self, setting: SettingsRow) -> list[Cell]:
        return [cell for cell in self.cells if cell.setting is setting]


def answer(
    question: Question, on_cell: Callable[[Cell], None] | None = None, settings: Sequence[SettingsRow] = SETTINGS
) -> Table:
    """Enumerate."""
    return Table(question, tuple(_cells(question, on_cell, settings)))


def _cells(
    question: Question, on_cell: Callable[[Cell], None] | None, settings: Sequence[SettingsRow]
) -> Iterator[Cell]:
    for setting in settings:
        row = _Row(question, setting)
        before: Cell | None = None
        for unclean in range(question.unclean + 1):
            cell = before = _no_better(row.cell(unclean), before)
            if on_cell is not None:
                on_cell(cell)
            yield cell


def _no_better(cell: Cell, before: Cell | None) -> Cell:
    """A loss with fewer shutdowns is possible with more, too, though a bound may have hidden it."""
    if before is None:
        return cell
    known = replace(cell, waits=cell.waits | before.waits)
    if before.lost <= cell.lost:
        return known
    return replace(known, lost=before.lost, acknowledged=before.acknowledged, scenario=before.scenario)


class _Row:
    """The schedules of one setting. The answers of the real objects are kept for all its cells."""

    def __init__(self, question: Question, setting: SettingsRow) -> None:
        self._question = question
        self._setting = setting
        self._starts = [situation.start for situation in question.situations()]
        configuration = question.configuration(setting, question.unclean, ())
        self._schedules = Schedules(configuration, races=question.races)
        self._schedules.begin(self._starts)

    def cell(self, unclean: int) -> Cell:
        """Search, and then find the way to the worst."""
        schedules, question = self._schedules, self._question
        schedules.allow(budget(unclean))
        seen = _Seen(schedules.losses)
        schedules.check = seen.note
        depth = None if question.depth is None else question.depth + 1  # the first step is the choice of a beginning
        outcome = search(schedules, Limits(depth=depth, states=question.states + 1))
        worst = seen.worst
        return Cell(
            self._setting,
            unclean,
            states=outcome.states - 1,
            depth=None if outcome.exhausted else outcome.depth - 1,
            lost=len(worst.lost),
            acknowledged=worst.acknowledged,
            waits=frozenset(seen.waits),
            scenario=self._way_to(worst, unclean) if worst.lost else None,
        )

    def _way_to(self, worst: Loss, unclean: int) -> dict[str, Any]:
        """The shortest way to it."""
        schedules, question = self._schedules, self._question

        def judge(state: State) -> Violation | None:
            loss = schedules.losses.of(state)
            found = (len(loss.lost), loss.acknowledged) == (len(worst.lost), worst.acknowledged)
            return Violation(LOSS, f"{len(loss.lost)} of {loss.acknowledged}") if found else None

        schedules.check = judge
        found = search(schedules).counterexample
        if found is None:
            raise RuntimeError(f"{worst} was found once, and not again")
        beginning, way = schedules.in_full(found)
        shutdowns = f"{unclean} unclean shutdown{'s' * (unclean != 1)}"
        title = (
            f"{self._setting.says}: {len(worst.lost)} of {worst.acknowledged} acknowledged records lost, with up to "
            f"{shutdowns}"
        )
        configuration = question.configuration(self._setting, unclean, self._starts[beginning])
        return document(title, configuration, schedules.partition, way)


class _Seen:
    """The worst states of one cell."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self.worst = Loss((), 0)
        self.waits: set[Until] = set()

    def note(self, state: State) -> Violation | None:
        loss = self._losses.of(state)
        if (len(loss.lost), -loss.acknowledged) > (len(self.worst.lost), -self.worst.acknowledged):
            self.worst = loss
        waiting = self._losses.unavailable(state)
        if waiting is not None:
            self.waits.add(waiting)
        return None

"""The list of mutations: printed, and in a page of the docs, where some lines can be replaced.

Owns the form of a line and the marks around the list. A line begins with `* **A1** `. If only the simulator or only the
model checker was asked, the page keeps what the other has found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tanist.lab.mutations.catalogue import MUTANTS
from tanist.lab.mutations.examination import Row, is_modelled

BEGIN, END = "<!-- mutants: begin -->", "<!-- mutants: end -->"

_BETWEEN = "; "
_LINE = re.compile(r"\* \*\*(\S+)\*\* (.*): ([^:]*)")
_UNKNOWN = "not asked"
_NOT_MODELLED = ""


class NoTable(Exception):
    """The page has no marks, or not in order."""


def cells(row: Row, before: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """A row's cells; `before` are its former cells, for the part that was not asked this time."""
    _, _, simulated, checked = before or ("", "", _UNKNOWN, _UNKNOWN)
    if row.seeds_tried:
        simulated = _simulated(row)
    if row.model_asked:
        checked = _checked(row)
    elif not is_modelled(row.name):
        checked = _NOT_MODELLED
    return (row.name, row.rule, simulated, checked)


def _simulated(row: Row) -> str:
    if row.fault:
        return row.fault.replace(": ", ", ").replace(_BETWEEN, ", ")
    if row.simulated is None:
        return f"equivalent, {row.equivalent}" if row.equivalent else f"NOT CAUGHT in {row.seeds_tried} seeds"
    return f"{row.simulated.property_id} in `{row.directed}`" if row.directed else row.simulated.property_id


def _checked(row: Row) -> str:
    return f"{row.checked.property_id} in `{row.checked.configuration}`" if row.checked else "NOT CAUGHT"


def sentence(row: Row) -> str:
    """The same for a person at a terminal, with the seed and the time that it took."""
    found = []
    if row.seeds_tried:
        seed = f", seed {row.simulated.seed}" if row.simulated else ""
        found.append(f"simulator: {_simulated(row)}{seed} ({row.simulator_seconds:.1f} s)")
    if row.model_asked:
        steps = f", {row.checked.steps} steps, {row.checked.states} states" if row.checked else ""
        found.append(f"model checker: {_checked(row)}{steps} ({row.model_seconds:.1f} s)")
    return f"{row.name:5} {row.rule}. " + ("; ".join(found) or "not asked")


def line(row: tuple[str, ...]) -> str:
    """A row's cells as a line, with what both have found at its end."""
    name, rule, *found = row
    return f"* **{name}** {rule}: {_BETWEEN.join(filter(None, found))}"


def rewritten(page: str, rows: Iterable[Row]) -> str:
    """The page with these rows replaced, and the others unchanged."""
    begin, end = page.find(BEGIN), page.find(END)
    if begin < 0 or end < begin:
        raise NoTable(f"there is no table between {BEGIN} and {END}")
    begin += len(BEGIN)
    known = _rows(page[begin:end])
    for row in rows:
        known[row.name] = cells(row, known.get(row.name))
    ordered = [known[name] for name in MUTANTS if name in known]
    lines = "\n".join(line(values) for values in ordered)
    return f"{page[:begin]}\n{lines}\n{page[end:]}"


def _rows(table: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for text in table.splitlines():
        if (values := _LINE.fullmatch(text.strip())) and values[1] in MUTANTS:
            simulated, _, checked = values[3].partition(_BETWEEN)
            found[values[1]] = (values[1], values[2], simulated, checked)
    return found


def summary(rows: Iterable[Row], seconds: float) -> str:
    """One line: how many were caught, and where."""
    seen = list(rows)
    by: Mapping[str, int] = {
        "by the simulator": sum(row.simulated is not None for row in seen),
        "by the model checker": sum(row.checked is not None for row in seen),
        "equivalent": sum(bool(row.equivalent) for row in seen),
    }
    missed = [row.name for row in seen if row.missed]
    text = ", ".join(f"{count} {what}" for what, count in by.items() if count)
    late = sum(not row.asked for row in seen)
    verdict = f"NOT CAUGHT: {', '.join(missed)}" if missed else "none of those escaped" if late else "none escaped"
    if late:
        verdict += f", {late} not examined"
    return f"{len(seen)} mutations: {text or 'nothing asked'}; {verdict} ({seconds:.0f} s)"

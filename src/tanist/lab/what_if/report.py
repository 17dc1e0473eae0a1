"""The report of a table, for people (`lines`) and for programs (`as_json`).

Computes nothing. It says where an enumeration was bounded, and where a partition waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tanist.lab.model.partition.losses import Until
from tanist.lab.what_if.enumeration import Cell, Table
from tanist.lab.what_if.question import Question, bounds
from tanist.text import counted

_LETTERS = {Until.CANDIDATE: "c", Until.LAST_KNOWN: "l", Until.RECOVERY: "r", Until.OPERATOR: "o"}
_GAP, _INDENT = "  ", "      "


def lines(table: Table, written: Mapping[str, str], seconds: float) -> Iterator[str]:
    """The report. `written` has, for each cell with a loss, the file that shows it."""
    question = table.question
    yield (
        f"Replication factor {question.replication_factor}, min.insync.replicas {question.min_isr}, strategy "
        f"{question.strategy.value}: what becomes of acknowledged records"
    )
    yield ""
    yield from _grid(table)
    yield ""
    yield from _legend(table)
    yield from _shown(table, written)
    yield ""
    yield from _enumerated(table, seconds)
    yield ""
    yield summary(table)


def _grid(table: Table) -> Iterator[str]:
    unclean = range(table.question.unclean + 1)
    rows = {"unclean shutdowns": [str(number) for number in unclean]}
    chosen = table.question.highlighted()
    for setting in table.settings():
        mark = "> " if setting is chosen else "  "
        rows[mark + setting.says] = [_cell(cell) for cell in table.row(setting)]
    widths = [max(map(len, column)) for column in zip(*rows.values(), strict=True)]
    for name, cells in rows.items():
        yield name
        yield _INDENT + _GAP.join(text.ljust(width) for text, width in zip(cells, widths, strict=True)).rstrip()


def _cell(cell: Cell) -> str:
    waits = "".join(_LETTERS[until] for until in Until if until in cell.waits)
    return f"{verdict(cell)} {waits}".rstrip()


def verdict(cell: Cell) -> str:
    if cell.lost:
        return f"loses {cell.lost} of {cell.acknowledged}"
    if cell.safe is None:
        return "not known"
    return "safe" if cell.depth is None else f"safe to {cell.depth}"


def _legend(table: Table) -> Iterator[str]:
    yield "safe          every schedule was tried, and none loses an acknowledged record"
    yield "safe to 5     no schedule of up to 5 events does; of longer ones only some"
    yield "              were tried"
    yield "loses 1 of 2  the worst schedule loses 1 of its 2 acknowledged records"
    if any(cell.safe is None for cell in table.cells):
        yield "not known     the schedules that were tried are too short for so many unclean"
        yield "              shutdowns"
    for until, letter in _LETTERS.items():
        if any(until in cell.waits for cell in table.cells):
            yield f"{letter.ljust(14)}no leader, though a live replica has every record,"
            yield f"{' ' * 14}until {until.value}"


def _shown(table: Table, written: Mapping[str, str]) -> Iterator[str]:
    """The cell with the fewest shutdowns of each row; the others have files, too."""
    if written:
        yield ""
        yield "The shortest way to a loss, of each row (each other cell that loses has a file beside it):"
    for setting in table.settings():
        first = next((cell for cell in table.row(setting) if cell.name in written), None)
        if first is not None:
            yield f"  tanist lab replay {written[first.name]}"


def _enumerated(table: Table, seconds: float) -> Iterator[str]:
    question = table.question
    states = sum(cell.states for cell in table.cells)
    depths = [cell.depth for cell in table.cells if cell.depth is not None]
    bounded = (
        f"all of up to {min(depths)} events or more, {question.states:,} states a cell" if depths else "all there are"
    )
    yield (
        f"Enumerated: schedules ({bounded}) of the real controller and replicas, each from {_situations(question)}, "
        f"with up to {bounds()}, and unclean shutdowns that each take records along; {_arrivals(question)}."
    )
    yield f"{states:,} states in {seconds:.1f} s. More: --states, --depth."


def _situations(question: Question) -> str:
    sizes = [str(situation.in_sync) for situation in question.situations()]
    listed = sizes[0] if len(sizes) == 1 else f"{', '.join(sizes[:-1])} or {sizes[-1]}"
    return f"where a record is acknowledged and the ISR has {listed} member{'s' * (sizes != ['1'])}"


def _arrivals(question: Question) -> str:
    if question.races:
        return "whatever is under way may be late"
    return "whatever is under way arrives before the next event"


def summary(table: Table) -> str:
    """The result of the question's row."""
    question = table.question
    row = table.row(question.highlighted())
    lossy = next((cell for cell in row if cell.lost), None)
    name = f"With strategy {question.strategy.value}"
    if lossy is not None and not lossy.unclean:
        return f"{name}, acknowledged records can be lost without any unclean shutdown."
    safe = [cell for cell in row if cell.safe]
    if not safe:
        known = (
            "nothing is known: no schedule was enumerated. More --states" if lossy is None else f"{_can_cost(lossy)}."
        )
        return f"{name}, {known}"
    kept = safe[-1]
    depth = "in any schedule" if kept.depth is None else f"in any schedule of up to {kept.depth} events"
    if kept.unclean:
        without = f"{name}, {_shutdowns(kept.unclean)} cost{'s' * (kept.unclean == 1)} no acknowledged record {depth}"
    else:
        without = f"{name} and no unclean shutdown, no acknowledged record is lost {depth}"
    if lossy is not None:
        return f"{without}; {_can_cost(lossy)}."
    unknown = [cell.unclean for cell in row if cell.safe is None]
    if not unknown:
        return f"{without}."
    return (
        f"{without}; of {_shutdowns(unknown[0])} nothing is known, for the schedules were too short for so many: more "
        "--states"
    )


def _can_cost(cell: Cell) -> str:
    return f"{_shutdowns(cell.unclean)} can cost {cell.lost} of {cell.acknowledged}"


def _shutdowns(number: int) -> str:
    return counted(number, "unclean shutdown")


def as_json(table: Table, written: Mapping[str, str], seconds: float) -> dict[str, Any]:
    question = table.question
    return {
        "replication_factor": question.replication_factor,
        "min_isr": question.min_isr,
        "strategy": question.strategy.value,
        "states_a_cell": question.states,
        "races": question.races,
        "situations": [{"in_sync": each.in_sync, "start": list(each.start)} for each in question.situations()],
        "seconds": round(seconds, 3),
        "cells": [
            {
                "setting": cell.setting.name,
                "says": cell.setting.says,
                "unclean_shutdowns": cell.unclean,
                "safe": cell.safe,
                "lost": cell.lost,
                "acknowledged": cell.acknowledged if cell.lost else None,
                "unavailable_until": [until.value for until in Until if until in cell.waits],
                "states": cell.states,
                "depth": cell.depth,
                "exhausted": cell.depth is None,
                "scenario": written.get(cell.name),
            }
            for cell in table.cells
        ],
        "summary": summary(table),
    }

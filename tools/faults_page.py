"""Write the tables of docs/faults.md from `tanist.faults`.

python -m tools.faults_page
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tanist.faults import FAULTS, FaultKind, Parameter, Where, names_of
from tools.page_tables import with_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "faults.md"
_PLACES = {Where.PAGE: "live view", Where.JEPSEN: "jepsen", Where.SEEDS | Where.SOME_SEEDS: "simulator"}


def rewritten(page: str) -> str:
    """The page with both tables made anew."""
    return with_table(with_table(page, "live", _live()), "simulated", _simulated())


def _live() -> Iterator[str]:
    yield "| Fault | Command | Effect | Also in | What-if |"
    yield "|---|---|---|---|---|"
    for row in (FAULTS[name] for name in names_of(Where.LIVE)):
        places = ", ".join(text for where, text in _PLACES.items() if row.where & where)
        yield f"| {row.name} | `{_command(row)}` | {row.does} | {places} | {row.price.value} |"


def _command(row: FaultKind) -> str:
    taken = [_option(each) for each in row.takes if each.option not in row.command]
    return " ".join(["tanist", row.command, *taken]).replace("|", "\\|")


def _option(parameter: Parameter) -> str:
    value = {"ms": " TIME", "bytes": " SIZE"}.get(parameter.unit, "" if parameter.default is False else " DIR")
    return f"[{parameter.option}{'' if parameter.opposite else value}]"


def _simulated() -> Iterator[str]:
    yield "| Fault | Effect | What-if |"
    yield "|---|---|---|"
    live = names_of(Where.LIVE)
    for row in (row for name, row in FAULTS.items() if name not in live):
        yield f"| {row.name} | {row.does} | {row.price.value} |"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))

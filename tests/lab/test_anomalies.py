"""The table of anomalies: its rows are full, and the manual's tables are its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tanist.lab.anomalies import OF_AUDITS, OF_HISTORIES, Anomaly

DOCS = Path(__file__).parents[2] / "docs"


def rows_below(page: str, head: str) -> list[str]:
    """The rows of the table with this head, without its rule."""
    lines = iter((DOCS / page).read_text(encoding="utf-8").splitlines())
    assert head in lines
    return list(_rows(lines))[1:]


def _rows(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("|"):
            return
        yield line


def test_every_row_is_full_and_has_a_judge() -> None:
    assert set(OF_HISTORIES) | set(OF_AUDITS) == set(Anomaly)
    assert [each for each in Anomaly if not (each.counted and each.meaning and each.definition)] == []
    assert [each for each in OF_AUDITS if each.title == each.value] == [], "an audit's report has a name for people"
    assert len({each.title for each in Anomaly}) == len({each.meaning for each in Anomaly}) == len(Anomaly)


def test_the_manual_of_histories_has_the_rows() -> None:
    assert rows_below("history.md", "| | count | when |") == [
        f"| `{each.value}` | {each.counted} | {each.definition} |" for each in OF_HISTORIES
    ]


def test_the_manual_of_the_audit_has_the_rows() -> None:
    assert rows_below("pipeline.md", "| finding | for programs | count | when |") == [
        f"| {each.title} | `{each.value}` | {each.counted} | {each.definition} |" for each in OF_AUDITS
    ]

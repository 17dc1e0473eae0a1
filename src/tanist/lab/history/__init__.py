"""The history checker: the operations of Kafka clients, checked against the promises of a log.

`verify(path)` reads a file and gives the verdict with the operations of its evidence. `Checker` takes operations one by
one. `report` prints a verdict; `HistoryWriter` writes histories, `simulated` those of the simulator.
docs/history.md has the format and the definitions.
"""

from __future__ import annotations

from pathlib import Path

from tanist.lab.anomalies import Anomaly
from tanist.lab.history.checker import Checker, Verdict
from tanist.lab.history.files import HistoryFile, Progress, open_history
from tanist.lab.history.operation import HistoryError, Operation
from tanist.lab.history.report import cited_lines
from tanist.lab.history.tally import Finding
from tanist.lab.history.writer import HistoryWriter

__all__ = [
    "Anomaly",
    "Checker",
    "Finding",
    "HistoryError",
    "HistoryFile",
    "HistoryWriter",
    "Operation",
    "Verdict",
    "open_history",
    "verify",
]


def verify(history: HistoryFile | Path, progress: Progress | None = None) -> tuple[Verdict, dict[int, Operation]]:
    """Judge a file: the verdict, and the operations that its evidence cites."""
    file = open_history(history) if isinstance(history, Path) else history
    checker = Checker()
    for line, operation in file.operations(progress):
        checker.take(line, operation)
    verdict = checker.verdict()
    return verdict, file.fetch(cited_lines(verdict))

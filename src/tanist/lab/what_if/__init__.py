"""What if so many replicas are shut down uncleanly? Every schedule is tried, up to a bound, by the model checker.

`Question` is what is asked, `answer` enumerates and gives a `Table`, `report` puts that into words. See
docs/what-if.md.
"""

from __future__ import annotations

from tanist.lab.what_if import report
from tanist.lab.what_if.enumeration import Cell, Table, answer
from tanist.lab.what_if.question import Question, QuestionError

__all__ = ["Cell", "Question", "QuestionError", "Table", "answer", "report"]

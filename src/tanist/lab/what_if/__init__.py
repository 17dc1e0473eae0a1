"""What-if questions: the effect of unclean shutdowns, by the model checker over all schedules up to a bound.

`Question` is the question, `answer` enumerates and gives a `Table`, `report` prints it. See docs/what-if.md.
"""

from __future__ import annotations

from tanist.lab.what_if import report
from tanist.lab.what_if.enumeration import Cell, Table, answer
from tanist.lab.what_if.question import Question, QuestionError

__all__ = ["Cell", "Question", "QuestionError", "Table", "answer", "report"]

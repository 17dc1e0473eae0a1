"""How many rounds each test of a mixed cluster plays, and the row that it tells of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.mixed.watched_load import Row, write_row


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--mixed-rounds", default=1))


@pytest.fixture
def new_row(request: pytest.FixtureRequest, rounds: int, java: None, libraries: None) -> Iterator[Callable[[str], Row]]:
    """A row under the given name. It is printed at the test's end, whatever that is."""
    made: list[Row] = []

    def new(name: str) -> Row:
        made.append(Row(name, rounds))
        return made[-1]

    yield new
    file = request.config.getoption("--mixed-report", default=None)
    for row in made:
        write_row(row, None if file is None else Path(file))

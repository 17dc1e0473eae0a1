"""Configurations: Apache Kafka's node and ours say the same of every name, but for a table of differences that stay."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.cluster import ROOT
from tests.interop.configs import sweep
from tests.interop.configs.allowed import ROWS, needed, row_of
from tests.interop.configs.side import Side
from tests.interop.pair import pair
from tests.interop.raw import RawClient

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

PROPERTIES = {
    "log.retention.hours": "100",
    "log.flush.scheduler.interval.ms": "3000",
    "num.io.threads": "6",
    "some.plugins.name": "x",
}
_used: Counter[str] = Counter()


@pytest.fixture(scope="module")
def sides(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    folder: Path = tmp_path_factory.mktemp("configs")
    with pair(folder, PROPERTIES) as nodes:
        for address in (nodes.apache, nodes.tanist):
            with RawClient(*address) as client:
                client.create_topic("t", 1, 1, {})
        own = [
            {str(folder / name): "FOLDER", str(address[1]): "PORT", str(controller[1]): "CONTROLLER-PORT"}
            for name, address, controller in (
                ("apache/node-1", nodes.apache, nodes.apache_controller),
                ("tanist/node-1", nodes.tanist, nodes.tanist_controller),
            )
        ]
        with Side(nodes.apache, own[0]) as theirs, Side(nodes.tanist, own[1]) as ours:
            yield theirs, ours


@pytest.mark.parametrize("part", [sweep.described, sweep.judged, sweep.kept])
def test_all_names_of_all_resources(
    sides: tuple[Side, Side], part: Callable[[Side, Side], Iterator[sweep.Difference]]
) -> None:
    unexplained = []
    for difference in part(*sides):
        row = row_of(difference)
        if row is None:
            unexplained.append(difference)
        else:
            _used[row.what] += 1
    assert not unexplained, f"{len(unexplained)} differences:\n" + "\n".join(map(str, unexplained[:60]))


def test_every_row_is_needed() -> None:
    """After the sweeps, in the same run."""
    if not _used:
        pytest.skip("the sweeps have not run")
    assert set(_used) == needed()


def test_the_documentation_has_the_same_table() -> None:
    text = (ROOT / "docs" / "interop.md").read_text()
    section = text.partition("## Configurations")[2].partition("\n## ")[0]
    rows = [re.split(r"\s*\|\s*", line.strip("| ")) for line in section.splitlines() if line.startswith("| ")]
    assert [tuple(row) for row in rows[1:] if not row[0].startswith("---")] == [(row.what, row.why) for row in ROWS]

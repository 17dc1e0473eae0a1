"""What ApiVersions says, beside each pinned version of Apache Kafka: what differs is GAPS.md's table, no more."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.interop import tables
from tests.interop.cluster import ROOT
from tests.interop.tables import Row
from tests.interop.versions import PINS

pytestmark = pytest.mark.interop

FETCH, TOPOLOGY = Row("Fetch (1)", "broker"), Row("StreamsGroupTopologyDescriptionUpdate (93)", "broker")
LEADERS = [Row("ElectLeaders (43)", listener) for listener in ("broker", "controller")]


def _sides(rows: Mapping[Row, Mapping[str, tuple[int, int]]]) -> Mapping[str, tables.Table]:
    names = (tables.OURS, *PINS)
    return {name: {row: of_row[name] for row, of_row in rows.items() if name in of_row} for name in names}


@pytest.mark.usefixtures("java")
def test_what_differs_from_each_version_is_in_the_list_of_gaps() -> None:
    command = [sys.executable, "-m", "tests.interop.tables"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\nGAPS.md has another table: --write writes it"


def test_rows_that_differ_stand_once_for_both_listeners() -> None:
    theirs = {"4.3.1": (0, 2), "4.4.0": (0, 2)}
    found = tables.differences(
        _sides(
            {
                FETCH: {"tanist": (4, 18), "4.3.1": (4, 18), "4.4.0": (4, 18)},
                TOPOLOGY: {"4.3.1": (1, 2), "4.4.0": (1, 1)},
                **{row: {"tanist": (0, 3), **theirs} for row in LEADERS},
            }
        )
    )
    assert [each.row for each in found] == [LEADERS[0], TOPOLOGY, LEADERS[1]]
    assert [line.split(" | ")[:-1] for line in tables.lines(found)][2:] == [
        ["| ElectLeaders (43)", "broker, controller", "0-3", "0-2", "0-2"],
        ["| StreamsGroupTopologyDescriptionUpdate (93)", "broker", "-", "1-2", "1"],
    ]


def test_a_row_needs_a_reason() -> None:
    """A request that a new version brings is not passed over: the command fails until somebody says why."""
    found = tables.differences(_sides({Row("Teleport (99)", "broker"): {"4.4.0": (0, 0)}}))
    with pytest.raises(KeyError, match="Teleport"):
        list(tables.lines(found))

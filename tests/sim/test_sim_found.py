"""Runs in which fresh seeds violated a property, kept as small as they could be made: each must hold now.

The causes are in found/README.md. A file holds its whole plan, so it plays the same faults
after the product has changed; what it must keep reaching is tested beside the code that was mended.

The default tests play those that found a defect of the product. The others are `slow`: in each, a checker, the workload
or the simulator was wrong.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tanist.lab.simulation.scenario import from_document, load

FOUND = Path(__file__).parent / "found"
ROW = re.compile(r"^\| `([a-z0-9-]+)` \| (\w+) \| (.+) \|$", re.MULTILINE)
CAUSES = {name: cause for name, _property, cause in ROW.findall((FOUND / "README.md").read_text())}
"""By a file's name without its end."""


CASES = [
    pytest.param(file, id=file.stem, marks=[pytest.mark.slow] if CAUSES[file.stem].startswith("*") else [])
    for file in sorted(FOUND.glob("*.json"))
]


@pytest.mark.parametrize("file", CASES)
def test_a_run_that_violated_a_property_holds_now(file: Path) -> None:
    scenario = from_document(load(file))
    assert scenario.property_id is not None, "the file says what was violated"
    outcome = scenario.plan.begin().run()
    assert outcome.violation is None
    assert outcome.faults > 0

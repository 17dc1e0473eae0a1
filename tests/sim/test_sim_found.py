"""Runs in which fresh seeds violated a property, kept as small as they could be made: each must hold now.

The causes are in docs/simulator.md ("What fresh seeds found"). A file holds its whole plan, so it plays the same faults
after the product has changed; what it must keep reaching is tested beside the code that was mended.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tanist.lab.simulation.scenario import from_document, load

FOUND = Path(__file__).parent / "found"


@pytest.mark.parametrize("file", sorted(FOUND.glob("*.json")), ids=lambda path: path.stem)
def test_a_run_that_violated_a_property_holds_now(file: Path) -> None:
    scenario = from_document(load(file))
    assert scenario.property_id is not None, "the file says what was violated"
    outcome = scenario.plan.begin().run()
    assert outcome.violation is None
    assert outcome.faults > 0

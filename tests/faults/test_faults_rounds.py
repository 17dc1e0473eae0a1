"""A few rounds of the faults on real processes. The full twenty: `python -m tests.faults.rounds`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients import install
from tests.faults import rounds
from tests.interop import apache, target

pytestmark = [pytest.mark.slow, pytest.mark.clients]


@pytest.mark.parametrize("fault", rounds.FAULTS)
def test_nothing_acknowledged_is_lost(tmp_path: Path, fault: rounds.Fault) -> None:
    if target.chosen() == "apache" and fault in rounds.TANISTS:
        pytest.skip("only tanist has such faults")
    if target.chosen() == "apache" and (reason := apache.missing()) is not None:
        pytest.skip(reason)
    install.activate()
    cluster = target.make(target.chosen(), tmp_path)
    try:
        cluster.start()
        report = rounds.run(cluster, fault=fault, rounds=4, seed=7)
    finally:
        cluster.stop()
    assert report.violations == [], report
    assert report.delivery_errors == [], report
    assert report.verdict.acknowledged > 1000

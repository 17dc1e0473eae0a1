"""Recoveries of many partitions at once, though few here. A thousand: `python -m tests.stories.mass_recovery`."""

from __future__ import annotations

import pytest

from tests.stories.mass_recovery import MOST_S, PARTITIONS, run


@pytest.mark.stories
def test_many_partitions_are_recovered_within_seconds() -> None:
    recovery = run(50)
    assert (recovery.partitions, recovery.unclean) == (50, 50)
    assert 0 <= recovery.first_s <= recovery.last_s <= recovery.reported_s < MOST_S


@pytest.mark.slow
@pytest.mark.stories
def test_a_thousand_partitions_are_recovered_within_five_seconds() -> None:
    recovery = run(PARTITIONS)
    assert recovery.unclean == PARTITIONS
    assert recovery.last_s <= recovery.reported_s < MOST_S

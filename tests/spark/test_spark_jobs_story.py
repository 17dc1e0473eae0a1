"""The whole way on real processes: broken, audited, mended, audited again."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def test_from_a_broken_cluster_to_a_mended_topic(spark: Any, tmp_path: Path) -> None:
    from tanist.lab.anomalies import Anomaly
    from tanist.spark.jobs.story import PARTITIONS, TRANSACTION, UNSYNCED, tell

    story = tell(spark, tmp_path, port=random.randint(20000, 50000), say=lambda _: None)
    assert len(story.lost) == PARTITIONS * (UNSYNCED + TRANSACTION)
    assert story.first is not None
    assert {kind for kind, _, _ in story.first.counts} == {Anomaly.LOST_WRITE}
    assert {each.replicas for each in story.first.findings} == {(2,)}
    assert all(each.explained and "broker 3 leads" in each.explained for each in story.first.findings)
    assert story.merged is not None
    assert [story.merged.count(verdict) for verdict in ("aborted", "undecided")] == [PARTITIONS * TRANSACTION] * 2
    assert story.second is not None
    assert story.second.clean

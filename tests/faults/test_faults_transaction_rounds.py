"""The account of copies under kill -9 judges; and a short run. Longer: `python -m tests.faults.transaction_rounds`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients import install
from tests.faults.transaction_rounds import PROPERTIES, Account, run
from tests.interop.tanist_cluster import TanistCluster

SOURCE = {0: [0, 1], 1: [0]}
RIGHT = [("0/0", "w/1/1 2"), ("1/0", "w/1/1 2"), ("0/1", "w/1/2 1")]


def judged(copies: list[tuple[str, str]]) -> list[str]:
    account = Account("tanist")
    account.judge(SOURCE, copies)
    return account.violations


def test_each_record_once_is_right() -> None:
    assert judged(RIGHT) == []


def test_what_is_wrong_is_named() -> None:
    assert judged(RIGHT[:2]) == ["1 are missing: 0/1"]
    assert judged([*RIGHT, ("0/0", "w/2/1 1")]) == ["1 are there more than once: 0/0"]
    assert judged([*RIGHT, ("0/7", "w/2/1 1")]) == ["1 were never written: 0/7"]
    assert judged([RIGHT[0], RIGHT[2]]) == ["1 are missing: 1/0", "1 transactions are torn: w/1/1"]


@pytest.mark.slow
@pytest.mark.clients
def test_a_minute_of_copies_under_kills(tmp_path: Path) -> None:
    install.activate()
    cluster = TanistCluster(tmp_path / "c", properties=PROPERTIES)
    try:
        cluster.start()
        account = run(cluster, seconds=40, kill_every_s=8, lose=0.3, seed=3)
    finally:
        cluster.stop()
    assert account.violations == [], str(account)
    assert account.kills.total() >= 2
    assert account.transactions > 10

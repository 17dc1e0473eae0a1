"""The account of groups under kill -9 judges; and a short run. The long one: `python -m tests.faults.group_rounds`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.group_rounds import PROPERTIES, TOPIC, Account, run
from tests.interop.tanist_cluster import TanistCluster

PLACE = ("g", TOPIC, 0)
PART = (TOPIC, 0)


def commit(account: Account, client: str, offset: int, tag: str, *, answered: bool = True) -> None:
    account.commits(client, PLACE, offset, tag)
    if answered:
        account.committed(client, PLACE, offset, tag)


def fetch(account: Account, offset: int, tag: str) -> None:
    account.fetched("other", "g", account.asks("g"), {PART: (offset, tag)})


def member(group: str, name: str, epoch: int, *partitions: Any) -> Any:
    return SimpleNamespace(
        group=group,
        name=name,
        epoch=epoch,
        owned=dict.fromkeys(partitions, 1),
        reported_commits=dict.fromkeys(partitions, 1),
        errors={},
    )


def test_an_offset_that_goes_back_is_noticed() -> None:
    account = Account()
    commit(account, "one", 5, "one#1")
    commit(account, "one", 7, "one#2")
    fetch(account, 7, "one#2")
    assert account.violations == []
    fetch(account, 5, "one#1")
    assert len(account.violations) == 1
    fetch(account, -1, "")
    assert len(account.violations) == 2


def test_a_question_that_was_asked_before_may_be_answered_with_less() -> None:
    account = Account()
    commit(account, "one", 5, "one#1")
    asked = account.asks("g")
    commit(account, "one", 7, "one#2")
    account.fetched("other", "g", asked, {PART: (5, "one#1")})
    assert account.violations == []


def test_only_a_commit_that_was_never_answered_may_come_late_and_only_behind_one_of_its_own_member() -> None:
    account = Account()
    commit(account, "one", 5, "one#1", answered=False)
    commit(account, "one", 7, "one#2")
    fetch(account, 5, "one#1")
    assert account.violations == []
    commit(account, "two", 6, "two#1", answered=False)
    fetch(account, 6, "two#1")
    assert len(account.violations) == 1


def test_two_owners_in_one_epoch_are_noticed() -> None:
    account = Account(members={"one": member("g", "one", 3, PART)})
    account.assigned("two", "g", "two-id", 4, [PART], classic=False)
    assert account.violations == []  # the other has yet to hear of epoch 4
    account.assigned("two", "g", "two-id", 3, [PART], classic=False)
    assert len(account.violations) == 1
    account = Account()
    account.assigned("one", "g", "one-id", 3, [PART], classic=True)
    account.revoked("one", "g", [PART])
    account.assigned("two", "g", "two-id", 3, [PART], classic=True)
    assert len(account.violations) == 1, "a generation has one assignment"


def test_a_partition_without_an_owner_is_not_settled() -> None:
    account = Account(members={"one": member("g", "one", 3, PART)})
    assert account.read(["g"], 1)
    assert not account.read(["g"], 2)
    assert not account.passed
    assert f"{TOPIC}-1 of g is nobody's" in str(account)


@pytest.mark.slow
@pytest.mark.clients
def test_groups_outlive_their_coordinators(tmp_path: Path) -> None:
    cluster = TanistCluster(tmp_path, properties=PROPERTIES)
    try:
        cluster.start()
        account = run(cluster, seconds=15, members=16, groups=4, kill_every_s=6)
    finally:
        cluster.stop()
    assert account.passed, account
    assert account.kills > 0
    assert account.counts["commits acknowledged"] > 50

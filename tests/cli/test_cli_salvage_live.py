"""The whole story on real processes: records that an unclean election loses come back, each once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tanist.runtime.cluster.processes import wait_until
from tests.cli.cli_rig import Tanist, first_partition, up

UNCLEAN = {
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "true",
    "unclean.recovery.strategy": "Aggressive",
}

partition = partial(first_partition, topic="orders")


@pytest.fixture
def tanist(tmp_path: Path) -> Iterator[Tanist]:
    """Two brokers and a controller of their own, so that both brokers can be gone."""
    settings = [part for name, value in UNCLEAN.items() for part in ("--config", f"{name}={value}")]
    with up(tmp_path / "data", "--brokers", "2", "--controllers", "1", *settings) as started:
        yield started


def values(tanist: Tanist, count: int) -> list[str]:
    out: str = tanist("consume", "orders", "--from-beginning", "--max-messages", str(count), "--timeout", "20")
    return out.splitlines()[:-1]


def test_what_an_unclean_election_loses_is_merged_back(tanist: Tanist) -> None:
    tanist("topics", "create", "orders", "--replica-assignment", "1:2")
    tanist("produce", "orders", stdin="common\n")
    assert wait_until(lambda: partition(tanist)["isr"] == [1, 2], 120)
    tanist("crash", "2")
    lost = [f"order {number}" for number in range(700)]
    assert "700 records sent" in tanist("produce", "orders", stdin="\n".join(lost) + "\n")
    assert partition(tanist)["isr"] == [1]
    tanist("crash", "1")
    tanist("start", "2")
    assert wait_until(lambda: partition(tanist)["leader"] == 2, 120)
    tanist("produce", "orders", stdin="after\n")
    assert values(tanist, 2) == ["common", "after"]

    tanist("start", "1")
    assert wait_until(lambda: sorted(partition(tanist)["isr"]) == [1, 2], 120)
    (entry,) = tanist("salvage", "list", "--json")
    assert (entry["topic"], entry["broker"], entry["why"]) == ("orders", 1, "unclean-election")
    assert (entry["from_offset"], entry["to_offset"], entry["records"]) == (1, 701, 700)

    merge = ("salvage", "export", "--topic", "orders", "--to", "topic", "--json")
    (tried,) = tanist(*merge, "--dry-run")
    assert (tried["found"], tried["present"], tried["restored"]) == (700, 0, 700)
    assert values(tanist, 2) == ["common", "after"]
    (merged,) = tanist(*merge)
    assert (merged["found"], merged["present"], merged["restored"]) == (700, 0, 700)
    assert values(tanist, 702) == ["common", "after", *lost]
    (again,) = tanist(*merge)
    assert (again["found"], again["present"], again["restored"]) == (700, 700, 0)

    # Somebody else's topic of the same name is not written to by accident.
    tanist("topics", "delete", "orders")
    tanist("topics", "create", "orders", "--replica-assignment", "1:2")
    assert "was deleted and created anew" in tanist("salvage", "export", "--all", "--to", "topic", code=1)
    (elsewhere,) = tanist(*merge, "--target", "orders")
    assert elsewhere["restored"] == 700
    assert values(tanist, 700) == lost

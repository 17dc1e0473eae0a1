"""The whole story on real processes: records that an unclean election loses come back, each once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.processes import wait_until
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, free_port, run

Tanist = Callable[..., Any]
UNCLEAN = {
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "true",
    "unclean.recovery.strategy": "Aggressive",
}


@pytest.fixture
def tanist(tmp_path: Path) -> Iterator[Tanist]:
    """Two brokers and a controller of their own, so that both brokers can be gone."""
    folder = tmp_path / "data"
    shape = ["--brokers", "2", "--controllers", "1", "--port", str(free_port())]
    settings = [part for name, value in UNCLEAN.items() for part in ("--config", f"{name}={value}")]
    command = [*TANIST, "up", "--detach", *shape, *settings, *FEW_PARTITIONS, "--data", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    assert "ready in " in done.stdout, done.stderr
    yield lambda *arguments, **options: run(*arguments, folder=folder, **options)
    run("down", folder=folder)
    assert load_existing(folder).running == []


def partition(tanist: Tanist) -> dict[str, Any]:
    (described,) = tanist("topics", "describe", "orders", "--json")
    found: dict[str, Any] = described["partitions"][0]
    return found


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

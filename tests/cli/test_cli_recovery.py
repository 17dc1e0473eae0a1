"""`tanist recovery` on real processes: the last replica standing loses its page cache, and an operator decides."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.processes import wait_until
from tests.cli.cli_rig import Tanist, first_partition, json_lines, up

ON_NO_DISK = 7
"""Fewer than `flush.messages`: a loss of power takes them."""

partition = partial(first_partition, topic="orders")


@pytest.fixture
def tanist(tmp_path: Path) -> Iterator[Tanist]:
    """Three brokers, and a controller of its own, so that all of them can be gone."""
    with up(tmp_path / "data", "--brokers", "3", "--controllers", "1") as started:
        yield started


def produce(tanist: Tanist, first: int, last: int) -> None:
    lines = "".join(f"order {number}\n" for number in range(first, last + 1))
    assert f"{last - first + 1} records sent" in tanist("produce", "orders", stdin=lines)


def break_it(tanist: Tanist) -> None:
    """1 has left with 100 records, 2 with 107; 3 led last, and has lost what 2 has more. Nobody is eligible."""
    settings = {"min.insync.replicas": "2", "flush.messages": "100", "unclean.recovery.strategy": "None"}
    configs = [part for name, value in settings.items() for part in ("--config", f"{name}={value}")]
    tanist("topics", "create", "orders", "--replica-assignment", "1:2:3", *configs)
    produce(tanist, 1, 100)
    tanist("wait", "--topic", "orders", "--isr", "3", "--timeout", "120")
    tanist("crash", "1")
    assert wait_until(lambda: partition(tanist)["isr"] == [2, 3], 120)
    produce(tanist, 101, 100 + ON_NO_DISK)
    tanist("crash", "2")
    assert wait_until(lambda: partition(tanist)["isr"] == [3], 120)
    tanist("crash", "3", "--lose", "page-cache")
    tanist("start", "2")
    tanist("start", "3")
    assert wait_until(lambda: partition(tanist)["offline"] == [1] and partition(tanist)["elr"] == [], 120)


def known(replica: dict[str, Any]) -> tuple[Any, ...]:
    names = ("broker", "state", "last_epoch", "log_start_offset", "log_end_offset")
    return tuple(replica[name] for name in names)


@pytest.mark.long
def test_the_last_replica_standing_and_an_operator_who_decides(tanist: Tanist, tmp_path: Path) -> None:
    break_it(tanist)
    before = partition(tanist)
    (plan,) = tanist("recovery", "plan", "--json")
    assert (plan["topic"], plan["partition"], plan["leader_epoch"]) == ("orders", 0, before["leader_epoch"])
    epochs = {each["broker"]: each["epochs"] for each in plan["replicas"]}
    assert [known(each) for each in plan["replicas"]] == [
        (1, "offline", 0, 0, 100),
        (2, "live", epochs[2][-1]["epoch"], 0, 107),
        (3, "live", 0, 0, 100),
    ]
    # What a broker that has just started knows to be on its disk grows with its flushes.
    assert [each["synced_offset"] <= each["log_end_offset"] for each in plan["replicas"]] == [True] * 3
    assert plan["replicas"][0]["synced_offset"] == 100
    assert [each["epoch"] > 0 for each in epochs[2]] == [False, True]
    assert epochs[2][-1]["start_offset"] == 100
    assert "it does not answer" in plan["replicas"][0]["note"]
    best, bad = plan["choices"][1:]
    assert (best["leader"], best["lost"], best["electable"], plan["least_loss"]) == (2, 0, True, 2)
    assert (bad["leader"], bad["lost"], bad["electable"]) == (3, ON_NO_DISK, True)
    assert bad["lost_offsets"] == [{"epoch": epochs[2][-1]["epoch"], "from_offset": 100, "to_offset": 107}]
    first, last = bad["first_lost"], bad["last_lost"]
    assert (first["offset"], first["broker"], first["record"]["value"]) == (100, 2, "order 101")
    assert (last["offset"], last["broker"], last["record"]["value"]) == (106, 2, "order 107")
    assert plan["choices"][0]["electable"] is False
    assert plan["choices"][0]["lost"] == ON_NO_DISK
    assert (plan["saves_what_is_truncated"], plan["unknown"]) == (True, [])

    # Without the folder nobody knows what broker 1 has, and the plan says so.
    alone = CliRunner().invoke(app, ["recovery", "plan", "orders", "--bootstrap", bootstrap(tmp_path)])
    assert alone.exit_code == 0, alone.output
    assert "and what only broker 1 has, which may be more than the others." in alone.output
    assert f"`tanist recovery apply orders 0 --leader 3 --bootstrap {bootstrap(tmp_path)}`" in alone.output
    apply = ("recovery", "apply", "orders", "0", "--leader")
    assert "is offline and cannot lead" in tanist(*apply, "1", code=1)
    assert "has no replica" in tanist(*apply, "9", code=1)
    assert "a dry run: nothing was changed" in tanist(*apply, "3", "--dry-run")
    assert "aborted" in tanist(*apply, "3", stdin="n\n", code=1)
    assert partition(tanist) == before

    # The worse choice: it does what was said, and what is lost is saved.
    printed = tanist(*apply, "3", stdin="y\n")
    assert f"If broker 3 leads, {ON_NO_DISK} records are lost that broker 2 has (offsets 100 to 106)" in printed
    assert "and lose 7 records? It cannot be taken back." in printed
    epoch = before["leader_epoch"] + 1
    assert f"orders-0: broker 3 leads, from leader epoch {epoch} on" in printed
    assert (partition(tanist)["leader"], partition(tanist)["last_unclean_epoch"]) == (3, epoch)

    # Who has decided what, and when.
    events = ("events", "UncleanElection", "--topic", "orders")
    (decided,) = json_lines(*events, folder=tmp_path / "data")
    assert (decided["partition"], decided["leader"], decided["leader_epoch"]) == ("orders-0", 3, epoch)
    assert decided["asked_for"] == "a designation"
    assert decided["asked_by"].startswith("User:ANONYMOUS at 127.0.0.1, client 'tanist-recovery-")
    assert decided["ms"] > last["record"]["timestamp"]

    # Asked again, as after an answer that was lost, it is done already; another choice comes too late.
    assert "leads already" in tanist(*apply, "3", "--yes")
    assert "has a leader, broker 3" in tanist(*apply, "2", "--yes", code=1)
    tanist("start", "1")
    assert wait_until(lambda: sorted(partition(tanist)["isr"]) == [1, 2, 3], 120)
    (merged,) = tanist("salvage", "export", "--topic", "orders", "--to", "topic", "--json")
    assert (merged["found"], merged["present"], merged["restored"]) == (ON_NO_DISK, 0, ON_NO_DISK)
    assert "every partition has a leader" in tanist("recovery", "plan")


def bootstrap(tmp_path: Path) -> str:
    cluster = load_existing(tmp_path / "data")
    return ",".join(f"{cluster.host}:{node.broker_port}" for node in cluster.running if node.is_broker)

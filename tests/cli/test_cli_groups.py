"""`tanist groups` on a broker that runs: groups of both protocols, their lag, moving and deleting them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tanist.cli.commands import groups, wait
from tanist.client.requests import CoordinatorKind
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client import groups as of_groups
from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.coordinators import coordinator_of
from tanist.runtime.client.records import list_offset
from tanist.runtime.cluster.addresses import addresses_of
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, Subtopology, Topology
from tanist.wire.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from tanist.wire.schema import Request, Response
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, free_port, run
from tests.interop.waiting import wait_for

R = TypeVar("R", bound=Response)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    command = [*TANIST, "up", "--detach", "--brokers", "1", *FEW_PARTITIONS, "--port", str(free_port())]
    done = subprocess.run([*command, "--data", str(folder)], capture_output=True, text=True, check=False, timeout=90)
    assert "ready in " in done.stdout, done.stderr
    run("topics", "create", "orders", "--partitions", "2", folder=folder)
    for number in range(10):
        run("produce", "orders", "--partition", str(number % 2), folder=folder, stdin=f"order {number}\n")
    yield folder
    run("down", folder=folder)


def heartbeat(client: Client, group: str, epoch: int) -> ConsumerGroupHeartbeatResponse:
    """A member of the consumer protocol, m1, that reads `orders`."""
    joining = epoch == 0
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m1",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if joining else -1,
        subscribed_topic_names=("orders",) if joining else None,
        topic_partitions=() if joining else None,
    )

    return asked(client, group, request, ConsumerGroupHeartbeatResponse)


def asked(client: Client, group: str, request: Request, kind: type[R]) -> R:
    """The answer of the group's coordinator."""

    def attempt() -> R:
        answer: Any = client.ask(request, kind, node_id=coordinator_of(client, CoordinatorKind.GROUP, group))
        if answer.error_code:
            raise KafkaError(answer.error_code, answer.error_message)
        found: R = answer
        return found

    return client.persist(attempt)


def streams_heartbeat(client: Client, group: str, epoch: int) -> StreamsGroupHeartbeatResponse:
    """A member of a Streams group, m1, whose application reads `orders`."""
    joining = epoch == 0
    part = Subtopology(subtopology_id="0", source_topics=("orders",))
    request = StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id="m1",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if joining else -1,
        topology=Topology(subtopologies=(part,)) if joining else None,
    )
    return asked(client, group, request, StreamsGroupHeartbeatResponse)


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    with Client(addresses_of(load_existing(folder), folder)) as client:
        yield client


def offsets(folder: Path, group: str) -> list[dict[str, Any]]:
    found = run("groups", "describe", group, "--json", folder=folder)["offsets"]
    assert isinstance(found, list)
    return found


def test_a_group_is_made_by_its_first_offsets_moved_and_deleted(folder: Path) -> None:
    dry = run("groups", "reset-offsets", "g", "--topic", "orders", "--to-offset", "3", folder=folder)
    assert "nothing was changed" in dry
    assert "there is no group g" in run("groups", "describe", "g", folder=folder, code=1)
    run("groups", "reset-offsets", "g", "--topic", "orders", "--to-offset", "3", "--execute", folder=folder)
    assert [(each["partition"], each["committed"], each["lag"]) for each in offsets(folder, "g")] == [
        (0, 3, 2),
        (1, 3, 2),
    ]
    run("groups", "reset-offsets", "g", "--topic", "orders:1", "--shift-by", "-9", "--execute", folder=folder)
    assert [(each["partition"], each["committed"]) for each in offsets(folder, "g")] == [(0, 3), (1, 0)]
    run("groups", "reset-offsets", "g", "--all-topics", "--to-latest", "--execute", folder=folder)
    assert {each["lag"] for each in offsets(folder, "g")} == {0}
    run("groups", "reset-offsets", "g", "--all-topics", "--to-datetime", "2020-01-01", "--execute", folder=folder)
    assert {each["committed"] for each in offsets(folder, "g")} == {0}
    listed = run("groups", "list", "--json", folder=folder)
    assert [(each["group"], each["type"], each["state"]) for each in listed] == [("g", "classic", "Empty")]
    assert "deleted g" in run("groups", "delete", "g", folder=folder)
    assert "there is no group g" in run("groups", "delete", "g", folder=folder, code=1)


def test_a_consumer_group_shows_who_has_what_and_is_not_moved_under_its_members(folder: Path, client: Client) -> None:
    joined = heartbeat(client, "c", 0)
    assert joined.assignment is not None
    described = run("groups", "describe", "c", folder=folder)
    assert described.startswith("c: Stable, consumer protocol, uniform, epoch 1, 1 member, coordinator 1")
    assert [line.split() for line in described.splitlines()[2:]] == [
        ["orders", "0", "-", "5", "-", "m1"],
        ["orders", "1", "-", "5", "-", "m1"],
    ]
    to_latest = ("groups", "reset-offsets", "c", "--topic", "orders", "--to-latest", "--execute")
    assert "c is Stable and has 1 member: stop them first" in run(*to_latest, folder=folder, code=1)
    assert "c has members" in run("groups", "delete", "c", folder=folder, code=1)
    assert heartbeat(client, "c", -1).member_epoch == -1
    run(*to_latest, folder=folder)
    assert run("groups", "list", "--state", "empty", folder=folder).splitlines()[1].split() == [
        "c",
        "consumer",
        "Empty",
    ]
    assert "deleted c" in run("groups", "delete", "c", folder=folder)
    assert run("groups", "list", folder=folder) == "no groups\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "orders"], "give one of --to-earliest"),
        (["--to-latest"], "give --topic NAME"),
        (["--to-latest", "--to-earliest", "--topic", "orders"], "give one of --to-earliest"),
        (["--to-latest", "--topic", "orders:x"], "after the colon come partitions"),
        (["--to-datetime", "yesterday", "--topic", "orders"], "is no time"),
    ],
)
def test_what_cannot_be_meant_is_said(folder: Path, arguments: list[str], message: str) -> None:
    assert message in run("groups", "reset-offsets", "g", *arguments, folder=folder, code=2)


def test_a_streams_group_shows_its_tasks_as_partitions(folder: Path, client: Client) -> None:
    epoch = streams_heartbeat(client, "app", 0).member_epoch
    # Its first assignment waits for more members.
    wait_for(lambda: streams_heartbeat(client, "app", epoch).active_tasks, "it has tasks")
    listed = run("groups", "list", "--json", folder=folder)
    assert ("app", "streams") in [(each["group"], each["type"]) for each in listed]
    described = run("groups", "describe", "app", "--json", folder=folder)
    assert (described["type"], described["state"], described["assignor"]) == ("streams", "Stable", "sticky")
    assert described["members"][0]["assigned"] == [["orders", 0], ["orders", 1]]
    assert "orders  0 " in run("groups", "describe", "app", folder=folder)
    assert "app has members" in run("groups", "delete", "app", folder=folder, code=1)
    streams_heartbeat(client, "app", -1)
    assert "deleted app" in run("groups", "delete", "app", folder=folder)


def test_partitions_and_topics_that_there_are_not(folder: Path) -> None:
    reset = ("groups", "reset-offsets", "g", "--to-latest")
    assert "orders has no partition 7" in run(*reset, "--topic", "orders:7", folder=folder, code=1)
    assert "UNKNOWN_TOPIC" in run(*reset, "--topic", "nothing", folder=folder, code=1)
    assert "has committed nothing" in run(*reset, "--all-topics", folder=folder, code=1)


def test_an_offset_of_a_partition_that_is_not_there_holds_nobody_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coordinators take none any more, and older ones have. The patience of a whole request was spent on each."""
    run("groups", "reset-offsets", "old", "--topic", "orders", "--to-latest", "--execute", folder=folder)
    stored = of_groups.committed_offsets

    def with_more(client: Client, group: str) -> dict[TopicPartition, int]:
        return stored(client, group) | {("orders", 9): 5, ("gone", 0): 3}

    def never(client: Client, topic: str, partition: int, timestamp: int) -> int:
        assert (topic, partition) in (("orders", 0), ("orders", 1)), f"asked for {topic}-{partition}"
        return list_offset(client, topic, partition, timestamp)

    monkeypatch.setattr(of_groups, "committed_offsets", with_more)
    for module in (groups, wait, of_groups):
        monkeypatch.setattr(module, "list_offset", never, raising=False)
    assert [(each["topic"], each["partition"], each["lag"]) for each in offsets(folder, "old")] == [
        ("gone", 0, None),
        ("orders", 0, 0),
        ("orders", 1, 0),
        ("orders", 9, None),
    ]
    run("wait", "--group", "old", "--members", "0", "--lag", "0", folder=folder)
    moved = run("groups", "reset-offsets", "old", "--all-topics", "--to-earliest", folder=folder)
    assert "gone-0 is not there, and is left out" in moved
    assert "orders-9 is not there, and is left out" in moved

"""Groups of real clients: three members share a topic, one leaves, one is killed; then their coordinator is.

Each member is a process of its own. Every record is read, no partition has two owners once a rebalance is over, and
who takes a partition over goes on where its former owner had committed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.interop import apache
from tests.interop.cluster import Cluster, wait_in_sync
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

PARTITIONS = 6
RECORDS = 60
ROOT = Path(__file__).resolve().parents[2]
REBALANCE_S = 60.0
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"

Place = tuple[int, int]
"""Partition and offset."""


class Member:
    """A member's process, and what it has told."""

    def __init__(self, command: list[str], log: Path, *, by_parts: bool = False) -> None:
        self._by_parts = by_parts
        """It tells what is new, not all that it has."""
        self._log = log.open("w")
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True, cwd=ROOT)
        self.events: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            if line.startswith("{"):
                self.events.append(json.loads(line))

    @property
    def assigned(self) -> frozenset[int]:
        """The partitions that it was last told are its own."""
        mine: set[int] = set()
        for event in list(self.events):
            if event["name"] == "partitions_assigned":
                parts = {part["partition"] for part in event["partitions"]}
                mine = mine | parts if self._by_parts else parts
            elif event["name"] == "partitions_revoked":
                mine -= {part["partition"] for part in event["partitions"]}
        return frozenset(mine)

    @property
    def read(self) -> list[Place]:
        return [(e["partition"], e["offset"]) for e in list(self.events) if e["name"] == "record_data"]

    def leave(self) -> None:
        """In good order."""
        self._process.terminate()
        self._process.wait(60)
        self._reader.join(10)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)
        self._reader.join(10)
        self._log.close()


class Group:
    """Members of one group, of one kind of client."""

    def __init__(self, cluster: Cluster, kind: str, name: str, topic: str, logs: Path) -> None:
        self._cluster = cluster
        self._kind = kind
        self._name = name
        self._topic = topic
        self._logs = logs
        self.all: list[Member] = []
        self.members: list[Member] = []
        self._produced: Counter[int] = Counter()

    def add(self) -> None:
        where = (self._cluster.bootstrap, self._name, self._topic)
        command = [sys.executable, "-m", "tests.clients.group_member", self._kind, *where]
        if self._kind.startswith("java"):
            protocol = (
                ("--group-protocol", "consumer") if self._kind == "java-consumer" else ("--session-timeout", "6000")
            )
            command = apache.java_command(
                VERIFIABLE_CONSUMER, "--bootstrap-server", where[0], "--group-id", where[1], "--topic", where[2],
                *protocol, "--reset-policy", "earliest", "--verbose", flags=apache.TOOL_FLAGS,
            )  # fmt: skip
        log = self._logs / f"{self._kind}-{len(self.all)}.log"
        member = Member(command, log, by_parts=self._kind == "java-consumer")
        self.all.append(member)
        self.members.append(member)

    def settled(self) -> None:
        """Every partition has one owner, and every member is one."""

        def shared() -> bool:
            owners = Counter(index for member in self.members for index in member.assigned)
            return owners == Counter(range(PARTITIONS)) and all(member.assigned for member in self.members)

        try:
            wait_for(shared, "every partition has one owner", timeout_s=REBALANCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}; assigned: {[sorted(m.assigned) for m in self.members]}") from None

    def produce(self) -> set[Place]:
        """More records in every partition; where they are."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._cluster.bootstrap})
        new: set[Place] = set()
        for number in range(RECORDS):
            index = number % PARTITIONS
            producer.produce(self._topic, f"record {number}".encode(), partition=index)
            new.add((index, self._produced[index]))
            self._produced[index] += 1
        assert producer.flush(30) == 0
        return new

    def read_all(self, places: set[Place]) -> Counter[Place]:
        """Wait until all of them were read; how often each was, by anybody."""

        def read() -> Counter[Place] | None:
            found = Counter(place for member in self.all for place in member.read if place in places)
            return found if len(found) == len(places) else None

        return wait_for(read, "all records are read", timeout_s=REBALANCE_S)

    def close(self) -> None:
        for member in self.all:
            member.kill()


@pytest.fixture(params=["confluent", "confluent-consumer", "kafka-python", "aiokafka", "java", "java-consumer"])
def group(
    request: pytest.FixtureRequest, cluster: Cluster, new_topic_name: Callable[[], str], tmp_path: Path
) -> Iterator[Group]:
    from confluent_kafka.admin import AdminClient, NewTopic

    if request.param.startswith("java"):
        request.getfixturevalue("java")
    topic = new_topic_name().replace("[", "-").replace("]", "")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 3)]).values():
        future.result(30)
    wait_in_sync(cluster, topic)
    members = Group(cluster, request.param, f"group-of-{topic}", topic, tmp_path)
    try:
        yield members
    finally:
        members.close()


def test_three_members_share_a_topic_one_leaves_and_one_is_killed(group: Group) -> None:
    for _ in range(3):
        group.add()
    group.settled()
    first = group.read_all(group.produce())
    assert set(first.values()) == {1}
    group.members.pop(0).leave()
    group.settled()
    second = group.read_all(group.produce())
    assert set(second.values()) == {1}
    group.members.pop(0).kill()
    third = group.read_all(group.produce())
    assert set(third.values()) == {1}
    group.settled()


def test_a_group_that_comes_back_goes_on_where_it_was_when_its_coordinator_died(group: Group, cluster: Cluster) -> None:
    from confluent_kafka.admin import AdminClient

    group.add()
    group.settled()
    before = group.produce()
    assert set(group.read_all(before).values()) == {1}
    group.members.pop().leave()
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    name = group._name
    described = admin.describe_consumer_groups([name])[name].result(30)
    victim = described.coordinator.id
    cluster.kill_node(victim)
    try:
        group.add()
        assert set(group.read_all(group.produce()).values()) == {1}
        assert set(group.read_all(before).values()) == {1}
    finally:
        cluster.start_node(victim)
        wait_in_sync(cluster, group._topic)

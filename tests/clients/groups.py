"""Groups of real clients, whichever library they are made of: their processes, and what these tell.

A member prints a JSON object a line, as Apache's VerifiableConsumer does: `partitions_assigned`, `partitions_revoked`
and `record_data`. SIGTERM makes it leave in good order.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients.topics import create_topics
from tests.interop.cluster import Cluster
from tests.interop.waiting import wait_for

PARTITIONS = 6
RECORDS = 60
ROOT = Path(__file__).resolve().parents[2]
REBALANCE_S = 60.0

Place = tuple[int, int]
"""Partition and offset."""
Event = dict[str, Any]
"""Output of a member."""


def read_json(line: str) -> Event | None:
    return json.loads(line) if line.startswith("{") else None


@dataclass(frozen=True, slots=True)
class Kind:
    """A library, and how one of its members is started and understood."""

    name: str
    command: Callable[[str, str, str], Sequence[str]]
    """Of bootstrap servers, group and topic."""
    by_parts: bool = False
    """It tells what is new, not all that it has."""
    environment: Mapping[str, str] = field(default_factory=dict)
    understand: Callable[[str], Event | None] = read_json
    tells_on_stderr: bool = False
    """Some of what is to be understood is said on standard error."""


class Member:
    """A member's process, and its output."""

    def __init__(self, kind: Kind, where: tuple[str, str, str], log: Path) -> None:
        self._kind = kind
        self._log = log.open("w")
        self._process = subprocess.Popen(
            kind.command(*where), stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | kind.environment,
            stderr=subprocess.STDOUT if kind.tells_on_stderr else self._log,
        )  # fmt: skip
        self.events: list[Event] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            event = self._kind.understand(line)
            if event is not None:
                self.events.append(event)

    @property
    def assigned(self) -> frozenset[int]:
        """Its last assignment."""
        mine: set[int] = set()
        for event in list(self.events):
            if event["name"] == "partitions_assigned":
                parts = {part["partition"] for part in event["partitions"]}
                mine = mine | parts if self._kind.by_parts else parts
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

    def __init__(self, cluster: Cluster, kind: Kind, name: str, topic: str, logs: Path) -> None:
        self.name = name
        self.topic = topic
        self._cluster = cluster
        self._kind = kind
        self._logs = logs
        self.all: list[Member] = []
        self.members: list[Member] = []
        self._produced: Counter[int] = Counter()

    def add(self) -> None:
        log = self._logs / f"{self._kind.name}-{len(self.all)}.log"
        member = Member(self._kind, (self._cluster.bootstrap, self.name, self.topic), log)
        self.all.append(member)
        self.members.append(member)

    def wait_until_stable(self) -> None:
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
            producer.produce(self.topic, f"record {number}".encode(), partition=index)
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


@contextmanager
def new_group(kind: Kind, cluster: Cluster, topic: str, logs: Path) -> Iterator[Group]:
    """A group without members yet, and the topic that it is to read."""
    create_topics(cluster, topic, partitions=PARTITIONS)
    members = Group(cluster, kind, f"group-of-{topic}", topic, logs)
    try:
        yield members
    finally:
        members.close()

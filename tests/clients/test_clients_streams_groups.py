"""Kafka Streams with `group.protocol=streams` (KIP-1071), exactly once, while an instance and a broker are killed.

A word count whose repartition and changelog topics the brokers make, and Apache Kafka's `kafka-streams-groups` on it.
"""

from __future__ import annotations

import random
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients import builds
from tests.clients.exactly_once import Committed, coordinator, produce, without
from tests.clients.topics import create_topics
from tests.interop import apache, target
from tests.interop.cluster import Cluster
from tests.interop.waiting import wait_for

pytestmark = [
    pytest.mark.clients,
    pytest.mark.usefixtures("libraries", "java"),
    pytest.mark.skipif(builds.missing_maven() is not None, reason=str(builds.missing_maven())),
]

GROUPS = "org.apache.kafka.tools.streams.StreamsGroupCommand"
WORDS = ("crown", "heir", "clan", "elect", "brehon", "oath", "ring")
STATES = {"Empty", "NotReady", "Assigning", "Reconciling", "Stable"}
PARTITIONS = 3
QUICK = {
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "1000",
    "group.streams.num.standby.replicas": "1",
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers that soon notice that a member is gone."""
    running = target.make(target.chosen(), tmp_path_factory.mktemp("streams"), properties=QUICK)
    running.start()
    try:
        yield running
    finally:
        running.stop()


class Instance:
    """One process of the application, with two threads and an empty disk."""

    def __init__(
        self, cluster: Cluster, application: str, source: str, sink: str, number: int, folder: Path, **more: str
    ) -> None:
        """`more`: settings, with underscores for dots."""
        settings = {
            "application.id": application, "bootstrap.servers": cluster.bootstrap, "group.protocol": "streams",
            "processing.guarantee": "exactly_once_v2", "state.dir": str(folder / f"state-{number}"),
            "num.stream.threads": "2", "replication.factor": "3", "application.server": f"127.0.0.1:{7000 + number}",
            # A transaction of an instance that is killed ends soon.
            "producer.transaction.timeout.ms": "10000",
        } | {name.replace("_", "."): value for name, value in more.items()}  # fmt: skip
        file = folder / f"streams-{number}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self.log = folder / f"streams-{number}.log"
        flags = (*apache.TOOL_FLAGS, f"-Dlog4j2.configurationFile={apache.jars() / 'tools.properties'}")
        command = ["java", *flags, "-cp", builds.streams(), "WordCount", str(file), source, sink]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT)

    def said(self) -> str:
        return self.log.read_text()

    def kill(self) -> None:
        """It dies, and says nothing."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """It leaves."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(60) == 0, self.said()


@contextmanager
def instance(*where: Any, **more: Any) -> Iterator[Instance]:
    started = Instance(*where, **more)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.kill()


def groups(cluster: Cluster, *arguments: str) -> str:
    return apache.tool(GROUPS, "--bootstrap-server", cluster.bootstrap, *arguments).stdout


def rows(cluster: Cluster, group: str, *arguments: str) -> list[list[str]]:
    """The table that the tool prints of a group, without its head and what it says beside."""
    lines = groups(cluster, "--describe", "--group", group, *arguments).splitlines()
    return [line.split() for line in lines if line.split()[:1] == [group]]


def state(cluster: Cluster, group: str) -> str:
    """Its column is another in 4.4."""
    (row,) = rows(cluster, group, "--state")
    (found,) = STATES.intersection(row)
    return found


def test_words_are_counted_exactly_while_an_instance_and_a_broker_are_killed(quick: Cluster, tmp_path: Path) -> None:
    source, sink, group = "lines", "counts", "words"
    create_topics(quick, source, sink, partitions=PARTITIONS)
    rng = random.Random(1)
    expected: dict[str, int] = defaultdict(int)

    def count(lines: int) -> int:
        """So many more lines; how many words there are then."""
        more = [" ".join(rng.choices(WORDS, k=3)) for _ in range(lines)]
        for line in more:
            for word in line.split():
                expected[word] += 1
        produce(quick, source, more, partitions=PARTITIONS)
        return sum(expected.values())

    with Committed(quick, sink, PARTITIONS) as read, ExitStack() as stack:
        first = stack.enter_context(instance(quick, group, source, sink, 1, tmp_path))
        second = stack.enter_context(instance(quick, group, source, sink, 2, tmp_path))

        def said() -> str:
            return first.said() + second.said()

        read.wait_for(count(150), said)
        wait_for(lambda: state(quick, group) == "Stable", "the group is settled", timeout_s=60)
        assert len(rows(quick, group, "--members")) == 4, "two threads of each"
        with without(quick, coordinator(quick, group), source, sink):
            read.wait_for(count(150), said)
        first.kill()
        read.wait_for(count(150), said)
        wait_for(lambda: len(rows(quick, group, "--members")) == 2, "it was noticed", timeout_s=60)
        third = stack.enter_context(instance(quick, group, source, sink, 3, tmp_path))
        read.wait_for(count(150), said)
        wait_for(lambda: len(rows(quick, group, "--members")) == 4, "it has joined", timeout_s=60)
        read.wait_for_the_end()
        second.end()
        third.end()
    counts: dict[str, list[int]] = defaultdict(list)
    for each in read.messages:
        counts[each.key().decode()].append(int.from_bytes(each.value(), "big"))
    assert counts == {word: list(range(1, number + 1)) for word, number in expected.items()}


@pytest.mark.skipif(apache.PIN.metadata_version < 33, reason="static members need Apache Kafka 4.4")
def test_a_static_instance_that_comes_back_disturbs_nobody(quick: Cluster, tmp_path: Path) -> None:
    source, sink, group = "kept", "kept-counts", "kept-words"
    create_topics(quick, source, sink, partitions=PARTITIONS)
    where = (quick, group, source, sink)

    def members() -> dict[str, list[str]]:
        """By member id: its epochs, process and tasks."""
        return {row[3]: row[1:3] + row[4:] for row in rows(quick, group, "--members", "--verbose")}

    with Committed(quick, sink, PARTITIONS) as read, ExitStack() as stack:
        first = stack.enter_context(instance(*where, 1, tmp_path, group_instance_id="one"))
        second = stack.enter_context(instance(*where, 2, tmp_path, group_instance_id="two"))
        produce(quick, source, ["a b"] * 30, partitions=PARTITIONS)
        read.wait_for(60, first.said)
        wait_for(lambda: state(quick, group) == "Stable", "the group is settled", timeout_s=60)
        before = members()
        first.end()
        third = stack.enter_context(instance(*where, 1, tmp_path, group_instance_id="one"))
        produce(quick, source, ["a b"] * 30, partitions=PARTITIONS)
        read.wait_for(120, third.said)
        wait_for(lambda: state(quick, group) == "Stable", "the group is settled", timeout_s=60)
        after = members()
        assert len(before.keys() & after.keys()) == 2, "those of the other instance"
        assert sorted(before.values()) == sorted(after.values()), "the same tasks in the same epochs"
        third.end()
        second.end()


def test_kafka_streams_groups_lists_describes_resets_and_deletes(quick: Cluster, tmp_path: Path) -> None:
    source, sink, group = "shown", "shown-counts", "shown-words"
    create_topics(quick, source, sink, partitions=PARTITIONS)
    produce(quick, source, ["a b"] * 30, partitions=PARTITIONS)
    with Committed(quick, sink, PARTITIONS) as read, instance(quick, group, source, sink, 1, tmp_path) as running:
        read.wait_for(60, running.said)
        wait_for(lambda: state(quick, group) == "Stable", "the group is settled", timeout_s=60)
        assert group in groups(quick, "--list").split()
        members = groups(quick, "--describe", "--group", group, "--members", "--verbose")
        assert members.count("ACTIVE: ") == 4, members  # of each thread, and of its target
        topics = {row[1] for row in rows(quick, group)}
        assert topics == {source, f"{group}-words-repartition"}
        refused = apache.try_tool(GROUPS, "--bootstrap-server", quick.bootstrap, "--delete", "--group", group)
        assert "is not EMPTY" in refused.stdout + refused.stderr
        running.end()
    wait_for(lambda: state(quick, group) == "Empty", "it is empty", timeout_s=60)
    where = ("--group", group, "--input-topic", source)
    reset = groups(quick, "--reset-offsets", "--to-earliest", "--execute", *where)
    assert {row.split()[-1] for row in reset.splitlines() if source in row} == {"0"}, reset
    assert "Successful" in groups(quick, "--delete-offsets", *where)
    groups(quick, "--delete", "--group", group)
    assert group not in groups(quick, "--list").split()

"""Share groups, by Apache Kafka's own share consumer, console share consumer and kafka-share-groups.

Brokers are killed while members read. Each record is acknowledged in the end, and none comes again after its
acknowledgement was answered.
"""

from __future__ import annotations

import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.interop import apache
from tests.interop.cluster import wait_in_sync
from tests.interop.tanist_cluster import TanistCluster
from tests.interop.waiting import wait_for

pytestmark = pytest.mark.interop

MEMBERS = Path(__file__).with_name("ShareMembers.java")
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
CONSOLE_SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
TOPIC, GROUP = "shared", "g"
SETTLE_S = 120.0
RECORDS = 1_500


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TanistCluster]:
    made = TanistCluster(
        tmp_path_factory.mktemp("share") / "cluster",
        properties={"group.share.min.record.lock.duration.ms": "1000", "group.share.min.session.timeout.ms": "6000"},
    )
    made.start()
    try:
        yield made
    finally:
        made.stop()


def create_topic(cluster: TanistCluster, topic: str, partitions: int) -> None:
    apache.tool(
        apache.TOPICS, "--bootstrap-server", cluster.bootstrap, "--create", "--topic", topic, "--partitions",
        str(partitions), "--replication-factor", "3", "--config", "min.insync.replicas=2",
    )  # fmt: skip


def producing(cluster: TanistCluster, topic: str, count: int) -> apache.RunningTool:
    """Records with acks=all, at a rate that leaves time to kill a broker meanwhile."""
    return apache.RunningTool(
        apache.VERIFIABLE_PRODUCER, "--bootstrap-server", cluster.bootstrap, "--topic", topic, "--max-messages",
        str(count), "--acks", "-1", "--repeating-keys", "50", "--throughput", "250",
    )  # fmt: skip


def produce(cluster: TanistCluster, topic: str, count: int) -> None:
    with producing(cluster, topic, count) as tool:
        tool.finish()


def alter_group(cluster: TanistCluster, group: str, **config: str) -> None:
    values = ",".join(f"{name.replace('_', '.')}={value}" for name, value in config.items())
    apache.tool(
        apache.CONFIGS, "--bootstrap-server", cluster.bootstrap, "--alter", "--entity-type", "groups",
        "--entity-name", group, "--add-config", values,
    )  # fmt: skip


class Members:
    """Members of a share group in a process of Java's, and what they said, in its order."""

    def __init__(self, bootstrap: str, group: str, topic: str, count: int, classes: Path) -> None:
        source = apache.java_command("x", flags=apache.TOOL_FLAGS)
        class_path = source[source.index("-cp") + 1]
        subprocess.run(["javac", "-cp", class_path, "-d", str(classes), str(MEMBERS)], check=True)
        command = [*source[: source.index("-cp")], "-cp", f"{class_path}:{classes}", "ShareMembers"]
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [*command, bootstrap, group, topic, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.strip())

    def acknowledged(self) -> set[tuple[int, int]]:
        said = [line.split() for line in list(self.lines)]
        return {(int(word[1]), int(word[2])) for word in said if word[0] == "acked"}

    def in_doubt(self) -> set[tuple[int, int]]:
        """Records that may have been acknowledged without an answer: their member is dead, or its broker was killed."""
        said = {(int(word[1]), int(word[2])): word[0] for word in (line.split() for line in list(self.lines))}
        return {place for place, last in said.items() if last in ("got", "lost")}

    def kill(self) -> None:
        """The members die, and say nothing."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def end(self) -> None:
        """The members leave."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(60)
        self._reader.join()


@contextmanager
def members(cluster: TanistCluster, group: str, count: int, classes: Path) -> Iterator[Members]:
    started = Members(cluster.bootstrap, group, TOPIC, count, classes)
    try:
        yield started
    finally:
        started.kill()


def judge(lines: list[str], produced: set[tuple[int, int]], in_doubt: set[tuple[int, int]]) -> dict[str, int]:
    """All produced records but those in doubt are acknowledged, and none comes again after that was answered; how often
    what was said.
    """
    acknowledged: set[tuple[int, int]] = set()
    counts: dict[str, int] = defaultdict(int)
    for line in lines:
        kind, *rest = line.split()
        counts[kind] += 1
        assert kind != "failed", line
        place = (int(rest[0]), int(rest[1]))
        if kind == "got":
            assert place not in acknowledged, f"{place} came again after its acknowledgement was answered"
            assert int(rest[2]) <= 5, line
        elif kind == "acked":
            acknowledged.add(place)
    missing = produced - acknowledged - in_doubt
    assert not missing, sorted(missing)[:10]
    return counts


def lags(cluster: TanistCluster, group: str) -> list[str]:
    """The column LAG of Apache Kafka's tool, by partition."""
    command = (SHARE_GROUPS, "--bootstrap-server", cluster.bootstrap, "--describe", "--group", group)
    head, *rows = [line.split() for line in apache.tool(*command).stdout.splitlines() if line.strip()]
    return [row[head.index("LAG")] for row in rows]


def produced_in(cluster: TanistCluster, topic: str) -> set[tuple[int, int]]:
    """All offsets that there are, by partition."""
    output = apache.tool(apache.GET_OFFSETS, "--bootstrap-server", cluster.bootstrap, "--topic", topic).stdout
    ends = {int(line.split(":")[1]): int(line.split(":")[2]) for line in output.split()}
    return {(partition, offset) for partition, end in ends.items() for offset in range(end)}


def test_records_are_acknowledged_once_while_brokers_and_members_are_killed(
    cluster: TanistCluster, tmp_path: Path
) -> None:
    create_topic(cluster, TOPIC, 3)
    alter_group(
        cluster, GROUP, share_auto_offset_reset="earliest", share_record_lock_duration_ms="5000",
        share_session_timeout_ms="10000",
    )  # fmt: skip
    produce(cluster, TOPIC, 200)
    with members(cluster, GROUP, 3, tmp_path) as first:

        def read_on(more: int) -> None:
            before = len(first.acknowledged())
            wait_for(lambda: len(first.acknowledged()) >= before + more, "members read", timeout_s=SETTLE_S)

        read_on(50)
        for victim in (3, 2):
            with producing(cluster, TOPIC, RECORDS) as tool:
                read_on(100)
                cluster.kill_node(victim)
                tool.finish()
            cluster.start_node(victim)
            wait_in_sync(cluster, TOPIC)
        with producing(cluster, TOPIC, RECORDS) as tool:
            read_on(100)
            first.kill()
            with members(cluster, GROUP, 2, tmp_path) as second:
                tool.finish()
                produced = produced_in(cluster, TOPIC)

                def all_are() -> bool:
                    return produced <= first.acknowledged() | second.acknowledged() | first.in_doubt()

                wait_for(all_are, "all are acknowledged", timeout_s=SETTLE_S)
                wait_for(lambda: lags(cluster, GROUP) == ["0"] * 3, "the group has no lag", timeout_s=SETTLE_S)
                second.end()
    counts = judge(first.lines + second.lines, produced, first.in_doubt())
    assert counts["released"] > 0
    print(dict(counts))


def test_operators_see_and_move_a_share_group(cluster: TanistCluster) -> None:
    create_topic(cluster, "moved", 1)
    alter_group(cluster, "operated", share_auto_offset_reset="earliest")
    produce(cluster, "moved", 20)

    def groups(*arguments: str) -> str:
        return apache.tool(SHARE_GROUPS, "--bootstrap-server", cluster.bootstrap, *arguments).stdout

    def read(count: int) -> str:
        output = apache.try_tool(
            CONSOLE_SHARE_CONSUMER, "--bootstrap-server", cluster.bootstrap, "--topic", "moved", "--group", "operated",
            "--max-messages", str(count), "--timeout-ms", "60000",
        )  # fmt: skip
        return output.stdout + output.stderr

    assert f"a total of {20} messages" in read(20)
    assert lags(cluster, "operated") == ["0"]
    assert "operated" in groups("--list").split()
    state = wait_for(lambda: empty_state(groups("--describe", "--group", "operated", "--state")), "the group is empty")
    assert state
    moved = groups("--reset-offsets", "--group", "operated", "--topic", "moved", "--to-earliest", "--execute")
    assert moved.split()[-1] == "0"
    assert f"a total of {20} messages" in read(20)
    wait_for(lambda: empty_state(groups("--describe", "--group", "operated", "--state")), "the group is empty")
    assert "Successful" in groups("--delete-offsets", "--group", "operated", "--topic", "moved")
    assert "was successful" in groups("--delete", "--group", "operated")
    assert "operated" not in groups("--list").split()


def empty_state(described: str) -> Any:
    return "Empty" in described.split()

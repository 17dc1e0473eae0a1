"""Exactly-once applications of Java, each a process, while the coordinator of its transactions is killed.

Apache's `TransactionalMessageCopier` with random aborts, a word count of Kafka Streams, a copy by Flink, and counts
in windows by Flink's SQL.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients import builds
from tests.clients.exactly_once import Committed, application, coordinator, produce, without
from tests.clients.topics import create_topics
from tests.interop import apache
from tests.interop.cluster import Cluster

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries", "java")]

COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
COPIERS = 2
RECORDS = 2000
TRANSACTION = 20
END_S = 240.0
MINUTE_MS = 60_000
WINDOWS = (Path(__file__).parent / "flink" / "windows.sql").read_text()
WORDS = ("crown", "heir", "clan", "elect", "brehon", "oath", "ring")
needs_maven = pytest.mark.skipif(builds.missing_maven() is not None, reason=str(builds.missing_maven()))


def test_transactional_message_copiers(cluster: Cluster, new_topic_name: Callable[[], str], tmp_path: Path) -> None:
    """Two members of a group, which abort a third of their transactions."""
    source, target = new_topic_name(), new_topic_name()
    create_topics(cluster, source, target, partitions=COPIERS)
    values = [str(number) for number in range(RECORDS)]
    produce(cluster, source, values, partitions=COPIERS)
    logs = [tmp_path / f"copier-{number}.log" for number in range(COPIERS)]
    with ExitStack() as stack:
        read = stack.enter_context(Committed(cluster, target, COPIERS))
        copiers = []
        for number, log in enumerate(logs):
            arguments = {
                "--input-topic": source, "--input-partition": "-1", "--output-topic": target,
                "--broker-list": cluster.bootstrap, "--consumer-group": f"group-of-{source}",
                "--transaction-size": str(TRANSACTION), "--transactional-id": f"{source}-{number}",
            }  # fmt: skip
            words = [word for pair in arguments.items() for word in pair]
            flags = ("--enable-random-aborts", "--group-mode", "--use-group-metadata")
            command = apache.java_command(COPIER, *words, *flags, flags=apache.TOOL_FLAGS)
            copiers.append(stack.enter_context(application(command, log)))

        def said() -> str:
            return "\n".join(log.read_text() for log in logs)

        read.wait_for(RECORDS // 10, said)
        with without(cluster, coordinator(cluster, source), source, target):
            read.wait_for(RECORDS, said)
        assert [copier.wait(END_S) for copier in copiers] == [0] * COPIERS, said()
        read.wait_for_the_end()
        for partition in range(COPIERS):
            found = [each.value().decode() for each in read.messages if each.partition() == partition]
            assert found == values[partition::COPIERS]


@needs_maven
def test_streams_counts_words(cluster: Cluster, new_topic_name: Callable[[], str], tmp_path: Path) -> None:
    """A word's counts come one after the other. The second instance has an empty disk, and finds a transaction open."""
    source, target = new_topic_name(), new_topic_name()
    create_topics(cluster, source, target, partitions=2)
    rng = random.Random(1)
    lines = [" ".join(rng.choices(WORDS, k=3)) for _ in range(600)]
    expected: dict[str, int] = defaultdict(int)
    class_path = builds.streams()
    logging = apache.jars() / "tools.properties"
    log = tmp_path / "streams.log"

    def command(instance: int) -> list[str]:
        settings = {
            "application.id": "words", "bootstrap.servers": cluster.bootstrap,
            "processing.guarantee": "exactly_once_v2", "state.dir": str(tmp_path / f"state-{instance}"),
            "consumer.session.timeout.ms": "10000", "consumer.heartbeat.interval.ms": "2000",
        }  # fmt: skip
        file = tmp_path / f"streams-{instance}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        flags = (*apache.TOOL_FLAGS, f"-Dlog4j2.configurationFile={logging}")
        return ["java", *flags, "-cp", class_path, "WordCount", str(file), source, target]

    def count(more: list[str]) -> int:
        for line in more:
            for word in line.split():
                expected[word] += 1
        produce(cluster, source, more, partitions=2)
        return sum(expected.values())

    with Committed(cluster, target, 2) as read:
        with application(command(1), log):
            read.wait_for(count(lines[:200]), log.read_text)
            with without(cluster, coordinator(cluster, "words-"), source, target):
                read.wait_for(count(lines[200:400]), log.read_text)
            total = count(lines[400:])
            read.wait_for(total - 500, log.read_text)
        with application(command(2), log):
            read.wait_for(total, log.read_text)
            read.wait_for_the_end()
    counts: dict[str, list[int]] = defaultdict(list)
    for each in read.messages:
        counts[each.key().decode()].append(int.from_bytes(each.value(), "big"))
    assert counts == {word: list(range(1, number + 1)) for word, number in expected.items()}


def flink(program: str, *arguments: str) -> list[str]:
    """The command of a program of `flink/`, with Flink's cluster in its process."""
    opens = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util", "time")]
    flags = ("-Xmx512m", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={apache.jars() / 'tools.properties'}")
    return ["java", *flags, *opens, "-cp", builds.flink(), program, *arguments]


@needs_maven
def test_flinks_sink(cluster: Cluster, new_topic_name: Callable[[], str], tmp_path: Path) -> None:
    """The job fails once by itself as well: what is behind its last checkpoint is written again, and counts once."""
    source, target = new_topic_name(), new_topic_name()
    create_topics(cluster, source, target, partitions=2)
    values = [str(number) for number in range(RECORDS)]
    log = tmp_path / "flink.log"
    where = (cluster.bootstrap, source, target, str(tmp_path / "checkpoints"), str(RECORDS // 4))
    command = flink("ExactlyOnce", *where)
    with Committed(cluster, target, 2) as read, application(command, log):
        produce(cluster, source, values[: RECORDS // 2], partitions=2)
        read.wait_for(RECORDS // 2, log.read_text)
        assert "fails on purpose" in log.read_text()
        with without(cluster, coordinator(cluster, f"flink-{target}"), source, target):
            produce(cluster, source, values[RECORDS // 2 :], partitions=2)
            read.wait_for(RECORDS, log.read_text)
        read.wait_for_the_end()
    assert sorted((each.value().decode() for each in read.messages), key=int) == values


@needs_maven
def test_flinks_sql_counts_in_windows(cluster: Cluster, new_topic_name: Callable[[], str], tmp_path: Path) -> None:
    """Each word has one count a minute, and the broker of the sink's transactions is killed between two minutes."""
    source, target = new_topic_name(), new_topic_name()
    create_topics(cluster, source, target, partitions=2)
    statements, log = tmp_path / "count.sql", tmp_path / "flink-sql.log"
    settings = {"bootstrap": cluster.bootstrap, "source": source, "target": target, "folder": tmp_path}
    statements.write_text(WINDOWS.format_map(settings))
    rng = random.Random(1)
    expected: dict[tuple[str, int], int] = defaultdict(int)

    def write(minutes: range) -> int:
        """Records of these minutes, and one in each partition that ends them; how many counts are now due."""
        values = []
        for minute in minutes:
            for _ in range(100):
                word, at = rng.choice(WORDS), minute * MINUTE_MS + rng.randrange(MINUTE_MS)
                expected[word, minute] += 1
                values.append(json.dumps({"word": word, "at": at}))
        values += [json.dumps({"word": None, "at": (minutes.stop + 1) * MINUTE_MS})] * 2
        produce(cluster, source, values, partitions=2)
        return len(expected)

    with Committed(cluster, target, 2) as read, application(flink("Statements", str(statements)), log):
        read.wait_for(write(range(5)), log.read_text)
        with without(cluster, coordinator(cluster, f"flink-{target}"), source, target):
            read.wait_for(write(range(5, 10)), log.read_text)
        read.wait_for(write(range(10, 15)), log.read_text)
        read.wait_for_the_end()
    found = [json.loads(each.value()) for each in read.messages]
    counts = {(each["word"], each["since"] // MINUTE_MS): each["records"] for each in found}
    assert counts == expected
    assert len(found) == len(expected)

"""Dead letters of share groups (KIP-1191, share.version 2), by Apache Kafka's tools, on tanist and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop import apache, target
from tests.interop.apache import ApacheCluster
from tests.interop.cluster import Cluster
from tests.interop.versions import PINS
from tests.interop.waiting import wait_for

pytestmark = pytest.mark.interop

APACHE = PINS["4.4.0"]
CONSOLE_SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
TOPIC, RECORDS = "work", 6
PROPERTIES = {
    "errors.deadletterqueue.auto.create.topics.enable": "true",
    "group.share.min.record.lock.duration.ms": "1000",
    "num.partitions": "1",
}
REJECTED = "Offset rejected by client."
TOO_OFTEN = "Offset delivery count exceeded the threshold."


def tool(cluster: Cluster, main: str, *arguments: str, stdin: str | None = None) -> str:
    return apache.tool(main, "--bootstrap-server", cluster.bootstrap, *arguments, stdin=stdin, pin=APACHE).stdout


@pytest.fixture(scope="module", params=target.TARGETS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("letters") / "cluster"
    if request.param == "apache":
        made: Cluster = ApacheCluster(folder, nodes=1, properties=PROPERTIES, pin=APACHE)
    else:
        made = target.make("tanist", folder, nodes=1, properties=PROPERTIES)
    made.start()
    try:
        if request.param != "apache":  # it is formatted at a metadata version that has share.version 1
            tool(made, apache.FEATURES, "upgrade", "--feature", "share.version=2")
        tool(made, apache.TOPICS, "--create", "--topic", TOPIC, "--partitions", "1", "--replication-factor", "1")
        lines = "".join(f"k{number}:v{number}\n" for number in range(RECORDS))
        keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
        tool(made, apache.CONSOLE_PRODUCER, "--topic", TOPIC, *keyed, stdin=lines)
        yield made
    finally:
        made.stop()


def configure(cluster: Cluster, group: str, **values: str) -> apache.ToolOutput:
    named = {"share.auto.offset.reset": "earliest", **{key.replace("_", "."): value for key, value in values.items()}}
    return apache.try_tool(
        APACHE.config_command, "--bootstrap-server", cluster.bootstrap, "--alter", "--entity-type", "groups",
        "--entity-name", group, "--add-config", ",".join(f"{key}={value}" for key, value in named.items()), pin=APACHE,
    )  # fmt: skip


def consume(cluster: Cluster, group: str, how: str, count: int) -> None:
    """A member gets so many records, and says this of each."""
    output = apache.try_tool(
        CONSOLE_SHARE_CONSUMER, "--bootstrap-server", cluster.bootstrap, "--topic", TOPIC, "--group", group, how,
        "--max-messages", str(count), "--timeout-ms", "30000", pin=APACHE,
    )  # fmt: skip
    assert f"a total of {count} messages" in output.stdout + output.stderr, output


def letters(cluster: Cluster, topic: str) -> list[tuple[dict[str, str], str, str]]:
    """Headers, key and value of what there is."""
    output = apache.try_tool(
        apache.CONSOLE_CONSUMER, "--bootstrap-server", cluster.bootstrap, "--topic", topic, "--from-beginning",
        "--timeout-ms", "4000", "--formatter-property", "print.headers=true", "--formatter-property", "print.key=true",
        "--formatter-property", "headers.separator=|", pin=APACHE,
    )  # fmt: skip
    found = []
    for line in output.stdout.splitlines():
        headers, key, value = line.split("\t")
        said = dict(each.split(":", 1) for each in headers.split("|"))
        found.append((said, key, value))
    return found


def described(group: str, count: int, why: str, offset: int) -> dict[str, str]:
    said = {"topic": TOPIC, "partition": 0, "offset": offset, "group": group, "delivery.count": count, "message": why}
    return {f"__dlq.errors.{name}": str(value) for name, value in said.items()}


def test_a_rejected_record_is_copied_to_a_topic_that_is_made_for_it(cluster: Cluster) -> None:
    name = "dlq.rejected"
    copies = {"errors_deadletterqueue_copy_record_enable": "true", "errors_deadletterqueue_topic_name": name}
    assert configure(cluster, "rejects", **copies).returncode == 0
    consume(cluster, "rejects", "--reject", RECORDS)
    found = wait_for(lambda: has(cluster, name, RECORDS), "the letters are there", timeout_s=60)
    expected = [(described("rejects", 1, REJECTED, offset), f"k{offset}", f"v{offset}") for offset in range(RECORDS)]
    assert sorted(found, key=str) == sorted(expected, key=str)
    about = ("--entity-type", "topics", "--entity-name", name)
    listed = tool(cluster, APACHE.config_command, "--describe", *about)
    assert "errors.deadletterqueue.group.enable=true" in listed
    assert "message.timestamp.type=CreateTime" in listed


def test_a_record_that_was_delivered_too_often_is_a_letter_without_a_copy(cluster: Cluster) -> None:
    name = "dlq.released"
    tool(cluster, apache.TOPICS, "--create", "--topic", name, "--config", "errors.deadletterqueue.group.enable=true")
    limit = {"share_delivery_count_limit": "2", "errors_deadletterqueue_topic_name": name}
    assert configure(cluster, "releases", **limit).returncode == 0
    consume(cluster, "releases", "--release", 2 * RECORDS)
    found = wait_for(lambda: has(cluster, name, RECORDS), "the letters are there", timeout_s=60)
    expected = [(described("releases", 2, TOO_OFTEN, offset), "null", "null") for offset in range(RECORDS)]
    assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(("name", "allowed"), [("dlq.closed", "false"), ("others", "true")])
def test_a_topic_that_may_not_have_them_gets_none(cluster: Cluster, name: str, allowed: str) -> None:
    """Its own configuration does not say so, or its name does not begin as such names must."""
    setting = f"errors.deadletterqueue.group.enable={allowed}"
    tool(cluster, apache.TOPICS, "--create", "--topic", name, "--config", setting)
    group = f"to-{name}"
    assert configure(cluster, group, errors_deadletterqueue_topic_name=name).returncode == 0
    consume(cluster, group, "--reject", RECORDS)
    wait_for(lambda: lag(cluster, group) == "0", "the records are archived", timeout_s=60)
    assert letters(cluster, name) == []


def test_an_internal_name_is_refused(cluster: Cluster) -> None:
    output = configure(cluster, "refused", errors_deadletterqueue_topic_name="__letters")
    assert output.returncode != 0
    assert "DLQ topic name must not start with '__'" in output.stdout + output.stderr


def has(cluster: Cluster, topic: str, count: int) -> list[tuple[dict[str, str], str, str]]:
    found = letters(cluster, topic)
    return found if len(found) >= count else []


def lag(cluster: Cluster, group: str) -> str:
    command = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
    rows = [
        line.split() for line in tool(cluster, command, "--describe", "--group", group).splitlines() if line.strip()
    ]
    return rows[1][rows[0].index("LAG")]

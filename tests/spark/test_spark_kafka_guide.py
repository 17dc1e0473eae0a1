"""Each option of Spark's guide to its Kafka source, given to ours: taken, refused as there, and what it does here.

The table in docs/spark.md is made of this: `python -m tests.spark.test_spark_kafka_guide` writes it anew. That it is so
is shown by `test_spark_kafka_format`, which runs each of them with Spark's own source and with ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tanist.spark.sink.options import SinkOptions
from tanist.spark.topic.options import OptionError, TopicOptions

DOCS = Path(__file__).parents[2] / "docs" / "spark.md"
BEGIN, END = "<!-- guide -->\n", "<!-- /guide -->"
PLACE = {"kafka.bootstrap.servers": "localhost:9092"}
ORDERS = PLACE | {"subscribe": "orders"}
BY_PARTITION = '{"orders": {"0": 23, "1": -2}}'
TIMES = '{"orders": {"0": 1000, "1": 3000}}'
SAME, IDLE = "the same", "taken; no effect"
SECURE = "the same, with `kafka.ssl.*` and `kafka.sasl.*`: [below](#tls-and-sasl)"
ALL = "batch stream write"
KINDS = ("batch", "stream", "write")


@dataclass(frozen=True)
class Case:
    option: str
    value: str
    says: str
    """Of ours."""
    kinds: str = "batch stream"
    """The queries that take it."""
    alone: bool = False
    """It says what is read, in place of `subscribe`."""
    refused: str = ""
    """The queries that refuse it. Others pass over what they do not take."""

    def refused_by(self, kind: str) -> bool:
        return kind in self.refused.split() or ("refused" in self.says and kind not in self.kinds.split())


GUIDE = (
    Case("kafka.bootstrap.servers", "a:1,b:2", SAME, ALL),
    Case("assign", '{"orders": [0, 1]}', SAME, alone=True),
    Case("subscribe", "orders,payments", SAME, alone=True),
    Case("subscribePattern", r"ord.*|\Qpay\E[a-z&&[^x]]*", SAME, alone=True),
    Case("startingTimestamp", "3500", SAME),
    Case("startingOffsetsByTimestamp", TIMES, SAME),
    Case("startingOffsets", BY_PARTITION, "the same; a list has to name every partition"),
    Case("endingTimestamp", "2000", SAME, "batch"),
    Case("endingOffsetsByTimestamp", TIMES, SAME, "batch", refused="stream"),
    Case("endingOffsets", '{"orders": {"0": 50, "1": -1}}', SAME, "batch", refused="stream"),
    Case("startingOffsetsByTimestampStrategy", "latest", SAME),
    Case("failOnDataLoss", "false", "the same, of batches too; truncated logs and topics made anew are noticed"),
    Case("kafkaConsumer.pollTimeoutMs", "60000", f"{IDLE}: `kafka.request.timeout.ms` is the patience"),
    Case("fetchOffset.numRetries", "3", IDLE),
    Case("fetchOffset.retryIntervalMs", "10", IDLE),
    Case("maxOffsetsPerTrigger", "40", SAME, "stream"),
    Case("minOffsetsPerTrigger", "10", SAME, "stream"),
    Case("maxTriggerDelay", "5m", SAME, "stream"),
    Case("minPartitions", "9", SAME),
    Case("maxRecordsPerPartition", "10", SAME),
    Case("groupIdPrefix", "spark", f"{IDLE}: there are no groups"),
    Case("kafka.group.id", "g", f"{IDLE}: there are no groups", ALL),
    Case("includeHeaders", "true", SAME, ALL),
    Case("topic", "written", SAME, "write"),
    Case("kafka.partitioner.class", "org.apache.kafka.clients.producer.RoundRobinPartitioner", IDLE, "write"),
    Case("kafka.linger.ms", "5", f"{IDLE}, as all settings of clients that are not named on this page", ALL),
    Case("kafka.acks", "1", f"{IDLE}: always `all`", ALL),
    Case("kafka.auto.offset.reset", "latest", "refused when reading, as there", "write"),
    Case("kafka.key.deserializer", "x", "refused when reading, as there", "write"),
    Case("kafka.value.deserializer", "x", "refused when reading, as there", "write"),
    Case("kafka.key.serializer", "x", "refused when writing, as there", "batch stream"),
    Case("kafka.enable.auto.commit", "true", "refused when reading, as there", "write"),
    Case("kafka.interceptor.classes", "x", "refused, as there", ""),
    Case("kafka.security.protocol", "SSL", SECURE, ALL),
)


def outcome(case: Case, kind: str) -> str:
    """What the options come to: taken, passed over, or refused."""
    more = {case.option: case.value}
    try:
        if kind == "write":
            found: TopicOptions | SinkOptions = SinkOptions.parse(PLACE | more)
        else:
            base = PLACE if case.alone and kind in case.kinds else ORDERS
            found = TopicOptions.parse(base | more, streaming=kind == "stream")
    except OptionError:
        return "refused"
    return "idle" if case.option.lower() in map(str.lower, found.without_effect) else "taken"


def expected(case: Case, kind: str) -> str:
    if case.refused_by(kind):
        return "refused"
    idle = case.says.startswith(IDLE) or "refused" in case.says or kind not in case.kinds.split()
    return "idle" if idle else "taken"


@pytest.mark.parametrize("case", GUIDE, ids=lambda case: case.option)
def test_an_option_of_the_guide(case: Case) -> None:
    assert [outcome(case, kind) for kind in KINDS] == [expected(case, kind) for kind in KINDS]


def table() -> str:
    """A row for the options that the same queries take to the same effect."""
    rows: dict[tuple[str, str], list[str]] = {}
    for case in GUIDE:
        rows.setdefault((case.kinds, case.says), []).append(f"`{case.option}`")
    lines = ["| options | taken by | here |", "|---|---|---|"]
    lines += [f"| {', '.join(names)} | {kinds.replace(' ', ', ')} | {says} |" for (kinds, says), names in rows.items()]
    return "\n".join(lines) + "\n"


def test_the_docs_have_this_table() -> None:
    text = DOCS.read_text()
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)] == table()


if __name__ == "__main__":
    page = DOCS.read_text()
    DOCS.write_text(page[: page.index(BEGIN) + len(BEGIN)] + table() + page[page.index(END) :])

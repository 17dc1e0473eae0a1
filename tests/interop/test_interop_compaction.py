"""Apache Kafka and tanist, fed the same, hold the same records once both have cleaned; its tools read our segments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.clients.samples import COMPRESSIONS, FIRST_TIMESTAMP_MS, Sample, samples
from tests.interop import target
from tests.interop.cluster import Cluster, wait_in_sync
from tests.interop.dump import Dump, dump, log_files
from tests.interop.traffic import consume, create_topic, enlarged, produce
from tests.interop.waiting import wait_for

pytestmark = pytest.mark.interop

KEPT, DROPPED = "tombstones-kept", "tombstones-dropped"
CONFIG = {"cleanup_policy": "compact", "segment_bytes": "1048576", "min_cleanable_dirty_ratio": "0"}
# A record so much later than the last makes its segment roll.
SEGMENT_MS = 600_000
PROPERTIES = {"log.cleaner.backoff.ms": "200", "log.cleaner.threads": "1"}
CLEAN_S = 60.0


class Fed:
    """A node of one kind with the two topics, and what they were sent."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.cluster: Cluster = target.make(kind, directory, nodes=1, properties=PROPERTIES, heap="256m")
        self.sent: list[Sample] = []

    def feed(self) -> None:
        for topic, retention_ms in ((KEPT, "86400000"), (DROPPED, "1")):
            create_topic(self.cluster, topic, 1, **CONFIG, segment_ms=str(SEGMENT_MS), delete_retention_ms=retention_ms)
            wait_in_sync(self.cluster, topic)
        keyed = [record for record in enlarged(samples(200)) if record.key is not None]
        for round_, compression in enumerate(COMPRESSIONS):
            # Some keys are of one round only, the others of all; each round deletes some of its own.
            records = [
                replace(record, key=record.key and record.key + b"-%d" % (round_ * (number % 3 > 0)))
                for number, record in enumerate(keyed)
            ]
            self._produce(records, compression_type=compression, enable_idempotence=round_ % 2 == 0)
        for closing in (1, 2, 3):
            self._close(closing)

    def _close(self, number: int) -> None:
        """A record that makes all before it cleanable; then wait until it is clean."""
        self._produce([Sample(0, FIRST_TIMESTAMP_MS + number * 2 * SEGMENT_MS, b"closing", b"%d" % number)])
        for topic in (KEPT, DROPPED):
            wait_for(partial(self._is_clean, topic), f"{topic} clean", timeout_s=CLEAN_S)

    def _produce(self, records: list[Sample], **config: object) -> None:
        for topic in (KEPT, DROPPED):
            produce(self.cluster, topic, records, **config)
        self.sent += records

    def _is_clean(self, topic: str) -> bool:
        return self._clean_to(topic) == len(self.sent) - 1

    def _clean_to(self, topic: str) -> int:
        lines = (self.cluster.log_directory(1) / "cleaner-offset-checkpoint").read_text().splitlines()
        return next((int(line.split()[2]) for line in lines[2:] if line.split()[:2] == [topic, "0"]), -1)

    def records(self, topic: str) -> list[tuple[int, Sample]]:
        return consume(self.cluster, topic, len(self.expected(topic)))

    def expected(self, topic: str) -> list[tuple[int, Sample]]:
        latest = {record.key: offset for offset, record in enumerate(self.sent[:-1])}
        last = len(self.sent) - 1
        return [
            (offset, record)
            for offset, record in enumerate(self.sent)
            if offset == last or (latest[record.key] == offset and (record.value is not None or topic == KEPT))
        ]


@pytest.fixture(scope="module")
def fed(java: None, libraries: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Fed]]:
    both = {kind: Fed(kind, tmp_path_factory.mktemp(kind)) for kind in ("tanist", "apache")}
    try:
        for each in both.values():
            each.cluster.start()
            each.feed()
        yield both
    finally:
        for each in both.values():
            each.cluster.stop()


@pytest.mark.parametrize("topic", [KEPT, DROPPED])
def test_both_hold_the_same_records(fed: dict[str, Fed], topic: str) -> None:
    ours, theirs = fed["tanist"], fed["apache"]
    assert ours.sent == theirs.sent
    found = ours.records(topic)
    assert found == theirs.records(topic)
    assert found == ours.expected(topic)
    assert any(record.value is None for _, record in found) == (topic == KEPT)
    assert len(found) < len(ours.sent) / 3


@pytest.mark.parametrize("topic", [KEPT, DROPPED])
def test_kafka_dump_log_reads_cleaned_segments(fed: dict[str, Fed], topic: str) -> None:
    ours = fed["tanist"]
    files = log_files(ours.cluster.log_directory(1) / f"{topic}-0")
    reported = dump([file for file in files if file.suffix in (".log", ".snapshot")])
    assert _without_holes(reported) == []
    segments = [file for path, file in reported.files.items() if path.suffix == ".log"]
    assert [offset for file in segments for offset in file.offsets] == [offset for offset, _ in ours.expected(topic)]
    codecs = {batch["codec"] for file in segments for batch in file.batches if batch["count"] != "0"}
    assert codecs == {"none", "gzip", "snappy", "lz4", "zstd"}
    active = max(file.stem for file in files if file.suffix == ".log")
    sealed = [file for file in files if file.suffix == ".index" and file.stem != active]
    assert sealed
    assert dump(sealed, "--index-sanity-check").complaints == []
    assert dump([*sealed, *(file.with_suffix(".timeindex") for file in sealed)], "--verify-index-only").complaints == []


def test_the_producers_that_wrote_are_remembered(fed: dict[str, Fed]) -> None:
    """Of each idempotent producer a batch is left that bears its last sequence, be it empty, as with Apache Kafka."""
    last = {}
    for kind, each in fed.items():
        reported = dump(
            path for path in log_files(each.cluster.log_directory(1) / f"{KEPT}-0") if path.suffix == ".log"
        )
        batches = [batch for file in reported.files.values() for batch in file.batches if int(batch["producer"]) >= 0]
        ends: dict[str, int] = {}
        for batch in batches:
            sequence = int(batch["sequence"]) + int(batch["last"]) - int(batch["base"])
            ends[batch["producer"]] = max(ends.get(batch["producer"], -1), sequence)
        last[kind] = sorted(ends.values())
    assert last["tanist"] == last["apache"]
    assert len(last["tanist"]) == 3


def _without_holes(reported: Dump) -> list[str]:
    """What is complained of besides offsets that are not consecutive, which is what compaction is for."""
    return [
        line
        for line in reported.complaints
        if not line.startswith("Non-consecutive offsets in ") and " is followed by " not in line
    ]

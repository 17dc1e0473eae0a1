"""A data folder of a single Apache Kafka node that was shut down is opened, served and written on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from tests.clients.samples import FIRST_TIMESTAMP_MS, STEP_MS, Sample, samples
from tests.interop import apache, target
from tests.interop.cluster import Cluster, free_ports, metadata, wait_in_sync
from tests.interop.dump import dump, log_files
from tests.interop.raw import EARLIEST, LATEST, RawClient
from tests.interop.tanist_cluster import TanistNode
from tests.interop.traffic import consume, create_topic, enlarged, produce, produce_every_way

pytestmark = pytest.mark.interop

TOPIC = "inherited"
FRESH = "made-afterwards"


@dataclass(frozen=True, slots=True)
class Inheritance:
    """What Apache Kafka has left behind."""

    left_by: apache.ApacheCluster
    records: list[Sample]

    @property
    def partition(self) -> Path:
        return self.left_by.log_directory(1) / f"{TOPIC}-0"

    def heir(self) -> Cluster:
        """The one node of the target that takes the folder over, under the same server.properties."""
        if target.chosen() == "apache":
            return self.left_by
        return TanistNode(self.left_by.properties_file(1))


@pytest.fixture(params=["static", "standalone"])
def inheritance(
    java: None,
    libraries: None,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Inheritance]:
    """A node with a quorum by configuration (kraft.version 0), and one as the quick start makes it (1)."""
    quorum: Literal["static", "standalone"] = request.param
    node = apache.ApacheCluster(
        tmp_path_factory.mktemp(quorum), nodes=1, quorum=quorum, first_port=free_ports(2), heap="256m"
    )
    node.start()
    try:
        create_topic(node, TOPIC, 1, segment_bytes="1048576")
        wait_in_sync(node, TOPIC)
        records = produce_every_way(node, TOPIC)
        node.stop_node(1)
        yield Inheritance(node, records)
    finally:
        node.stop()


def test_records_are_served_and_writing_goes_on(inheritance: Inheritance) -> None:
    before = inheritance.records
    heir = inheritance.heir()
    heir.start()
    try:
        wait_in_sync(heir, TOPIC)
        assert consume(heir, TOPIC, len(before)) == list(enumerate(before))
        with RawClient(*heir.address(1)) as client:
            assert client.list_offset(TOPIC, 0, EARLIEST) == 0
            assert client.list_offset(TOPIC, 0, LATEST) == len(before)
            # Inside a compressed batch of the first samples.
            assert client.list_offset(TOPIC, 0, FIRST_TIMESTAMP_MS + 77 * STEP_MS) == 77

        more = enlarged(samples(150))
        produce(heir, TOPIC, more, enable_idempotence=True, compression_type="zstd")
        after = before + more
        assert consume(heir, TOPIC, len(after)) == list(enumerate(after))

        create_topic(heir, FRESH, 1)
        wait_in_sync(heir, FRESH)
        produce(heir, FRESH, more)
        assert consume(heir, FRESH, len(more)) == list(enumerate(more))
        assert metadata(heir, 1).topics.keys() >= {TOPIC, FRESH}
        heir.stop_node(1)
    finally:
        heir.stop()

    reported = dump(log_files(inheritance.partition))
    assert reported.complaints == []
    offsets = [offset for path, file in reported.files.items() if path.suffix == ".log" for offset in file.offsets]
    assert offsets == list(range(len(after)))

    # And back: Apache Kafka opens what the heir has left, its metadata log too.
    inheritance.left_by.start()
    wait_in_sync(inheritance.left_by, FRESH)
    assert consume(inheritance.left_by, TOPIC, len(after)) == list(enumerate(after))
    assert consume(inheritance.left_by, FRESH, len(more)) == list(enumerate(more))
    produce(inheritance.left_by, FRESH, more, enable_idempotence=True)
    assert consume(inheritance.left_by, FRESH, 2 * len(more)) == list(enumerate(more + more))


def test_an_unclean_end_is_recovered(inheritance: Inheritance) -> None:
    """The node was killed: no clean-shutdown marker, a torn batch at the end of the last segment."""
    (inheritance.left_by.log_directory(1) / ".kafka_cleanshutdown").unlink()
    last = max(inheritance.partition.glob("*.log"))
    whole = last.read_bytes()
    last.write_bytes(whole + whole[:100])
    heir = inheritance.heir()
    heir.start()
    try:
        wait_in_sync(heir, TOPIC)
        before = inheritance.records
        assert consume(heir, TOPIC, len(before)) == list(enumerate(before))
        with RawClient(*heir.address(1)) as client:
            assert client.list_offset(TOPIC, 0, LATEST) == len(before)
    finally:
        heir.stop()
    assert last.read_bytes()[: len(whole)] == whole

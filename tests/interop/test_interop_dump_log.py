"""Apache Kafka's tools read the files that our brokers leave: segments, indexes, snapshots, the metadata log."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.samples import Sample
from tests.interop import apache, target
from tests.interop.cluster import Cluster, wait_in_sync
from tests.interop.dump import dump, log_files
from tests.interop.traffic import create_topic, produce_every_way
from tests.interop.waiting import wait_for

pytestmark = pytest.mark.interop

TOPIC = "dumped"
METADATA = "__cluster_metadata-0"
# A snapshot of the metadata after every record or so: the default is 20 MB of them.
SNAPSHOT_OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "1"}


@dataclass(frozen=True, slots=True)
class Written:
    """A cluster that was shut down, and what it holds."""

    cluster: Cluster
    records: list[Sample]

    @property
    def clean(self) -> list[int]:
        """The nodes that ended in order: the last voters of Apache Kafka wait in vain for a quorum, and are killed."""
        folders = {node_id: self.cluster.log_directory(node_id) for node_id in self.cluster.node_ids}
        ids = [node_id for node_id, folder in folders.items() if (folder / ".kafka_cleanshutdown").exists()]
        assert len(ids) >= 2
        return ids

    def partition(self, node_id: int) -> Path:
        return self.cluster.log_directory(node_id) / f"{TOPIC}-0"

    def metadata(self, node_id: int) -> Path:
        return self.cluster.log_directory(node_id) / METADATA


@pytest.fixture(scope="module")
def written(java: None, libraries: None, tmp_path_factory: pytest.TempPathFactory) -> Written:
    running = target.make(target.chosen(), tmp_path_factory.mktemp("written"), properties=SNAPSHOT_OFTEN)
    running.start()
    try:
        create_topic(running, TOPIC, 3, segment_bytes="1048576", min_insync_replicas="2")
        wait_in_sync(running, TOPIC)
        records = produce_every_way(running, TOPIC)
        first = running.node_ids[0]
        wait_for(
            lambda: any((running.log_directory(first) / METADATA).glob("*.checkpoint")), "a snapshot of the metadata"
        )
        for node_id in running.node_ids[:-1]:
            running.stop_node(node_id)
    finally:
        running.stop()
    return Written(running, records)


def test_segments_indexes_and_producer_snapshots(written: Written) -> None:
    for node_id in written.clean:
        files = log_files(written.partition(node_id))
        reported = dump(files)
        assert reported.complaints == [], f"node {node_id}"
        assert set(reported.files) == set(files)

        segments = [file for path, file in reported.files.items() if path.suffix == ".log"]
        assert len(segments) >= 3
        offsets = [offset for file in segments for offset in file.offsets]
        assert offsets == list(range(len(written.records)))
        codecs = {batch["codec"] for file in segments for batch in file.batches}
        assert codecs == {"none", "gzip", "snappy", "lz4", "zstd"}

        for file in segments:
            positions = {int(batch["position"]) for batch in file.batches}
            index = reported.files[file.path.with_suffix(".index")].index
            assert {position for _, position in index} <= positions
            # One entry at most every 4096 bytes, and batches here are larger.
            assert index or len(positions) == 1, f"{file.path} has no index entries"
        producers = [file.producers for path, file in reported.files.items() if path.suffix == ".snapshot"]
        assert producers
        # Five idempotent producers wrote; the snapshot of the shutdown knows them all.
        assert len(producers[-1]) == 5


def test_indexes_pass_the_check_of_a_broker_that_starts(written: Written) -> None:
    for node_id in written.clean:
        indexes = [file for file in log_files(written.partition(node_id)) if file.suffix in (".index", ".timeindex")]
        assert dump(indexes, "--index-sanity-check").complaints == []
        assert dump(indexes, "--verify-index-only").complaints == []


def test_replicas_hold_the_same_bytes(written: Written) -> None:
    first, *others = (
        {file.name: file.read_bytes() for file in log_files(written.partition(node_id)) if file.suffix == ".log"}
        for node_id in written.cluster.node_ids
    )
    assert sum(map(len, first.values())) > 1_000_000
    for other in others:
        assert other == first


def test_the_metadata_log(written: Written) -> None:
    for node_id in written.cluster.node_ids:
        segments = sorted(written.metadata(node_id).glob("*.log"))
        reported = dump([*segments, *(file.with_suffix(".index") for file in segments)], "--cluster-metadata-decoder")
        assert reported.complaints == [], f"node {node_id}"
        types = {record["type"] for record in reported.metadata_records()}
        assert types >= {"TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "REGISTER_BROKER_RECORD"}
        names = [record["data"]["name"] for record in reported.metadata_records() if record["type"] == "TOPIC_RECORD"]
        assert names == [TOPIC]
        offsets = [offset for path in segments for offset in reported.files[path].offsets]
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))


def test_metadata_snapshots(written: Written) -> None:
    for node_id in written.cluster.node_ids:
        snapshots = sorted(written.metadata(node_id).glob("*.checkpoint"))
        assert snapshots, f"node {node_id} has none"
        reported = dump(snapshots, "--cluster-metadata-decoder")
        assert reported.complaints == [], f"node {node_id}"
        latest = reported.files[snapshots[-1]]
        (partition,) = (record["data"] for record in latest.metadata if record["type"] == "PARTITION_RECORD")
        assert sorted(partition["replicas"]) == list(written.cluster.node_ids)
        assert latest.batches[0]["control"] == latest.batches[-1]["control"] == "true"


def shell_says(expected: Callable[[list[str]], bool], snapshot: Path, *command: str) -> None:
    """The metadata shell obeys as soon as it has read something, also if that is not all yet: so it is asked again."""
    for _ in range(10):
        reported = apache.tool(apache.METADATA_SHELL, "--snapshot", str(snapshot), *command)
        if expected(reported.stdout.split()):
            return
    raise AssertionError(reported)


@pytest.mark.skipif(not apache.PIN.has_shell, reason=f"Maven has no kafka-shell of {apache.VERSION}")
def test_the_metadata_shell_opens_a_snapshot(written: Written) -> None:
    brokers = [str(each) for each in written.cluster.node_ids]
    for node_id in written.cluster.node_ids:
        latest = max(written.metadata(node_id).glob("*.checkpoint"))
        shell_says(lambda words: words == [TOPIC], latest, "ls", "/image/topics/byName")
        shell_says(
            lambda words: words[:1] != [] and "replicas" in words[0], latest, "cat", f"/image/topics/byName/{TOPIC}/0"
        )
        shell_says(lambda words: words == brokers, latest, "ls", "/image/cluster/brokers")


def damaged(written: Written, tmp_path: Path, suffix: str, at: int) -> list[str]:
    """The complaints about a copy of the first segment, of whose file with this suffix one byte is flipped."""
    folder = tmp_path / suffix.strip(".")
    folder.mkdir()
    for file in log_files(written.partition(written.cluster.node_ids[0])):
        if int(file.stem) == 0:
            shutil.copy(file, folder)
    path = folder / f"{0:020}{suffix}"
    content = bytearray(path.read_bytes())
    content[at] ^= 0x55
    path.write_bytes(content)
    return dump(log_files(folder)).complaints


def test_damage_does_not_go_unnoticed(written: Written, tmp_path: Path) -> None:
    """That the tests above can fail: the same check of the same files, one byte off."""
    assert damaged(written, tmp_path, ".log", 5000)
    assert damaged(written, tmp_path, ".index", 7)
    assert damaged(written, tmp_path, ".timeindex", 7)

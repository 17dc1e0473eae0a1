from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from tanist.log.properties import encode_properties, join_paths
from tanist.log.salvage.manifest import MANIFEST, QUARANTINE, Manifest, SalvageReason, SavedFile, entry_id
from tanist.spark.segments.replica_files import NothingThere, Unreadable, segment_files
from tests.spark.spark_segments_samples import SegmentBuilder, name_directory


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Two nodes, one of them with a log directory elsewhere."""
    root = tmp_path / "cluster"
    for node, directory in ((1, root / "node-1" / "data"), (2, tmp_path / "elsewhere")):
        (root / f"node-{node}").mkdir(parents=True)
        (root / f"node-{node}" / "server.properties").write_text(f"node.id={node}\nlog.dirs={directory}\n")
        name_directory(directory, node)
        SegmentBuilder(0).batches(1, 10).write(directory / "orders-0")
        SegmentBuilder(10).batches(1, 10).write(directory / "orders-0")
        SegmentBuilder(0).batches(1, 1).write(directory / "orders-1.0123456789abcdef-delete")
        (directory / "orders-0" / "00000000000000000020.log.deleted").write_bytes(b"")
    return root


def saved(directory: Path) -> Path:
    folder = directory / QUARANTINE / entry_id(1_700_000_000_000, 1, 1)
    path = SegmentBuilder(30).batches(1, 5).write(folder)
    size = path.stat().st_size
    manifest = Manifest(
        folder.name, 1, "orders", UUID(int=5), 0, SalvageReason.FOLLOWER_TRUNCATION, 1_700_000_000_000, 3, 30, 30, 35,
        ((2, 30),),
        (SavedFile(path.name, size, 0),),
    )  # fmt: skip
    (folder / MANIFEST).write_bytes(manifest.encode())
    return folder


def test_all_brokers_of_a_cluster(cluster: Path) -> None:
    found = segment_files(str(cluster))
    assert sorted((file.replica, file.base_offset, file.following_offset) for file in found) == [
        (1, 0, 10), (1, 10, None), (2, 0, 10), (2, 10, None),
    ]  # fmt: skip
    assert {(file.topic, file.partition, file.salvage_id) for file in found} == {("orders", 0, None)}


@pytest.mark.parametrize("below", ["node-1", "node-1/data", "node-1/data/orders-0"])
def test_one_broker_one_directory_one_partition(cluster: Path, below: str) -> None:
    found = segment_files(str(cluster / below))
    assert [(file.replica, file.base_offset) for file in found] == [(1, 0), (1, 10)]


def test_a_directory_that_does_not_say_whose_it_is(tmp_path: Path) -> None:
    SegmentBuilder().batches(1, 1).write(tmp_path / "logs" / "orders-0")
    assert [file.replica for file in segment_files(str(tmp_path / "logs"))] == [None]
    assert [file.replica for file in segment_files(str(tmp_path / "logs"), replica=7)] == [7]


OLDER = {
    "Kafka before 3.7": "#\nnode.id={}\nversion=1\ncluster.id=c\n",
    "Kafka with ZooKeeper": "#\nversion=0\nbroker.id={}\ncluster.id=c\n",
}


@pytest.mark.parametrize("written_by", OLDER)
def test_folders_of_an_older_kafka_say_whose_they_are(tmp_path: Path, written_by: str) -> None:
    for node in (1, 2, 3):
        SegmentBuilder().batches(1, 1).write(tmp_path / f"broker-{node}" / "orders-0")
        (tmp_path / f"broker-{node}" / "meta.properties").write_text(OLDER[written_by].format(node))
    assert [file.replica for file in segment_files(str(tmp_path))] == [1, 2, 3]


def test_several_replicas_are_never_taken_for_one(tmp_path: Path) -> None:
    for node in (1, 2):
        SegmentBuilder().batches(1, 1).write(tmp_path / f"broker-{node}" / "orders-0")
        (tmp_path / f"broker-{node}" / "meta.properties").write_text("version=7\n")
    with pytest.raises(Unreadable, match=r"broker-\d/meta.properties: version '7' is not known"):
        segment_files(str(tmp_path))
    assert {file.replica for file in segment_files(str(tmp_path / "broker-2"), replica=2)} == {2}


def test_a_nodes_properties_that_make_no_sense_are_no_reason_to_leave_its_logs_out(cluster: Path) -> None:
    (cluster / "node-2" / "server.properties").write_text("log.dirs=\\u12\n")
    with pytest.raises(Unreadable, match=r"node-2/server.properties: line 1"):
        segment_files(str(cluster))


@pytest.mark.parametrize("name", ["label=linux,python=3.11", "a b#c", "back\\slash,", "50%'\"é\U0001f980!"])
def test_folders_of_any_name(tmp_path: Path, name: str) -> None:
    directory = tmp_path / name / "disk"
    (tmp_path / "node-1").mkdir()
    properties = encode_properties({"node.id": "1", "log.dirs": join_paths([str(directory), str(tmp_path / "other")])})
    (tmp_path / "node-1" / "server.properties").write_text(properties)
    name_directory(directory, 1)
    SegmentBuilder(0).batches(1, 10).write(directory / "orders-0")
    saved(directory)
    for below in (tmp_path / "node-1", tmp_path / name):
        found = segment_files(str(below), contents="all")
        assert sorted((file.replica, file.base_offset) for file in found) == [(1, 0), (1, 30)]


def test_the_salvage_is_apart_from_the_logs(cluster: Path) -> None:
    folder = saved(cluster / "node-1" / "data")
    assert all(file.salvage_id is None for file in segment_files(str(cluster)))
    for path in (folder.parent, folder):
        assert [(file.salvage_id, file.replica, file.base_offset) for file in segment_files(str(path))] == [
            (folder.name, 1, 30)
        ]
    assert [file.salvage_id for file in segment_files(str(cluster), contents="salvage")] == [folder.name]
    assert len(segment_files(str(cluster), contents="all")) == 5


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NothingThere, match="there is no folder"):
        segment_files(str(tmp_path / "none"))

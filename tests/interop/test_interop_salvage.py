"""A quarantine in a log directory keeps Apache Kafka from nothing, and its segments are Kafka's.

Apache takes every folder of a log directory for a partition's, and ends when the name cannot be one. That of the
quarantine reads as a log that is not in service; Apache opens it, leaves a segment of its own there, and no more.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from uuid import UUID

import pytest

from tanist.log.config import LogConfig
from tanist.log.log import Log
from tanist.log.salvage.manifest import QUARANTINE, SalvageReason
from tanist.log.salvage.quarantine import Quarantine, RecordsToSave, slices_of
from tanist.runtime.client.salvaged import Entry, by_partition, find_entries
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.loop import Loop
from tanist.wire.batch import NewRecord, encode_batch
from tests.clients.samples import samples
from tests.interop import apache
from tests.interop.cluster import free_ports, wait_in_sync
from tests.interop.dump import dump
from tests.interop.traffic import consume, create_topic, enlarged, produce

pytestmark = pytest.mark.interop

TOPIC = "kept"


def salvage_into(log_directory: Path, scratch: Path) -> None:
    """An entry of 40 records from offset 10 on, in segments of a few batches."""
    loop = Loop()
    disk = RealDisk(loop)
    config = LogConfig(segment_bytes=2_000)
    log = Log.open(disk, str(scratch), TOPIC, 0, UUID(int=5), config, 0, recovery_point=0, clean=True)
    for number in range(50):
        batch = encode_batch([NewRecord(1_000 + number, b"key", b"value %d" % number * 10)])
        assert log.append_as_leader(memoryview(batch), number // 20, 0, 1_000).error == 0
    tail = log.tail(10)
    assert tail is not None
    to_save = RecordsToSave(
        TOPIC, UUID(int=5), 0, SalvageReason.UNCLEAN_ELECTION, 9, 10, tail.from_offset, tail.to_offset, ((0, 10),),
        slices_of(tail.ranges, tail.from_offset),
    )  # fmt: skip
    Quarantine(disk, str(log_directory), 1, itertools.count(1)).save_now(to_save, 1_700_000_000_000, bytes_max=-1)
    log.close()
    disk.close()
    loop.close()


def only_entry(log_directory: Path) -> Entry:
    entries, complaints = find_entries(log_directory)
    assert complaints == []
    (entry,) = entries
    return entry


def test_apache_starts_beside_a_quarantine_and_leaves_it_alone(java: None, libraries: None, tmp_path: Path) -> None:
    node = apache.ApacheCluster(tmp_path / "cluster", nodes=1, first_port=free_ports(2), heap="256m")
    data = node.log_directory(1)
    records = enlarged(samples(50))
    node.start()
    try:
        create_topic(node, TOPIC, 1)
        wait_in_sync(node, TOPIC)
        produce(node, TOPIC, records)
        node.stop_node(1)
        salvage_into(data, tmp_path / "scratch")
        before = {path: path.read_bytes() for path in only_entry(data).folder.iterdir()}
        for end in (node.stop_node, node.kill_node, node.stop_node):
            node.start()
            wait_in_sync(node, TOPIC)
            assert consume(node, TOPIC, len(records)) == list(enumerate(records))
            end(1)
    finally:
        node.stop()
    output = (tmp_path / "cluster" / "node-1" / "server.log").read_text()
    assert "stray" not in output.lower()  # nor is a word said of it
    entry = only_entry(data)
    assert {path: path.read_bytes() for path in entry.folder.iterdir()} == before
    assert sorted(path.name for path in data.iterdir() if "salvage" in path.name) == [QUARANTINE]


def test_kafkas_own_tool_reads_a_salvaged_segment(java: None, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    salvage_into(tmp_path / "data", tmp_path / "scratch")
    entry = only_entry(tmp_path / "data")
    files = sorted(entry.folder.glob("*.log"))
    assert len(files) > 2
    reported = dump(files)
    assert reported.complaints == []
    assert [offset for file in files for offset in reported.files[file].offsets] == list(range(10, 50))
    (salvage,) = by_partition([entry])
    assert [salvaged.offset for salvaged in salvage.records()] == list(range(10, 50))

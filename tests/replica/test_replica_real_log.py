"""The same replicas on the real log: batches, segments, epoch checkpoints, recovery after each restart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from tanist.events.replication import LogTruncated
from tanist.log.config import LogConfig
from tanist.log.log import Log
from tanist.replica.memory import Entry
from tanist.wire.batch import NewRecord, decode_batch, encode_batch, read_header
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import read_all
from tests.replica.replica_stage import Stage
from tests.replica.replica_walk import walk

FOLDER = "data/foo-0"
TOPIC_ID = UUID(int=7)
CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=1)


class BatchLog:
    """A `tanist.log.log.Log` that the stage can look into. What it is to a replica is the log's own."""

    def __init__(self, disk: MemoryDisk, *, clean: bool = True) -> None:
        self.disk = disk
        self.log = Log.open(disk, FOLDER, "foo", 0, TOPIC_ID, CONFIG, 0, recovery_point=0, clean=clean)

    def __getattr__(self, name: str) -> object:
        return getattr(self.log, name)

    @property
    def entries(self) -> tuple[Entry, ...]:
        found: list[Entry] = []
        offset = self.log.log_start_offset
        while offset < self.log.log_end_offset:
            batch = self._bytes(offset, 1)
            header = read_header(batch)
            for record in decode_batch(batch):
                found.append(Entry(record.offset, header.leader_epoch, (record.value or b"").decode()))
            offset = header.last_offset + 1
        return tuple(found)

    def _bytes(self, offset: int, max_bytes: int) -> bytes:
        self.log.write_pending()
        piece = self.log.read(offset, max_bytes, self.log.log_end_offset)
        return b"" if piece is None else piece.chunk.file.read(piece.chunk.offset, piece.chunk.length)

    def append_as_leader(self, values: Iterable[str], leader_epoch: int) -> None:
        batch = encode_batch([NewRecord(timestamp=1, key=None, value=value.encode()) for value in values])
        result = self.log.append_as_leader(memoryview(batch), leader_epoch, 0)
        if result.error:
            raise RuntimeError(f"the log refused what a leader wrote: {result}")

    def read(self, offset: int, _upper_offset: int, max_entries: int | None = None) -> memoryview:
        return memoryview(bytearray(self._bytes(offset, 1 if max_entries else 1 << 20)))


class RealLogStage(Stage):
    """Three brokers with a disk each."""

    def new_log(self) -> BatchLog:  # type: ignore[override]
        return BatchLog(MemoryDisk())

    def reopened(self, log: BatchLog) -> BatchLog:  # type: ignore[override]
        log.log.write_pending()
        return BatchLog(log.disk, clean=False)


def test_replicas_on_real_logs_come_home() -> None:
    committed = truncations = 0
    for seed in range(12):
        stage = walk(seed, 150, stage_class=RealLogStage)
        committed += len(stage.committed)
        truncations += sum(isinstance(effect, LogTruncated) for _, effect in stage.effects)
    assert committed > 30
    assert truncations > 3


def test_a_story_on_real_logs() -> None:
    stage = RealLogStage(3, 2)
    stage.append(1, ["a", "b", "c"])
    stage.append(1, ["d"])
    for _ in range(2):
        stage.fetch(2)
        stage.fetch(3)
    stage.append(1, ["lost"])
    assert [entry.value for entry in stage.committed] == ["a", "b", "c", "d"]
    stage.controller.fence(1)
    stage.learn_all()
    stage.append(2, ["e", "f"])
    stage.fetch(3)
    stage.fetch(3)
    stage.restart(1)
    stage.learn_all()
    stage.controller.unfence(1)
    stage.learn_all()
    stage.fetch(1)
    assert stage.log(1).log_end_offset == 4
    stage.fetch(1)
    stage.fetch(1)
    stage.settle_proposals()
    stage.check()
    assert [entry.value for entry in stage.log(1).entries] == ["a", "b", "c", "d", "e", "f"]
    assert [entry.leader_epoch for entry in stage.log(1).entries] == [0, 0, 0, 0, 1, 1]
    logs: list[Any] = [stage.log(broker) for broker in (1, 2, 3)]
    data = [read_all(log.log) for log in logs]
    assert data[0] == data[1] == data[2]

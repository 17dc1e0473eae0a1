"""Data folders of brokers that have dropped records, made without a cluster."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any
from uuid import UUID

from tanist.log.config import LogConfig
from tanist.log.log import Log
from tanist.log.salvage.manifest import Manifest, SalvageReason
from tanist.log.salvage.quarantine import Quarantine, RecordsToSave, slices_of
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.loop import Loop
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.compression import Compression

TOPIC_ID = UUID(int=5)
WALL_MS = 1_700_000_000_000
BINARY = b"\xff\x00"


class Broker:
    """A data folder with one log, out of which things are salvaged."""

    def __init__(self, folder: Path, broker_id: int, topic: str = "orders") -> None:
        self.data = folder / f"node-{broker_id}" / "data"
        self.broker_id = broker_id
        self.loop = Loop()
        self.disk = RealDisk(self.loop)
        self.data.mkdir(parents=True)
        self.log = Log.open(
            self.disk, str(self.data / f"{topic}-0"), topic, 0, TOPIC_ID, LogConfig(), 0, recovery_point=0, clean=True
        )
        self.quarantine = Quarantine(self.disk, str(self.data), broker_id, itertools.count(1))

    def append(self, epoch: int, *records: NewRecord, **how: Any) -> None:
        batch = encode_batch(records, **how)
        assert self.log.append_as_leader(memoryview(batch), epoch, 0, WALL_MS).error == 0

    def salvage(self, offset: int, why: SalvageReason = SalvageReason.UNCLEAN_ELECTION, after_ms: int = 0) -> Manifest:
        tail = self.log.tail(offset)
        assert tail is not None
        to_save = RecordsToSave(
            self.log.topic,
            TOPIC_ID,
            0,
            why,
            leader_epoch=8,
            high_watermark=2,
            from_offset=tail.from_offset,
            to_offset=tail.to_offset,
            epochs=((3, tail.from_offset),),
            slices=slices_of(tail.ranges, tail.from_offset),
        )
        return self.quarantine.save_now(to_save, WALL_MS + after_ms, bytes_max=-1)

    def close(self) -> None:
        self.log.close()
        self.disk.close()
        self.loop.close()


def at(number: int, key: bytes | None, value: bytes | None, *headers: tuple[str, bytes | None]) -> NewRecord:
    return NewRecord(WALL_MS + number, key, value, headers)


def salvage_something(folder: Path) -> None:
    """Broker 2 has saved offsets 1 to 5, broker 3 the last two of them, and a log of another topic whole."""
    for broker_id, start in ((2, 1), (3, 4)):
        broker = Broker(folder, broker_id)
        broker.append(3, at(0, b"k", b"kept"))
        broker.append(
            3, at(1, b"k", "fünf".encode(), ("h", b"x"), ("raw", BINARY), ("none", None)), at(2, None, BINARY)
        )
        broker.append(3, at(3, BINARY, None), compression=Compression.ZSTD)
        broker.append(4, at(4, b"k", b"last but one"), at(5, b"k", b"y" * 100))
        broker.salvage(start, after_ms=broker_id)
        broker.close()
    other = Broker(folder / "more", 3, "payments")
    other.append(1, at(9, b"p", b"paid"))
    other.salvage(0, SalvageReason.OUT_OF_RANGE, after_ms=9)
    other.close()

"""Logs with transactions: records and markers, in folders as brokers lay them out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.control import encode_marker_batch
from tests.spark.spark_audit_samples import TOPIC
from tests.spark.spark_segments_samples import START_MS, name_directory

PLAIN = -1
"""The producer of records outside of transactions."""


def log_of(entries: Sequence[tuple[int, str | bool]]) -> bytes:
    """By offset: the producer, and a value, or whether a marker commits."""
    found = bytearray()
    for offset, (producer, what) in enumerate(entries):
        sender = {"producer_id": producer, "producer_epoch": 0}
        if isinstance(what, bool):
            found += encode_marker_batch(
                committed=what, coordinator_epoch=0, timestamp_ms=START_MS, base_offset=offset, leader_epoch=0, **sender
            )
        else:
            record = NewRecord(START_MS, None, what.encode())
            found += encode_batch(
                [record], base_offset=offset, leader_epoch=0, producer_id=producer, producer_epoch=min(producer, 0),
                base_sequence=-1 if producer == PLAIN else offset, transactional=producer != PLAIN,
            )  # fmt: skip
    return bytes(found)


def write_logs(folder: Path, *logs: tuple[int, int, bytes]) -> Path:
    """Logs by replica and partition."""
    for replica, partition, data in logs:
        directory = folder / f"node-{replica}" / "log"
        name_directory(directory, replica)
        (directory / f"{TOPIC}-{partition}").mkdir(parents=True)
        (directory / f"{TOPIC}-{partition}" / f"{0:020d}.log").write_bytes(data)
    return folder

"""A load and its drain as a history, and the checker's verdict on it (docs/history.md).

The promises are those of acks=all with an idempotent producer: no acknowledged record is lost, none is duplicated, none
is out of order, none was never sent. A record without an acknowledgement may be in the log or not.

The load notes no beginnings, so the order of lines says all: first what was sent, by partition in the producer's order,
then what was read from the beginning to the end.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from tanist.lab.history import Anomaly, HistoryWriter, Verdict, verify
from tests.faults.history import Ack, Stored

LOST = Anomaly.UNSEEN
"""What each lost record is called in a history that was read to its end, whether something stands behind it or not."""


def write_history(
    file: TextIO, topic: str, acks: Sequence[Ack], log: Mapping[int, Sequence[Stored]], sent: Mapping[int, int]
) -> None:
    """The number of a record in its partition is its value."""
    writer = HistoryWriter(file)
    by_record = {(ack.partition, ack.number): ack for ack in acks}
    for partition, count in sent.items():
        for number in range(count):
            ack = by_record.get((partition, number))
            # The producer is one, but partitions have orders of their own.
            writer.complete(
                "load",
                "send",
                "info" if ack is None else "ok",
                partition=f"{topic}-{partition}",
                value=number,
                offset=None if ack is None else ack.offset,
            )
    for partition, records in log.items():
        name, reader = f"{topic}-{partition}", f"reader/{partition}"
        writer.complete(reader, "assign", "ok", partitions=[name], positions={name: 0})
        writer.poll(reader, name, [(record.offset, record.number) for record in records])
        writer.complete(reader, "poll", "ok")


def judged(
    topic: str, acks: Sequence[Ack], log: Mapping[int, Sequence[Stored]], sent: Mapping[int, int]
) -> tuple[Verdict, list[str]]:
    """The verdict, and what it finds in words. `sent` is how many records each partition was given."""
    with tempfile.TemporaryDirectory(prefix="history-") as folder:
        path = Path(folder) / "history.jsonl"
        with path.open("w") as file:
            write_history(file, topic, acks, log, sent)
        verdict, _ = verify(path)
    return verdict, [f"{found.anomaly.value}: {found.count}, {found.summary}" for found in verdict.findings]


def counted(verdict: Verdict, anomaly: Anomaly) -> int:
    """How often an anomaly was found."""
    return sum(found.count for found in verdict.findings if found.anomaly is anomaly)

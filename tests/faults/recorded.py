"""A round's load and its drain as a history, for `tanist lab verify` (docs/history.md).

The load notes no beginnings, so the order of lines says all: first what was sent, by partition in the producer's order,
then what was read from the beginning to the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TextIO

from tests.faults.history import Ack, Stored

from tanist.lab.history import HistoryWriter


def write_history(
    file: TextIO, topic: str, acks: Sequence[Ack], log: Mapping[int, Sequence[Stored]], sent: Mapping[int, int]
) -> None:
    """What `judge` is given. The number of a record in its partition is its value."""
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

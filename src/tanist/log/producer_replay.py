"""Brings the producers of a log up to date by batches that are in its files: what a snapshot does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tanist.log.markers import note_batch
from tanist.log.producers import ProducerStates
from tanist.log.scan import BatchAt, read_batch
from tanist.log.segment import Segment
from tanist.log.transaction_index import AbortedTransaction
from tanist.ports import File


def note_at(producers: ProducerStates, file: File, batch: BatchAt) -> AbortedTransaction | None:
    """`note_batch` for a batch in a file."""
    return note_batch(producers, batch.header, batch.header.base_offset, lambda: read_batch(file, batch))


def replay_producers(producers: ProducerStates, segments: Sequence[Segment], start: int, end: int) -> None:
    """Bring producers that are as of `start` up to `end`, by the headers of the batches between."""
    for batch_at, file in _batches_between(segments, start, end):
        note_at(producers, file, batch_at)


def _batches_between(segments: Sequence[Segment], start: int, end: int) -> Iterator[tuple[BatchAt, File]]:
    for index, segment in enumerate(segments):
        if segment.base_offset >= end:
            return
        if index + 1 < len(segments) and segments[index + 1].base_offset <= start:
            continue
        for batch_at in segment.walk(max(start, segment.base_offset)):
            if batch_at.header.base_offset >= end:
                return
            if batch_at.header.base_offset >= start:
                yield batch_at, segment.file
        segment.park()

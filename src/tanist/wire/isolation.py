"""The records that a reader of committed records gets of a Fetch response (KIP-98).

The response ends before the first open transaction. It names the aborted transactions that have records in it: each by
its producer and its first offset. Its records are left out from there to the producer's ABORT marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tanist.wire.batch import BatchHeader, Record, decode_batch, iterate_batches
from tanist.wire.control import ControlKind, control_kind
from tanist.wire.primitives import Buffer


def committed_batches(data: Buffer, aborted: Iterable[tuple[int, int]]) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Each batch with its records; without any, if it is a control batch or was aborted.

    `aborted` has first offsets and producer ids. `WireError` for a malformed batch.
    """
    begins = sorted(aborted)
    open_producers: set[int] = set()
    for header, batch in iterate_batches(data):
        while begins and begins[0][0] <= header.last_offset:
            open_producers.add(begins.pop(0)[1])
        records: list[Record] = []
        if header.is_control:
            if header.producer_id in open_producers and _is_abort(batch):
                open_producers.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in open_producers):
            records = decode_batch(batch)
        yield header, records


def _is_abort(batch: memoryview) -> bool:
    (marker, *_) = decode_batch(batch)
    return control_kind(marker) == ControlKind.ABORT

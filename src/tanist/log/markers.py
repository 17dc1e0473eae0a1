"""The effect of a batch on its producer's state: the next sequence, the beginning of a transaction, or its end.

Owns the reading of COMMIT and ABORT markers. An append, a replica's fetch and recovery all use `note_batch`, so that
they come to the same state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tanist.log.producers import ProducerStates
from tanist.log.transaction_index import AbortedTransaction
from tanist.wire.batch import BatchHeader
from tanist.wire.control import ControlKind, EndTxnMarker, decode_control_batch
from tanist.wire.errors import WireError
from tanist.wire.primitives import Buffer

MARKER_BYTES_MAX: Final = 64 * 1024
"""A marker has about 80 bytes. A larger control batch of a producer is not decoded, and ends nothing."""


class Marker(NamedTuple):
    aborted: bool
    coordinator_epoch: int


def parse_marker(batch: Buffer) -> Marker | None:
    """The marker in a control batch; None when it holds none that ends a transaction."""
    if len(batch) > MARKER_BYTES_MAX:
        return None
    try:
        _, records = decode_control_batch(batch)
    except WireError:
        return None
    for _, kind, message in records:
        if isinstance(message, EndTxnMarker):
            return Marker(kind == ControlKind.ABORT, message.coordinator_epoch)
    return None


def note_batch(
    producers: ProducerStates, header: BatchHeader, base_offset: int, read: Callable[[], Buffer]
) -> AbortedTransaction | None:
    """Record a batch at `base_offset` with the producers; the transaction that it aborts, for the `.txnindex`.

    `read` gives the bytes of the batch. Only a marker is decoded.
    """
    if header.producer_id < 0:
        return None
    if not header.is_control:
        producers.append(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            base_offset,
            base_offset + header.last_offset_delta,
            header.max_timestamp,
            transactional=header.is_transactional,
        )
        return None
    marker = parse_marker(read()) if header.size_bytes <= MARKER_BYTES_MAX else None
    if marker is None:
        return None
    completed = producers.append_marker(
        header.producer_id,
        header.producer_epoch,
        marker.coordinator_epoch,
        base_offset,
        header.max_timestamp,
        aborted=marker.aborted,
    )
    if completed is None or not completed.aborted:
        return None
    stable = producers.stable_offset_after(completed)
    return AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, stable)

"""What a control batch says about a transaction: COMMIT or ABORT, and by which coordinator."""

from __future__ import annotations

from typing import Final, NamedTuple

from tanist.wire.control import ControlKind, EndTxnMarker, decode_control_batch
from tanist.wire.errors import WireError

MARKER_BYTES_MAX: Final = 64 * 1024
"""A marker has about 80 bytes. A larger control batch of a producer is not decoded, and ends nothing."""


class Marker(NamedTuple):
    aborted: bool
    coordinator_epoch: int


def parse_marker(batch: memoryview) -> Marker | None:
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

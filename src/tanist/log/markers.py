"""What a control batch says about a transaction: COMMIT or ABORT, and by which coordinator."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from tanist.wire.batch import decode_batch
from tanist.wire.errors import WireError

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
_ABORT: Final = 0
_COMMIT: Final = 1

MARKER_BYTES_MAX: Final = 64 * 1024
"""A marker has about 80 bytes.

A control batch of a producer that is larger than this is not decoded, and so ends nothing.
"""


class Marker(NamedTuple):
    aborted: bool
    coordinator_epoch: int


def parse_marker(batch: memoryview) -> Marker | None:
    """The marker in a control batch; None when it holds none that ends a transaction."""
    if len(batch) > MARKER_BYTES_MAX:
        return None
    try:
        records = decode_batch(batch).records
    except WireError:
        return None
    for record in records:
        key, value = record.key, record.value
        if key is None or value is None or len(key) < _KEY.size or len(value) < _VALUE.size:
            return None
        _, kind = _KEY.unpack_from(key)
        _, coordinator_epoch = _VALUE.unpack_from(value)
        if kind in (_ABORT, _COMMIT):
            return Marker(kind == _ABORT, coordinator_epoch)
        return None
    return None

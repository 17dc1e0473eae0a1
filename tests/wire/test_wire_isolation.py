"""Records of a Fetch response for a reader of committed records."""

from __future__ import annotations

from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.control import encode_marker_batch
from tanist.wire.isolation import committed_batches


def batch(value: bytes, offset: int, producer_id: int = -1) -> bytes:
    encoded = encode_batch(
        [NewRecord(value=value)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=producer_id >= 0,
    )
    return bytes(offset.to_bytes(8, "big") + encoded[8:])


def marker(offset: int, producer_id: int, *, committed: bool) -> bytes:
    encoded = encode_marker_batch(
        committed=committed, coordinator_epoch=0, producer_id=producer_id, producer_epoch=0, timestamp_ms=1
    )
    return bytes(offset.to_bytes(8, "big") + encoded[8:])


def values(data: bytes, aborted: list[tuple[int, int]]) -> list[bytes | None]:
    return [record.value for _, records in committed_batches(data, aborted) for record in records]


def test_an_aborted_transaction_is_left_out_up_to_its_marker() -> None:
    data = b"".join(
        [
            batch(b"plain", 0),
            batch(b"aborted", 1, 7),
            batch(b"other", 2, 8),
            batch(b"aborted, too", 3, 7),
            marker(4, 7, committed=False),
            batch(b"next of 7", 5, 7),
            marker(6, 8, committed=True),
            marker(7, 7, committed=True),
        ]
    )
    assert values(data, [(1, 7)]) == [b"plain", b"other", b"next of 7"]
    assert values(data, []) == [b"plain", b"aborted", b"other", b"aborted, too", b"next of 7"]
    assert [header.next_offset for header, _ in committed_batches(data, [(1, 7)])] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_two_aborted_transactions_of_one_producer() -> None:
    data = b"".join(
        [
            batch(b"first", 0, 7),
            marker(1, 7, committed=False),
            batch(b"kept", 2, 7),
            marker(3, 7, committed=True),
            batch(b"second", 4, 7),
            marker(5, 7, committed=False),
        ]
    )
    assert values(data, [(4, 7), (0, 7)]) == [b"kept"]

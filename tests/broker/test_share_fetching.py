"""What a ShareFetch makes of batches that were read: which were aborted, and which go out."""

from __future__ import annotations

from tanist.broker.share.fetching import around, fetched
from tanist.coordinator.share.portions import FetchedBatch
from tanist.coordinator.share.runs import Acquired
from tanist.wire.batch import NewRecord, encode_batch, iterate_batches
from tanist.wire.control import encode_marker_batch

RECORDS = [NewRecord(timestamp=0, key=None, value=b"v")] * 2


def of(producer_id: int, base_offset: int, *, transactional: bool = True) -> bytes:
    return bytes(
        encode_batch(
            RECORDS, base_offset=base_offset, producer_id=producer_id, producer_epoch=0, transactional=transactional
        )
    )


def marker(producer_id: int, base_offset: int, *, committed: bool) -> bytes:
    return bytes(
        encode_marker_batch(
            committed=committed, coordinator_epoch=0, producer_id=producer_id, producer_epoch=0, timestamp_ms=0,
            base_offset=base_offset,
        )
    )  # fmt: skip


def test_only_batches_of_aborted_transactions_are_marked() -> None:
    log = [
        of(-1, 0, transactional=False),
        of(5, 2),
        of(6, 4),
        marker(5, 6, committed=False),
        of(5, 7),
        marker(6, 9, committed=True),
        marker(5, 10, committed=True),
    ]
    read = list(iterate_batches(b"".join(log)))
    assert list(fetched(read, {5: [2]})) == [
        FetchedBatch(0, 1),
        FetchedBatch(2, 3, aborted=True),
        FetchedBatch(4, 5),
        FetchedBatch(6, 6),
        FetchedBatch(7, 8),
        FetchedBatch(9, 9),
        FetchedBatch(10, 10),
    ]
    assert not any(each.aborted for each in fetched(read, {}))


def test_batches_go_out_from_the_first_acquired_record_to_the_last() -> None:
    batches = [of(-1, base, transactional=False) for base in (0, 2, 4, 6)]
    data = memoryview(b"".join(batches))
    headers = [header for header, _ in iterate_batches(data)]
    assert bytes(around(data, headers, [Acquired(3, 3, 1), Acquired(4, 4, 2)])) == batches[1] + batches[2]
    assert around(data, headers, [Acquired(0, 7, 1)]) == data

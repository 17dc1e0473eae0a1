"""Outcomes of salvaged transactions: what a reader of the whole log would get, or that they are not known."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.runtime.client.transaction_outcomes import ChainedBatch, TransactionOutcome, outcomes
from tanist.wire.batch import NewRecord, encode_batch, iterate_headers
from tanist.wire.control import ControlKind, encode_marker_batch
from tanist.wire.isolation import committed_batches

COMMITTED, ABORTED, UNDECIDED = TransactionOutcome
COMMIT, ABORT = ControlKind.COMMIT, ControlKind.ABORT


def batch(at: int, producer: int = 1, epoch: int = 0, marker: int | None = None, plain: bool = False) -> ChainedBatch:
    return ChainedBatch(epoch, at, at + 1, producer, not plain, marker)


def test_the_first_marker_of_the_producer_ends_it() -> None:
    log = [batch(0), batch(1, 2), batch(2, 2, marker=COMMIT), batch(3), batch(4, marker=ABORT), batch(5)]
    found = outcomes([log])
    assert {at: outcome for (_, at), outcome in found.items()} == {
        0: ABORTED, 1: COMMITTED, 3: ABORTED, 5: UNDECIDED
    }  # fmt: skip


def test_other_records_have_no_outcome() -> None:
    assert outcomes([[batch(0, plain=True), batch(1, marker=COMMIT)]]) == {}


def test_a_marker_that_cannot_be_read_decides_nothing() -> None:
    assert outcomes([[batch(0), batch(1, marker=-1), batch(2, marker=COMMIT)]]) == {(0, 0): UNDECIDED}


def test_chains_of_one_epoch_go_on_in_each_other() -> None:
    ends, begins = [batch(2), batch(3, marker=COMMIT)], [batch(0), batch(1)]
    assert set(outcomes([ends, begins]).values()) == {COMMITTED}


def test_a_chain_of_another_epoch_does_not_go_on_without_a_seam() -> None:
    begins, ends = [batch(0, epoch=1)], [batch(1, epoch=2, marker=COMMIT)]
    assert outcomes([begins, ends]) == {(1, 0): UNDECIDED}
    assert outcomes([begins, ends], [((1, 0), (2, 1))]) == {(1, 0): COMMITTED}


def test_unknown_epochs_are_not_one_log() -> None:
    assert outcomes([[batch(0, epoch=-1)], [batch(1, epoch=-1, marker=COMMIT)]]) == {(-1, 0): UNDECIDED}


@pytest.mark.parametrize(
    ("other", "outcome"), [(COMMIT, COMMITTED), (ABORT, UNDECIDED), (None, COMMITTED)], ids=["same", "contrary", "open"]
)
def test_logs_that_part_behind_a_batch(other: int | None, outcome: TransactionOutcome) -> None:
    one = [batch(0, epoch=1), batch(1, epoch=1, marker=COMMIT), batch(2, epoch=1)]
    two = [batch(0, epoch=1), batch(1, epoch=2, marker=other)]
    found = outcomes([one, two])
    assert found[1, 0] is outcome
    assert found[1, 2] is UNDECIDED


EVENTS = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(["begin", "begin", "plain", "commit", "abort"]), st.integers(1, 3)),
    min_size=1,
    max_size=30,
)


@settings(max_examples=300, deadline=None)
@given(EVENTS, st.data())
def test_a_part_of_a_log_agrees_with_a_reader_of_all_of_it(
    events: list[tuple[int, str, int]], data: st.DataObject
) -> None:
    """Any log, in any leader epochs, cut into chains that overlap: what is decided is what the reader gets.

    And all is decided that has its end, and every batch up to it, in one chain.
    """
    log = bytearray()
    chain: list[ChainedBatch] = []
    at = epoch = 0
    for producer, what, count in events:
        epoch += data.draw(st.integers(0, 9)) == 0
        kind = {"commit": COMMIT, "abort": ABORT}.get(what)
        if kind is not None:
            made = encode_marker_batch(
                committed=what == "commit", coordinator_epoch=0, producer_id=producer, producer_epoch=0,
                timestamp_ms=1, base_offset=at, leader_epoch=epoch,
            )  # fmt: skip
            count = 1
        else:
            records = [NewRecord(1, None, b"%d" % number) for number in range(at, at + count)]
            made = encode_batch(
                records, base_offset=at, leader_epoch=epoch, transactional=what == "begin", producer_id=producer,
                producer_epoch=0, base_sequence=0,
            )  # fmt: skip
        log += made
        chain.append(ChainedBatch(epoch, at, at + count, producer, what != "plain", kind))
        at += count

    read = {header.base_offset for header, records in committed_batches(log, aborted(chain)) if records}
    transactional = {each.base_offset for each in chain if each.is_transactional and each.marker is None}
    ended = {each for each in transactional if end_of(chain, each) is not None}
    cuts = data.draw(
        st.lists(st.tuples(st.integers(0, len(chain)), st.integers(0, len(chain))), min_size=1, max_size=4)
    )
    parts = [chain[first:last] for first, last in map(sorted, cuts)]
    found = {place[1]: outcome for place, outcome in outcomes(parts).items()}
    assert set(found) == transactional & {each.base_offset for part in parts for each in part}
    for offset, outcome in found.items():
        if outcome is COMMITTED:
            assert offset in read & ended
        elif outcome is ABORTED:
            assert offset not in read
        else:
            end = end_of(chain, offset)
            assert not any({offset, end} <= {each.base_offset for each in part} for part in parts)
    assert len(list(iterate_headers(memoryview(log)))) == len(chain)


def end_of(chain: list[ChainedBatch], offset: int) -> int | None:
    """The offset of the marker that ends a batch's transaction, by looking at all that follows."""
    (producer,) = (each.producer_id for each in chain if each.base_offset == offset)
    behind = (each for each in chain if each.base_offset > offset and each.producer_id == producer)
    return next((each.base_offset for each in behind if each.marker is not None), None)


def aborted(chain: list[ChainedBatch]) -> list[tuple[int, int]]:
    """First offset and producer of each aborted transaction, as a broker's index has them."""
    found, begun = [], dict[int, int]()
    for each in chain:
        if each.marker is None:
            if each.is_transactional:
                begun.setdefault(each.producer_id, each.base_offset)
        elif (first := begun.pop(each.producer_id, None)) is not None and each.marker == ABORT:
            found.append((first, each.producer_id))
    return found

"""The client's side of transactions: what may follow what, sequence numbers, and epochs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.client.errors import Meaning
from tanist.client.requests import Ask, Coordinator, CoordinatorKind, Leader
from tanist.client.sequences import NO_PRODUCER, Sequences
from tanist.client.transactions import PRODUCE_VERSION_MAX, State, Transactions
from tanist.invariants import InvariantError
from tanist.wire.batch import NewRecord, read_header
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from tanist.wire.messages.end_txn_response import EndTxnResponse
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.offset_fetch_response import OffsetFetchResponse
from tanist.wire.messages.produce_request import ProduceRequest
from tanist.wire.messages.produce_response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from tanist.wire.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

WHERE = ("t", 0)
RECORDS = [NewRecord(1, None, b"a"), NewRecord(1, None, b"b")]


def begun(*, adds_itself: bool = False) -> Transactions:
    transactions = Transactions("id", timeout_ms=1_000, adds_itself=adds_itself)
    transactions.initialize()
    assert transactions.handle_response(InitProducerIdResponse(producer_id=7, producer_epoch=3)) is Meaning.DONE
    return transactions


def produced(error: int) -> ProduceResponse:
    partition = PartitionProduceResponse(error_code=error)
    return ProduceResponse(responses=(TopicProduceResponse(name="t", partition_responses=(partition,)),))


def committed(error: int) -> TxnOffsetCommitResponse:
    partition = TxnOffsetCommitResponsePartition(error_code=error)
    return TxnOffsetCommitResponse(topics=(TxnOffsetCommitResponseTopic(name="t", partitions=(partition,)),))


def header(asked: Ask) -> tuple[int, int, int, bool]:
    assert isinstance(asked.request, ProduceRequest)
    found = read_header(asked.request.topic_data[0].partition_data[0].records or b"")
    return found.producer_id, found.producer_epoch, found.base_sequence, found.is_transactional


def test_nothing_is_asked_before_there_is_an_epoch() -> None:
    transactions = Transactions("id", timeout_ms=1_000)
    with pytest.raises(InvariantError):
        transactions.add_partitions([WHERE])
    with pytest.raises(InvariantError):
        transactions.batch(WHERE, RECORDS, timeout_ms=1)
    with pytest.raises(InvariantError):
        transactions.add_offsets("g")
    with pytest.raises(InvariantError):
        transactions.commit_offsets("g", {WHERE: 1})
    with pytest.raises(InvariantError):
        transactions.end(committed=True)
    assert transactions.state is State.NEW
    assert transactions.producer == NO_PRODUCER


def test_requests_go_to_who_has_to_get_them() -> None:
    transactions = begun()
    own, group = Coordinator(CoordinatorKind.TRANSACTION, "id"), Coordinator(CoordinatorKind.GROUP, "g")
    assert transactions.initialize().to == transactions.end(committed=True).to == own
    assert transactions.stable_offsets("g").to == transactions.commit_offsets("g", {WHERE: 1}).to == group
    batch = transactions.batch(WHERE, RECORDS, timeout_ms=1)
    assert (batch.to, batch.version_max) == (Leader("t", 0), PRODUCE_VERSION_MAX)


def test_an_older_producer_adds_what_a_newer_one_does_not() -> None:
    older, newer = begun(), begun(adds_itself=True)
    assert older.add_partitions([WHERE]) is not None
    assert older.add_offsets("g") is not None
    assert newer.add_partitions([WHERE]) is None
    assert newer.add_offsets("g") is None
    assert newer.batch(WHERE, RECORDS, timeout_ms=1).version_max == PRODUCE_VERSION_MAX + 1


def test_a_batch_keeps_its_numbers_until_it_is_written() -> None:
    transactions = begun()
    assert header(transactions.batch(WHERE, RECORDS, timeout_ms=1)) == (7, 3, 0, True)
    assert transactions.handle_response(None) is Meaning.FIND
    assert transactions.handle_response(produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)) is Meaning.FIND
    assert header(transactions.batch(WHERE, RECORDS, timeout_ms=1)) == (7, 3, 0, True)
    assert transactions.handle_response(produced(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)) is Meaning.DONE
    transactions.written(WHERE, len(RECORDS))
    assert header(transactions.batch(WHERE, RECORDS, timeout_ms=1)) == (7, 3, 2, True)
    assert header(transactions.batch(("t", 1), RECORDS, timeout_ms=1))[2] == 0


def test_numbers_continue_in_the_same_epoch_and_begin_anew_in_the_next() -> None:
    transactions = begun()
    transactions.written(WHERE, 5)
    transactions.handle_response(EndTxnResponse())
    assert (transactions.producer, transactions.sequences.next_of(WHERE)) == ((7, 3), 5), "before KIP-890"
    transactions.handle_response(EndTxnResponse(producer_id=7, producer_epoch=4))
    assert (transactions.producer, transactions.sequences.next_of(WHERE)) == ((7, 4), 0)
    transactions.written(WHERE, 5)
    transactions.handle_response(InitProducerIdResponse(producer_id=8, producer_epoch=0))
    assert (transactions.producer, transactions.sequences.next_of(WHERE)) == ((8, 0), 0)


def test_who_goes_on_after_an_error_says_who_it_was() -> None:
    transactions = begun()
    request = transactions.initialize(keeps_id=True).request
    assert (request.producer_id, request.producer_epoch) == (7, 3)  # type: ignore[attr-defined]
    request = transactions.initialize().request
    assert (request.producer_id, request.producer_epoch) == (-1, -1)  # type: ignore[attr-defined]


def test_a_generation_that_is_over_can_only_abort() -> None:
    transactions = begun()
    assert transactions.handle_response(committed(ErrorCode.ILLEGAL_GENERATION)) is Meaning.ABORT
    assert transactions.state is State.ABORTING
    with pytest.raises(InvariantError):
        transactions.end(committed=True)
    transactions.end(committed=False)
    assert transactions.handle_response(EndTxnResponse()) is Meaning.DONE
    assert transactions.state is State.READY


def test_who_is_fenced_begins_anew() -> None:
    transactions = begun()
    assert transactions.handle_response(produced(ErrorCode.INVALID_PRODUCER_EPOCH)) is Meaning.FENCED
    assert transactions.state is State.NEW


def test_a_refused_question_is_no_part_of_the_transaction() -> None:
    transactions = begun()
    refused = OffsetFetchResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert transactions.handle_response(refused) is Meaning.FINAL
    assert transactions.state is State.READY


ANSWERS = st.sampled_from(list(ErrorCode)).flatmap(
    lambda code: st.sampled_from(
        [produced(code), committed(code), AddOffsetsToTxnResponse(error_code=code), EndTxnResponse(error_code=code)]
    )
)


@given(st.lists(ANSWERS))
def test_nothing_is_committed_after_a_refusal(answers: Iterable[ProduceResponse | TxnOffsetCommitResponse]) -> None:
    """Whatever comes: a commit is allowed only while each request was carried out, or may be."""
    transactions = begun()
    whole = True
    for answer in answers:
        meaning = transactions.handle_response(answer)
        if meaning is Meaning.DONE and isinstance(answer, EndTxnResponse):
            whole = True
        elif meaning is not Meaning.DONE and not meaning.is_retriable:
            whole = False
        assert (transactions.state is State.READY) == whole
        if not whole:
            with pytest.raises(InvariantError):
                transactions.end(committed=True)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 2**31 - 1)), max_size=30))
def test_each_partition_counts_for_itself_and_begins_again_after_the_last_number(steps: list[tuple[int, int]]) -> None:
    sequences, expected = Sequences(), dict.fromkeys(range(3), 0)
    sequences.begin((1, 0))
    for partition, count in steps:
        sequences.advance(("t", partition), count)
        expected[partition] = (expected[partition] + count) % 2**31
    assert {each: sequences.next_of(("t", each)) for each in range(3)} == expected
    sequences.begin((1, 0))
    assert {each: sequences.next_of(("t", each)) for each in range(3)} == expected, "the same epoch"


def test_one_partition_begins_anew_and_the_others_do_not() -> None:
    sequences = Sequences()
    sequences.begin((1, 0))
    sequences.advance(("t", 0), 3)
    sequences.advance(("t", 1), 4)
    sequences.begin_in(("t", 1), (2, 0))
    assert [sequences.producer_of(("t", each)) for each in (0, 1)] == [(1, 0), (2, 0)]
    assert [sequences.next_of(("t", each)) for each in (0, 1)] == [3, 0]
    sequences.begin((1, 0))
    assert [sequences.next_of(("t", each)) for each in (0, 1)] == [0, 0], "all begin anew"
    assert sequences.producer_of(("t", 1)) == (1, 0)
    sequences.continue_at(("t", 0), 9)
    assert sequences.next_of(("t", 0)) == 9

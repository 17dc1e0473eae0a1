"""What answers mean: each error is found where its API has it, and the table says what a client does about it."""

from __future__ import annotations

import pytest

from tanist.client.errors import Meaning, error_in, meaning_in, meaning_of, refusal_in
from tanist.client.offsets import offset_commit, offset_fetch
from tanist.client.requests import Ask
from tanist.client.transactions import Transactions
from tanist.wire.apis import ApiKey, response_class
from tanist.wire.batch import NewRecord
from tanist.wire.error_responses import error_response
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import decode_response, encode_response
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.join_group_request import JoinGroupRequest
from tanist.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tanist.wire.schema import Request


def asked_in_transactions() -> list[Ask]:
    transactions = Transactions("id", timeout_ms=1)
    transactions.begin_as((7, 0))
    found = [
        transactions.initialize(),
        transactions.add_partitions([("t", 0)]),
        transactions.batch(("t", 0), [NewRecord(1, None, b"v")], timeout_ms=1),
        transactions.add_offsets("g"),
        transactions.commit_offsets("g", {("t", 0): 1}),
        transactions.end(committed=True),
    ]
    return [each for each in found if each is not None]


REQUESTS: list[Request] = [
    *(each.request for each in asked_in_transactions()),
    offset_fetch("g", [("t", 0)]),
    offset_commit("g", {("t", 0): 1}),
    FindCoordinatorRequest(key="g", coordinator_keys=("g",)),
    JoinGroupRequest(group_id="g"),
    FetchRequest(topics=(FetchTopic(topic="t", partitions=(FetchPartition(),)),)),
    ListOffsetsRequest(topics=(ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(),)),)),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: type(each).__name__)
def test_the_error_of_each_version_is_found(request_: Request) -> None:
    """Only AddPartitionsToTxn has versions that clients do not send."""
    first, last = response_class(request_.API_KEY).VERSIONS
    if request_.API_KEY == ApiKey.ADD_PARTITIONS_TO_TXN:
        last = 3
    for version in range(max(first, request_.VERSIONS[0]), min(last, request_.VERSIONS[1]) + 1):
        made = error_response(request_, version, ErrorCode.INVALID_REQUEST, "said")
        assert made is not None
        answer = decode_response(request_.API_KEY, version, memoryview(encode_response(made, version, 1))[4:])
        assert error_in(answer) == ErrorCode.INVALID_REQUEST, version
        assert refusal_in(answer)[1] in ("said", None)
        assert error_in(type(answer)()) == 0


def test_no_answer_means_to_look_again() -> None:
    assert meaning_in(None) is Meaning.FIND


def test_what_the_log_has_already_is_written() -> None:
    assert meaning_of(ErrorCode.DUPLICATE_SEQUENCE_NUMBER, ApiKey.PRODUCE) is Meaning.DONE
    assert meaning_of(ErrorCode.DUPLICATE_SEQUENCE_NUMBER) is Meaning.FINAL


def test_a_member_that_is_out_joins_again_but_its_transaction_is_aborted() -> None:
    for code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION):
        assert meaning_of(code, ApiKey.OFFSET_COMMIT) is Meaning.JOIN
        assert meaning_of(code, ApiKey.TXN_OFFSET_COMMIT) is Meaning.ABORT


def test_the_same_errors_are_retriable_wherever_they_come_from() -> None:
    """A driver that does not know the API may trust this."""
    for code in ErrorCode:
        general = meaning_of(code)
        for api_key in ApiKey:
            if code is not ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                assert meaning_of(code, api_key).is_retriable == general.is_retriable, (code, api_key)


def test_an_error_that_nobody_knows_is_final() -> None:
    assert meaning_of(7_777) is Meaning.FINAL
    assert meaning_of(ErrorCode.UNKNOWN_SERVER_ERROR) is Meaning.FINAL


def test_transient_errors_are_retriable() -> None:
    assert meaning_of(ErrorCode.NOT_LEADER_OR_FOLLOWER).is_retriable
    assert meaning_of(ErrorCode.CONCURRENT_TRANSACTIONS) is Meaning.WAIT, "the coordinator is the right one"
    assert not meaning_of(ErrorCode.INVALID_REQUEST).is_retriable
    assert not meaning_of(ErrorCode.OFFSET_OUT_OF_RANGE).is_retriable

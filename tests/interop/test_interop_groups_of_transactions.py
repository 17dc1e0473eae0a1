"""Groups that nobody but a transaction has committed for: what Apache Kafka's node and ours list and describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tanist.wire.errors import ErrorCode
from tanist.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from tanist.wire.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from tanist.wire.messages.describe_groups_request import DescribeGroupsRequest
from tanist.wire.messages.describe_groups_response import DescribeGroupsResponse
from tanist.wire.messages.end_txn_request import EndTxnRequest
from tanist.wire.messages.end_txn_response import EndTxnResponse
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.find_coordinator_response import FindCoordinatorResponse
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.list_groups_request import ListGroupsRequest
from tanist.wire.messages.list_groups_response import ListGroupsResponse
from tanist.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tanist.wire.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from tests.interop.pair import Asker, Pair, alike, pair
from tests.interop.raw import RawClient
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

_NOT_YET = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


@pytest.fixture(scope="module")
def nodes(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with pair(tmp_path_factory.mktemp("groups"), {"offsets.retention.check.interval.ms": "1000"}) as both:
        for address in (both.apache, both.tanist):
            with RawClient(*address) as client:
                client.create_topic("t", 1, 1, {})
            with Asker(address) as asker:
                for kind in (0, 1):
                    _settled(partial(_coordinator, asker, kind))
        yield both


def _coordinator(asker: Asker, kind: int) -> Any:
    """Of groups or of transactions; to ask for it makes its topic."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=("x",))
    return asker.ask(request, 5, FindCoordinatorResponse).coordinators[0]


def _settled(ask: Callable[[], Any]) -> Any:
    def settled() -> Any:
        answer = ask()
        return None if answer.error_code in _NOT_YET else answer

    return wait_for(settled, "the coordinator answers")


def _seen(asker: Asker, group: str) -> Any:
    listed = [each for each in asker.ask(ListGroupsRequest(), 4, ListGroupsResponse).groups if each.group_id == group]
    (described,) = asker.ask(DescribeGroupsRequest(groups=(group,)), 6, DescribeGroupsResponse).groups
    return (
        [(each.group_state, each.protocol_type) for each in listed],
        ErrorCode.name_of(described.error_code),
        described.group_state,
    )


@pytest.mark.parametrize("committed", [True, False])
def test_a_group_that_only_a_transaction_knows(nodes: Pair, *, committed: bool) -> None:
    """It is there while the transaction is open. When that aborts, both list it until the next check of retention."""
    group = f"of-a-transaction-{committed}"

    def question(asker: Asker) -> Any:
        begin = InitProducerIdRequest(transactional_id=group, transaction_timeout_ms=60_000)
        producer = _settled(lambda: asker.ask(begin, 4, InitProducerIdResponse))
        ids = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        add = AddOffsetsToTxnRequest(transactional_id=group, group_id=group, **ids)
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topic = TxnOffsetCommitRequestTopic(name="t", partitions=(part,))
        commit = TxnOffsetCommitRequest(
            transactional_id=group, group_id=group, topics=(topic,), generation_id=-1, member_id="", **ids
        )
        end = EndTxnRequest(transactional_id=group, committed=committed, **ids)
        errors = [
            _settled(lambda: asker.ask(add, 3, AddOffsetsToTxnResponse)).error_code,
            _settled(lambda: asker.ask(commit, 3, TxnOffsetCommitResponse).topics[0].partitions[0]).error_code,
        ]
        found = [_seen(asker, group)]
        errors.append(_settled(lambda: asker.ask(end, 3, EndTxnResponse)).error_code)
        if not committed:
            wait_for(lambda: not _seen(asker, group)[0], "retention is checked")
        return errors, [*found, _seen(asker, group)]

    errors, (during, after) = alike(nodes, question)
    assert errors == [0, 0, 0]
    assert during == ([("Empty", "")], "NONE", "Empty")
    assert after == (during if committed else ([], "GROUP_ID_NOT_FOUND", "Dead"))

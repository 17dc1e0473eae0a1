"""Offsets committed within transactions: invisible until the marker, and fenced by the group's generation (KIP-447)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tanist.coordinator.effects import MarkerAppend
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tanist.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tanist.wire.schema import ZERO_UUID
from tests.coordinator.group_rig import GROUP, Rig

PLACE = ("t", 0)


def txn_commit(
    rig: Rig,
    offset: int,
    producer_id: int = 7,
    *,
    topic: str = "t",
    topic_id: UUID = ZERO_UUID,
    exact: bool = False,
    **fields: Any,
) -> int:
    """The error; -1 while there is no answer."""
    ticket = rig.ticket()
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id=GROUP,
        producer_id=producer_id,
        producer_epoch=0,
        topics=(
            TxnOffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_id,
                partitions=(TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset),),
            ),
        ),
        **fields,
    )
    rig.carry_out(rig.shard.txn_commit(request, ticket, exact=exact))
    answer = rig.answers.get(ticket)
    return -1 if answer is None else int(answer.topics[0].partitions[0].error_code)


def end(rig: Rig, producer_id: int = 7, *, committed: bool = True) -> None:
    rig.carry_out([MarkerAppend(producer_id, 0, 0, committed, rig.ticket())])


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("failover", [True, False])
def test_an_offset_counts_with_its_marker(committed: bool, failover: bool) -> None:
    rig = Rig()
    rig.commit(3)
    assert txn_commit(rig, 5) == 0
    assert rig.committed() == 3
    assert rig.shard.pending.is_unstable(GROUP, PLACE)
    if failover:
        rig.failover()
        assert rig.shard.pending.is_unstable(GROUP, PLACE)
    end(rig, committed=committed)
    assert rig.committed() == (5 if committed else 3)
    assert not rig.shard.pending.is_unstable(GROUP, PLACE)
    rig.failover()
    assert rig.committed() == (5 if committed else 3)


def test_it_is_answered_once_it_is_committed() -> None:
    rig = Rig(commits=False)
    assert txn_commit(rig, 5) == -1
    assert not rig.shard.pending.is_unstable(GROUP, PLACE)
    rig.commit_all()
    assert rig.shard.pending.is_unstable(GROUP, PLACE)


def test_a_later_plain_commit_stands() -> None:
    rig = Rig()
    txn_commit(rig, 5)
    rig.commit(9)
    end(rig)
    assert rig.committed() == 9
    rig.failover()
    assert rig.committed() == 9


@pytest.mark.parametrize("first", [7, 8])
def test_of_two_transactions_the_later_commit_stands(first: int) -> None:
    rig = Rig()
    txn_commit(rig, 5, 7)
    txn_commit(rig, 6, 8)
    end(rig, first)
    assert rig.shard.pending.is_unstable(GROUP, PLACE)
    end(rig, 15 - first)
    assert rig.committed() == 6
    rig.failover()
    assert rig.committed() == 6


def test_a_deleted_topic_takes_its_pending_offsets_along() -> None:
    rig = Rig()
    rig.commit(3)
    txn_commit(rig, 5)
    rig.carry_out(rig.shard.forget_topics({"t"}))
    end(rig)
    assert rig.committed() is None


def test_an_unknown_topic_is_refused() -> None:
    assert txn_commit(Rig(), 5, topic="gone") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_group_with_pending_offsets_does_not_expire() -> None:
    rig = Rig()
    txn_commit(rig, 5)
    rig.carry_out(rig.shard.expire(1 << 50, 1))
    end(rig)
    assert rig.committed() == 5


def test_a_member_commits_in_a_transaction_before_it_has_its_assignment() -> None:
    rig = Rig()
    joined = rig.answers[rig.join()]
    ids = {"member_id": joined.member_id, "generation_id": joined.generation_id}
    assert rig.commit_error(rig.commit(5, joined)) == ErrorCode.REBALANCE_IN_PROGRESS
    assert txn_commit(rig, 5, **ids) == 0


def test_an_offset_of_an_open_transaction_can_be_deleted() -> None:
    rig = Rig()
    txn_commit(rig, 5)
    ticket = rig.ticket()
    part = OffsetDeleteRequestPartition(partition_index=0)
    request = OffsetDeleteRequest(group_id=GROUP, topics=(OffsetDeleteRequestTopic(name="t", partitions=(part,)),))
    rig.carry_out(rig.shard.delete_offsets(request, ticket))
    assert rig.answers[ticket].error_code == 0
    end(rig)
    assert rig.committed() is None


def test_a_group_that_only_an_aborted_transaction_knew_is_there_until_retention_is_checked() -> None:
    rig = Rig()
    txn_commit(rig, 5)
    end(rig, committed=False)
    assert GROUP in rig.shard.groups
    rig.carry_out(rig.shard.expire(0, 1))
    assert GROUP not in rig.shard.groups


def test_a_generation_of_an_unknown_group_is_refused() -> None:
    assert txn_commit(Rig(), 5, generation_id=1, member_id="m") == ErrorCode.ILLEGAL_GENERATION
    assert txn_commit(Rig(), 5, generation_id=1, member_id="m", exact=True) == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_topic_of_another_id_is_not_taken_for_the_one_that_has_its_name() -> None:
    """The request waits for its transaction's coordinator; meanwhile the topic may be deleted and made again."""
    rig = Rig()
    assert txn_commit(rig, 5, topic_id=UUID(int=9), exact=True) == ErrorCode.UNKNOWN_TOPIC_ID
    end(rig)
    assert rig.committed() != 5


def test_members_of_the_present_generation_may_commit_and_no_others() -> None:
    rig = Rig()
    joined = rig.stable_group(1)[0]
    member, generation = joined.member_id, joined.generation_id
    assert txn_commit(rig, 5, generation_id=generation, member_id=member) == 0
    assert txn_commit(rig, 5, generation_id=generation - 1, member_id=member) == ErrorCode.ILLEGAL_GENERATION
    assert txn_commit(rig, 5, generation_id=generation, member_id="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert txn_commit(rig, 6) == 0, "a producer that names no member, as before KIP-447"

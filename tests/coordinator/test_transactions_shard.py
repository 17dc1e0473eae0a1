"""The transactional ids of one partition: epochs, fencing, ends, markers, timeouts, and the replay of the log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tanist.coordinator.transactions.effects import ProducerAnswer
from tanist.coordinator.transactions.state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    MAX_EPOCH,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
)
from tanist.events.coordination import TransactionEnded
from tanist.wire.errors import ErrorCode
from tests.coordinator.transaction_rig import BUMPS, ID, OLD, P0, P1, Rig

FENCED = ErrorCode.PRODUCER_FENCED
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS


# -- the event


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", [OLD, BUMPS])
def test_a_transaction_has_ended_when_its_completion_is_committed(committed: bool, version: int) -> None:
    """Not before; and it names the producer as its markers do."""
    rig = Rig(commits=False)
    rig.init()
    rig.commit_all()
    producer = (rig.values.producer_id, rig.values.producer_epoch)
    rig.add(producer, P0, version=version)
    rig.commit_all()
    rig.end(producer, committed=committed, version=version)
    rig.carry_out(rig.shard.apply(rig.uncommitted.pop()))
    assert rig.uncommitted[0].values.state in (COMPLETE_COMMIT, COMPLETE_ABORT)
    assert rig.heard == []
    rig.commit_all()
    marker_epoch = producer[1] + (version == BUMPS)
    assert rig.written[-1].producer_epoch == marker_epoch
    assert rig.heard == [TransactionEnded(ID, producer[0], marker_epoch, committed)]


def test_a_transaction_whose_epochs_are_used_up_was_ended_of_the_old_producer() -> None:
    rig = Rig()
    producer_id, _ = rig.begin()
    rig.shard.transactions[ID].values = replace(rig.values, producer_epoch=MAX_EPOCH - 1)
    rig.add((producer_id, MAX_EPOCH - 1), P0, version=BUMPS)
    rig.end((producer_id, MAX_EPOCH - 1), version=BUMPS)
    assert (rig.values.producer_id, rig.values.producer_epoch) != (producer_id, MAX_EPOCH)
    assert rig.heard == [TransactionEnded(ID, producer_id, MAX_EPOCH, committed=True)]


# -- InitProducerId


def test_each_initialization_has_a_new_epoch() -> None:
    rig = Rig()
    assert rig.begin() == (101, 0)
    assert rig.begin() == (101, 1)
    rig.failover()
    assert rig.begin() == (101, 2)


def test_nothing_is_answered_before_it_is_committed() -> None:
    rig = Rig(commits=False)
    ticket = rig.init()
    assert rig.init().error == CONCURRENT
    assert rig.shard.find(ID) is None
    rig.commit_all()
    assert rig.answers[ticket] == ProducerAnswer(0, 101, 0)


def test_an_append_that_is_refused_leaves_nothing() -> None:
    rig = Rig(commits=False)
    ticket = rig.init()
    rig.refuse(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert rig.answers[ticket].error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not rig.shard.transactions
    rig.commits = True
    assert rig.begin() == (102, 0)


def test_an_append_that_takes_too_long_stays_under_way() -> None:
    """It may be committed after all: another answer to the same epoch must not be given meanwhile."""
    rig = Rig(commits=False)
    ticket = rig.init()
    append = rig.uncommitted.pop()
    rig.carry_out(rig.shard.written(append, ErrorCode.REQUEST_TIMED_OUT, rig.now_ms))
    assert rig.answers[ticket].error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert rig.init().error == CONCURRENT
    rig.carry_out(rig.shard.apply(append))
    rig.commits = True
    assert rig.begin() == (101, 1)


@pytest.mark.parametrize(("timeout_ms", "error"), [(0, True), (-1, True), (900_001, True), (900_000, False)])
def test_the_timeout_has_a_bound(timeout_ms: int, error: bool) -> None:
    answer = Rig().init(timeout_ms=timeout_ms)
    assert (answer.error == ErrorCode.INVALID_TRANSACTION_TIMEOUT) is error


def test_two_phase_commit_has_no_timeout_where_the_broker_allows_it() -> None:
    assert Rig().init(two_phase=True).error == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    rig = Rig(two_phase_commit=True)
    assert rig.init(keeps_prepared=True).error == ErrorCode.UNSUPPORTED_VERSION
    answer = rig.init(timeout_ms=2_000_000, two_phase=True)
    rig.add((answer.producer_id, answer.producer_epoch), P0)
    rig.wall_ms += 10**10
    rig.carry_out(rig.shard.abort_timed_out(rig.wall_ms))
    assert rig.values.state is ONGOING


def test_an_empty_id_is_refused() -> None:
    rig = Rig()
    rig.carry_out(rig.shard.init_producer_id("", 1_000, None, 5, 1, rig.wall_ms))
    assert rig.answers[1].error == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [OLD, BUMPS])
def test_a_new_producer_ends_the_transaction_of_the_old_one(version: int) -> None:
    rig = Rig()
    old = rig.begin()
    rig.add(old, P0, version=version)
    assert rig.init().error == CONCURRENT
    assert rig.written[-1].producer_epoch == old[1] + 1
    assert not rig.written[-1].committed
    assert rig.values.state is COMPLETE_ABORT
    new = rig.begin()
    assert new == (old[0], old[1] + 2)
    assert rig.add(old, P0, version=version) == FENCED
    for committed in (True, False):
        assert rig.end(old, committed=committed, version=version).error == FENCED


def test_a_producer_goes_on_after_an_error_and_a_lost_answer() -> None:
    """KIP-360."""
    rig = Rig()
    first = rig.begin()
    answer = rig.init(first)
    assert answer == ProducerAnswer(0, first[0], first[1] + 1)
    assert rig.init(first) == answer, "a retry gets the same epoch"
    assert rig.init((first[0], 7)).error == FENCED
    rig.begin()
    assert rig.init(first).error == FENCED


def test_a_producer_id_is_changed_when_its_epochs_are_used_up() -> None:
    rig = Rig()
    rig.begin()
    rig.shard.transactions[ID].values = replace(rig.values, producer_epoch=MAX_EPOCH - 1)
    assert rig.shard.needs_producer_id(ID)
    assert rig.begin() == (102, 0)
    assert rig.values.previous_producer_id == 101


def test_the_last_epoch_is_for_fencing_only() -> None:
    rig = Rig()
    producer = rig.begin()
    rig.shard.transactions[ID].values = replace(rig.values, producer_epoch=MAX_EPOCH - 1)
    last = (producer[0], MAX_EPOCH - 1)
    rig.add(last, P0)
    assert rig.init().error == CONCURRENT
    assert rig.written[-1].producer_epoch == MAX_EPOCH
    answer = rig.init()
    assert (answer.error, answer.producer_epoch) == (0, 0)
    assert answer.producer_id != producer[0]


@pytest.mark.parametrize("epoch", [3, MAX_EPOCH - 1])
def test_a_lost_answer_is_repeated_by_the_next_coordinator_and_after_it(epoch: int) -> None:
    """KAFKA-20357, with an epoch that is bumped and with one that is the last."""
    rig = Rig()
    producer = rig.begin()
    rig.shard.transactions[ID].values = replace(rig.values, producer_epoch=epoch)
    last = (producer[0], epoch)
    answer = rig.init(last)
    assert not answer.error
    for _ in range(2):
        assert rig.init(last) == answer
        rig.failover()
    assert rig.init(last) == answer


def test_a_late_initialization_does_not_end_the_transaction_after_it() -> None:
    rig = Rig()
    first = rig.begin()
    answer = rig.init(first)
    following = (answer.producer_id, answer.producer_epoch)
    rig.add(following, P0)
    assert rig.init(first).error == FENCED, "sent before the answer that has begun this transaction, read only now"
    assert rig.values.state is ONGOING
    assert rig.init(following).error == CONCURRENT
    assert rig.values.state is COMPLETE_ABORT


@pytest.mark.parametrize("before_markers", [True, False])
def test_the_epoch_that_fences_is_nobodys_at_the_end_of_epochs(before_markers: bool) -> None:
    """KAFKA-20090: the epoch after the last is no answer to the client's own end."""
    rig = Rig(writes_markers=False)
    producer = rig.begin()
    rig.shard.transactions[ID].values = replace(rig.values, producer_epoch=MAX_EPOCH - 1)
    last = (producer[0], MAX_EPOCH - 1)
    rig.add(last, P0, version=BUMPS)
    rig.carry_out(rig.shard.abort_timed_out(rig.wall_ms + 60_001))
    if not before_markers:
        rig.write_markers()
        assert rig.values.state is COMPLETE_ABORT
    for committed in (True, False):
        assert rig.end(last, committed=committed, version=BUMPS).error == FENCED
    rig.write_markers()
    answer = rig.init()
    assert (answer.error, answer.producer_epoch) == (0, 0)


# -- a transaction


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", [OLD, BUMPS])
def test_a_transaction_from_begin_to_end(committed: bool, version: int) -> None:
    rig = Rig(writes_markers=False)
    producer = rig.begin()
    assert rig.add(producer, P0, version=version) == 0
    assert rig.add(producer, P1, version=version) == 0
    assert rig.values.state is ONGOING
    answer = rig.end(producer, committed=committed, version=version)
    epoch = producer[1] + (version == BUMPS)
    assert answer == (ProducerAnswer(0, producer[0], epoch) if version == BUMPS else ProducerAnswer())
    assert rig.values.state is (PREPARE_COMMIT if committed else PREPARE_ABORT)
    markers = rig.markers[0]
    assert (markers.producer_epoch, markers.partitions) == (epoch, frozenset({P0, P1}))
    assert rig.add((producer[0], epoch), P0, version=version) == CONCURRENT
    rig.carry_out(rig.shard.marker_written(markers, [P0], rig.wall_ms))
    assert rig.values.state in PREPARED
    rig.carry_out(rig.shard.marker_written(markers, [P1], rig.wall_ms))
    assert rig.values.state is (COMPLETE_COMMIT if committed else COMPLETE_ABORT)
    assert rig.add((producer[0], epoch), P0, version=version) == 0


def test_markers_of_an_earlier_transaction_complete_nothing() -> None:
    """Two transactions of an old client have the same epoch."""
    rig = Rig(writes_markers=False)
    producer = rig.begin()
    rig.add(producer, P0)
    rig.end(producer)
    first = rig.markers[0]
    rig.write_markers()
    rig.add(producer, P0)
    rig.end(producer)
    rig.carry_out(rig.shard.marker_written(first, [P0], rig.wall_ms))
    assert rig.values.state is PREPARE_COMMIT


def test_a_completion_that_the_log_refuses_is_tried_again() -> None:
    rig = Rig()
    producer = rig.begin()
    rig.add(producer, P0)
    rig.commits = False
    rig.end(producer)
    rig.commits, append = True, rig.uncommitted.pop()
    rig.commits = False
    rig.carry_out(rig.shard.apply(append))
    assert rig.uncommitted, "the completion"
    rig.refuse(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert rig.values.state is PREPARE_COMMIT
    assert rig.shard.check_ms == rig.now_ms + 100
    rig.carry_out(rig.shard.tick(rig.shard.check_ms))
    rig.commit_all()
    assert rig.values.state is COMPLETE_COMMIT


def test_a_coordinator_that_takes_over_writes_the_markers() -> None:
    rig = Rig(writes_markers=False)
    producer = rig.begin()
    rig.add(producer, P0)
    rig.end(producer, committed=False)
    rig.writes_markers = True
    rig.failover()
    assert rig.written[-1].coordinator_epoch == 2
    assert not rig.written[-1].committed
    assert rig.values.state is COMPLETE_ABORT


# -- the table of KIP-890's ends


def state_after(rig: Rig, state: str) -> tuple[int, int]:
    """The producer as the client knows it in that state."""
    producer = rig.begin()
    if state == "empty":
        return producer
    rig.add(producer, P0, version=BUMPS)
    answer = rig.end(producer, committed=state == "committed", version=BUMPS)
    return answer.producer_id, answer.producer_epoch


ITS = ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("state", "committed", "retried", "expected"),
    [
        ("empty", False, True, FENCED),
        ("empty", False, False, "bump"),
        ("empty", True, True, FENCED),
        ("empty", True, False, ITS),
        ("aborted", False, True, "same"),
        ("aborted", False, False, "bump"),
        ("aborted", True, True, ITS),
        ("aborted", True, False, ITS),
        ("committed", False, True, ITS),
        ("committed", False, False, "bump"),
        ("committed", True, True, "same"),
        ("committed", True, False, ITS),
    ],
)
def test_an_end_without_a_transaction(state: str, committed: bool, retried: bool, expected: Any) -> None:
    rig = Rig()
    producer = state_after(rig, state)
    asks = (producer[0], producer[1] - 1) if retried else producer
    answer = rig.end(asks, committed=committed, version=BUMPS)
    if expected == "same":
        assert answer == ProducerAnswer(0, *producer)
    elif expected == "bump":
        assert answer == ProducerAnswer(0, producer[0], producer[1] + 1)
    else:
        assert answer.error == expected


def test_an_old_clients_retry_of_an_end_succeeds() -> None:
    rig = Rig()
    producer = rig.begin()
    rig.add(producer, P0)
    rig.end(producer)
    assert rig.end(producer) == ProducerAnswer()
    assert rig.end(producer, committed=False).error == ITS


def test_an_old_client_cannot_end_nothing() -> None:
    rig = Rig()
    assert rig.end(rig.begin(), committed=False).error == ITS


def test_an_end_with_the_last_epoch_changes_the_producer_id() -> None:
    rig = Rig()
    producer = rig.begin()
    rig.shard.transactions[ID].values = replace(rig.values, producer_epoch=MAX_EPOCH - 1)
    last = (producer[0], MAX_EPOCH - 1)
    rig.add(last, P0, version=BUMPS)
    answer = rig.end(last, version=BUMPS)
    assert answer.producer_epoch == 0
    assert answer.producer_id not in (-1, producer[0])
    assert rig.written[-1].producer_epoch == MAX_EPOCH
    assert rig.end(last, version=BUMPS) == answer, "a retry"
    rig.failover()
    assert rig.add((answer.producer_id, 0), P0, version=BUMPS) == 0


@pytest.mark.parametrize("epoch", [0, MAX_EPOCH - 1])
def test_what_a_client_begins_before_the_markers_of_its_last_end_waits(epoch: int) -> None:
    """franz-go aborts at once what it has not begun; with the last epoch the client has another producer id by then."""
    rig = Rig(writes_markers=False)
    rig.begin()
    rig.shard.transactions[ID].values = replace(rig.values, producer_epoch=epoch)
    last = (rig.values.producer_id, epoch)
    rig.add(last, P0, version=BUMPS)
    answer = rig.end(last, version=BUMPS)
    following = (answer.producer_id, answer.producer_epoch)
    for committed in (True, False):
        assert rig.end(following, committed=committed, version=BUMPS).error == CONCURRENT
    assert rig.add(following, P1, version=BUMPS) == CONCURRENT
    assert rig.end((following[0], following[1] + 1), version=BUMPS).error not in (0, CONCURRENT)
    rig.failover()
    assert rig.end(following, committed=False, version=BUMPS).error == CONCURRENT
    rig.writes_markers = True
    rig.write_markers()
    assert rig.values.state is COMPLETE_COMMIT
    assert rig.end(following, committed=False, version=BUMPS).error == 0


def test_a_delayed_end_of_a_client_with_bumps_is_fenced() -> None:
    """KAFKA-17754: with an old client it would end the next transaction."""
    rig = Rig()
    producer = rig.begin()
    rig.add(producer, P0, version=BUMPS)
    answer = rig.end(producer, version=BUMPS)
    following = (answer.producer_id, answer.producer_epoch)
    rig.add(following, P0, version=BUMPS)
    assert rig.end(producer, committed=False, version=BUMPS).error == FENCED
    assert rig.values.state is ONGOING


# -- verification


def test_verification() -> None:
    rig = Rig(writes_markers=False)
    producer = rig.begin()
    rig.add(producer, P0)
    assert rig.shard.verify(ID, producer, [P0, P1]) == {P0: 0, P1: ErrorCode.TRANSACTION_ABORTABLE}
    assert rig.shard.verify(ID, (producer[0], 9), [P0]) == {P0: FENCED}
    assert rig.shard.verify("other", producer, [P0]) == {P0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    rig.end(producer)
    assert rig.shard.verify(ID, producer, [P0]) == {P0: CONCURRENT}


# -- time


@pytest.mark.parametrize("version", [OLD, BUMPS])
def test_a_transaction_that_takes_too_long_is_aborted_and_never_committed(version: int) -> None:
    """KAFKA-19367: with bumps it is as if the client had aborted, and it goes on if it does so. Others are fenced."""
    rig = Rig()
    producer = rig.begin()
    rig.add(producer, P0, version=version)
    rig.carry_out(rig.shard.abort_timed_out(rig.wall_ms + 60_000))
    assert rig.values.state is ONGOING
    rig.carry_out(rig.shard.abort_timed_out(rig.wall_ms + 60_001))
    assert rig.values.state is COMPLETE_ABORT
    following = (producer[0], producer[1] + 1)
    assert rig.written[-1].producer_epoch == following[1]
    assert rig.add(producer, P0, version=version) == FENCED
    committed, aborted = (rig.end(producer, committed=each, version=version) for each in (True, False))
    if version == OLD:
        assert committed.error == aborted.error == FENCED
        return
    assert committed.error == ErrorCode.INVALID_TXN_STATE
    assert aborted == ProducerAnswer(0, *following)
    assert rig.init(producer) == ProducerAnswer(0, *following), "KIP-360: so does one that initializes again"
    assert rig.add(following, P0, version=version) == 0
    assert rig.init().error == CONCURRENT
    assert rig.begin() == (producer[0], following[1] + 2)
    assert rig.add(following, P0, version=version) == FENCED


def test_an_id_that_nobody_uses_is_forgotten() -> None:
    rig = Rig(id_expiration_ms=1_000)
    producer = rig.begin()
    rig.add(producer, P0)
    rig.carry_out(rig.shard.expire(rig.wall_ms + 1_000))
    assert rig.values.state is ONGOING
    rig.end(producer)
    rig.carry_out(rig.shard.expire(rig.wall_ms + 999))
    assert rig.shard.find(ID) is not None
    rig.carry_out(rig.shard.expire(rig.wall_ms + 1_000))
    assert rig.shard.find(ID) is None
    rig.failover()
    assert not rig.shard.transactions
    assert rig.add(producer, P0) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


# -- any course of events


class Wandering(RuleBasedStateMachine):
    """Clients of both versions, lost answers, refused appends, failovers."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig(commits=False, writes_markers=False)
        self.producers: list[tuple[int, int]] = []
        self.highest = (-1, -1)

    def _heard(self) -> None:
        for answer in self.rig.answers.values():
            if isinstance(answer, ProducerAnswer) and not answer.error and answer.producer_id >= 0:
                self.producers.append((answer.producer_id, answer.producer_epoch))
        self.rig.answers.clear()

    @rule()
    def init(self) -> None:
        self.rig.init()

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), version=st.sampled_from([OLD, BUMPS]), committed=st.booleans(), ends=st.booleans())
    def request(self, data: st.DataObject, version: int, committed: bool, ends: bool) -> None:
        producer = data.draw(st.sampled_from(self.producers[-3:]))
        if ends:
            self.rig.end(producer, committed=committed, version=version)
        else:
            self.rig.add(producer, data.draw(st.sampled_from([P0, P1])), version=version)

    @precondition(lambda self: self.producers)
    @rule(data=st.data())
    def recover(self, data: st.DataObject) -> None:
        self.rig.init(data.draw(st.sampled_from(self.producers[-3:])))

    @rule()
    def commit(self) -> None:
        self.rig.commit_all()
        self._heard()

    @precondition(lambda self: self.rig.uncommitted)
    @rule(error=st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR]))
    def refuse(self, error: int) -> None:
        self.rig.refuse(error)

    @rule()
    def markers(self) -> None:
        self.rig.write_markers()

    @rule(later_ms=st.integers(0, 100_000))
    def time(self, later_ms: int) -> None:
        self.rig.wall_ms += later_ms
        self.rig.now_ms += later_ms
        self.rig.carry_out(self.rig.shard.abort_timed_out(self.rig.wall_ms))
        self.rig.carry_out(self.rig.shard.tick(self.rig.now_ms))

    @rule()
    def failover(self) -> None:
        self.rig.failover()

    @invariant()
    def epochs_never_go_back(self) -> None:
        transaction = self.rig.shard.transactions.get(ID)
        if transaction is not None and transaction.stored:
            values = transaction.values
            now = (values.producer_id, values.producer_epoch)
            assert now[0] != self.highest[0] or now >= self.highest
            self.highest = now

    @invariant()
    def a_prepared_transaction_is_on_its_way(self) -> None:
        transaction = self.rig.shard.transactions.get(ID)
        if transaction is not None and transaction.values.state in PREPARED:
            assert (
                transaction.markers is not None or transaction.pending is not None or self.rig.shard.check_ms < 1 << 60
            )

    @invariant()
    def the_table_is_the_replay_of_the_log(self) -> None:
        other = Rig()
        other.commits = other.writes_markers = False
        other.log = self.rig.log
        other.failover()
        known = self.rig.shard.find(ID)
        replayed = other.shard.find(ID)
        if known is not None:
            assert replayed is not None
            assert known == replayed


Wandering.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestWandering = Wandering.TestCase


def test_a_new_id_is_empty() -> None:
    rig = Rig()
    rig.begin()
    assert rig.values.state is EMPTY

"""Bugs of transactions, and of the producers and markers that they are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from tanist.broker.api import produce_transactional
from tanist.broker.transactions import marker_sender
from tanist.broker.transactions.marker_writes import MarkerWrites
from tanist.broker.transactions.verification import TransactionVerifier
from tanist.client.errors import error_in
from tanist.coordinator.transactions import fencing, state, transaction_shard
from tanist.coordinator.transactions.effects import ProducerAnswer
from tanist.coordinator.transactions.state import COMPLETE_COMMIT, MAX_EPOCH, ONGOING, TransactionValues
from tanist.coordinator.transactions.transaction_shard import TransactionShard
from tanist.lab.mutations.patching import Patch, always, fixed, replaced
from tanist.lab.mutations.rules_of_transactions import TRANSACTION_MUTANTS
from tanist.log.cleaner.transactions import CleanedTransactions
from tanist.log.log import Log
from tanist.log.producers import ProducerStates
from tanist.log.transaction_index import AbortedTransaction
from tanist.wire.batch import NewRecord, decode_batch
from tanist.wire.control import ControlKind, control_kind
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import TRANSACTIONS_TOPIC
from tanist.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.cluster_rig import Cluster
from tests.broker.test_hanging_transactions import (
    cluster_of_five,
    elect_2,
    ended,
    entry,
    is_stable,
    lose_a_marker,
)
from tests.broker.transactions_rig import TransactionalProducer
from tests.coordinator.transaction_rig import BUMPS, ID, P0, P1, Rig
from tests.field.catalogue import BOTH_HAVE_IT, NEITHER_HAS_IT, bug
from tests.log.cleaner_rig import COMPACT, batches_of, clean, put, roll_and_flush
from tests.log.log_batches import TRANSACTIONAL, marker
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import open_log


def _ends_bump_no_epoch() -> tuple[Patch, ...]:
    prepared = TransactionValues.prepared

    def same_epoch(values: TransactionValues, *args: Any, **how: Any) -> TransactionValues:
        return replace(prepared(values, *args, **how), producer_epoch=values.producer_epoch)

    return (Patch(TransactionValues, "prepared", same_epoch), Patch(transaction_shard, "end_error", always((0, False))))


@bug("KAFKA-17754", planted=_ends_bump_no_epoch, apache="has it with old clients", shown=BOTH_HAVE_IT)
def test_a_late_end_is_fenced() -> None:
    """A delayed EndTxn of an old client ended a later transaction (Jepsen, 2024)."""
    rig = Rig()
    producer = rig.begin()
    rig.add(producer, P0, version=BUMPS)
    answer = rig.end(producer, version=BUMPS)
    following = (answer.producer_id, answer.producer_epoch)
    assert rig.add(following, P0, version=BUMPS) == 0
    rig.end(producer, committed=False, version=BUMPS)  # sent long ago, read only now
    assert rig.values.state is ONGOING


def _no_guard() -> tuple[Patch, ...]:
    return (Patch(ProducerStates, "is_verified", always(True)),)


@bug("KAFKA-18575", planted=_no_guard, mutations=("T9",))
def test_an_answer_from_before_the_marker_does_not_count() -> None:
    """A verification was answered after the marker had come, and the transaction hung."""
    states = ProducerStates()
    states.append(1, 0, 0, 0, 0, 100, transactional=True)
    states.append_marker(1, 0, 0, 1, 100, aborted=False)
    guard = states.begin_verification(1, 1, 0)
    states.append_marker(1, 1, 0, 2, 100, aborted=True)
    assert not states.is_verified(1, guard)


def _the_client_asks_again() -> tuple[Patch, ...]:
    answered = TransactionVerifier._handle_response

    def at_once(verifier: TransactionVerifier, question: Any, errors: Any) -> None:
        verifier._patience_ms = -1
        answered(verifier, question, errors)

    return (Patch(TransactionVerifier, "_handle_response", at_once),)


@bug("KAFKA-18654", planted=_the_client_asks_again)
def test_the_next_transaction_begins_while_the_markers_are_written() -> None:
    """While markers were written the client had to wait and ask again."""
    cluster = Cluster(config={"transaction.state.log.num.partitions": "1"})
    cluster.create_topic("t")
    producer = TransactionalProducer(cluster)
    producer.begin()
    cluster.world.network.conditions.latency_us = (4_000, 6_000)
    for number in range(3):
        error = producer.write("t", [b"%d" % number], patient=False)
        assert error == 0, "the broker asks the coordinator again, not the client"
        producer.end(waits=False)


def _the_old_producer_id_is_answered() -> tuple[Patch, ...]:
    append = TransactionShard._append

    def old(shard: Any, name: str, transaction: Any, values: Any, ticket: Any = None, response: Any = None) -> Any:
        if values is not None and values.next_producer_id >= 0:
            response = ProducerAnswer(0, values.producer_id, 0)
        return append(shard, name, transaction, values, ticket, response)

    return (Patch(TransactionShard, "_append", old),)


@bug("KAFKA-18660", planted=_the_old_producer_id_is_answered)
def test_the_last_epoch_is_followed_by_another_producer_id() -> None:
    """With `transaction.version` 2 the end of the last epoch answered the old producer id, and the producer fenced
    itself.
    """
    rig = Rig()
    producer = rig.begin()
    rig.shard.transactions[ID].values = replace(rig.values, producer_epoch=MAX_EPOCH - 1)
    last = (producer[0], MAX_EPOCH - 1)
    assert rig.add(last, P0, version=BUMPS) == 0
    answer = rig.end(last, version=BUMPS)
    assert (answer.error, answer.producer_epoch) == (0, 0)
    assert answer.producer_id != producer[0]
    assert rig.add((answer.producer_id, 0), P1, version=BUMPS) == 0, "its next transaction is not fenced by itself"


def _a_repeated_marker_is_refused() -> tuple[Patch, ...]:
    return (Patch(MarkerWrites, "_answer_without_writing", always(int(ErrorCode.INVALID_PRODUCER_EPOCH))),)


@bug(
    "KAFKA-19999",
    planted=_a_repeated_marker_is_refused,
    mutations=(
        "T7",
        "T16",
    ),
    shown=NEITHER_HAS_IT,
)
def test_a_marker_that_comes_again_is_acknowledged() -> None:
    """A repeated marker was refused for its epoch, and sent for ever."""
    cluster = Cluster(config={"transaction.state.log.num.partitions": "1"})
    cluster.create_topic("t")
    producer = TransactionalProducer(cluster)
    producer.begin()
    producer.write("t", [b"one"])
    before = producer.producer
    producer.end()
    request = WriteTxnMarkersRequest(
        markers=(
            WritableTxnMarker(
                producer_id=before[0],
                producer_epoch=before[1] + 1,
                transaction_result=True,
                coordinator_epoch=0,
                transaction_version=BUMPS,
                topics=(WritableTxnMarkerTopic(name="t", partition_indexes=(0,)),),
            ),
        )
    )
    answer = cluster.ask(request, 2, to=cluster.leader("t") or 1)
    assert answer.markers[0].topics[0].partitions[0].error_code == 0
    assert ErrorCode.INVALID_PRODUCER_EPOCH in marker_sender._WRITTEN, "a newer epoch is no reason to ask for ever"


def _two_producer_ids_are_not_written() -> tuple[Patch, ...]:
    values_of = state.values_of

    def without(record: Any) -> TransactionValues:
        return replace(values_of(record), previous_producer_id=-1, next_producer_id=-1)

    return (Patch(transaction_shard, "values_of", without),)


@bug("KAFKA-20310", planted=_two_producer_ids_are_not_written, shown=NEITHER_HAS_IT)
def test_a_failover_keeps_the_producer_ids_of_an_overflow() -> None:
    """The log lacked two producer ids, and after a failover an overflow fenced its producer."""
    rig = Rig(writes_markers=False)
    producer = rig.begin()
    rig.shard.transactions[ID].values = replace(rig.values, producer_epoch=MAX_EPOCH - 1)
    last = (producer[0], MAX_EPOCH - 1)
    rig.add(last, P0, version=BUMPS)
    answer = rig.end(last, version=BUMPS)
    rig.failover()
    rig.write_markers()
    assert rig.values.state is COMPLETE_COMMIT
    assert (rig.values.producer_id, rig.values.producer_epoch) == answer[1:]
    rig.failover()
    assert rig.end(last, version=BUMPS) == answer, "a retry of the end, to the coordinator after the next"


def _the_last_epoch_is_not_written() -> tuple[Patch, ...]:
    values_of = state.values_of

    def without(record: Any) -> TransactionValues:
        return replace(values_of(record), last_epoch=-1)

    return (Patch(transaction_shard, "values_of", without),)


@bug(
    "KAFKA-20357",
    planted=_the_last_epoch_is_not_written,
    apache="has it: the mend is not in a release",
    shown=BOTH_HAVE_IT,
    was_here=True,
)
def test_a_failover_keeps_the_epoch_of_a_producer_that_has_no_answer() -> None:
    """The log lacked the last epoch, and after a failover a producer that repeated its request was fenced."""
    for epoch in (7, MAX_EPOCH - 1):
        rig = Rig()
        producer_id, _ = rig.begin()
        rig.shard.transactions[ID].values = replace(rig.values, producer_epoch=epoch)
        answer = rig.init((producer_id, epoch))
        rig.failover()
        assert rig.init((producer_id, epoch)) == answer


def _one_ahead_of_the_last_epoch_is_its_end() -> tuple[Patch, ...]:
    end_error = fencing.end_error

    def as_any_other(values: TransactionValues, producer: tuple[int, int], *, bumps: bool) -> tuple[int, bool]:
        if bumps and values.producer_epoch == MAX_EPOCH and producer == (values.producer_id, MAX_EPOCH - 1):
            return 0, True
        return end_error(values, producer, bumps=bumps)

    return (Patch(transaction_shard, "end_error", as_any_other),)


@bug("KAFKA-20090", planted=_one_ahead_of_the_last_epoch_is_its_end, was_here=True)
def test_a_timeout_at_the_last_epoch_fences() -> None:
    """A client that was fenced at its last epoch took the epoch of the fence, and its next transaction hung."""
    rig = Rig()
    producer_id, _ = rig.begin()
    rig.shard.transactions[ID].values = replace(rig.values, producer_epoch=MAX_EPOCH - 1)
    rig.add((producer_id, MAX_EPOCH - 1), P0, version=BUMPS)
    rig.carry_out(rig.shard.abort_timed_out(rig.wall_ms + 60_001))
    answer = rig.end((producer_id, MAX_EPOCH - 1), committed=False, version=BUMPS)
    assert answer.error == ErrorCode.PRODUCER_FENCED


def _the_index_is_that_of_the_cleaned_part() -> tuple[Patch, ...]:
    expect = CleanedTransactions.expect

    def in_part(transactions: CleanedTransactions, aborted: Iterable[AbortedTransaction]) -> None:
        expect(transactions, [each for each in aborted if each.last_offset < 5])

    return (Patch(CleanedTransactions, "expect", in_part),)


@bug("KAFKA-13727", planted=_the_index_is_that_of_the_cleaned_part)
def test_a_cleaning_in_part_commits_nothing() -> None:
    """A partly cleaned segment lost entries of its transaction index, and aborted records became committed."""
    for keys_max in (2, 3, 4, 100):
        log = _cleaned(keys_max)
        seen = _read_committed(log)
        assert not [value for value in seen if value.startswith(b"aborted")], f"{keys_max} keys: {seen}"


def _cleaned(keys_max: int) -> Log:
    disk = MemoryDisk()
    log = open_log(disk, replace(COMPACT, segment_bytes=100_000))
    for number, producer_id in enumerate((5, 6, 7)):
        how = {"producer_id": producer_id, "producer_epoch": 0, "attributes": TRANSACTIONAL}
        put(log, [(b"k%d" % number, b"aborted")], sequence=0, **how)
        put(log, [(b"plain%d" % number, b"v")])
        put(log, [(b"l%d" % number, b"aborted too")], sequence=1, **how)
        log.append_as_leader(marker(producer_id, 0, commit=False), 0, 0, internal=True)
        put(log, [(b"k%d" % number, b"kept")])
    roll_and_flush(disk, log)
    clean(disk, log, keys_max=keys_max)
    return log


def _read_committed(log: Log) -> list[bytes]:
    """As a consumer filters: by the aborted transactions of the index, and the markers."""
    started = sorted((each.first_offset, each.producer_id) for each in log.aborted_transactions(0, log.log_end_offset))
    aborted: set[int] = set()
    seen: list[bytes] = []
    for header, data in batches_of(log):
        while started and started[0][0] <= header.last_offset:
            aborted.add(started.pop(0)[1])
        if not header.record_count:
            continue
        records = decode_batch(data)
        if header.is_control:
            if control_kind(records[0]) == ControlKind.ABORT:
                aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            seen += [bytes(record.value or b"") for record in records]
    return seen


def _markers_have_no_time() -> tuple[Patch, ...]:
    append_marker = ProducerStates.append_marker

    def without(states: ProducerStates, producer_id: int, *args: Any, **how: Any) -> Any:
        entry = states.entries.get(producer_id)
        before = -1 if entry is None else entry.last_timestamp
        completed = append_marker(states, producer_id, *args, **how)
        states.entries[producer_id].last_timestamp = before
        return completed

    return (Patch(ProducerStates, "append_marker", without),)


@bug("KAFKA-9144", planted=_markers_have_no_time)
def test_a_marker_keeps_its_producer() -> None:
    """A producer whose last write was a marker was forgotten too early, and the coordinator's epoch went back."""
    states = ProducerStates()
    states.append(1, 0, 0, 0, 0, 100, transactional=True)
    states.append_marker(1, 0, 9, 1, 50_000, aborted=True)
    states.expire(60_000, 1_000, 20_000)
    states.expire(60_000, 21_000, 20_000)
    assert states.check_marker(states.entries.get(1), 0, 8).error == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def _any_sequence_begins_an_epoch() -> tuple[Patch, ...]:
    def by_the_epoch(states: ProducerStates, entry: Any, epoch: int, *_: Any, **how: Any) -> Any:
        return states.check_epoch(entry, epoch)

    return (Patch(ProducerStates, "check", by_the_epoch),)


@bug("KAFKA-14397", planted=_any_sequence_begins_an_epoch, apache="a client's")
def test_a_new_epoch_begins_with_sequence_0() -> None:
    """An idempotent client reset its sequences while earlier batches were under way."""
    states = ProducerStates()
    states.append(1, 0, 0, 0, 2, 100, transactional=False)
    entry = states.entries[1]
    assert states.check(entry, 1, 3, 0, transactional=False).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(entry, 1, 0, 0, transactional=False).error == 0
    states.append(1, 1, 0, 3, 3, 100, transactional=False)
    # What the client sent before it bumped its epoch arrives late.
    assert states.check(entry, 0, 3, 0, transactional=False).error == ErrorCode.INVALID_PRODUCER_EPOCH


_LATER = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def _as_the_coordinator_says(error: int, version: int) -> int:
    return error


@bug(
    "KAFKA-15459, KAFKA-16386",
    planted=fixed(produce_transactional, "_error_for", _as_the_coordinator_says),
)
def test_a_coordinator_that_is_away_is_no_end_for_a_producer() -> None:
    """A Produce was answered with the coordinator's error, which clients other than Java's took for fatal."""
    cluster = Cluster(config={"transaction.state.log.num.partitions": "1"})
    cluster.create_topic("t")
    producer = TransactionalProducer(cluster)
    producer.begin()
    for error in _LATER:

        def fails(verifier: Any, question: Any, error: int = error) -> None:
            question.fail(error)

        with replaced((Patch(TransactionVerifier, "_ask", fails),)):
            assert producer.write("t", [b"one"], patient=False) == ErrorCode.NOT_ENOUGH_REPLICAS
    producer.write("t", [b"one"])
    producer.end()


def _the_earlier_one_is_given_up() -> tuple[Patch, ...]:
    def last_of_each(queue: list[Any]) -> tuple[list[Any], list[Any]]:
        last: dict[str, Any] = {}
        for question in queue:
            if question.transactional_id in last:
                last[question.transactional_id].fail(ErrorCode.NETWORK_EXCEPTION)
            last[question.transactional_id] = question
        return list(last.values()), []

    return (Patch(TransactionVerifier, "_one_of_each", staticmethod(last_of_each)),)


@bug(
    "aiokafka #1172",
    planted=_the_earlier_one_is_given_up,
    apache="has it: the earlier of two verifications that wait is given up",
    shown=BOTH_HAVE_IT,
)
def test_requests_of_one_producer_at_once_are_all_answered() -> None:
    """In an exactly-once loop produce requests got NOT_ENOUGH_REPLICAS though no replica was missing."""
    cluster = Cluster(config={"transaction.state.log.num.partitions": "1"})
    producer = TransactionalProducer(cluster, bumps=False)
    producer.begin()
    leader = next(node_id for node_id in (1, 2, 3) if node_id != cluster.leader(TRANSACTIONS_TOPIC))
    partitions = range(6)
    cluster.create_topic("t", assignment=[[leader]] * len(partitions))
    for index in partitions:
        cluster.until(partial(lambda index: cluster.leader("t", index) == leader, index))
        producer.add("t", index)
    answers = []
    for index in partitions:
        asked = producer.transactions.batch(("t", index), [NewRecord(0, None, b"one")], timeout_ms=5_000)
        client = cluster.new_client(f"connection-{index}")
        answers.append(cluster.send(asked.request, asked.newest, to=leader, client=client))
    cluster.until(lambda: all(answers))
    assert {error_in(answer) for (answer,) in answers} == {0}


def _nobody_looks() -> tuple[Patch, ...]:
    return tuple(TRANSACTION_MUTANTS["T17"].patches())


@bug(
    "KAFKA-20716",
    planted=_nobody_looks,
    mutations=("T17", "T18", "T19"),
    apache="has it: documented as it is",
    shown=BOTH_HAVE_IT,
)
def test_an_unclean_election_that_takes_a_marker_leaves_no_open_transaction() -> None:
    """An unclean election took a transaction's marker away, and readers of committed records stood still."""
    cluster = cluster_of_five()
    producer = TransactionalProducer(cluster)
    lose_a_marker(cluster, producer, committed=True)
    elect_2(cluster)
    assert entry(cluster, producer).transaction_first_offset >= 0
    assert cluster.world.run_until(lambda: is_stable(cluster), within_ms=30_000)
    assert ended(cluster) != []

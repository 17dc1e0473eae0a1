"""Rules of transactions, broken: early answers, epochs that do not move, markers that are not written.

Owns the patches, and `TRANSACTION_MUTANTS`, each with the runs that show it (`sim.run.transactions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tanist.broker.api import produce_transactional
from tanist.broker.api.produce_transactional import TransactionalProduce
from tanist.broker.transactions.marker_sender import MarkerSender
from tanist.broker.transactions.marker_writes import MarkerWrites
from tanist.broker.transactions.open_transactions import OpenTransactions
from tanist.coordinator.effects import Answer
from tanist.coordinator.offsets import GroupOffsets
from tanist.coordinator.pending_offsets import PendingOffsets
from tanist.coordinator.transactions import hanging, transaction_shard
from tanist.coordinator.transactions.effects import TransactionAppend, TransactionEffect
from tanist.coordinator.transactions.hanging import Ending, OpenTransaction
from tanist.coordinator.transactions.state import TransactionValues
from tanist.coordinator.transactions.transaction_shard import Transaction, TransactionShard
from tanist.lab.mutations.patching import Breaks, Patch, always, fixed
from tanist.lab.mutations.simulator import Mutation, drawn
from tanist.lab.mutations.situations import of_workload
from tanist.log.log import Log
from tanist.log.producers import ProducerStates, Verdict
from tanist.log.transaction_index import AbortedTransaction
from tanist.sim.faults.schedule import Fault
from tanist.sim.run.additions import with_conditions
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.config import BUMPING, OLD, TRANSACTIONS
from tanist.sim.run.drawing import config_of
from tanist.sim.run.transaction_profiles import losing_records, of_a_group
from tanist.sim.world.scheduler import MICROSECONDS
from tanist.sim.world.world import COMBINED
from tanist.wire.errors import ErrorCode


def t1_answers_before_the_commit() -> tuple[Patch, ...]:
    append = TransactionShard._append

    def answer_at_once(
        table: TransactionShard,
        transactional_id: str,
        transaction: Transaction,
        values: TransactionValues | None,
        ticket: object | None = None,
        response: object = None,
    ) -> list[TransactionEffect]:
        effects = append(table, transactional_id, transaction, values, None, response)
        if ticket is not None:
            effects.append(Answer(ticket, response))
        return effects

    return (Patch(TransactionShard, "_append", answer_at_once),)


def t2_values_count_before_the_commit() -> tuple[Patch, ...]:
    append, apply = TransactionShard._append, TransactionShard.apply

    def counts_at_once(
        table: TransactionShard, transactional_id: str, transaction: Transaction, values: Any, *rest: Any
    ) -> list[TransactionEffect]:
        effects = append(table, transactional_id, transaction, values, *rest)
        if values is not None:
            transaction.values, transaction.pending = values, None
        return effects

    def applies(table: TransactionShard, committed: TransactionAppend) -> list[TransactionEffect]:
        """The invariant of `apply` says the same as the rule, and goes with it: what is looked for are consequences."""
        if committed.values is not None:
            transaction = table.transactions.setdefault(committed.transactional_id, Transaction(committed.values))
            transaction.pending = committed
        return apply(table, committed)

    return (Patch(TransactionShard, "_append", counts_at_once), Patch(TransactionShard, "apply", applies))


def t3_a_fence_keeps_the_epoch() -> tuple[Patch, ...]:
    fenced = TransactionValues.fenced

    def same_epoch(values: TransactionValues, wall_ms: int) -> TransactionValues:
        return replace(fenced(values, wall_ms), producer_epoch=values.producer_epoch)

    return (Patch(TransactionValues, "fenced", same_epoch),)


def t4_a_new_producer_keeps_the_epoch() -> tuple[Patch, ...]:
    next_epoch = TransactionValues.next_epoch

    def same_epoch(values: TransactionValues, *args: Any, epoch: int, last_epoch: int) -> TransactionValues:
        return next_epoch(values, *args, epoch=max(0, values.producer_epoch), last_epoch=last_epoch)

    return (Patch(TransactionValues, "next_epoch", same_epoch),)


def t5_any_epoch_may_end() -> tuple[Patch, ...]:
    return (Patch(transaction_shard, "end_error", always((0, False))),)


def t6_prepared_transactions_are_left_after_a_failover() -> tuple[Patch, ...]:
    return (Patch(TransactionShard, "loaded", always(())),)


def t7_markers_are_sent_once() -> tuple[Patch, ...]:
    return (Patch(MarkerSender, "_send_again", always(None)),)


def t8_the_next_transaction_begins_before_the_markers() -> tuple[Patch, ...]:
    add = TransactionShard.add_partitions

    def at_once(table: TransactionShard, transactional_id: str, *args: Any) -> list[TransactionEffect]:
        transaction = table.transactions.get(transactional_id)
        prepared = transaction is not None and transaction.markers is not None
        if prepared and transaction is not None:
            transaction.markers = None
            transaction.values = transaction.values.completed(transaction.values.update_ms)
        return add(table, transactional_id, *args)

    return (Patch(TransactionShard, "add_partitions", at_once),)


def t9_nothing_is_verified() -> tuple[Patch, ...]:
    def at_once(_: TransactionalProduce, _c: Any, frame: Any, _v: int, _t: str, batches: Any, append: Any) -> None:
        found = produce_transactional.unverified(batches)
        append(frame, dict.fromkeys(((each.topic, each.index) for each in found), 0))

    return (Patch(TransactionalProduce, "verify", at_once),)


def t10_offsets_of_open_transactions_count() -> tuple[Patch, ...]:
    def counts(offsets: GroupOffsets, producer_id: int, key: Any, value: Any) -> None:
        offsets.replay(key, value)

    return (Patch(GroupOffsets, "replay_pending", counts),)


t11_unstable_offsets_are_returned = fixed(PendingOffsets, "is_unstable", always(False))


def t12_aborted_offsets_count() -> tuple[Patch, ...]:
    end = PendingOffsets.end

    def applied(pending: Any, producer_id: int, *, committed: bool, apply: Any) -> None:
        end(pending, producer_id, committed=True, apply=apply)

    return (Patch(PendingOffsets, "end", applied),)


def t13_an_open_transaction_holds_nothing_back() -> tuple[Patch, ...]:
    def ignores(states: ProducerStates, high_watermark: int) -> int:
        return high_watermark

    return (Patch(ProducerStates, "last_stable_offset", ignores),)


def t14_timeouts_do_not_count() -> tuple[Patch, ...]:
    return (Patch(TransactionShard, "abort_timed_out", always(())),)


def t15_a_marker_of_any_partition_completes() -> tuple[Patch, ...]:
    written = TransactionShard.marker_written

    def all_written(table: TransactionShard, markers: Any, partitions: Any, wall_ms: int) -> Any:
        return written(table, markers, markers.partitions, wall_ms)

    return (Patch(TransactionShard, "marker_written", all_written),)


def t16_a_refused_append_stays_pending() -> tuple[Patch, ...]:
    return (Patch(TransactionShard, "_refused", always(None)),)


def t17_hanging_transactions_are_left() -> tuple[Patch, ...]:
    return (Patch(OpenTransactions, "suspect", always(None)), Patch(MarkerWrites, "_end_earlier", always(None)))


def t18_hanging_transactions_are_committed() -> tuple[Patch, ...]:
    ending_of = hanging.ending_of

    def committed(transaction: OpenTransaction, known: Any) -> Ending | None:
        found = ending_of(transaction, known)
        return None if found is None else found._replace(committed=True)

    return (Patch(hanging, "ending_of", committed),)


def t19_a_marker_ends_what_is_open() -> tuple[Patch, ...]:
    """An earlier transaction that has lost its marker gets that of a later one, and its batches join that."""
    check = ProducerStates.check

    def joins(states: ProducerStates, entry: Any, epoch: int, *rest: Any, **how: Any) -> Verdict:
        verdict = check(states, entry, epoch, *rest, **how)
        return Verdict() if verdict.error == ErrorCode.NOT_ENOUGH_REPLICAS else verdict

    return (Patch(MarkerWrites, "_end_earlier", always(None)), Patch(ProducerStates, "check", joins))


t20_any_generation_commits_offsets = fixed(GroupOffsets, "_txn_commit_error", always(0))


def t21_a_transaction_goes_with_its_first_records() -> tuple[Patch, ...]:
    forget = ProducerStates.forget_below

    def forgets(states: ProducerStates, log_start_offset: int) -> None:
        forget(states, log_start_offset)
        for first_offset in [offset for offset in states.open_transactions if offset < log_start_offset]:
            states.entries[states.open_transactions.pop(first_offset)].transaction_first_offset = -1

    return (Patch(ProducerStates, "forget_below", forgets),)


def t22_an_abort_goes_with_its_first_records() -> tuple[Patch, ...]:
    found = Log.aborted_within

    def whole_ones(log: Log, *where: Any) -> list[AbortedTransaction]:
        return [each for each in found(log, *where) if each.first_offset >= log.log_start_offset]

    return (Patch(Log, "aborted_within", whole_ones),)


# -- the table


def _drawn(rule: str, patches: Breaks) -> Mutation:
    """Shows in random runs."""
    return _among(rule, patches)


def _among(rule: str, patches: Breaks, **changes: Any) -> Mutation:
    """Shows in random runs with these changes."""
    return drawn(rule, patches, of_workload(TRANSACTIONS, **changes))


def _late(rule: str, patches: Breaks) -> Mutation:
    """Shows where a marker comes late: brokers hear of each other late or not at all, and a client that keeps its epoch
    begins the next transaction at once.
    """

    def play(seed: int) -> ChaosRun:
        config = config_of(seed, TRANSACTIONS).with_settings(
            clients=OLD, instances=1, client_pause_ms=5, abort_share=0.5
        )
        return ChaosRun(seed, replace(config, kinds=("partition", "slow"), fault_pause_ms=(100, 800)))

    return Mutation(rule, patches, play)


def _trimmed(rule: str, patches: Breaks, **changes: Any) -> Mutation:
    """Shows where records go, by retention and DeleteRecords."""

    def play(seed: int) -> ChaosRun:
        return ChaosRun(seed, config_of(seed, TRANSACTIONS, trims=True).with_settings(**changes))

    return Mutation(rule, patches, play)


def _losing(rule: str, patches: Breaks, **changes: Any) -> Mutation:
    """Shows where unclean elections take markers away: all brokers lose their power at once, again and again."""

    def play(seed: int) -> ChaosRun:
        config = replace(losing_records(seed), roles=_THREE, operations=()).with_settings(freezes=False, **changes)
        outages = [
            Fault(at_ms * MICROSECONDS, "power-loss", host, host % 3 + 1, 200 * MICROSECONDS, 0.0)
            for at_ms in range(2_000, 11_000, 1_500)
            for host in _THREE
        ]
        return ChaosRun(seed, with_conditions(seed, config), faults=outages)

    return Mutation(rule, patches, play)


def _grouped(rule: str, patches: Breaks, **changes: Any) -> Mutation:
    """Shows where partitions move between the members of a group."""

    def play(seed: int) -> ChaosRun:
        config = of_a_group(seed).with_settings(applications=1, instances=3, freezes=True, **changes)
        return ChaosRun(seed, with_conditions(seed, config))

    return Mutation(rule, patches, play)


_THREE: Mapping[int, str] = dict.fromkeys((1, 2, 3), COMBINED)
_ZOMBIES: Mapping[str, Any] = {"instances": 3, "freezes": True, "frozen_ms": (50, 2_000), "client_pause_ms": 5}

TRANSACTION_MUTANTS: Mapping[str, Mutation] = {
    "T1": _drawn("a producer is answered before the log has it", t1_answers_before_the_commit),
    "T2": _drawn("the next request finds what the log has not", t2_values_count_before_the_commit),
    "T3": _among("a fence keeps the epoch", t3_a_fence_keeps_the_epoch, **_ZOMBIES),
    "T4": _among("a new producer keeps the epoch", t4_a_new_producer_keeps_the_epoch, **_ZOMBIES),
    "T5": _among("any epoch may end a transaction", t5_any_epoch_may_end, **_ZOMBIES),
    "T6": _drawn("a prepared transaction is left after a failover", t6_prepared_transactions_are_left_after_a_failover),
    "T7": _drawn("a marker is asked for once", t7_markers_are_sent_once),
    "T8": _drawn("the next transaction begins before the markers", t8_the_next_transaction_begins_before_the_markers),
    "T9": _among("no first batch is verified", t9_nothing_is_verified, clients=OLD, **_ZOMBIES),
    "T10": _drawn("offsets of open transactions count", t10_offsets_of_open_transactions_count),
    "T11": _drawn("unstable offsets are returned", t11_unstable_offsets_are_returned),
    "T12": _drawn("offsets of aborted transactions count", t12_aborted_offsets_count),
    "T13": _drawn("open transactions hold nothing back", t13_an_open_transaction_holds_nothing_back),
    "T14": _among(
        "no transaction takes too long",
        t14_timeouts_do_not_count,
        clients=BUMPING,
        transaction_timeout_ms=1_000,
        abandons=True,
    ),
    "T15": _late("a transaction is complete with the first marker", t15_a_marker_of_any_partition_completes),
    "T16": _drawn("what the log has refused stays under way", t16_a_refused_append_stays_pending),
    "T17": _losing("a transaction without a marker stays open", t17_hanging_transactions_are_left),
    "T18": _losing(
        "a transaction without a marker is committed",
        t18_hanging_transactions_are_committed,
        clients=BUMPING,
        client_pause_ms=5,
        abort_share=0.6,
    ),
    "T19": _losing("a marker ends an earlier transaction", t19_a_marker_ends_what_is_open, clients=BUMPING),
    "T20": _grouped("offsets are committed by a generation of any age", t20_any_generation_commits_offsets),
    "T21": _trimmed(
        "an open transaction is forgotten with its first records", t21_a_transaction_goes_with_its_first_records
    ),
    "T22": _trimmed(
        "an aborted transaction is forgotten with its first records",
        t22_an_abort_goes_with_its_first_records,
        abort_share=0.6,
    ),
}

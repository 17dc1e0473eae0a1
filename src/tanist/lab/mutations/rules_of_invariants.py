"""State that an invariant guards (`tanist.invariants`), broken: one mutation for each.

Owns the patches, and `INVARIANT_MUTANTS`, each with the runs that show it. What an invariant is to find is broken where
it comes from, never at the invariant itself. Which notices first, the invariant (*crash*) or a checker, is not fixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from tanist.broker.metadata.controller_service import ControllerService
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.controller.image import snapshot
from tanist.controller.partitions import change as partition_change
from tanist.controller.partitions.assignment import complete
from tanist.coordinator.transactions.transaction_shard import TransactionShard
from tanist.lab.mutations import situations
from tanist.lab.mutations.patching import Patch, always, fixed, replaced
from tanist.lab.mutations.simulator import Mutation, drawn
from tanist.log.log import Log
from tanist.log.producers import ProducerStates
from tanist.log.segment import Segment
from tanist.quorum.state.rules import QuorumRules
from tanist.quorum.voters import VoterSet
from tanist.replica.effects import HighWatermarkAdvanced
from tanist.replica.follower import FollowerState
from tanist.replica.leader import LeaderState
from tanist.sim.run.config import TRANSACTIONS
from tanist.sim.run.drawing import config_of
from tanist.wire.metadata import ConfigRecord

# -- replicas

counts_one_more = fixed(LeaderState, "_high_watermark_candidate", lambda leader, _: leader.log.log_end_offset + 1)


def high_watermarks_go_back() -> tuple[Patch, ...]:
    def advance(leader: Any, now_ms: int) -> list[Any]:
        candidate = leader._high_watermark_candidate(now_ms)
        if not leader._may_advance() or candidate == leader.high_watermark:
            return []
        leader.high_watermark = candidate
        return [HighWatermarkAdvanced(candidate)]

    return (Patch(LeaderState, "_advance", advance),)


def high_watermarks_outlive_the_log() -> tuple[Patch, ...]:
    """A log that begins anew at its leader's start leaves it below that."""
    carry_out = FollowerState._carry_out

    def carries_out(follower: Any, cut: Any) -> Any:
        before = follower.high_watermark
        effects = carry_out(follower, cut)
        follower.high_watermark = before
        return effects

    return (Patch(FollowerState, "_carry_out", carries_out),)


def epochs_descend() -> tuple[Patch, ...]:
    """A leader notes an epoch above its own."""
    begin = LeaderState._begin_epoch

    def begins(leader: Any) -> None:
        begin(leader)
        leader.log.epochs.assign(leader.leader_epoch + 2, leader.log.log_end_offset)

    return (Patch(LeaderState, "_begin_epoch", begins),)


def epochs_run_ahead() -> tuple[Patch, ...]:
    """A follower notes the epoch after that of its leader."""
    started = FollowerState.started

    def starts(follower: Any) -> Any:
        effects = started(follower)
        follower.log.epochs.assign(follower.leader_epoch + 2, follower.log.log_end_offset)
        return effects

    return (Patch(FollowerState, "started", starts),)


def acknowledges_the_last_first() -> tuple[Patch, ...]:
    def wait(hosted: Any, required_offset: int, waiter: Any, ticket: int = 0) -> None:
        hosted.ack_waiters.appendleft((required_offset, waiter, ticket))

    return (Patch(HostedPartition, "wait_for_high_watermark", wait),)


# -- logs


def offsets_are_noted_too_high() -> tuple[Patch, ...]:
    append = Segment.append

    def appends(segment: Any, first_offset: int, last_offset: int, max_timestamp: int, size: int) -> None:
        append(segment, first_offset, last_offset + 1, max_timestamp, size)

    return (Patch(Segment, "append", appends),)


def cuts_leave_bytes() -> tuple[Patch, ...]:
    truncate = Segment.truncate_to

    def truncates(segment: Any, place: Any, now_ms: int) -> None:
        truncate(segment, place, now_ms)
        segment.file.write(segment.size, [bytes(1 << 16)])

    return (Patch(Segment, "truncate_to", truncates),)


def _keeps_its_recovery_point(log: Any, end: int, _base_offset: int) -> None:
    if log.before_cut is not None:
        log.before_cut(log, end)


cuts_keep_the_recovery_point = fixed(Log, "_lower_recovery_point", _keeps_its_recovery_point)
cuts_keep_the_producers = fixed(Log, "_reload_producers", always(None))


def markers_leave_it_open() -> tuple[Patch, ...]:
    append_marker = ProducerStates.append_marker

    def appends(producers: Any, producer_id: int, *rest: Any, aborted: bool) -> Any:
        completed = append_marker(producers, producer_id, *rest, aborted=aborted)
        if completed is not None:
            producers.entries[producer_id].transaction_first_offset = completed.first_offset
        return completed

    return (Patch(ProducerStates, "append_marker", appends),)


stable_beyond_the_high_watermark = fixed(
    ProducerStates,
    "last_stable_offset",
    lambda producers, high_watermark: high_watermark + bool(producers.open_transactions),
)


def transitions_overlap() -> tuple[Patch, ...]:
    """What a transaction is asked for does not look at what is under way."""
    append = TransactionShard._append

    def unseen(name: str) -> Patch:
        ask = getattr(TransactionShard, name)

        def asks(shard: Any, transactional_id: str, *rest: Any, **named: Any) -> Any:
            transaction = shard.transactions.get(transactional_id)
            if transaction is None or transaction.pending is None:
                return ask(shard, transactional_id, *rest, **named)
            under_way, transaction.pending = transaction.pending, None

            def appends(shard: Any, of: str, asked: Any, *values: Any) -> Any:
                asked.pending = under_way
                return append(shard, of, asked, *values)

            with replaced((Patch(TransactionShard, "_append", appends),)):
                effects = ask(shard, transactional_id, *rest, **named)
            transaction.pending = under_way
            return effects

        return Patch(TransactionShard, name, asks)

    return (unseen("add_partitions"), unseen("end"))


# -- metadata


def leavers_stay_in_the_isr() -> tuple[Patch, ...]:
    def completes(reassignment: Any, isr: tuple[int, ...]) -> Any:
        done = complete(reassignment, isr)
        return None if done is None else replace(done, isr=isr)

    return (Patch(partition_change, "complete", completes),)


def _one_more_than_anybody_has(_rules: Any, ends: Any, epoch_start_offset: int) -> int | None:
    return ends[0] + 1 if ends[0] > epoch_start_offset else None


commits_what_is_not_there = fixed(QuorumRules, "commit_offset", _one_more_than_anybody_has)


def cuts_all_metadata() -> tuple[Patch, ...]:
    return (
        Patch(QuorumRules, "may_truncate", always(True)),
        Patch(QuorumRules, "truncation_offset", lambda _rules, log, _leader_end: log.start_offset),
    )


def a_voter_takes_anothers_place() -> tuple[Patch, ...]:
    with_voter = VoterSet.with_voter

    def joins(voters: VoterSet, voter: Any) -> VoterSet:
        left = [each for each in voters if each.node_id != voter.node_id]
        return VoterSet((*left[1:], voter)) if voter.node_id not in voters and left[1:] else with_voter(voters, voter)

    return (Patch(VoterSet, "with_voter", joins),)


def snapshots_lack_configs() -> tuple[Patch, ...]:
    records = snapshot._records

    def without(image: Any) -> Iterator[Any]:
        return (record for record in records(image) if not isinstance(record, ConfigRecord))

    return (Patch(snapshot, "_records", without),)


def the_last_record_is_not_replayed() -> tuple[Patch, ...]:
    """Of what a controller decides: its own image lacks it."""
    replay = ControllerService._replay

    def replays(service: Any, records: Any) -> None:
        replay(service, records[:-1] if len(records) > 1 else records)

    return (Patch(ControllerService, "_replay", replays),)


_in_transactions = partial(config_of, workload=TRANSACTIONS)

INVARIANT_MUTANTS: Mapping[str, Mutation] = {
    "holds-end": drawn("the high watermark is one more than the log's end", counts_one_more),
    "holds-back": drawn("a leader's high watermark follows its followers down as well", high_watermarks_go_back),
    "holds-start": drawn(
        "a follower keeps its high watermark when its log is cut or begins anew",
        high_watermarks_outlive_the_log,
        situations.trimming,
    ),
    "holds-epochs": drawn("a leader notes an epoch above its own", epochs_descend),
    "holds-epoch": drawn("a follower notes an epoch above its leader's", epochs_run_ahead),
    "holds-acks": drawn("who came last is acknowledged first", acknowledges_the_last_first),
    "holds-offsets": drawn("a segment notes one offset more than a batch has", offsets_are_noted_too_high),
    "holds-size": drawn("a cut leaves bytes behind in the file", cuts_leave_bytes),
    "holds-points": drawn("a cut leaves the recovery point where it was", cuts_keep_the_recovery_point),
    "holds-producers": drawn("a cut leaves the producers as they were", cuts_keep_the_producers, _in_transactions),
    "holds-open": drawn("a marker leaves its producer's transaction open", markers_leave_it_open, _in_transactions),
    "holds-stable": drawn(
        "the last stable offset is beyond the high watermark", stable_beyond_the_high_watermark, _in_transactions
    ),
    "holds-transition": drawn(
        "a transaction's next transition does not wait for the one under way", transitions_overlap, _in_transactions
    ),
    "holds-isr": drawn(
        "who leaves the replicas stays in the ISR",
        leavers_stay_in_the_isr,
        situations.as_drawn(operations=("reassign",), operation_pause_ms=(50, 300)),
    ),
    "holds-quorum": drawn("the quorum commits one record more than its leader has", commits_what_is_not_there),
    "holds-metadata": drawn("a follower of the quorum that diverges cuts all it has", cuts_all_metadata),
    "holds-voters": drawn(
        "a voter that joins takes another's place", a_voter_takes_anothers_place, situations.changing_voters
    ),
    "holds-snapshot": drawn("a metadata snapshot lacks the configs", snapshots_lack_configs),
    "holds-image": drawn(
        "the last record of a decision is not in the controller's own image", the_last_record_is_not_replayed
    ),
}

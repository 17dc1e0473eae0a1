"""Bugs of replication: the high watermark, the ISR, truncation, epochs, and what a follower believes."""

from __future__ import annotations

from typing import Any

from tanist.lab.mutations.patching import Patch, always, fixed, replaced
from tanist.log import appender
from tanist.log.append import examine_fetched
from tanist.replica.effects import Effect, HighWatermarkSet
from tanist.replica.follower import FollowerState
from tanist.replica.leader import AckStatus, FetchDecision, FollowerFetch, LeaderState
from tanist.replica.membership import IsrMembership
from tanist.replica.memory import Entry
from tanist.replica.remote import NEVER_MS, RemoteReplica
from tanist.wire.errors import ErrorCode
from tests.field.catalogue import BOTH_HAVE_IT, NEITHER_HAS_IT, bug
from tests.log.log_rig import open_log
from tests.log.test_log_follower import fetched, joined
from tests.replica.replica_alone import LAG_MS, Alone, proposals
from tests.replica.test_replica_follower import follower, reported

# -- the high watermark


@bug("KAFKA-15583", planted=fixed(LeaderState, "_may_advance", always(True)), mutations=("A1",), shown=NEITHER_HAS_IT)
def test_under_min_isr_the_high_watermark_stands_still() -> None:
    """The high watermark moved below min.insync.replicas, so the last replica acknowledged records alone."""
    alone = Alone(isr=(1,), min_isr=2, leo=10)
    alone.append(5)
    alone.fetch(2, 12)
    assert alone.high_watermark == 0


def _as_configured(leader: IsrMembership) -> int:
    return leader.config.min_insync_replicas


@bug(
    "KAFKA-21110",
    planted=fixed(IsrMembership, "_effective_min_isr", _as_configured),
    mutations=("A33",),
    apache="never had it; its documentation said so until 2026",
    shown=NEITHER_HAS_IT,
)
def test_no_more_replicas_must_be_in_sync_than_there_are() -> None:
    """By the documentation a partition with fewer replicas than min.insync.replicas could not be written."""
    alone = Alone(replicas=(1,), isr=(1,), min_isr=2)
    assert alone.leader.check_before_append(-1) == 0
    alone.append(3)
    assert alone.high_watermark == 3


def _waits_for_the_next_fetch() -> tuple[Patch, ...]:
    done = IsrMembership.alter_partition_done

    def stands(leader: Any, *args: Any) -> list[Effect]:
        with replaced((Patch(LeaderState, "_advance", always([])),)):
            return done(leader, *args)

    return (Patch(IsrMembership, "alter_partition_done", stands),)


@bug("KAFKA-13091", planted=_waits_for_the_next_fetch)
def test_the_high_watermark_moves_when_the_isr_has_shrunk() -> None:
    """After a shrink of the ISR the high watermark stood still until the next fetch."""
    alone = Alone(isr=(1, 2, 3), leo=10)
    alone.append()
    alone.fetch(2, 11)
    alone.now_ms += LAG_MS + 1
    alone.fetch(2, 11)
    (proposal,) = proposals(alone.leader.check_lag(alone.now_ms))
    assert alone.high_watermark == 0
    alone.answer(proposal)
    assert alone.high_watermark == 11


# -- who joins the ISR, and who leaves it


def _who_is_at_the_high_watermark() -> tuple[Patch, ...]:
    return (Patch(IsrMembership, "_keeps_up", always(True)),)


@bug(
    "KAFKA-19996",
    planted=_who_is_at_the_high_watermark,
    apache="has it: the mend is not merged",
    was_here=True,
    shown=BOTH_HAVE_IT,
)
def test_under_min_isr_a_replica_joins_when_it_keeps_up() -> None:
    """Under min ISR a follower at the standing high watermark joined the ISR, left it as late, and joined again."""
    alone = Alone(isr=(1,), min_isr=2, leo=10, high_watermark=10)
    alone.append(1_000)
    assert (alone.high_watermark, alone.log.log_end_offset) == (10, 1_010)
    for offset in range(10, 1_000, 110):
        alone.now_ms += 500
        assert proposals(alone.fetch(2, offset).effects) == [], "acks=all would be accepted, and wait"
    alone.now_ms += 500
    assert len(proposals(alone.fetch(2, 1_010).effects)) == 1
    busy = Alone(isr=(1,), min_isr=2, leo=10, high_watermark=10)
    busy.fetch(2, 9)
    for _ in range(3):
        busy.append(100)
        busy.now_ms += 500
        joins = proposals(busy.fetch(2, busy.log.log_end_offset - 100).effects)
    assert len(joins) == 1 or busy.leader.pending is not None, (
        "of a busy leader it has what was the end at its last fetch"
    )


def _late_from_the_start() -> tuple[Patch, ...]:
    forget = RemoteReplica.forget

    def forgets(remote: RemoteReplica, now_ms: int, *, in_sync: bool) -> None:
        forget(remote, now_ms, in_sync=in_sync)
        remote.last_caught_up_ms = NEVER_MS

    return (Patch(RemoteReplica, "forget", forgets),)


@bug("fluss #3698", planted=_late_from_the_start, apache="never had it")
def test_a_new_leaders_first_write_makes_nobody_late() -> None:
    """A new leader dropped healthy followers from the ISR at its first write, before their first fetch."""
    alone = Alone(isr=(1, 2, 3), leo=10)
    alone.append()
    assert alone.leader.check_lag(alone.now_ms) == []
    alone.fetch(2, 11)
    alone.fetch(3, 11)
    alone.append()
    alone.learn(partition_epoch=10)
    assert alone.leader.remotes[2].log_end_offset == 11
    alone.now_ms += LAG_MS
    assert alone.leader.check_lag(alone.now_ms) == []


def _leaves_itself_out(leader: IsrMembership, now_ms: int) -> frozenset[int]:
    return frozenset(leader.isr)


@bug("fluss #3927", planted=fixed(IsrMembership, "_late_members", _leaves_itself_out), apache="never had it")
def test_the_leader_is_in_every_isr_that_it_proposes() -> None:
    """In a race a leader proposed an ISR without itself, and the coordinator took it."""
    alone = Alone(isr=(1, 2), leo=10)
    alone.append()
    alone.now_ms += LAG_MS + 1
    (proposal,) = proposals(alone.leader.check_lag(alone.now_ms))
    assert [broker for broker, _ in proposal.isr] == [1]


@bug("KAFKA-7128", planted=fixed(IsrMembership, "_has_epoch_start", always(True)), mutations=("A12",))
def test_who_joins_has_all_from_before_the_epoch() -> None:
    """A follower joined a new leader's ISR at its stale high watermark, without all committed records."""
    alone = Alone(isr=(1, 2), leo=10)
    assert proposals(alone.fetch(3, 9).effects) == []
    assert len(proposals(alone.fetch(3, 10).effects)) == 1


@bug(
    "KAFKA-15221",
    planted=fixed(LeaderState, "_comes_from_former_life", always(False)),
    mutations=("A5",),
    shown=NEITHER_HAS_IT,
)
def test_a_fetch_from_before_a_reboot_adds_nobody() -> None:
    """A fetch from before a reboot expanded the ISR with the broker epoch after it."""
    alone = Alone(isr=(1,), leo=10)
    alone.fetch(2, 4, broker_epoch=1002)
    alone.brokers.mark(2, epoch=2002)
    alone.fetch(2, 0, broker_epoch=2002)
    late = alone.fetch(2, 10, broker_epoch=1002)
    assert (late.error, proposals(late.effects)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, [])
    assert alone.leader.remotes[2].log_end_offset == 0


# -- divergence


def _counts_who_diverges() -> tuple[Patch, ...]:
    decide = LeaderState.follower_fetch

    def counting(leader: LeaderState, fetch: FollowerFetch, now_ms: int) -> FetchDecision:
        decision = decide(leader, fetch, now_ms)
        if decision.diverging is not None:
            leader.remotes[fetch.broker_id].log_end_offset = fetch.fetch_offset
            leader._derive()
            return decision._replace(effects=leader._advance(now_ms))
        return decision

    return (Patch(LeaderState, "follower_fetch", counting),)


@bug("KAFKA-13141", planted=_counts_who_diverges)
def test_a_follower_that_diverges_commits_nothing() -> None:
    """A fetch that was answered with a divergence counted, and the high watermark passed records that the follower
    lacked.
    """
    alone = Alone(isr=(1, 2), leo=10, epochs=((4, 0),), leader_epoch=7)
    alone.append(5)
    decision = alone.fetch(2, 15, last_epoch=5)
    assert decision.diverging is not None
    assert alone.high_watermark == 0


def _watermark_first() -> tuple[Patch, ...]:
    take = FollowerState.fetched

    def exposes(role: FollowerState, answer: Any, position: Any, now_ms: int) -> list[Effect]:
        effects = role._adopt_high_watermark(answer.high_watermark)
        return [*effects, *take(role, answer, position, now_ms)]

    return (Patch(FollowerState, "fetched", exposes),)


@bug("KAFKA-14704", planted=_watermark_first)
def test_a_follower_cuts_before_it_believes_a_high_watermark() -> None:
    """A follower took the leader's high watermark before it truncated, and showed diverging records to consumers."""
    alone = follower(10, epochs=((3, 0), (4, 6)), high_watermark=6)
    effects = reported(alone, diverging_epoch=(3, 8), high_watermark=9, log_start_offset=0)
    assert HighWatermarkSet(9) not in effects
    assert (alone.log.log_end_offset, alone.high_watermark) == (6, 6)


def _one_look(role: FollowerState, epoch: int, end_offset: int) -> tuple[int, bool]:
    return min(end_offset, role.log.log_end_offset), True


@bug("KAFKA-6361", planted=fixed(FollowerState, "truncation_target", _one_look), mutations=("A26",))
def test_two_fast_elections_leave_no_middle_that_diverges() -> None:
    """After two fast leader changes follower and leader kept different records at the same offsets."""
    alone = follower(10, epochs=((1, 0), (3, 4)), high_watermark=2)
    # The leader has epoch 1 up to 3, epoch 2 up to 8, and then its own.
    reported(alone, diverging_epoch=(2, 8), high_watermark=2, log_start_offset=0)
    assert alone.log.log_end_offset == 4
    reported(alone, diverging_epoch=(1, 3), high_watermark=2, log_start_offset=0)
    assert alone.log.log_end_offset == 3


def _starts_unwritten(leader: LeaderState) -> None:
    leader.leader_epoch_start_offset = leader.log.log_end_offset


@bug("KAFKA-7415", planted=fixed(LeaderState, "_begin_epoch", _starts_unwritten))
def test_an_epoch_in_which_nothing_was_written_is_known() -> None:
    """A leader noted its epoch with its first record only, and could not say where a follower should cut."""
    alone = Alone(isr=(1, 2, 3), leo=10, epochs=((4, 0),), leader_epoch=7)
    decision = alone.fetch(2, 12, last_epoch=6)
    assert decision.diverging == (4, 10)


def _any_epoch(batches: memoryview, last_epoch: int, leader_epoch: int) -> Any:
    return examine_fetched(batches, last_epoch, 2**31 - 1)


@bug("KAFKA-18723", planted=fixed(appender, "examine_fetched", _any_epoch), mutations=("torn-ranges", "torn-answers"))
def test_a_follower_takes_no_records_of_a_later_leader() -> None:
    """A deposed leader truncated its log while an answer was under way, and its follower appended the next leader's
    records.
    """
    log = open_log()
    assert log.append_as_follower(fetched(0, 5, epoch=1), 1).error == 0
    torn = joined(fetched(5, 3, epoch=1), fetched(8, 2, epoch=2))
    assert log.append_as_follower(torn, 1).error == ErrorCode.CORRUPT_MESSAGE
    assert (log.log_end_offset, log.latest_epoch) == (5, 1)


@bug(
    "redpanda #5090",
    planted=fixed(LeaderState, "knows_what_is_committed", always(True)),
    mutations=("A34",),
    apache="never had it",
)
def test_a_new_leader_does_not_say_what_is_committed_before_it_knows() -> None:
    """A new leader answered consumers too early, and they read records that were dropped later."""
    alone = Alone(isr=(1, 2), leo=10, high_watermark=6)
    assert not alone.leader.knows_what_is_committed()
    alone.fetch(2, 10)
    assert alone.leader.knows_what_is_committed()


def _by_the_log(leader: LeaderState, required_offset: int) -> AckStatus:
    return AckStatus(leader.log.log_end_offset >= required_offset, 0)


@bug("redpanda #3003", planted=fixed(LeaderState, "acks_status", _by_the_log), apache="never had it")
def test_a_write_of_a_deposed_leader_is_not_acknowledged() -> None:
    """A deposed leader acknowledged a write that the next leader truncated."""
    alone = Alone(isr=(1, 2), leo=10, high_watermark=10)
    alone.append(3)
    waiting = alone.leader
    alone.learn(leader=2, leader_epoch=6)
    assert alone.partition.leader is None
    reported(alone, diverging_epoch=(4, 10), high_watermark=10, log_start_offset=0)
    reported(alone, records=tuple(Entry(10 + n, 6, "other") for n in range(3)), high_watermark=13, log_start_offset=0)
    assert alone.high_watermark == 13
    assert not waiting.acks_status(13).done

"""A follower and what it cuts off: rules 109-111 and 113-117, a test for each, and the fencing of answers."""

from __future__ import annotations

import pytest

from tanist.events.replication import BecameFollower, LogTruncated, RecordsRefused, StoppedReplicating
from tanist.replica.effects import AskOffsets, FetchAgain, HighWatermarkSet
from tanist.replica.follower import FetchedPartition, FetchPosition, FollowerState, Phase
from tanist.replica.memory import Entry
from tanist.wire.errors import ErrorCode
from tests.replica.replica_alone import Alone, state


def follower(leo: int = 10, *, epochs: tuple[tuple[int, int], ...] = ((4, 0),), high_watermark: int = 0) -> Alone:
    """Broker 1 follows 2 in leader epoch 5."""
    return Alone(leader=2, leo=leo, epochs=epochs, high_watermark=high_watermark)


def reported(alone: Alone, **answer: object) -> list[object]:
    """The leader answers the present position."""
    role = alone.follower
    return list(role.fetched(FetchedPartition(**answer), role.fetch_position(), alone.now_ms))  # type: ignore[arg-type]


def refused(alone: Alone) -> list[object]:
    """The leader is not yet ready to be followed."""
    return reported(alone, error=int(ErrorCode.NOT_LEADER_OR_FOLLOWER))


def test_it_asks_for_what_comes_next() -> None:
    alone = follower(10, epochs=((1, 0), (4, 6)))
    alone.log.advance_log_start_offset(2)
    assert alone.effects == [BecameFollower("foo-0", 2, 5)]
    assert alone.follower.fetch_position() == FetchPosition(
        offset=10, last_fetched_epoch=4, current_leader_epoch=5, log_start_offset=2
    )
    assert alone.follower.may_fetch(alone.now_ms)


def test_it_appends_what_it_is_sent() -> None:
    alone = follower(10)
    assert reported(alone, records=(Entry(10, 5, "a"), Entry(11, 5, "b")), high_watermark=11, log_start_offset=0) == [
        HighWatermarkSet(11)
    ]
    assert alone.follower.fetch_position() == FetchPosition(12, 5, 5, 0)


def test_a_refused_append_is_tried_again_later() -> None:
    alone = follower(10)
    assert reported(alone, records=(Entry(99, 5, "a"),), high_watermark=11, log_start_offset=0) == [
        RecordsRefused("foo-0", 2, 5, ErrorCode.CORRUPT_MESSAGE, "the entries do not follow one another"),
        FetchAgain(10),
    ]
    assert (alone.log.log_end_offset, alone.high_watermark) == (10, 0)
    assert not alone.follower.may_fetch(alone.now_ms + 9)
    assert alone.follower.may_fetch(alone.now_ms + 10)


def test_the_leaders_log_start_is_followed_up_to_the_high_watermark() -> None:
    alone = follower(10)
    reported(alone, high_watermark=8, log_start_offset=3)
    assert alone.log.log_start_offset == 3
    reported(alone, high_watermark=8, log_start_offset=9)
    assert alone.log.log_start_offset == 8
    reported(alone, high_watermark=8, log_start_offset=1)
    assert alone.log.log_start_offset == 8


@pytest.mark.parametrize(
    "change",
    [
        {"offset": 9},
        {"offset": 11},
        {"current_leader_epoch": 4},
        {"current_leader_epoch": 6},
        {"last_fetched_epoch": 3},
    ],
)
@pytest.mark.parametrize(
    "answer",
    [
        {"records": (Entry(10, 5, "a"),), "high_watermark": 3, "log_start_offset": 0},
        {"diverging_epoch": (4, 2)},
        {"error": int(ErrorCode.OFFSET_OUT_OF_RANGE)},
        {"error": int(ErrorCode.FENCED_LEADER_EPOCH)},
    ],
)
def test_an_answer_to_another_question_changes_nothing(change: dict[str, int], answer: dict[str, object]) -> None:
    alone = follower(10)
    before = state(alone.follower, alone.log)
    position = alone.follower.fetch_position()._replace(**change)
    assert alone.follower.fetched(FetchedPartition(**answer), position, 0) == []  # type: ignore[arg-type]
    assert state(alone.follower, alone.log) == before


def test_rule_109_an_epoch_that_wrote_nothing_is_dropped_when_another_takes_its_place() -> None:
    alone = Alone(leo=10)  # leads in epoch 5 from offset 10, writes nothing
    alone.learn(leader=2, leader_epoch=6)
    position = alone.follower.fetch_position()
    assert position.last_fetched_epoch == 5
    assert reported(alone, diverging_epoch=(4, 10)) == [FetchAgain(0)]  # no record goes, so nothing was truncated
    assert alone.log.epochs.entries == ((4, 0),)
    assert alone.follower.fetch_position().last_fetched_epoch == 4


def test_rule_110_the_end_of_an_epoch_is_the_start_of_the_next_one_known() -> None:
    alone = Alone(leo=10)
    log = alone.log
    assert log.epochs.end_offset_for(4, 10) == (4, 10)
    assert log.epochs.end_offset_for(5, 12) == (5, 12)
    assert log.epochs.end_offset_for(6, 12) == (-1, -1)
    assert alone.fetch(2, 11, last_epoch=4).diverging == (4, 10)


def test_rule_111_truncation_takes_epochs_along() -> None:
    alone = follower(10, epochs=((1, 0), (3, 5), (4, 8)))
    assert reported(alone, diverging_epoch=(3, 7)) == [LogTruncated("foo-0", 7, 10, 0), FetchAgain(0)]
    assert alone.log.epochs.entries == ((1, 0), (3, 5))
    reported(alone, high_watermark=7, log_start_offset=6)
    assert alone.log.epochs.entries == ((3, 6),)


def test_rule_113_undefined_is_out_of_range() -> None:
    alone = Alone(leo=10)
    assert alone.fetch(2, 10, last_epoch=9).error == ErrorCode.OFFSET_OUT_OF_RANGE


def test_rule_113_before_the_log_start_is_out_of_range_even_if_diverging() -> None:
    alone = Alone(leo=10)
    alone.log.advance_log_start_offset(5)
    assert alone.fetch(2, 4, last_epoch=3).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert alone.fetch(2, 4).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert alone.fetch(2, 11).error == ErrorCode.OFFSET_OUT_OF_RANGE


def test_rule_113_a_smaller_epoch_or_an_earlier_end_diverges_and_is_not_believed() -> None:
    alone = Alone(leo=10)
    before = state(alone.leader)
    for offset, epoch, answer in ((10, 3, (3, 0)), (12, 4, (4, 10)), (11, 5, (5, 10))):
        decision = alone.fetch(2, offset, last_epoch=epoch)
        assert (decision.error, decision.diverging, decision.effects) == (0, answer, [])
    assert state(alone.leader) == before


@pytest.mark.parametrize(
    ("epochs", "answer", "offset", "settled"),
    [
        (((0, 0), (3, 2)), (3, 6), 6, True),  # known epoch, the leader's end is lower
        (((0, 0), (3, 2)), (0, 6), 2, True),  # known epoch, its own end is lower
        (((0, 0), (3, 2)), (3, 99), 10, True),  # never beyond its own log
        (((1, 0), (3, 5)), (2, 9), 5, False),  # unknown epoch: back to the end of the one before, and ask again
        (((0, 0),), (-1, -1), 10, True),  # the leader can't say
        (((0, 0),), (2, 4), 4, True),  # later than all it knows
    ],
)
def test_rule_114_where_to_truncate(
    epochs: tuple[tuple[int, int], ...], answer: tuple[int, int], offset: int, settled: bool
) -> None:
    alone = follower(10, epochs=epochs)
    assert alone.follower.truncation_target(*answer) == (offset, settled)
    reported(alone, diverging_epoch=answer)
    assert alone.log.log_end_offset == offset


def test_rule_114_with_epochs_it_starts_at_its_end_and_truncates_nothing() -> None:
    alone = follower(10, high_watermark=4)
    assert alone.log.log_end_offset == 10


def test_rule_114_without_epochs_it_starts_at_its_high_watermark() -> None:
    alone = follower(10, high_watermark=4)
    alone.log.epochs.clear()
    effects = alone.learn(leader=3, leader_epoch=6)
    assert effects == [BecameFollower("foo-0", 3, 6), LogTruncated("foo-0", 4, 10, 4)]
    assert alone.follower.fetch_position() == FetchPosition(4, -1, 6, 0)


def test_rule_114_but_not_before_somebody_leads() -> None:
    alone = follower(10, high_watermark=4)
    alone.log.epochs.clear()
    assert alone.learn(leader=-1, leader_epoch=6) == [BecameFollower("foo-0", -1, 6)]
    assert alone.log.log_end_offset == 10


def test_rule_115_below_its_high_watermark_it_truncates_and_says_so() -> None:
    alone = follower(10, high_watermark=8)
    (truncated, lowered, _) = reported(alone, diverging_epoch=(4, 5))
    assert truncated == LogTruncated("foo-0", 5, 10, previous_high_watermark=8)
    assert lowered == HighWatermarkSet(5)
    assert alone.high_watermark == 5


def test_rule_116_ahead_of_the_leader_it_loses_what_the_leader_lacks() -> None:
    alone = follower(10, high_watermark=8)
    assert reported(alone, error=int(ErrorCode.OFFSET_OUT_OF_RANGE)) == [AskOffsets(2, 5)]
    assert alone.follower.phase is Phase.ASKING
    assert not alone.follower.may_fetch(alone.now_ms)
    assert alone.follower.handle_offsets_response(0, 6, 5, alone.now_ms) == [
        LogTruncated("foo-0", 6, 10, 8),
        HighWatermarkSet(6),
        FetchAgain(0),
    ]
    assert alone.follower.may_fetch(alone.now_ms)


def test_rule_116_behind_all_the_leader_has_it_begins_anew() -> None:
    alone = follower(10, high_watermark=8)
    reported(alone, error=int(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert alone.follower.handle_offsets_response(20, 30, 5, alone.now_ms) == [
        LogTruncated("foo-0", 20, 10, 8, fully=True),
        HighWatermarkSet(20),
        FetchAgain(0),
    ]
    assert alone.follower.fetch_position() == FetchPosition(20, -1, 5, 20)


@pytest.mark.parametrize(("start", "end"), [(0, 30), (0, 10), (10, 10), (10, 30)])
def test_rule_116_in_range_after_all_it_waits_before_it_asks_again(start: int, end: int) -> None:
    alone = follower(10)
    reported(alone, error=int(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert alone.follower.handle_offsets_response(start, end, 5, alone.now_ms) == [FetchAgain(10)]
    assert (alone.log.log_start_offset, alone.log.log_end_offset) == (0, 10)


def test_rule_116_offsets_nobody_asked_for_or_of_another_epoch_are_ignored() -> None:
    alone = follower(10)
    assert alone.follower.handle_offsets_response(0, 3, 5, 0) == []
    reported(alone, error=int(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert alone.follower.handle_offsets_response(0, 3, 4, 0) == []
    assert alone.follower.offsets_failed(4, 0) == []
    assert (alone.log.log_end_offset, alone.follower.phase) == (10, Phase.ASKING)
    assert alone.follower.offsets_failed(5, 0) == [FetchAgain(10)]
    assert alone.follower.phase is Phase.FETCHING


def test_rule_117_a_restarted_replica_believes_the_checkpoint_as_far_as_its_log_goes() -> None:
    alone = follower(10)
    partition = alone.partition
    with pytest.raises(RuntimeError):
        partition.restore_high_watermark(3)
    partition.role = None
    for checkpoint, restored in ((3, 3), (10, 10), (99, 10), (-1, 0)):
        partition.restore_high_watermark(checkpoint)
        assert partition.high_watermark == restored
    alone.log.advance_log_start_offset(6)
    partition.restore_high_watermark(3)
    assert partition.high_watermark == 6


def test_fenced_it_waits_for_the_next_epoch() -> None:
    alone = follower(10)
    assert reported(alone, error=int(ErrorCode.FENCED_LEADER_EPOCH)) == []
    assert not alone.follower.may_fetch(alone.now_ms + 10**9)
    alone.learn(isr=(2, 3))
    assert alone.follower.phase is Phase.FENCED
    alone.learn(leader=3, leader_epoch=6)
    assert alone.follower.may_fetch(alone.now_ms)


@pytest.mark.parametrize(
    "error",
    [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NONE - 1],
)
def test_other_errors_are_waited_out(error: int) -> None:
    alone = follower(10)
    assert reported(alone, error=int(error)) == [FetchAgain(10)]
    assert alone.follower.phase is Phase.FETCHING


def test_it_waits_longer_each_time_until_something_works() -> None:
    alone = follower(10)
    delays = []
    for _ in range(9):
        (again,) = refused(alone)
        assert isinstance(again, FetchAgain)
        delays.append(again.delay_ms)
    assert delays == [10, 20, 40, 80, 160, 320, 640, 1000, 1000]
    reported(alone, high_watermark=3, log_start_offset=0)
    assert refused(alone) == [FetchAgain(10)]
    alone.learn(leader=3, leader_epoch=6)
    assert refused(alone) == [FetchAgain(10)]


def test_without_a_leader_it_is_idle() -> None:
    alone = follower(10)
    alone.learn(leader=-1, leader_epoch=6)
    assert alone.follower.phase is Phase.IDLE
    assert refused(alone) == []
    assert reported(alone, diverging_epoch=(4, 1)) == []
    assert alone.log.log_end_offset == 10


def test_no_replica_any_more() -> None:
    alone = follower(10, high_watermark=7)
    assert alone.learn(replicas=(2, 3)) == [StoppedReplicating("foo-0", 5)]
    assert (alone.partition.role, alone.high_watermark) == (None, 7)
    assert alone.learn(isr=(2,)) == []
    alone.learn(replicas=(1, 2, 3), leader=3, leader_epoch=6)
    assert isinstance(alone.partition.role, FollowerState)
    assert alone.high_watermark == 7


def begins_where_the_log_ends(high_watermark: int, epoch: int = 4) -> tuple[Alone, list[object]]:
    """The leader has deleted all below 10, and with it the epochs that could show where this log diverges."""
    alone = follower(10, epochs=((epoch, 0),), high_watermark=high_watermark)
    records = (Entry(10, 5, "a"),)
    return alone, reported(alone, records=records, high_watermark=11, log_start_offset=10)


def test_rule_163_a_log_that_ends_where_its_leaders_begins_may_diverge_and_begins_anew() -> None:
    """Else its uncommitted records would stay below its log start, and come back when a crash forgets that."""
    alone, effects = begins_where_the_log_ends(high_watermark=8)
    assert effects == [LogTruncated("foo-0", 10, 10, 8, fully=True), HighWatermarkSet(10), FetchAgain(0)]
    assert alone.follower.fetch_position() == FetchPosition(10, -1, 5, 10)
    assert reported(alone, records=(Entry(10, 5, "a"),), high_watermark=11, log_start_offset=10) == [
        HighWatermarkSet(11)
    ]


@pytest.mark.parametrize(("high_watermark", "epoch"), [(10, 4), (8, 5)], ids=["all committed", "of this leader"])
def test_rule_163_not_if_its_records_are_surely_the_leaders(high_watermark: int, epoch: int) -> None:
    alone, effects = begins_where_the_log_ends(high_watermark, epoch)
    assert effects == [HighWatermarkSet(11)]
    assert (alone.log.log_start_offset, alone.log.log_end_offset) == (10, 11)


def test_rule_163_after_a_cut_of_committed_records_it_begins_anew_too() -> None:
    """An unclean election has lost them: the leader has other records, below its start as well."""
    alone = follower(20, epochs=((4, 0),), high_watermark=18)
    assert reported(alone, diverging_epoch=(4, 10), high_watermark=10, log_start_offset=10) == [
        LogTruncated("foo-0", 10, 20, 18),
        HighWatermarkSet(10),
        FetchAgain(0),
    ]
    assert reported(alone, records=(Entry(10, 5, "a"),), high_watermark=11, log_start_offset=10) == [
        LogTruncated("foo-0", 10, 10, 10, fully=True),
        HighWatermarkSet(10),
        FetchAgain(0),
    ]
    assert alone.follower.fetch_position() == FetchPosition(10, -1, 5, 10)

"""A follower announces what it is about to cut off, and waits: nothing is lost before somebody could save it."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.events.replication import BecameFollower, LogTruncated
from tanist.log.salvage.manifest import SalvageReason
from tanist.replica.effects import AskOffsets, Effect, FetchAgain, HighWatermarkSet, SalvageFirst
from tanist.replica.follower import FetchedPartition, Phase
from tanist.replica.metadata import ReplicaConfig
from tanist.replica.salvage import Cut, reason_for
from tanist.wire.errors import ErrorCode
from tests.replica.replica_alone import Alone, state


def follower(leo: int = 10, *, salvage: bool = True, **how: Any) -> Alone:
    alone = Alone(leader=2, leo=leo, **how)
    alone.partition.set_config(ReplicaConfig(salvage=salvage))
    return alone


def reported(alone: Alone, **answer: Any) -> list[Effect]:
    return alone.follower.fetched(FetchedPartition(**answer), alone.follower.fetch_position(), alone.now_ms)


def announced(alone: Alone, **answer: Any) -> SalvageFirst:
    (saving,) = reported(alone, **answer)
    assert isinstance(saving, SalvageFirst)
    return saving


def test_a_divergence_is_announced_and_nothing_is_cut_yet() -> None:
    alone = follower(high_watermark=3)
    saving = announced(alone, diverging_epoch=(4, 5))
    assert saving == SalvageFirst(Cut(5, False, SalvageReason.FOLLOWER_TRUNCATION), 10, 3, 5)
    assert (alone.log.log_end_offset, alone.high_watermark) == (10, 3)
    assert alone.follower.phase is Phase.SALVAGING
    assert not alone.follower.may_fetch(10**12)


def test_it_cuts_and_goes_on_once_it_is_reported() -> None:
    alone = follower(high_watermark=8)
    saving = announced(alone, diverging_epoch=(4, 5))
    assert alone.follower.salvaged(saving) == [LogTruncated("foo-0", 5, 10, 8), HighWatermarkSet(5), FetchAgain(0)]
    assert alone.log.log_end_offset == 5
    assert alone.follower.may_fetch(alone.now_ms)
    assert alone.follower.salvaged(saving) == [], "reported twice"
    assert alone.log.log_end_offset == 5


def test_nothing_that_comes_meanwhile_moves_it() -> None:
    alone = follower(high_watermark=8)
    position = alone.follower.fetch_position()
    announced(alone, diverging_epoch=(4, 5))
    before = state(alone.follower)
    assert alone.follower.fetched(FetchedPartition(diverging_epoch=(4, 2)), position, 0) == []
    assert alone.follower.fetched(FetchedPartition(high_watermark=9, log_start_offset=9), position, 0) == []
    assert alone.follower.handle_offsets_response(0, 3, 5, 0) == []
    assert alone.follower.offsets_failed(5, 0) == []
    assert state(alone.follower) == before
    assert alone.log.log_end_offset == 10


def test_metadata_of_the_same_epoch_leaves_it_waiting() -> None:
    alone = follower()
    saving = announced(alone, diverging_epoch=(4, 5))
    alone.learn(isr=(2, 3))
    assert alone.follower.phase is Phase.SALVAGING
    alone.follower.salvaged(saving)
    assert alone.log.log_end_offset == 5


def test_in_the_next_epoch_the_old_word_counts_for_nothing() -> None:
    alone = follower()
    saving = announced(alone, diverging_epoch=(4, 5))
    alone.learn(leader=3, leader_epoch=6)
    assert alone.follower.may_fetch(alone.now_ms)
    assert alone.follower.salvaged(saving) == []
    assert alone.log.log_end_offset == 10
    again = announced(alone, diverging_epoch=(4, 7))
    assert alone.follower.salvaged(saving) == []
    assert alone.follower.salvaged(again)[0] == LogTruncated("foo-0", 7, 10, 0)


def test_who_comes_to_lead_keeps_all_it_has() -> None:
    alone = follower()
    announced(alone, diverging_epoch=(4, 5))
    alone.learn(leader=1, leader_epoch=6)
    assert alone.log.log_end_offset == 10


def test_ahead_of_the_leader() -> None:
    alone = follower(high_watermark=8)
    assert reported(alone, error=int(ErrorCode.OFFSET_OUT_OF_RANGE)) == [AskOffsets(2, 5)]
    (saving,) = alone.follower.handle_offsets_response(0, 6, 5, alone.now_ms)
    assert isinstance(saving, SalvageFirst)
    assert saving == SalvageFirst(Cut(6, False, SalvageReason.CLEAN_ELECTION), 10, 8, 5)
    assert alone.follower.salvaged(saving) == [LogTruncated("foo-0", 6, 10, 8), HighWatermarkSet(6), FetchAgain(0)]


def test_behind_all_that_the_leader_has() -> None:
    alone = follower(high_watermark=8)
    reported(alone, error=int(ErrorCode.OFFSET_OUT_OF_RANGE))
    (saving,) = alone.follower.handle_offsets_response(20, 30, 5, alone.now_ms)
    assert isinstance(saving, SalvageFirst)
    assert saving == SalvageFirst(Cut(20, True, SalvageReason.OUT_OF_RANGE), 10, 8, 5)
    assert (alone.log.log_start_offset, alone.log.log_end_offset) == (0, 10)
    assert alone.follower.salvaged(saving) == [
        LogTruncated("foo-0", 20, 10, 8, fully=True),
        HighWatermarkSet(20),
        FetchAgain(0),
    ]
    assert alone.follower.fetch_position().offset == 20


def test_an_empty_log_begins_anew_at_once() -> None:
    alone = follower(leo=0, epochs=())
    reported(alone, error=int(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert alone.follower.handle_offsets_response(20, 30, 5, alone.now_ms)[0] == LogTruncated(
        "foo-0", 20, 0, 0, fully=True
    )


def test_an_epoch_without_records_goes_at_once() -> None:
    alone = follower(epochs=((4, 0),))
    alone.log.epochs.assign(9, 10)
    assert reported(alone, diverging_epoch=(4, 10)) == [FetchAgain(0)]
    assert alone.log.latest_epoch == 4


def test_a_log_without_epochs_is_cut_to_its_high_watermark_as_well() -> None:
    alone = follower(high_watermark=4)
    alone.log.epochs.clear()
    became, saving = alone.learn(leader=3, leader_epoch=6)
    assert isinstance(saving, SalvageFirst)
    assert became == BecameFollower("foo-0", 3, 6)
    assert saving == SalvageFirst(Cut(4, False, SalvageReason.FOLLOWER_TRUNCATION), 10, 4, 6)
    assert alone.follower.salvaged(saving)[0] == LogTruncated("foo-0", 4, 10, 4)


def test_switched_off_it_cuts_at_once() -> None:
    alone = follower(high_watermark=8, salvage=False)
    assert reported(alone, diverging_epoch=(4, 5)) == [
        LogTruncated("foo-0", 5, 10, 8),
        HighWatermarkSet(5),
        FetchAgain(0),
    ]


@pytest.mark.parametrize(
    ("offset", "high_watermark", "fully", "unclean", "why"),
    [
        (5, 5, False, False, SalvageReason.FOLLOWER_TRUNCATION),
        (5, 6, False, False, SalvageReason.CLEAN_ELECTION),
        (5, 6, False, True, SalvageReason.UNCLEAN_ELECTION),
        (5, 5, False, True, SalvageReason.UNCLEAN_ELECTION),
        (5, 6, True, True, SalvageReason.OUT_OF_RANGE),
    ],
)
def test_why(offset: int, high_watermark: int, fully: bool, unclean: bool, why: SalvageReason) -> None:
    assert reason_for(offset, high_watermark, fully=fully, unclean=unclean) is why


def test_the_leaders_recovery_is_read_off_the_metadata() -> None:
    alone = follower()
    alone.learn(recovering=True)
    assert announced(alone, diverging_epoch=(4, 5)).cut.why is SalvageReason.UNCLEAN_ELECTION


@pytest.mark.parametrize(
    ("last_unclean_epoch", "why"),
    [
        (-1, SalvageReason.FOLLOWER_TRUNCATION),
        (4, SalvageReason.FOLLOWER_TRUNCATION),
        (5, SalvageReason.UNCLEAN_ELECTION),
    ],
)
def test_an_unclean_election_counts_after_its_leader_has_recovered(last_unclean_epoch: int, why: SalvageReason) -> None:
    """If it came after the last record that is cut; the records of epoch 4 were written by a leader that it elected."""
    alone = follower()
    assert alone.log.latest_epoch == 4
    alone.learn(last_unclean_epoch=last_unclean_epoch)
    assert announced(alone, diverging_epoch=(4, 5)).cut.why is why

"""What a trigger makes of a stream's checkpoint and of what the leaders say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.spark.topic.offsets import OffsetAndEpoch
from tanist.spark.topic.plan import OffsetRange, together
from tanist.spark.topic.positions import (
    Begin,
    CheckpointError,
    Position,
    Positions,
    advanced,
    doubtful,
    expired,
    from_json,
    ranges_between,
    to_json,
    truncated,
)

ZERO, ONE = ("orders", 0), ("orders", 1)


def test_the_form_in_the_checkpoint() -> None:
    positions = {ONE: Position(7, 2), ZERO: Position(200, 5, 60, "lost some")}
    stored = to_json(positions)
    assert stored == {
        "orders": {
            "0": {"offset": 200, "epoch": 5, "begin": 60, "lost": "lost some"},
            "1": {"offset": 7, "epoch": 2},
        }
    }
    assert from_json(stored) == positions


def test_a_checkpoint_of_sparks_own_source_has_offsets_without_epochs() -> None:
    assert from_json({"orders": {"0": 23}}) == {ZERO: Position(23, -1)}
    with pytest.raises(CheckpointError, match="no position"):
        from_json({"orders": {"0": {"offset": 23}}})
    with pytest.raises(CheckpointError, match="no position"):
        from_json({"orders": 23})


def test_a_log_that_goes_on_in_a_new_epoch_is_whole() -> None:
    at, latest = Position(100, 3), OffsetAndEpoch(150, 4)
    assert doubtful(at, latest)
    assert truncated(ZERO, at, latest, OffsetAndEpoch(120, 3)) is None
    assert not doubtful(at, OffsetAndEpoch(150, 3))


def test_a_log_that_grew_again_after_it_was_cut_off_is_found_out_by_its_epoch() -> None:
    """Offsets alone say nothing: the stream is at 100, and the log goes to 150."""
    found = truncated(ZERO, Position(100, 3), OffsetAndEpoch(150, 5), OffsetAndEpoch(60, 3))
    assert found is not None
    assert found.offset == 60
    assert found.lost == (
        "orders-0: offsets 60 to 100, which were committed in leader epoch 3 and have been read, were truncated: the"
        " log of that epoch ends at 60 now, and that of leader epoch 5 at 150"
    )


def test_a_high_watermark_that_lags_after_an_election_is_no_loss() -> None:
    assert truncated(ZERO, Position(100, 3), OffsetAndEpoch(90, 4), OffsetAndEpoch(100, 3)) is None


def test_without_epochs_only_an_end_below_tells() -> None:
    assert truncated(ZERO, Position(100, -1), OffsetAndEpoch(150, 5), OffsetAndEpoch(-1, -1)) is None
    found = truncated(ZERO, Position(100, -1), OffsetAndEpoch(90, 5), OffsetAndEpoch(-1, -1))
    assert found is not None
    assert found.offset == 90


def test_a_loss_is_part_of_the_batch_that_goes_on_behind_it() -> None:
    at: Positions = {ZERO: Position(100, 3)}
    end = advanced(at, {ZERO: Begin(60, "cut off")}, {ZERO: OffsetAndEpoch(150, 5)})
    assert end == {ZERO: Position(150, 5, 60, "cut off")}
    assert ranges_between(at, end) == [OffsetRange("orders", 0, 60, 150, 5)]
    # Also if there is nothing to read behind it; and what is said once is not said again.
    assert advanced(at, {ZERO: Begin(60, "cut off")}, {ZERO: OffsetAndEpoch(60, 5)}) == {
        ZERO: Position(60, 5, 60, "cut off")
    }
    following = advanced(
        end, {ZERO: Begin(150), ONE: Begin(0)}, {ZERO: OffsetAndEpoch(150, 5), ONE: OffsetAndEpoch(9, 0)}
    )
    assert following == {ZERO: Position(150, 5), ONE: Position(9, 0, 0)}
    assert ranges_between(end, following) == [OffsetRange("orders", 1, 0, 9, 0)]


def test_a_new_epoch_alone_makes_no_batch() -> None:
    at: Positions = {ZERO: Position(100, 3, 60, "cut off")}
    assert advanced(at, {ZERO: Begin(100)}, {ZERO: OffsetAndEpoch(100, 4)}) == at
    assert ranges_between(at, at) == []


def test_expired_offsets_are_named() -> None:
    assert expired(ZERO, Position(5, 1), 9) == Begin(9, "orders-0: offsets 5 to 9 have expired before they were read")


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8), st.integers(1, 500))
def test_a_limit_is_kept_and_nobody_is_forgotten(waiting: list[int], most: int) -> None:
    places = [("t", number) for number in range(len(waiting))]
    at = {where: Position(10, 0) for where in places}
    latest = {where: OffsetAndEpoch(10 + size, 0) for where, size in zip(places, waiting)}
    end = advanced(at, {where: Begin(10) for where in places}, latest, most=most)
    taken = [end[where].offset - 10 for where in places]
    assert all(0 <= each <= size for each, size in zip(taken, waiting))
    assert all(each > 0 for each, size in zip(taken, waiting) if size)
    # Rounding up the shares below one is the only way beyond the limit.
    assert sum(taken) <= max(most, 0) + len(waiting)
    assert sum(taken) == sum(waiting) or sum(taken) >= most - len(waiting)


def test_few_records_of_many_partitions_are_one_task() -> None:
    sizes = [3, 40, 57, 1, 500, 2, 100, 99, 1]
    ranges = [OffsetRange("orders", number, 10, 10 + size) for number, size in enumerate(sizes)]
    found = together(ranges)
    assert [each for task in found for each in task] == ranges
    assert [[each.end - each.start for each in task] for task in found] == [
        [3, 40, 57],
        [1],
        [500],
        [2],
        [100],
        [99, 1],
    ]
    assert together([]) == []

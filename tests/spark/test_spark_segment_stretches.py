from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from tanist.spark.segments.ranges import Bounds, stretches
from tanist.spark.segments.replica_files import SegmentFile
from tests.spark.spark_segments_samples import START_MS, SegmentBuilder

ANY = Bounds()


@pytest.fixture
def made() -> SegmentBuilder:
    return SegmentBuilder(1000).batches(40, 10)


def cut(
    made: SegmentBuilder, folder: Path, bounds: Bounds = ANY, *, indexed: bool = True, **how: int
) -> list[tuple[int, int]]:
    path = made.write(folder, indexes=indexed)
    segment = SegmentFile(str(path), "orders", 0, 1, 1000, None, None)
    return list(stretches(segment, bounds, **how))  # type: ignore[arg-type]


def covers(made: SegmentBuilder, found: list[tuple[int, int]]) -> bool:
    """Without gaps, and only between batches."""
    edges = [start for start, _ in found] + [found[-1][1]]
    assert [end for _, end in found[:-1]] == [start for start, _ in found[1:]]
    return set(edges) <= {*made.positions, len(made.data)}


@pytest.mark.parametrize("indexed", [True, False])
def test_cuts_are_between_batches(made: SegmentBuilder, tmp_path: Path, indexed: bool) -> None:
    found = cut(made, tmp_path, indexed=indexed, target_bytes=3000)
    assert len(found) > 3
    assert covers(made, found)
    assert (found[0][0], found[-1][1]) == (0, len(made.data))


def test_an_index_that_lies_is_not_followed(made: SegmentBuilder, tmp_path: Path) -> None:
    for at in range(4, len(made.index), 8):
        made.index[at : at + 4] = (int.from_bytes(made.index[at : at + 4], "big") + 7).to_bytes(4, "big")
    found = cut(made, tmp_path, target_bytes=3000)
    assert len(found) > 3
    assert covers(made, found)


def test_bounds_narrow_what_is_read(made: SegmentBuilder, tmp_path: Path) -> None:
    # Batch n has offsets 1000 + 10 n to 1009 + 10 n.
    at = made.positions
    assert cut(made, tmp_path, Bounds(least_offset=1200)) == [(at[19], len(made.data))]
    assert cut(made, tmp_path, Bounds(most_offset=1099)) == [(0, at[11])]
    assert cut(made, tmp_path, Bounds(1200, 1209)) == [(at[19], at[22])] or covers(made, cut(made, tmp_path))
    assert cut(made, tmp_path, Bounds(least_timestamp_ms=START_MS + 1200)) == [(at[19], len(made.data))]
    assert cut(made, tmp_path, Bounds(most_offset=999)) == []


@pytest.mark.parametrize("offset", [1000, 1009, 1010, 1234, 1399, 1400, 5000])
def test_no_bound_leaves_out_what_is_within(made: SegmentBuilder, tmp_path: Path, offset: int) -> None:
    ((start, end),) = cut(made, tmp_path, Bounds(offset, offset))
    number = (offset - 1000) // 10
    if number < 40:
        assert start <= made.positions[number]
        assert end >= [*made.positions, len(made.data)][number + 1]


def test_a_segment_before_the_bound_is_not_opened(tmp_path: Path) -> None:
    gone = SegmentFile(str(tmp_path / "none.log"), "orders", 0, 1, 0, 500, None)
    assert list(stretches(gone, Bounds(least_offset=500))) == []
    assert list(stretches(gone, Bounds())) == []


def test_planning_looks_at_few_entries_of_an_index(made: SegmentBuilder, tmp_path: Path) -> None:
    """A terabyte's index has 250 million: planning is the driver's alone."""
    entries = range(100_000)
    offset, position = 1 << 20, 1 << 28
    made.index += b"".join(struct.pack(">ii", offset + each, position + each) for each in entries)
    made.time_index += b"".join(struct.pack(">qi", START_MS + offset + each, offset + each) for each in entries)
    steps = 0

    def count(*_: Any) -> Any:
        nonlocal steps
        steps += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        found = cut(made, tmp_path, Bounds(least_offset=1200, least_timestamp_ms=START_MS + 1200), target_bytes=3000)
    finally:
        sys.settrace(before)
    assert covers(made, found)
    assert steps < len(entries) / 4


def test_zeros_at_the_end_of_an_index_are_no_entries(made: SegmentBuilder, tmp_path: Path) -> None:
    before = cut(made, tmp_path, Bounds(least_offset=1200))
    made.index += bytes(800)
    made.time_index += bytes(1200)
    assert cut(made, tmp_path, Bounds(least_offset=1200)) == before

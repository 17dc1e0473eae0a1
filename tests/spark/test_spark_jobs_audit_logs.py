from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tanist.log.checkpoints import HIGH_WATERMARK_CHECKPOINT, encode_offsets
from tanist.spark.jobs.audit.log_files import Stretch, checkpointed, fewer

stretches = st.lists(
    st.builds(
        lambda partition, first, size: Stretch("t", partition, first, first + size),
        st.integers(0, 2), st.integers(0, 300), st.integers(0, 20),
    ),
    max_size=30,
)  # fmt: skip


def offsets(of: list[Stretch]) -> set[tuple[int, int]]:
    return {(each.partition, offset) for each in of for offset in range(each.first, each.last + 1)}


@given(stretches, st.integers(1, 10))
def test_fewer_stretches_cover_all_of_them_and_none_twice(wanted: list[Stretch], most: int) -> None:
    found = fewer(wanted, most)
    assert offsets(wanted) <= offsets(found)
    assert len(offsets(found)) == sum(each.last - each.first + 1 for each in found)
    assert len(found) <= max(most, len({each.partition for each in wanted}))


@given(stretches)
def test_stretches_that_need_not_be_joined_are_exactly_what_was_wanted(wanted: list[Stretch]) -> None:
    assert offsets(fewer(wanted, 1000)) == offsets(wanted)


def test_the_greatest_high_watermark_that_was_written_down_counts(tmp_path: Path) -> None:
    for name, offset in (("one", 7), ("two", 9), ("three", 8)):
        (tmp_path / name).mkdir()
        (tmp_path / name / HIGH_WATERMARK_CHECKPOINT).write_bytes(encode_offsets({("t", 0): offset}))
    (tmp_path / "three" / HIGH_WATERMARK_CHECKPOINT).write_text("not a checkpoint")
    assert checkpointed([tmp_path / name for name in ("one", "two", "three", "none")]) == {("t", 0): 9}

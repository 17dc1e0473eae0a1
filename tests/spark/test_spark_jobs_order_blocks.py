"""The first look at producers' order finds every producer that the rule finds, and no sound one without need."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.spark.jobs.audit import order_blocks

NEVER = -(2**63)
Row = tuple[int, int, int | None, int]
moments = st.integers(0, 12)
rows = st.lists(st.tuples(st.integers(-2, 3), st.integers(0, 9), st.none() | moments, moments), min_size=1, max_size=24)


def by_the_rule(sends: list[Row]) -> set[int]:
    """The producers of which one send stands before another that had been acknowledged when it began."""
    return {
        one[0]
        for one in sends
        for other in sends
        if one[0] == other[0] and one[2] is not None and one[1] < other[1] and other[3] <= one[2]
    }


def summed(sends: list[Row], shift_ns: int = 0) -> dict[str, Any]:
    columns = zip(*((a, b, NEVER if c is None else c + shift_ns, d + shift_ns) for a, b, c, d in sends))
    return order_blocks.summed(*(np.array(column, np.int64) for column in columns))


# The first example pays for numpy's and Arrow's imports.
@settings(deadline=None)
@given(rows, st.sampled_from([0, 1_700_000_000_000_000_000]))
def test_a_block_finds_what_the_rule_finds_and_equal_offsets_at_most(sends: list[Row], shift_ns: int) -> None:
    found = summed(sends, shift_ns)
    marked = set(found["producer"][found["disordered"]].tolist())
    assert by_the_rule(sends) <= marked
    same = {each for each, offset in {row[:2] for row in sends} if sum(row[:2] == (each, offset) for row in sends) > 1}
    assert marked <= by_the_rule(sends) | same


@settings(deadline=None)
@given(rows)
def test_a_block_says_where_it_is(sends: list[Row]) -> None:
    of: dict[int, list[Row]] = defaultdict(list)
    for row in sends:
        of[row[0]].append(row)
    found = summed(sends)
    for number, producer in enumerate(found["producer"].tolist()):
        own = of.pop(producer)
        assert found["first_offset"][number] == min(row[1] for row in own)
        assert found["last_offset"][number] == max(row[1] for row in own)
        assert found["first_ended_ns"][number] == min(row[3] for row in own)
        assert found["last_began_ns"][number] == max(NEVER if row[2] is None else row[2] for row in own)
    assert not of


@settings(deadline=None)
@given(rows, st.integers(1, 5))
def test_groups_that_do_not_fit_into_one_pass_are_taken_apart(sends: list[Row], at_once: int) -> None:
    whole = summed(sends)["disordered"].tolist()
    span = max(row[3] for row in sends) - min(row[3] for row in sends) + 1
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(order_blocks, "_SPAN_MAX", at_once * (span + 1))
        assert summed(sends)["disordered"].tolist() == whole


SOUND: list[Row] = [(producer, offset, offset, offset + 2) for offset in range(40) for producer in (1, 2)]


@pytest.mark.parametrize(
    ("sends", "expected"),
    [
        (SOUND, set()),
        # Far apart, so in different blocks: acknowledged at 5, and sent behind it at 90 to a lower offset.
        ([(1, 100, 4, 5), *SOUND, (1, 30, 90, 91)], {1}),
        ([*SOUND, (2, 39, 1, 3)], {2}),
        ([(3, offset, None, 100 - offset) for offset in range(40)], set()),
    ],
)
def test_blocks_are_held_against_each_other(spark: Any, sends: list[Row], expected: set[int]) -> None:
    found = []
    for first in range(0, len(sends), 16):
        block = summed(sends[first : first + 16])
        for producer, *numbers, began, disordered in zip(*(column.tolist() for column in block.values())):
            found.append((str(producer), "t-0", *numbers, None if began == NEVER else began, disordered))
    schema = "process string, place string, first_offset bigint, last_offset bigint, first_ended_ns bigint,"
    blocks = spark.createDataFrame(found, f"{schema} last_began_ns bigint, disordered boolean")
    marked = {int(row.process) for row in order_blocks.suspected(blocks).collect()}
    assert by_the_rule(sends) <= marked
    assert marked == expected

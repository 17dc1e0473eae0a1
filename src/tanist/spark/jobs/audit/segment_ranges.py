"""Stretches of segment files that an audit has chosen itself, and what is in them.

Owns the way from a plan (which bytes, and which offsets of them) to rows of `tanist-segments`, or to what they come to
(`audit.sums`). It is not for users: `tanist-segments` plans for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tanist.spark.jobs.audit import sums as audit_sums


class SegmentRange(NamedTuple):
    """Bytes of a file, whose it is, and which offsets of it are wanted (inclusive; None: all)."""

    path: str
    start: int
    end: int
    topic: str
    partition: int
    replica: int | None
    segment: int
    salvage_id: str | None
    least: int | None
    most: int | None


def rows_of(each: SegmentRange, columns: Sequence[str]) -> Iterator[Any]:
    """The rows with these columns."""
    for found in _rows(each, columns):
        if each.least is not None and each.most is not None:
            yield _within(found, each.least, each.most)
        else:
            yield found


def sums_of_group(group: Sequence[SegmentRange]) -> Iterator[Any]:
    """Rows of `audit_sums.SCHEMA`. What is the same in several replicas is decoded once."""
    if len(group) == 1:
        (each,) = group
        for found in _rows(each, audit_sums.COLUMNS):
            yield audit_sums.summed(found, each.topic, each.partition, each.replica)
        return
    from tanist.spark.jobs.audit.known_batches import KnownBatches

    known = KnownBatches()
    for each in group:
        origin = (each.topic, each.partition, each.replica)
        for found in _rows(each, [*audit_sums.COLUMNS, "batch_offset"], known.unknown):
            sums = audit_sums.apart(found)
            known.add(sums)
            yield audit_sums.rows_of(audit_sums.in_buckets(sums), audit_sums.damages_in(found), *origin)
        met = known.met()
        if met is not None:
            yield audit_sums.rows_of(met, 0, *origin)
        known.learn()


def _rows(each: SegmentRange, columns: Sequence[str], unknown: Any = None) -> Iterator[Any]:
    """The rows of a range, and perhaps some before and behind those that are wanted."""
    # The decoder is imported where it runs: planning does not need it.
    from tanist.spark.segments.arrow_rows import Origin
    from tanist.spark.segments.reading import Wanted, read_stretch

    origin = Origin(each.topic, each.partition, each.replica, each.segment, each.salvage_id)
    return read_stretch(each.path, each.start, each.end, origin, columns, Wanted(each.least, each.most), unknown)


def _within(batch: Any, least: int, most: int) -> Any:
    """A batch may reach into several ranges, each of which is read by itself: no row may come twice."""
    import pyarrow.compute as pc

    offset = batch.column("offset")
    return batch.filter(pc.and_(pc.greater_equal(offset, least), pc.less_equal(offset, most)))

"""Which producers may have records out of order: an upper bound, without a sort of every send that was acknowledged.

Owns the first look of `audit.order`. Each task of the first pass takes its sends by the half million, sorts those
alone, and sums each producer's up as a block: which offsets, the first acknowledgement, the last beginning, and whether
two sends within the block are out of order. Blocks of one producer that lie behind each other can be compared by their
sums, exactly; where two overlap nothing is known, and the producer is one to be looked at. A history as clients write
it has blocks that lie behind each other, so that no send is shuffled.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

ROWS: Final = 1 << 19
"""Of a block at most; 16 MB as they come, and a few times that while they are sorted."""
_SPAN_MAX: Final = 2**62


def suspected(blocks: DataFrame) -> DataFrame:
    """The producers (process, place) of blocks (process, place, and the columns of `summed`) that may be out of order.

    `last_began_ns` is null where nobody knows it.
    """
    before = Window.partitionBy("process", "place").orderBy("first_offset", "last_offset")
    before = before.rowsBetween(Window.unboundedPreceding, -1)
    compared = blocks.select(
        "process",
        "place",
        "disordered",
        (F.max("last_offset").over(before) >= F.col("first_offset")).alias("overlaps"),
        (F.max("last_began_ns").over(before) >= F.col("first_ended_ns")).alias("behind"),
    )
    return compared.where("disordered or overlaps or behind").select("process", "place").distinct()


def summed(producer: Any, offset: Any, began: Any, ended: Any) -> dict[str, Any]:
    """A block for each producer, of columns of integers. `began` is the least integer where nobody knows it."""
    import numpy as np

    order = np.lexsort((offset, producer))
    producer, offset, began, ended = (column[order] for column in (producer, offset, began, ended))
    starts = np.flatnonzero(np.r_[True, producer[1:] != producer[:-1]])
    return {
        "producer": producer[starts],
        "first_offset": offset[starts],
        "last_offset": offset[np.r_[starts[1:], len(offset)] - 1],
        "first_ended_ns": np.minimum.reduceat(ended, starts),
        "last_began_ns": np.maximum.reduceat(began, starts),
        "disordered": np.logical_or.reduceat(_behind(starts, began, ended), starts),
    }


def _behind(starts: Any, began: Any, ended: Any) -> Any:
    """Of sends by producer and offset: whether one of a later place had been acknowledged when this one began."""
    import numpy as np

    low, high = int(ended.min()), int(ended.max())
    span = high - low + 1
    # All groups in one pass: each has its own stretch of numbers, above those of the groups before it, so that a
    # running minimum from the end begins anew with each. As many groups at once as 62 bits can hold.
    at_once = max(1, _SPAN_MAX // (span + 1))
    found = np.zeros(len(ended), np.bool_)
    for number in range(0, len(starts), at_once):
        first = starts[number]
        end = starts[number + at_once] if number + at_once < len(starts) else len(ended)
        group = np.zeros(end - first, np.int64)
        group[starts[number + 1 : number + at_once] - first] = 1
        base = np.cumsum(group) * (span + 1)
        acknowledged = ended[first:end] - low + base
        least = np.minimum.accumulate(acknowledged[::-1])[::-1]
        # A beginning before all acknowledgements is behind none of them, one after all behind each.
        sent = np.clip(began[first:end], low - 1, high) - low + base
        later = least[1:]
        found[first : end - 1] = (group[1:] == 0) & (later <= sent[:-1])
    return found

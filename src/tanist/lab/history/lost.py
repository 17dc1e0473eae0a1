"""Acknowledged writes that are gone, even if they were polled before: found by the last polls.

A truncation removes records whether they were read or not. Owns two proofs: another value was polled at the offset, by
a poll that began after the acknowledgement and after the last poll that gave the write; or the partition ended before
it, after all acknowledgements. Writes that were never polled are in `judgement`, if a later record was polled.
"""

from __future__ import annotations

from tanist.lab.anomalies import Anomaly
from tanist.lab.history.partition import PartitionHistory
from tanist.lab.history.sends import OK, PLACED
from tanist.lab.history.tally import Cite, Tally


def lost_again(partition: PartitionHistory, tally: Tally, inconsistent: dict[int, list[int]], known: set[int]) -> None:
    """Acknowledged, perhaps polled, and gone: the last poll there found another value, or the partition's end."""
    offsets, sends = partition.offsets, partition.sends
    instead = _other_values(partition, inconsistent)
    beyond = _beyond_the_end(partition)
    elsewhere = _polled_elsewhere(partition, instead.keys() | set(beyond)) if instead or beyond else set()
    for row, slot in instead.items():
        if row not in known and row not in elsewhere:
            known.add(row)
            offset = sends.offsets[row]
            tally.add(
                Anomaly.LOST_WRITE,
                partition.name,
                f"offset {offset} was acknowledged, and in the end something else was polled there",
                Cite(sends.lines(row), partition.name, sent=True),
                Cite((offsets.last_lines[slot],), partition.name, offset),
            )
    end = partition.end_poll()
    for row in beyond:
        if row not in known and row not in elsewhere:
            known.add(row)
            tally.add(
                Anomaly.LOST_WRITE,
                partition.name,
                f"offset {sends.offsets[row]} was acknowledged, and in the end the partition ended at {end.position}",
                Cite(sends.lines(row), partition.name, sent=True),
                *end.citations,
            )


def _other_values(partition: PartitionHistory, inconsistent: dict[int, list[int]]) -> dict[int, int]:
    """Rows of acknowledged writes -> the slot of another value that was polled at their offset, last of all."""
    offsets, sends = partition.offsets, partition.sends
    found: dict[int, int] = {}
    for offset, further in inconsistent.items():
        slots = (offsets.main_slot(offset), *further)
        for slot in slots:
            row = offsets.senders[slot] - 1
            if row < 0 or not _stands_by_acknowledgement(partition, row) or sends.offsets[row] != offset:
                continue
            others = [each for each in slots if each != slot and offsets.reads[each]]
            last = max(others, key=offsets.last_read_at.__getitem__, default=-1)
            seen_at = offsets.last_read_at[slot] if offsets.reads[slot] else -1
            if last >= 0 and offsets.last_read_at[last] > max(sends.ends_at[row], seen_at):
                found[row] = last
    return found


def _beyond_the_end(partition: PartitionHistory) -> list[int]:
    """Rows of acknowledged writes at or behind the partition's end, if it was seen when all was acknowledged."""
    offsets, sends, end_poll = partition.offsets, partition.sends, partition.end_poll()
    end = end_poll.position
    if end_poll.at <= partition.acknowledged_until_at:
        return []
    for slot in offsets.slots():
        is_later = offsets.reads[slot] and offsets.last_read_at[slot] >= end_poll.at
        if is_later and offsets.offset_of(slot) >= end:
            return []  # it was not the end
    return [
        row for row in range(len(sends)) if sends.offsets[row] >= end and _stands_by_acknowledgement(partition, row)
    ]


def _stands_by_acknowledgement(partition: PartitionHistory, row: int) -> bool:
    return partition.sends.flags[row] & (OK | PLACED) == OK and partition.sends.offsets[row] >= 0


def _polled_elsewhere(partition: PartitionHistory, rows: set[int]) -> set[int]:
    """The rows whose value was polled at another offset than the acknowledged one: they are not lost."""
    offsets, sends = partition.offsets, partition.sends
    return {
        row
        for slot in offsets.slots()
        if (row := offsets.senders[slot] - 1) in rows
        and offsets.reads[slot]
        and offsets.offset_of(slot) != sends.offsets[row]
    }

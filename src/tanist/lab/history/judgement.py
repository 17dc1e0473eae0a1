"""The anomalies of one partition, when all of its history is read. docs/history.md defines each anomaly.

Linear passes: values are joined (`_Values`: sends with their offsets; G1a, phantoms, duplicates), then sends are
checked in the order of their producers, offsets from the last to the first (`_FromTheEnd`), ends and gaps one by one.
Owns the conclusions.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from tanist.lab.anomalies import Anomaly
from tanist.lab.history.citations import cite_claim, cite_place, cite_read, cite_send
from tanist.lab.history.lost import lost_again
from tanist.lab.history.offsets import OffsetOrder
from tanist.lab.history.operation import HistoryError
from tanist.lab.history.partition import PartitionHistory
from tanist.lab.history.sends import ABORTED, FAILED, IDEMPOTENT, OK, PLACED, READ, TRANSACTIONAL
from tanist.lab.history.tally import Cite, Tally

_BUCKET_ENTRIES = 1 << 17
"""Number of values that are joined at a time: a dictionary of all would take more memory than everything else."""
_NEVER = (1 << 63) - 1


def judge(partition: PartitionHistory, tally: Tally) -> tuple[int, set[int]]:
    """Add the anomalies to the tally. Returns the number of acknowledged records without a poll, if there was no poll
    at the end, and the rows of sends that are lost.

    Raises `HistoryError` if a value was sent twice.
    """
    values = _Values(partition, tally)
    values.join()
    inconsistent = partition.offsets.inconsistent()
    _same_offset(partition, tally, inconsistent)
    order = partition.offsets.in_order()
    _producers(partition, tally, order)
    from_the_end = _FromTheEnd(partition, tally, inconsistent, order)
    from_the_end.judge()
    lost_again(partition, tally, inconsistent, from_the_end.lost)
    _gaps(partition, tally, inconsistent, order)
    return _unseen(partition, tally), from_the_end.lost


# -- values


class _Values:
    """Joins the values of sends and claims, a part of them at a time."""

    def __init__(self, partition: PartitionHistory, tally: Tally) -> None:
        self._partition = partition
        self._tally = tally
        self._repeated: tuple[int, int] | None = None
        """The lines of the first send with a repeated value, and of the earlier send."""

    def join(self) -> None:
        sends, offsets = self._partition.sends, self._partition.offsets
        entries = len(sends) + len(offsets)
        mask = (1 << (entries // _BUCKET_ENTRIES).bit_length()) - 1
        rows = _parted(range(len(sends)), sends.values, mask)
        slots = _parted(offsets.slots(), offsets.values, mask)
        for bucket in range(mask + 1):
            self._claims(self._sends(rows[bucket]), slots[bucket])
        if self._repeated is not None:
            line, before = self._repeated
            raise HistoryError(
                f"its value was sent to {self._partition.name} before, in line {before}: values are unique in a "
                "partition; let the value name the record, as [producer, number] does",
                line,
            )

    def _sends(self, rows: array[int]) -> dict[int, int]:
        values, lines, found = self._partition.sends.values, self._partition.sends.begin_lines, dict[int, int]()
        for row in rows:
            first = found.setdefault(values[row], row)
            if first != row and (self._repeated is None or lines[row] < self._repeated[0]):
                self._repeated = lines[row], lines[first]
        return found

    def _claims(self, rows: dict[int, int], slots: array[int]) -> None:
        offsets = self._partition.offsets
        seen: dict[int, int] = {}
        done: set[tuple[Anomaly, int]] = set()
        """The claims of each value: it may have several offsets."""
        for slot in slots:
            value = offsets.values[slot]
            row = rows.get(value, -1)
            first = seen.setdefault(value, slot)
            if first != slot and (Anomaly.DUPLICATE, value) not in done and self._is_duplicate(first, slot, row):
                done.add((Anomaly.DUPLICATE, value))
            if row < 0:
                if first == slot:
                    self._nobody_sent(slot)
                continue
            offsets.senders[slot] = row + 1
            if offsets.reads[slot]:
                self._was_read(slot, row)
                if self._partition.sends.flags[row] & FAILED and (Anomaly.G1A, value) not in done:
                    line = self._must_not_read(slot, row)
                    if line:
                        done.add((Anomaly.G1A, value))

    def _is_duplicate(self, first: int, slot: int, row: int) -> bool:
        partition, offset_of = self._partition, self._partition.offsets.offset_of
        if row >= 0 and not partition.sends.flags[row] & IDEMPOTENT:
            # A producer that retries without idempotence may write twice.
            return False
        low, high = sorted((first, slot), key=offset_of)
        self._tally.add(
            Anomaly.DUPLICATE,
            partition.name,
            f"the same value at offset {offset_of(low)} and at {offset_of(high)}",
            cite_claim(partition, low),
            cite_claim(partition, high),
        )
        return True

    def _nobody_sent(self, slot: int) -> None:
        partition = self._partition
        offset = partition.offsets.offset_of(slot)
        self._tally.add(
            Anomaly.PHANTOM,
            partition.name,
            f"what was polled at offset {offset} was not sent",
            cite_read(partition, slot),
        )

    def _was_read(self, slot: int, row: int) -> None:
        """A send without a known offset gets that of its poll; if there are several, the first."""
        sends, offset = self._partition.sends, self._partition.offsets.offset_of(slot)
        sends.flags[row] |= READ
        if sends.offsets[row] < 0 or (sends.flags[row] & PLACED and offset < sends.offsets[row]):
            sends.offsets[row] = offset
            sends.flags[row] |= PLACED

    def _must_not_read(self, slot: int, row: int) -> int:
        """The line of a poll that returned a failed write; 0 if all such polls may."""
        partition = self._partition
        offsets, sends = partition.offsets, partition.sends
        line = offsets.committed_reads[slot] if sends.flags[row] & ABORTED else offsets.reads[slot]
        if line:
            offset = offsets.offset_of(slot)
            what = "a transaction that was aborted" if sends.flags[row] & ABORTED else "a send that failed"
            self._tally.add(
                Anomaly.G1A,
                partition.name,
                f"offset {offset} was polled, and is of {what}",
                cite_send(partition, row),
                Cite((line,), partition.name, offset),
            )
        return line


def _parted(numbers: Iterable[int], values: array[int], mask: int) -> list[array[int]]:
    """Numbers by the last bits of their values."""
    parts = [array("I") for _ in range(mask + 1)]
    if mask == 0:
        parts[0].extend(numbers)
        return parts
    append = [part.append for part in parts]
    for number in numbers:
        append[values[number] & mask](number)
    return parts


# -- offsets and producers


def _same_offset(partition: PartitionHistory, tally: Tally, inconsistent: dict[int, list[int]]) -> None:
    for offset, slots in inconsistent.items():
        tally.add(
            Anomaly.INCONSISTENT_OFFSETS,
            partition.name,
            f"offset {offset} has {len(slots) + 1} values",
            cite_claim(partition, partition.offsets.main_slot(offset)),
            cite_claim(partition, slots[0]),
        )


def _producers(partition: PartitionHistory, tally: Tally, order: OffsetOrder) -> None:
    """The records of an idempotent producer have the order of its sends, as far as offsets are known."""
    sends = partition.sends
    last_rows: dict[int, int] = {}
    for row, (flags, offset, producer) in enumerate(zip(sends.flags, sends.offsets, sends.producers, strict=True)):
        if flags & (IDEMPOTENT | FAILED) != IDEMPOTENT or offset < 0:
            continue
        last = last_rows.get(producer, -1)
        last_rows[producer] = row
        internal = last >= 0 and flags & TRANSACTIONAL and sends.transaction(last) == sends.transaction(row)
        if internal and offset > sends.offsets[last]:
            _between(partition, tally, last, row, order)
        if last >= 0 and offset <= sends.offsets[last]:
            tally.add(
                Anomaly.INT_NONMONOTONIC_SEND if internal else Anomaly.NONMONOTONIC_SEND,
                partition.name,
                f"what stands at offset {sends.offsets[last]} was sent before what stands at {offset}",
                *cite_place(partition, last),
                *cite_place(partition, row),
            )


def _between(partition: PartitionHistory, tally: Tally, last: int, row: int, order: OffsetOrder) -> None:
    """Transactions are not isolated from each other: records of others may stand between those of one."""
    sends = partition.sends
    there = order.first_between(sends.offsets[last], sends.offsets[row])
    if there is not None:
        tally.add(
            Anomaly.INT_SEND_SKIP,
            partition.name,
            f"offset {there} stands between {sends.offsets[last]} and {sends.offsets[row]} of one transaction",
            *cite_place(partition, last),
            *cite_place(partition, row),
            cite_claim(partition, partition.offsets.main_slot(there)),
            expected=True,
        )


class _FromTheEnd:
    """Offsets from the last to the first: the records that were acknowledged or polled at or behind each."""

    def __init__(
        self, partition: PartitionHistory, tally: Tally, inconsistent: dict[int, list[int]], order: OffsetOrder
    ) -> None:
        self._partition = partition
        self._tally = tally
        self._inconsistent = inconsistent
        self._order = order
        self._first_acknowledged = -1
        """The row with the first acknowledgement of all at this offset or behind it."""
        self._first_acknowledged_at = _NEVER
        self._next_read = -1
        """The slot of the nearest record, at this offset or behind it, that was polled."""
        self._disordered: set[int] = set()
        self.lost: set[int] = set()
        """The rows of writes that are lost."""

    def judge(self) -> None:
        order, inconsistent = self._order, self._inconsistent
        firsts = array("q", bytes(8 * (len(order) + 1)))
        """By page: the row that was acknowledged first of all in it or behind it."""
        firsts[len(order)] = -1
        for place in range(len(order) - 1, -1, -1):
            for offset, slot in reversed(order.page(place)):
                claims = (slot, *inconsistent[offset]) if offset in inconsistent else (slot,)
                for claim in claims:
                    self._pass(claim, offset)
                for claim in claims:
                    self._check_order(claim)
            firsts[place] = self._first_acknowledged
        self._ends(firsts)

    def _pass(self, slot: int, offset: int) -> None:
        sends = self._partition.sends
        row = self._partition.offsets.senders[slot] - 1
        if row >= 0 and sends.flags[row] & OK and sends.offsets[row] == offset:
            end_at = sends.ends_at[row]
            if end_at < self._first_acknowledged_at:
                self._first_acknowledged, self._first_acknowledged_at = row, end_at
        if self._partition.offsets.reads[slot]:
            self._next_read = slot

    def _check_order(self, slot: int) -> None:
        sends = self._partition.sends
        row = self._partition.offsets.senders[slot] - 1
        if row < 0:
            return
        if sends.starts_at[row] > self._first_acknowledged_at:
            self._out_of_order(slot, row)
        if self._next_read >= 0 and sends.flags[row] & (OK | READ) == OK:
            self._lost(row)

    def _out_of_order(self, slot: int, row: int) -> None:
        if row in self._disordered:
            return
        self._disordered.add(row)
        partition = self._partition
        offset, earlier = partition.offsets.offset_of(slot), self._first_acknowledged
        self._tally.add(
            Anomaly.REALTIME_ORDER,
            partition.name,
            f"what stands at offset {offset} was sent after what stands at {partition.sends.offsets[earlier]} "
            "was acknowledged",
            *cite_place(partition, earlier),
            cite_send(partition, row),
            cite_claim(partition, slot),
        )

    def _lost(self, row: int) -> None:
        partition = self._partition
        offset, behind = partition.sends.offsets[row], partition.offsets.offset_of(self._next_read)
        instead = "something else was polled there" if behind == offset else f"{behind} was polled"
        self.lost.add(row)
        self._tally.add(
            Anomaly.LOST_WRITE,
            partition.name,
            f"offset {offset} was acknowledged and never polled, though {instead}",
            cite_send(partition, row),
            cite_read(partition, self._next_read),
        )

    def _ends(self, firsts: array[int]) -> None:
        """Recency: records that were acknowledged before the question for the end are before the end."""
        partition, order = self._partition, self._order
        sends, ends = partition.sends, partition.ends
        for end, asked_at, begin_line, line in zip(
            ends.offsets, ends.starts_at, ends.begin_lines, ends.lines, strict=True
        ):
            place = order.page_from(end)
            if place == len(order):
                continue
            rows = [firsts[place + 1]]
            for offset, slot in order.page(place):
                if offset >= end:
                    rows += [
                        partition.offsets.senders[each] - 1 for each in (slot, *self._inconsistent.get(offset, ()))
                    ]
            known = [row for row in rows if row >= 0 and sends.flags[row] & OK and sends.offsets[row] >= end]
            first = min(known, key=sends.ends_at.__getitem__, default=-1)
            if first >= 0 and sends.ends_at[first] < asked_at:
                self._tally.add(
                    Anomaly.STALE_END,
                    partition.name,
                    f"its end was said to be {end}, and offset {sends.offsets[first]} had been acknowledged before",
                    *cite_place(partition, first),
                    Cite((line,) if begin_line == line else (begin_line, line), partition.name, end),
                )


# -- consumers


def _gaps(partition: PartitionHistory, tally: Tally, inconsistent: dict[int, list[int]], order: OffsetOrder) -> None:
    """Offsets that a consumer skipped must not have a visible record."""
    gaps = partition.gaps
    committed_order = order
    if any(gaps.committed):
        aborted = _aborted(partition, inconsistent)
        if aborted:
            committed_order = partition.offsets.in_order()
            committed_order.hide(aborted)
    columns = (gaps.lows, gaps.highs, gaps.before_lines, gaps.after_lines, gaps.committed, gaps.internal, gaps.expected)
    for low, high, before, after, committed, internal, expected in zip(*columns, strict=True):
        there = (committed_order if committed else order).first_between(low, high)
        if there is not None:
            tally.add(
                Anomaly.INT_POLL_SKIP if internal else Anomaly.POLL_SKIP,
                partition.name,
                f"offset {low + 1} was next and {high} came, though {there} is there",
                Cite((before,), partition.name, low),
                Cite((after,), partition.name, high),
                _cite_there(partition, there, inconsistent),
                expected=bool(expected),
            )


def _cite_there(partition: PartitionHistory, offset: int, inconsistent: dict[int, list[int]]) -> Cite:
    """The evidence of a record at this offset; preferably of one that all consumers may see."""
    slots = (partition.offsets.main_slot(offset), *inconsistent.get(offset, ()))
    return cite_claim(partition, next((slot for slot in slots if not _is_aborted(partition, slot)), slots[0]))


def _is_aborted(partition: PartitionHistory, slot: int) -> bool:
    """Whether readers of committed records need not see it: it is aborted, or may be."""
    row, flags = partition.offsets.senders[slot] - 1, partition.sends.flags
    if row < 0:
        return False
    if flags[row] & (TRANSACTIONAL | OK | FAILED) == TRANSACTIONAL:
        return not partition.offsets.committed_reads[slot]
    return bool(flags[row] & ABORTED)


def _aborted(partition: PartitionHistory, inconsistent: dict[int, list[int]]) -> list[int]:
    """The offsets with only records of aborted transactions."""
    offsets = partition.offsets
    return [
        offset
        for offset in (offsets.offset_of(slot) for slot in offsets.slots() if _is_aborted(partition, slot))
        if all(_is_aborted(partition, slot) for slot in (offsets.main_slot(offset), *inconsistent.get(offset, ())))
    ]


def _unseen(partition: PartitionHistory, tally: Tally) -> int:
    sends = partition.sends
    unread = [row for row, flags in enumerate(sends.flags) if flags & (OK | READ) == OK]
    poll = partition.final_poll()
    if poll.at <= partition.acknowledged_until_at:
        return len(unread)
    for row in unread:
        tally.add(
            Anomaly.UNSEEN,
            partition.name,
            "acknowledged and never polled, though somebody polled when all was acknowledged, and got nothing",
            cite_send(partition, row),
            *poll.citations,
        )
    return 0

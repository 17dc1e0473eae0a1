"""The claims about each offset of one partition: its value, its send, and its first poll.

Owns *claims*. A claim is a pair of offset and value from an acknowledgement or a poll; an offset with two claims is
inconsistent. A claim has a number, its slot, which is the index into a few arrays of integers, so ten million claims
take some 200 MB. Values are kept as their hashes (`operation.value_hash`).

Offsets are dense in Kafka's logs, but may begin anywhere and have holes, so slots are allocated in pages of 16 offsets.
An offset from a hostile file costs one page, never an array up to it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator

_PAGE_BITS = 4
_PAGE_SLOTS = 1 << _PAGE_BITS
_IN_PAGE = _PAGE_SLOTS - 1
_FULL = (1 << _PAGE_SLOTS) - 1
_SIDE = -1
_EMPTY_64 = array("q", bytes(8 * _PAGE_SLOTS))
_EMPTY_32 = array("I", bytes(4 * _PAGE_SLOTS))


class Offsets:
    """The claims of one partition."""

    __slots__ = (
        "_numbers",
        "_pages",
        "_side_next",
        "_side_offsets",
        "_side_slots",
        "_used",
        "committed_ends_at",
        "committed_reads",
        "last_lines",
        "last_read_at",
        "reads",
        "senders",
        "values",
    )

    def __init__(self) -> None:
        self._pages: dict[int, int] = {}
        """offset // 16 -> the first slot of its page."""
        self._numbers = array("q")
        """By page: offset // 16, or _SIDE for a page of further claims to offsets that have one."""
        self._used = array("H")
        """By page: a bit for each of its slots that is a claim."""
        self.values = array("q")
        self.senders = array("I")
        """By slot: the row of its send, plus one; 0 if it is not known (yet)."""
        self.reads = array("I")
        """By slot: the line of the first poll that returned it; 0 for none."""
        self.committed_reads = array("I")
        """The same, of polls with read_committed; the one that ended first."""
        self.committed_ends_at = array("q")
        """By slot: the end of that poll. It is as long as `values` was at the last of these polls."""
        self.last_read_at = array("q")
        """By slot: the start of the last poll that returned it (its end, if the start is unknown)."""
        self.last_lines = array("I")
        """By slot: the line of that poll."""
        self._side_slots: dict[tuple[int, int], int] = {}
        self._side_offsets: dict[int, int] = {}
        self._side_next = 0

    def __len__(self) -> int:
        return sum(mask.bit_count() for mask in self._used)

    def claim(self, offset: int, value: int) -> int:
        """The slot of a claim, which is made if it is not there yet."""
        first = self._pages.get(offset >> _PAGE_BITS)
        if first is None:
            first = self._pages[offset >> _PAGE_BITS] = self._new_page(offset >> _PAGE_BITS)
        at = offset & _IN_PAGE
        slot = first + at
        page = slot >> _PAGE_BITS
        if self._used[page] >> at & 1:
            return slot if self.values[slot] == value else self._side_claim(offset, value)
        self._used[page] |= 1 << at
        self.values[slot] = value
        return slot

    def read(self, offset: int, value: int, line: int, polled_at: int, ended_at: int, *, committed: bool) -> int:
        """A poll that began, or ended, at `polled_at` has returned it. Returns its slot."""
        slot = self.claim(offset, value)
        if not self.reads[slot]:
            self.reads[slot] = line
        if not self.last_lines[slot] or polled_at > self.last_read_at[slot]:
            self.last_read_at[slot] = polled_at
            self.last_lines[slot] = line
        if committed:
            ends_at = self.committed_ends_at
            if slot >= len(ends_at):
                ends_at.extend(array("q", bytes(8 * (len(self.values) - len(ends_at)))))
            if not self.committed_reads[slot] or ended_at < ends_at[slot]:
                self.committed_reads[slot] = line
                ends_at[slot] = ended_at
        return slot

    def find(self, offset: int, value: int) -> int | None:
        """The slot of a claim that has been made."""
        first = self._pages.get(offset >> _PAGE_BITS)
        if first is None:
            return None
        slot = first + (offset & _IN_PAGE)
        if self._used[slot >> _PAGE_BITS] >> (offset & _IN_PAGE) & 1 and self.values[slot] == value:
            return slot
        return self._side_slots.get((offset, value))

    def offset_of(self, slot: int) -> int:
        number = self._numbers[slot >> _PAGE_BITS]
        return self._side_offsets[slot] if number == _SIDE else number << _PAGE_BITS | slot & _IN_PAGE

    def slots(self) -> Iterator[int]:
        """All claims, in the order in which their pages came."""
        for page, mask in enumerate(self._used):
            first = page << _PAGE_BITS
            if mask == _FULL:
                yield from range(first, first + _PAGE_SLOTS)
            else:
                yield from (first + at for at in range(_PAGE_SLOTS) if mask >> at & 1)

    def inconsistent(self) -> dict[int, list[int]]:
        """The offsets with several claims -> the slots of the further ones, in the order in which they came."""
        further: dict[int, list[int]] = {}
        for slot, offset in self._side_offsets.items():
            further.setdefault(offset, []).append(slot)
        return further

    def main_slot(self, offset: int) -> int:
        """The slot of the first claim to an offset that has one."""
        return self._pages[offset >> _PAGE_BITS] + (offset & _IN_PAGE)

    def _side_claim(self, offset: int, value: int) -> int:
        found = self._side_slots.get((offset, value))
        if found is not None:
            return found
        if self._side_next & _IN_PAGE == 0:
            self._side_next = self._new_page(_SIDE)
        slot = self._side_slots[offset, value] = self._side_next
        self._side_next += 1
        self._side_offsets[slot] = offset
        self._used[slot >> _PAGE_BITS] |= 1 << (slot & _IN_PAGE)
        self.values[slot] = value
        return slot

    def _new_page(self, number: int) -> int:
        first = len(self.values)
        self._numbers.append(number)
        self._used.append(0)
        self.values.extend(_EMPTY_64)
        self.last_read_at.extend(_EMPTY_64)
        for column in (self.senders, self.reads, self.committed_reads, self.last_lines):
            column.extend(_EMPTY_32)
        return first

    def in_order(self) -> OffsetOrder:
        return OffsetOrder(self._numbers, self._used)


class OffsetOrder:
    """The offsets that have a claim, by their order: made once when all claims are in."""

    def __init__(self, numbers: array[int], used: array[int]) -> None:
        # Pages came nearly in order, so this is nearly linear.
        self._order = sorted((page for page, number in enumerate(numbers) if number != _SIDE), key=numbers.__getitem__)
        self._numbers = array("q", (numbers[page] for page in self._order))
        self._masks = array("H", (used[page] for page in self._order))
        self._next = array("I")

    def __len__(self) -> int:
        """The number of pages."""
        return len(self._order)

    def page_from(self, offset: int) -> int:
        """The index of the first page with offsets from this one on."""
        return bisect_left(self._numbers, offset >> _PAGE_BITS)

    def page(self, place: int) -> list[tuple[int, int]]:
        """Offset and main slot of each claim in a page, ascending."""
        low, first, mask = self._numbers[place] << _PAGE_BITS, self._order[place] << _PAGE_BITS, self._masks[place]
        return [(low + at, first + at) for at in range(_PAGE_SLOTS) if mask >> at & 1]

    def hide(self, offsets: Iterable[int]) -> None:
        """Hide offsets from `first_between`."""
        for offset in offsets:
            self._masks[bisect_left(self._numbers, offset >> _PAGE_BITS)] &= ~(1 << (offset & _IN_PAGE))

    def first_between(self, low: int, high: int) -> int | None:
        """The first offset that has a claim with low < offset < high."""
        if len(self._next) != len(self._masks):
            self._link()
        place = bisect_left(self._numbers, (low + 1) >> _PAGE_BITS)
        if place == len(self._numbers):
            return None
        mask = self._masks[place]
        if self._numbers[place] == (low + 1) >> _PAGE_BITS:
            at = (low + 1) & _IN_PAGE
            mask = mask >> at << at
        if not mask:
            place = self._next[place]
            if place == len(self._numbers):
                return None
            mask = self._masks[place]
        found = (self._numbers[place] << _PAGE_BITS) + (mask & -mask).bit_length() - 1
        return found if found < high else None

    def _link(self) -> None:
        """From each page to the next one behind it that is not empty."""
        following = len(self._masks)
        links = array("I", bytes(4 * following))
        for place in range(len(self._masks) - 1, -1, -1):
            links[place] = following
            if self._masks[place]:
                following = place
        self._next = links

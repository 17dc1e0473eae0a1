"""Claims and their order, against lists that are searched from end to end."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.lab.history.offsets import Offsets

_OFFSETS = st.one_of(
    st.integers(0, 40), st.integers(10_000, 10_040), st.integers((1 << 63) - 20, (1 << 63) - 1), st.integers(0, 1 << 62)
)
_CLAIMS = st.lists(st.tuples(_OFFSETS, st.integers(-3, 3)), max_size=60)


def _made(claims: list[tuple[int, int]]) -> Offsets:
    offsets = Offsets()
    for line, (offset, value) in enumerate(claims, start=1):
        offsets.read(offset, value, line, line, line, committed=line % 2 == 0)
    return offsets


@settings(deadline=None)
@given(_CLAIMS)
def test_each_claim_has_one_slot(claims: list[tuple[int, int]]) -> None:
    offsets = _made(claims)
    slots = list(offsets.slots())
    assert sorted((offsets.offset_of(slot), offsets.values[slot]) for slot in slots) == sorted(set(claims))
    assert len(offsets) == len(slots) == len(set(slots))
    for offset, value in claims:
        slot = offsets.find(offset, value)
        assert slot in slots
        assert offsets.claim(offset, value) == slot
    assert offsets.find(77, 1) is None or (77, 1) in claims


@settings(deadline=None)
@given(_CLAIMS)
def test_who_read_it_first(claims: list[tuple[int, int]]) -> None:
    offsets = _made(claims)
    for claim in claims:
        slot = offsets.find(*claim)
        assert slot is not None
        polls = [line for line, each in enumerate(claims, start=1) if each == claim]
        assert offsets.reads[slot] == polls[0]
        assert offsets.committed_reads[slot] == next((line for line in polls if line % 2 == 0), 0)


@settings(deadline=None)
@given(_CLAIMS)
def test_offsets_with_several_claims(claims: list[tuple[int, int]]) -> None:
    offsets = _made(claims)
    first = dict(reversed(claims))
    for offset, value in first.items():
        assert offsets.values[offsets.main_slot(offset)] == value
    further = {
        offset: [value for at, value in dict.fromkeys(claims) if at == offset and value != first[offset]]
        for offset in first
    }
    assert {offset: [offsets.values[slot] for slot in slots] for offset, slots in offsets.inconsistent().items()} == {
        offset: values for offset, values in further.items() if values
    }


@settings(deadline=None)
@given(_CLAIMS)
def test_pages_are_in_order(claims: list[tuple[int, int]]) -> None:
    offsets = _made(claims)
    order = offsets.in_order()
    ordered = [offset for place in range(len(order)) for offset, _ in order.page(place)]
    assert ordered == sorted({offset for offset, _ in claims})
    for offset in ordered:
        following = [each for place in range(order.page_from(offset), len(order)) for each, _ in order.page(place)]
        assert [each for each in following if each >= offset] == [each for each in ordered if each >= offset]


@settings(deadline=None)
@given(_CLAIMS, st.lists(st.tuples(_OFFSETS, _OFFSETS), max_size=20), st.sets(st.integers(0, 40)))
def test_the_first_between_two(claims: list[tuple[int, int]], pairs: list[tuple[int, int]], hidden: set[int]) -> None:
    offsets = _made(claims)
    known = {offset for offset, _ in claims}
    order = offsets.in_order()
    order.hide(hidden & known)
    edges = [(offset + a, offset + b) for offset in known for a in (-1, 0) for b in (1, 2, 17)]
    for low, high in [*pairs, *edges, (-1, 1 << 63)]:
        between = [offset for offset in known - hidden if low < offset < high]
        assert order.first_between(low, high) == min(between, default=None), (low, high)

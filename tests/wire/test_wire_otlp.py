"""OpenTelemetry's MetricsData: gauges and sums are read, and no bytes of a client's do more than be refused."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.wire import otlp
from tanist.wire.errors import WireError
from tanist.wire.otlp import Number, read_metrics
from tests.wire.protobuf import (
    CUMULATIVE,
    attributes,
    counter,
    flag,
    gauge,
    metrics_data,
    part,
    point,
    text,
)

VALUES = st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False)
TEXTS = st.text(max_size=5)


@given(st.lists(st.tuples(TEXTS, VALUES, st.dictionaries(TEXTS, TEXTS, max_size=3)), max_size=5), TEXTS)
def test_gauges_are_read_as_they_were_written(given: list[tuple[str, float, dict[str, str]]], group: str) -> None:
    data = metrics_data(*(gauge(name, point(value, pairs)) for name, value, pairs in given), client={"group_id": group})
    assert list(read_metrics(data)) == [
        Number(name, {"group_id": group, **pairs}, value, is_counter=False, is_delta=False)
        for name, value, pairs in given
    ]


@pytest.mark.parametrize(("monotonic", "temporality"), [(1, 1), (1, CUMULATIVE), (0, 1), (0, CUMULATIVE)])
def test_a_sum_says_whether_it_grows_and_since_when(monotonic: int, temporality: int) -> None:
    data = metrics_data(counter("sent", point(2), point(3), monotonic=monotonic, temporality=temporality))
    assert [(each.value, each.is_counter, each.is_delta) for each in read_metrics(data)] == [
        (2, bool(monotonic), temporality == 1),
        (3, bool(monotonic), temporality == 1),
    ]


def test_attributes_may_be_numbers_and_what_is_none_is_left_out() -> None:
    """AnyValue: a bool, an int (here -7), a double; a list has no place on a page."""
    double = bytes([4 << 3 | 1]) + struct.pack("<d", 1.5)
    values = {"a": flag(2, 1), "b": flag(3, (1 << 64) - 7), "c": double, "d": part(5, b"")}
    pairs = b"".join(part(7, text(1, key) + part(2, value)) for key, value in values.items())
    (number,) = read_metrics(metrics_data(gauge("g", pairs + point(1))))
    assert number.attributes == {"a": "true", "b": "-7", "c": "1.5"}


def test_histograms_unknown_fields_and_points_without_a_number_are_passed_over() -> None:
    histogram = text(1, "h") + part(9, part(1, b"\x08\x01"))
    data = metrics_data(histogram, gauge("g", attributes(7, {"a": "b"})), gauge("g", point(1))) + flag(99, 5)
    assert [each.metric for each in read_metrics(data)] == ["g"]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(WireError):
        list(read_metrics(data))


@given(st.data())
def test_a_message_that_is_cut_or_changed_is_read_or_refused(data: st.DataObject) -> None:
    whole = bytearray(metrics_data(counter("sent", point(2, {"a": "b"})), gauge("g", point(1.5)), client={"c": "d"}))
    at = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        del whole[at:]
    else:
        whole[at] = data.draw(st.integers(0, 255))
    with suppress(WireError):
        list(read_metrics(bytes(whole)))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x0a\x05abc", "ends beyond"),
        (b"\x0a", "cut short"),
        (b"\xff" * 11, "ten bytes"),
        (b"\x0b", "wire type 3"),
        (metrics_data(part(1, b"\xff") + part(5, part(1, point(1)))), "UTF-8"),
        (metrics_data(gauge("g", bytes([4 << 3 | 5]) + b"1234")), "4 bytes"),
    ],
)
def test_what_is_no_such_message_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        list(read_metrics(data))


def test_a_message_of_too_many_fields_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bytes are a field: a megabyte of them would hold the loop for long."""
    monkeypatch.setattr(otlp, "MAX_FIELDS", 100)
    many = metrics_data(*(gauge("g", point(1)) for _ in range(30)))
    with pytest.raises(WireError, match="more than 100 fields"):
        list(read_metrics(many))
    assert len(list(read_metrics(metrics_data(*(gauge("g", point(1)) for _ in range(5)))))) == 5

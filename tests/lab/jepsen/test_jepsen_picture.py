"""The picture says what the account says, and is a file of bounded size that any viewer reads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from tanist.lab.history import Verdict
from tanist.lab.jepsen import picture
from tanist.lab.jepsen.nemesis import Mark
from tanist.lab.jepsen.outcome import Sent, WriteAccount
from tanist.lab.jepsen.run import JepsenResult, Settings

NS = 1_000_000_000
SECONDS = 300


def _result(sends: Iterable[Sent], there: set[tuple[str, str]], marks: list[Mark]) -> JepsenResult:
    outcome = WriteAccount({(sent.partition, sent.value): sent for sent in sends}, there=there)
    return JepsenResult(Settings(), "tanist", NS, (SECONDS + 1) * NS, [], marks, outcome, Verdict())


def _sent(number: int, at_s: float, took_ms: float, outcome: str = "ok") -> Sent:
    began_ns = NS + round(at_s * NS)
    return Sent("t-0", str(number), began_ns, began_ns + round(took_ms * 1e6), outcome)


def _path(drawn: str, kind: str) -> str:
    """How the writes of a kind are drawn, but for the legend."""
    (found,) = (each for each in ElementTree.fromstring(drawn).iter() if each.get("class") == kind)
    return found.attrib["d"]


def test_it_is_xml_with_the_numbers_and_the_faults() -> None:
    marks = [Mark(1, "down", 50 * NS, 90 * NS), Mark(2, "cut off", 60 * NS, 61 * NS)]
    sends = [_sent(0, 10, 2), _sent(1, 20, 3), _sent(2, 30, 8000, "info")]
    drawn = picture.draw(_result(sends, {("t-0", "0")}, marks), "a <b> & c")
    words = " ".join(ElementTree.fromstring(drawn).itertext())
    assert "a <b> & c" in words
    assert "3 writes, 2 acknowledged, 1 of these lost, 0 unexpected" in words
    for expected in ("node 1", "node 2", "down", "cut off", "writes/s", "latency of writes", "100 ms", "time (min:s)"):
        assert expected in words
    assert "node 3" not in words


def test_each_outcome_has_its_own_mark() -> None:
    sends = [_sent(0, 10, 2), _sent(1, 20, 3), _sent(2, 30, 8000, "info")]
    drawn = picture.draw(_result(sends, {("t-0", "0")}, []), "t")
    paths = [_path(drawn, kind) for kind in picture.WRITES]
    assert [path.count("M") for path in paths] == [1, 1, 1]
    assert len({re.sub(r"M[\d.]+ [\d.]+", "", path) for path in paths}) == 3


def test_later_is_right_and_slower_is_higher() -> None:
    drawn = picture.draw(_result([_sent(0, 10, 1), _sent(1, 200, 1000)], {("t-0", "0"), ("t-0", "1")}, []), "t")
    path = _path(drawn, "write")
    (x1, y1), (x2, y2) = (tuple(map(float, spot)) for spot in re.findall(r"M([\d.]+) ([\d.]+)", path))
    assert x1 < x2
    assert y1 > y2


@given(st.integers(0, 30_000), st.floats(0.001, 1e7), st.floats(-10, 1000))
def test_nothing_is_drawn_beyond_the_edges(number: int, took_ms: float, at_s: float) -> None:
    drawn = picture.draw(_result([_sent(number, max(at_s, -0.9), took_ms)], {("t-0", str(number))}, []), "t")
    ((x, y),) = re.findall(r"M([\d.]+) ([\d.]+)", _path(drawn, "write"))
    assert 0 <= float(x) <= 1092 + 2
    assert 0 <= float(y) <= 300 + 2


def test_a_hundred_times_the_writes_do_not_make_it_a_hundred_times_as_long() -> None:
    sends = [_sent(n, n * SECONDS / 100_000, 1 + n * 7919 % 1000) for n in range(100_000)]
    there = {(sent.partition, sent.value) for sent in sends[::2]}
    drawn = picture.draw(_result(sends, there, []), "t")
    assert len(drawn) < 1_500_000


def test_nothing_happened() -> None:
    words = " ".join(ElementTree.fromstring(picture.draw(_result([], set(), []), "t")).itertext())
    assert "0 writes" in words
    assert "no faults" in words

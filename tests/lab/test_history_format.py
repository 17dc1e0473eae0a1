"""Lines that make no sense: which line, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.lab.history import Checker, HistoryError
from tanist.lab.history.operation import COLUMNS
from tests.lab import history_worlds as worlds

Line = dict[str, Any]
SEND: Line = {"process": "p", "type": "ok", "f": "send", "partition": "t-0", "value": "a", "offset": 0}
POLL: Line = {"process": "c", "type": "ok", "f": "poll", "records": {"t-0": [[0, "a"]]}}
INVOKE: Line = {"process": "p", "type": "invoke", "f": "send", "partition": "t-0", "value": "a"}


def _judge(*history: Line) -> None:
    checker = Checker()
    for number, line in enumerate(history, start=1):
        checker.take(number, line)
    checker.verdict()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({**SEND, "process": None}, "process is missing: a name or a number is wanted"),
        ({**SEND, "process": True}, "process is True: a name or a number is wanted"),
        ({**SEND, "process": [1]}, "process is [1]: a name or a number is wanted"),
        ({**SEND, "type": "done"}, "type is 'done': invoke, ok, fail or info is wanted"),
        ({**SEND, "type": []}, "type is []: invoke, ok, fail or info is wanted"),
        ({**SEND, "f": None}, "f is missing: one of assign, crash, end, poll, seek, send, subscribe, txn is wanted"),
        ({**SEND, "f": "read"}, "f is 'read': one of assign, crash, end, poll, seek, send, subscribe, txn is wanted"),
        ({**SEND, "partition": None}, "partition is missing: a name or a number is wanted"),
        ({**SEND, "partition": ""}, "partition is '': a name or a number is wanted"),
        ({**SEND, "partition": 1.5}, "partition is 1.5: a name or a number is wanted"),
        ({**SEND, "value": None}, "value is missing: a string, an integer or an array of those is wanted"),
        ({**SEND, "value": True}, "value is True: a string, an integer or an array of those is wanted"),
        ({**SEND, "value": []}, "value is []: a string, an integer or an array of those is wanted"),
        ({**SEND, "value": ["p", 1.5]}, "a part of value is 1.5: a string or an integer is wanted"),
        ({**SEND, "value": ["p", None]}, "a part of value is missing: a string or an integer is wanted"),
        ({**SEND, "offset": "0"}, "offset is '0': an offset is wanted"),
        ({**SEND, "offset": -1}, "offset is -1: an offset is wanted"),
        ({**SEND, "offset": True}, "offset is True: an offset is wanted"),
        ({**SEND, "offset": 1 << 63}, "offset is 9223372036854775808: an offset is wanted"),
        ({**SEND, "acks": "some"}, "acks is 'some': all, 1 or 0 is wanted"),
        ({**SEND, "acks": [1]}, "acks is [1]: all, 1 or 0 is wanted"),
        ({**SEND, "acks": True}, "acks is True: all, 1 or 0 is wanted"),
        ({**SEND, "idempotent": 1}, "idempotent is 1: true or false is wanted"),
        ({**SEND, "aborted": True}, "it is aborted, but not failed"),
        ({**SEND, "id": 1.5}, "id is 1.5: a string or an integer is wanted"),
        ({**SEND, "invoked_ns": 1}, "it has a time, which the first operation has not: all have one, or none"),
        ({**SEND, "time_ns": "now"}, "time_ns is 'now': a number of nanoseconds is wanted"),
        ({**SEND, "time_ns": 5, "invoked_ns": 6}, "it ends before it begins, or before what was before it, in line 1"),
        ({**POLL, "records": [[0, "a"]]}, "records is [[0, 'a']]: an object is wanted"),
        ({**POLL, "records": {"t-0": "a"}}, "what was polled of t-0 is 'a': an array is wanted"),
        ({**POLL, "records": {"t-0": [[0]]}}, "a record is [0]: a pair of offset and value is wanted"),
        ({**POLL, "records": {"t-0": [[0, None]]}}, "value is missing: a string, an integer or an array of those"),
        ({**POLL, "records": {"": [[0, "a"]]}}, "partition is '': a name or a number is wanted"),
        ({**POLL, "value": "a"}, "a poll has either records, or one partition, offset and value"),
        ({**POLL, "isolation": "serializable"}, "isolation is 'serializable': read_committed or read_uncommitted"),
        ({**POLL, "positions": {"t-0": None}}, "the position in t-0 is null, which it cannot be after a poll"),
        ({**POLL, "positions": [1]}, "positions is [1]: an object is wanted"),
        ({**POLL, "positions": {"t-0": "end"}}, "the position in 't-0' is 'end': an offset is wanted"),
        ({**POLL, "type": "info"}, "a poll that is info has no records and no positions"),
        ({"process": "c", "type": "ok", "f": "poll", "offset": 3}, "partition is missing"),
        ({"process": "c", "type": "ok", "f": "end", "partition": "t-0"}, "offset is missing: an offset is wanted"),
        ({"process": "c", "type": "ok", "f": "assign"}, "partitions is missing: an array is wanted"),
        ({"process": "c", "type": "ok", "f": "assign", "partitions": "t-0"}, "partitions is 't-0': an array is wanted"),
        (
            {"process": "c", "type": "ok", "f": "assign", "partitions": ["t-0"], "positions": {"t-1": 0}},
            "there is a position in t-1, which is not assigned",
        ),
        ({"process": "c", "type": "ok", "f": "seek"}, "positions is missing: an object is wanted"),
    ],
)
def test_one_line(line: Line, said: str) -> None:
    with pytest.raises(HistoryError) as raised:
        _judge(line) if "time_ns" in line else _judge({**SEND, "process": "q", "value": "before"}, line)
    number = 1 if "time_ns" in line else 2
    assert raised.value.line == number
    assert str(raised.value).startswith(f"line {number}: {said}")


@pytest.mark.parametrize(
    ("history", "number", "said"),
    [
        ([INVOKE, INVOKE], 2, "process p has an open operation since line 1 (a send): operations of one process that"),
        ([{**INVOKE, "id": 7}, {**INVOKE, "id": 7}], 2, "process p has an open operation with this id since line 1"),
        ([INVOKE, {**POLL, "process": "p"}], 2, "process p completes a poll, but what it has open since line 1 is a"),
        ([INVOKE, {**SEND, "partition": "t-1"}], 2, "partition is 't-1', but t-0 in line 1"),
        ([INVOKE, {**SEND, "value": "b"}], 2, "value is 'b', but another one in line 1"),
        ([SEND, {**SEND, "time_ns": 1}], 2, "it has a time, which the first operation has not"),
        ([{**SEND, "time_ns": 1}, POLL], 2, "time_ns is missing, which the first operation has"),
        (
            [{**INVOKE, "time_ns": 3}, {**SEND, "time_ns": 4, "invoked_ns": 3}],
            2,
            "invoked_ns stands beside an invocation of its own, in line 1",
        ),
        ([{**INVOKE, "time_ns": 3}, {**SEND, "time_ns": 2}], 2, "it ends before it begins, or before what was before"),
        ([{**POLL, "time_ns": 3}, {**POLL, "time_ns": 2}], 2, "it ends before it begins, or before what was before"),
        (
            [{**POLL, "time_ns": 3}, {**POLL, "time_ns": 5, "invoked_ns": 2}],
            2,
            "process c began this before the end of what it did in line 1: a consumer does one thing at a time",
        ),
        (
            [{**SEND, "time_ns": 9, "invoked_ns": 3}, {**SEND, "value": "b", "time_ns": 8, "invoked_ns": 2}],
            2,
            "process p began this send before that of line 1: the sends of a process stand in the order in which",
        ),
        ([SEND, POLL, SEND], 3, "its value was sent to t-0 before, in line 1: values are unique in a partition; let"),
        ([INVOKE, {**SEND, "type": "fail"}, SEND], 3, "its value was sent to t-0 before, in line 1"),
    ],
)
def test_lines_that_contradict_each_other(history: list[Line], number: int, said: str) -> None:
    with pytest.raises(HistoryError) as raised:
        _judge(*history)
    assert raised.value.line == number
    assert str(raised.value).startswith(f"line {number}: {said}")


def test_what_is_allowed() -> None:
    _judge(
        {"process": "nemesis", "type": "info", "f": "kill", "value": [1]},
        {**SEND, "process": 3, "partition": 0, "value": ["p", 1], "note": "whatever"},
        {"process": 3, "type": "info", "f": "crash", "value": None},
        {"process": "c", "type": "ok", "f": "poll", "partition": 0, "offset": 0, "value": ["p", 1]},
        {"process": "c", "type": "fail", "f": "poll"},
        {"process": "c", "type": "fail", "f": "end", "partition": 0},
    )


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 1 << 65) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 100), st.sampled_from(COLUMNS), _JSON)
def test_whatever_stands_in_a_field(seed: int, place: int, name: str, value: object) -> None:
    """It is judged, or refused; nothing else happens, in the line that was changed or in one that is about it."""
    history = [dict(line) for line in worlds.world(seed)] or [dict(SEND)]
    history[place % len(history)][name] = value
    refused: int | None = 1
    try:
        _judge(*history)
    except HistoryError as error:
        refused = error.line
    assert refused in range(1, len(history) + 1)


def test_the_example_of_the_manual() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "history.md").read_text()
    example = next(block for block in manual.split("```") if block.lstrip().startswith('{"process"'))
    checker = Checker()
    for number, line in enumerate(example.strip().splitlines(), start=1):
        checker.take(number, json.loads(line))
    verdict = checker.verdict()
    assert (verdict.findings, verdict.operations, verdict.not_polled_at_the_end) == ((), 5, {})


def test_every_field_is_in_the_manual() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "history.md").read_text()
    assert [name for name in COLUMNS if f"`{name}`" not in manual] == []

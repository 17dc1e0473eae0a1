"""Each anomaly in the fewest lines that show it, its neighbours that are none, and the evidence that is given."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tanist.lab.history import Anomaly, Checker, Verdict
from tanist.lab.history.report import as_json, cited_operations, lines

Line = dict[str, Any]


def judged(*history: Line) -> Verdict:
    checker = Checker()
    for number, line in enumerate(history, start=1):
        checker.take(number, line)
    return checker.verdict()


def found(*history: Line) -> dict[str, int]:
    return {each.anomaly.value: each.count for each in judged(*history).findings}


def evidence(*history: Line) -> dict[str, list[int]]:
    """Anomaly -> the lines of its evidence."""
    operations = dict(enumerate(history, start=1))
    return {
        each.anomaly.value: [line for line, _ in cited_operations(each, operations)]
        for each in judged(*history).findings
    }


def reported(*history: Line) -> dict[str, str]:
    return {each.anomaly.value: each.summary for each in judged(*history).findings}


def send(value: Any, offset: int | None = None, outcome: str = "ok", process: Any = "p", **fields: Any) -> Line:
    line: Line = {"process": process, "type": outcome, "f": "send", "partition": "t-0", "value": value, **fields}
    return line if offset is None else {**line, "offset": offset}


def invoke(value: Any, process: Any = "p", **fields: Any) -> Line:
    return {"process": process, "type": "invoke", "f": "send", "partition": "t-0", "value": value, **fields}


def poll(*records: tuple[int, Any], process: Any = "c", **fields: Any) -> Line:
    return {"process": process, "type": "ok", "f": "poll", "records": {"t-0": [list(r) for r in records]}, **fields}


def does(function: str, process: Any = "c", outcome: str = "ok", **fields: Any) -> Line:
    return {"process": process, "type": outcome, "f": function, **fields}


EVERYTHING = (send("a", 0), send("b", 1), poll((0, "a"), (1, "b")), poll())


def test_a_sound_history() -> None:
    verdict = judged(*EVERYTHING, send("c", outcome="fail"), send("d", outcome="info"), invoke("e"))
    assert verdict.findings == ()
    assert (verdict.operations, verdict.processes, verdict.partitions) == (6, 2, 1)
    assert (verdict.acknowledged, verdict.failed, verdict.unknown) == (2, 1, 2)
    assert (verdict.polls, verdict.records_polled) == (2, 2)


# -- lost and unseen


def test_what_was_acknowledged_and_passed_over_is_lost() -> None:
    history = (send("a", 0), send("b", 1), send("c", 2), poll((0, "a")), poll((2, "c"), process="d"))
    assert found(*history) == {"lost-write": 1}
    assert evidence(*history) == {"lost-write": [2, 5]}
    assert reported(*history)["lost-write"] == "t-0: offset 1 was acknowledged and never polled, though 2 was polled"


def test_what_nobody_came_to_is_not_lost() -> None:
    assert found(send("a", 0), send("b", 1), poll((0, "a"))) == {}
    assert judged(send("a", 0), send("b", 1), poll((0, "a"))).not_polled_at_the_end == {"t-0": 1}


def test_what_was_polled_and_is_gone_is_lost() -> None:
    """A truncation takes what was read as well: each of its records was polled, and then another in its place."""
    history = (send("a", 0), send("b", 1), poll((0, "a"), (1, "b")), send("c", 1), poll((1, "c"), process="d"))
    assert found(*history)["lost-write"] == 1
    assert reported(*history)["lost-write"] == (
        "t-0: offset 1 was acknowledged, and in the end something else was polled there"
    )
    assert evidence(*history)["lost-write"] == [2, 5]
    back = (*history, poll((1, "b"), process="e"))
    assert found(*back)["lost-write"] == 1
    assert evidence(*back)["lost-write"] == [4, 6], "it is there after all, and the other is gone"
    assert "lost-write" not in found(*history, poll((2, "b"), process="e")), "it stands elsewhere: a duplicate"


def test_what_was_polled_and_lies_beyond_the_end_is_lost() -> None:
    history = (send("a", 0), send("b", 1), poll((0, "a"), (1, "b")), poll((0, "a"), process="d"), poll(process="d"))
    assert found(*history) == {"lost-write": 1}
    assert reported(*history)["lost-write"] == (
        "t-0: offset 1 was acknowledged, and in the end the partition ended at 1"
    )
    assert evidence(*history) == {"lost-write": [2, 4, 5]}
    assert found(*history, poll((1, "b"), process="d")) == {}, "it was not the end"
    assert found(*history, send("c", 2)) == {}, "nobody looked when all was acknowledged"


def test_but_it_is_unseen_when_somebody_polled_until_nothing_came() -> None:
    history = (send("a", 0), poll((0, "a")), send("b", 1), poll(), poll())
    assert found(*history) == {"lost-write": 1, "unseen": 1}
    assert evidence(*history)["unseen"] == [2, 3, 4, 5]
    assert judged(*history).not_polled_at_the_end == {}


def test_a_poll_that_began_before_the_acknowledgement_does_not_count() -> None:
    began = {"process": "c", "type": "invoke", "f": "poll"}
    history = (send("a", 0), poll((0, "a")), began, send("b", 1), poll())
    assert found(*history) == {}
    assert found(*history, poll()) == {"lost-write": 1, "unseen": 1}


def test_nor_does_that_of_somebody_who_reads_something_else() -> None:
    elsewhere = does("assign", partitions=["t-1"])
    assert found(send("a", 0), elsewhere, poll(), poll()) == {}
    assert found(send("a", 0), does("assign", partitions=["t-0"]), poll(), poll()) == {"unseen": 1}
    assert found(send("a", 0), does("assign", partitions=["t-0"]), elsewhere, poll(), poll()) == {}
    assert found(send("a", 0), does("seek", positions={"t-0": 0}), poll(), poll()) == {
        "lost-write": 1,
        "unseen": 1,
    }
    assert found(send("a", 0), does("seek", positions={"t-0": 0}), does("crash"), poll(), poll()) == {}


def test_nor_do_the_polls_before_it_reads_this_one() -> None:
    history = (send("a", 0), send("b", 1), poll(), poll(), poll((0, "a")))
    assert found(*history) == {}
    assert found(*history, poll()) == {"lost-write": 1, "unseen": 1}


def test_what_was_not_promised_may_be_lost() -> None:
    for acks in (0, 1, "1"):
        assert found(send("a", 0, acks=acks), send("b", 1), poll((1, "b")), poll()) == {}
    for acks in (-1, "all", "-1"):
        assert found(send("a", 0, acks=acks), send("b", 1), poll((1, "b"))) == {"lost-write": 1}


@pytest.mark.parametrize("outcome", ["info", "fail"])
def test_neither_failed_nor_unknown_is_lost(outcome: str) -> None:
    assert found(send("a", 0, outcome), send("b", 1), poll((1, "b")), poll()) == {}


def test_what_is_polled_at_another_offset_is_not_lost_but_doubled() -> None:
    assert found(send("a", 0), send("b", 1), poll((1, "b"), (2, "a"))) == {"duplicate": 1}


# -- values and offsets


def test_one_offset_with_two_values() -> None:
    history = (send("a", 0), send("b", outcome="info", process="q"), poll((0, "b")), poll((0, "a"), process="d"))
    assert found(*history) == {"inconsistent-offsets": 1}
    assert evidence(*history) == {"inconsistent-offsets": [1, 3]}
    assert reported(*history) == {"inconsistent-offsets": "t-0: offset 0 has 2 values"}


def test_two_acknowledgements_of_one_offset() -> None:
    assert found(send("a", 0), send("b", 0, process="q")) == {"inconsistent-offsets": 1}


def test_an_acknowledgement_that_is_no_promise_does_not_say_what_stands_where() -> None:
    assert found(send("a", 0, acks=1), send("b", 0)) == {}
    assert found(send("a", 0, acks=1), poll((1, "a"))) == {}


def test_one_value_at_two_offsets() -> None:
    history = (send("a", outcome="info"), poll((0, "a"), (1, "a"), (2, "a")))
    assert found(*history) == {"duplicate": 1}
    assert evidence(*history) == {"duplicate": [2]}
    assert found(send("a", 0), send("b", 1), poll((0, "a"), (1, "b"), (2, "a"))) == {"duplicate": 1}


def test_who_retries_without_idempotence_may_write_twice() -> None:
    assert found(send("a", 0, idempotent=False), poll((0, "a"), (1, "a"))) == {}
    assert found(send("a", 0, acks=1), poll((0, "a"), (1, "a"))) == {}


def test_the_same_value_in_two_partitions_is_two_values() -> None:
    assert found(send("a", 0), send("a", 5, partition="t-1"), poll((0, "a"))) == {}


def test_what_failed_must_not_be_polled() -> None:
    history = (send("a", outcome="fail"), poll((0, "a")))
    assert found(*history) == {"G1a": 1}
    assert evidence(*history) == {"G1a": [1, 2]}
    assert found(poll((0, "a")), send("a", outcome="fail")) == {"G1a": 1}


def test_what_was_aborted_must_not_be_polled_as_committed() -> None:
    aborted = send("a", outcome="fail", aborted=True)
    assert found(aborted, poll((0, "a"))) == {}
    history = (aborted, poll((0, "a")), poll((0, "a"), isolation="read_committed", process="d"))
    assert found(*history) == {"G1a": 1}
    assert evidence(*history) == {"G1a": [1, 3]}


def test_what_nobody_sent() -> None:
    history = (send("a", 0), poll((0, "a"), (1, "b"), (2, "b")))
    assert found(*history) == {"phantom": 1, "duplicate": 1}
    assert found(send("b", 0, partition="t-1"), poll((0, "b"))) == {"phantom": 1}


def test_a_number_is_its_digits() -> None:
    assert found(send(7, 0), poll((0, "7"))) == {}
    assert found(send(["p", 7], 0), poll((0, ["p", "7"]))) == {}
    assert found(send(["p", 7], 0), poll((0, "p7"))) == {"inconsistent-offsets": 1, "lost-write": 1, "phantom": 1}


# -- order


def timed(line: Line, begun: int, ended: int) -> Line:
    return {**line, "invoked_ns": begun, "time_ns": ended}


def test_sent_after_the_acknowledgement_and_before_it_in_the_log() -> None:
    history = (timed(send("a", 5), 1, 2), timed(send("b", 4, process="q"), 3, 4))
    assert found(*history) == {"realtime-order": 1}
    assert evidence(*history) == {"realtime-order": [1, 2]}
    assert (
        reported(*history)["realtime-order"]
        == "t-0: what stands at offset 4 was sent after what stands at 5 was acknowledged"
    )


def test_what_overlaps_has_no_order() -> None:
    assert found(timed(send("a", 5), 1, 3), timed(send("b", 4, process="q"), 3, 4)) == {}
    assert found(timed(send("a", 5), 1, 2), {**send("b", 4, process="q"), "time_ns": 9}) == {}


def test_the_order_of_lines_is_time_enough() -> None:
    history = (invoke("a"), send("a", 5), invoke("b", process="q"), send("b", 4, process="q"))
    assert found(*history) == {"realtime-order": 1}
    assert evidence(*history) == {"realtime-order": [1, 2, 3, 4]}
    assert found(invoke("a"), invoke("b", process="q"), send("a", 5), send("b", 4, process="q")) == {}


def test_what_is_unknown_stands_where_it_is_polled() -> None:
    unknown = timed(send("b", process="q", outcome="info"), 3, 4)
    polls = {**poll((4, "b")), "time_ns": 9}
    assert found(timed(send("a", 5), 1, 2), unknown, polls) == {"realtime-order": 1}
    assert evidence(timed(send("a", 5), 1, 2), unknown, polls) == {"realtime-order": [1, 2, 3]}


def test_the_order_of_a_producer() -> None:
    pipelined = (invoke("a", id=1), invoke("b", id=2), invoke("c", id=3))
    history = (*pipelined, send("b", 0, id=2), send("a", 1, id=1), send("c", 2, id=3))
    assert found(*history) == {"nonmonotonic-send": 1}
    assert evidence(*history) == {"nonmonotonic-send": [1, 2, 4, 5]}
    assert found(*pipelined, send("b", 1, id=2), send("a", 0, id=1), send("c", 2, id=3)) == {}


def test_unknown_ones_between_do_not_hide_it() -> None:
    assert found(send("a", 2), send("x", outcome="info"), send("b", 1)) == {"nonmonotonic-send": 1}
    assert found(send("a", outcome="info"), send("b", 1), poll((1, "b"), (2, "a"))) == {"nonmonotonic-send": 1}
    assert found(send("a", 2), send("x", outcome="fail"), send("b", 1)) == {"nonmonotonic-send": 1}


def test_where_a_producer_keeps_no_order() -> None:
    assert found(send("a", 2), send("b", 1, process="q")) == {}
    assert found(send("a", 2), send("b", 1, idempotent=False)) == {}
    assert found(send("a", 2), does("crash", process="p", outcome="info"), send("b", 1)) == {}


def test_an_end_that_is_older_than_the_question() -> None:
    def end(offset: int, **fields: Any) -> Line:
        return does("end", partition="t-0", offset=offset, **fields)

    began = {"process": "c", "type": "invoke", "f": "end"}
    history = (send("a", 3), began, end(3))
    assert found(*history) == {"stale-end": 1}
    assert evidence(*history) == {"stale-end": [1, 2, 3]}
    assert reported(*history)["stale-end"] == "t-0: its end was said to be 3, and offset 3 had been acknowledged before"
    assert found(send("a", 3), began, end(4)) == {}
    assert found(began, send("a", 3), end(3)) == {}
    assert found(send("a", 3), end(3)) == {}, "nobody knows when it was asked for"
    assert found(send("a", 3), does("end", partition="t-1", offset=0), end(3)) == {"stale-end": 1}
    assert found(send("a", 3), began, end(3, isolation="read_committed")) == {}


# -- consumers


def test_a_consumer_that_goes_back() -> None:
    history = (send("a", 0), send("b", 1), poll((0, "a"), (1, "b")), poll((0, "a")), poll((1, "b")))
    assert found(*history) == {"nonmonotonic-poll": 1}
    assert evidence(*history) == {"nonmonotonic-poll": [3, 4]}
    assert reported(*history) == {"nonmonotonic-poll": "t-0: offset 2 was next and 0 came"}
    assert found(send("a", 0), poll((0, "a"), (0, "a"))) == {"nonmonotonic-poll": 1}
    assert found(*EVERYTHING, poll((0, "a"), process="another")) == {}


def test_a_consumer_that_leaves_something_out() -> None:
    seen = (send("a", 0), send("b", 1), send("c", 2), poll((0, "a"), (1, "b"), (2, "c"), process="d"))
    history = (*seen, poll((0, "a")), poll((2, "c")))
    assert found(*history) == {"poll-skip": 1}
    assert evidence(*history) == {"poll-skip": [2, 5, 6]}
    assert reported(*history) == {"poll-skip": "t-0: offset 1 was next and 2 came, though 1 is there"}
    assert found(*seen, poll((0, "a"), (2, "c"))) == {"poll-skip": 1}


def test_a_hole_of_which_nobody_knows_is_none() -> None:
    assert found(send("a", 0), send("c", 2), poll((0, "a"), (2, "c"))) == {}


def test_what_is_there_is_known_from_others() -> None:
    other = poll((1, "b"), process="d")
    assert found(send("b", outcome="info"), send("a", 0), send("c", 2), poll((0, "a"), (2, "c")), other) == {
        "poll-skip": 1,
        # It was sent before them, and stands between them.
        "nonmonotonic-send": 1,
    }


def test_who_reads_what_is_committed_passes_over_what_was_aborted() -> None:
    history = (
        send("a", 0),
        send("b", outcome="fail", aborted=True),
        send("c", 2),
        poll((0, "a"), (1, "b"), (2, "c"), process="d"),
    )
    assert found(*history, poll((0, "a"), (2, "c"), isolation="read_committed")) == {}
    assert found(*history, poll((0, "a"), (2, "c"))) == {"poll-skip": 1}


def test_beside_what_was_aborted_something_else_may_be_there() -> None:
    history = (
        send("x", outcome="fail", aborted=True),
        send("y", outcome="fail", aborted=True),
        poll((1, "x"), process="d"),
        poll((1, "y"), process="e"),
        poll((1, "b"), process="f"),
        poll((0, "a"), (2, "c"), isolation="read_committed"),
    )
    assert found(*history)["poll-skip"] == 1
    assert evidence(*history)["poll-skip"] == [5, 6]
    assert "poll-skip" not in found(*history[:4], history[5])


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        (does("assign", partitions=["t-0"]), {"poll-skip": 1}),
        (does("assign", partitions=["t-0"], outcome="fail"), {"poll-skip": 1}),
        (does("assign", partitions=["t-0"], outcome="info"), {}),
        (does("assign", partitions=["t-1"]), {}),
        (does("assign", partitions=["t-0"], positions={"t-0": 1}), {"poll-skip": 1}),
        (does("assign", partitions=["t-0"], positions={"t-0": 2}), {}),
        (does("assign", partitions=["t-0"], positions={"t-0": 3}), {"nonmonotonic-poll": 1}),
        (does("assign", partitions=["t-0"], positions={"t-0": None}), {}),
        (does("seek", positions={"t-0": 2}), {}),
        (does("seek", positions={"t-0": 2}, outcome="fail"), {"poll-skip": 1}),
        (does("seek", positions={"t-0": 1}, outcome="info"), {}),
        (does("seek", positions={"t-1": 2}), {"poll-skip": 1}),
        (does("subscribe", topics=["t"]), {}),
        (does("crash"), {}),
        (poll(process="c", positions={"t-0": 1}), {"poll-skip": 1}),
        (poll(process="c", positions={"t-0": 2}), {"poll-skip": 1}),
        (poll(process="c", positions={"t-0": 0}), {"nonmonotonic-poll": 1, "poll-skip": 1}),
        (does("poll", outcome="fail"), {"poll-skip": 1}),
    ],
)
def test_where_a_consumer_goes_on(between: Line, expected: dict[str, int]) -> None:
    """`a` was polled, then `c` is: with `b` between them."""
    seen = (send("a", 0), send("b", 1), send("c", 2), poll((1, "b"), (2, "c"), process="d"))
    assert found(*seen, poll((0, "a")), between, poll((2, "c"))) == expected


def test_in_a_group_each_poll_is_looked_at_alone() -> None:
    seen = (send("a", 0), send("b", 1), send("c", 2), poll((0, "a"), (1, "b"), (2, "c"), process="d"))
    joined = (*seen, does("subscribe"))
    assert found(*joined, poll((0, "a")), poll((2, "c")), poll((0, "a"))) == {}
    assert found(*joined, poll((0, "a"), (2, "c"))) == {"poll-skip": 1}
    assert found(*joined, poll((0, "a")), does("assign", partitions=["t-0"]), poll((2, "c"))) == {}


# -- the report


def test_the_smallest_evidence_is_the_earliest_of_the_fewest() -> None:
    unknown = [send(f"u{n}", outcome="info") for n in range(3)]
    early = poll((0, "u2"), (1, "u1"))
    late = (send("x", 8), send("y", 7, idempotent=True))
    history = (*unknown, *late, early)
    assert found(*history) == {"nonmonotonic-send": 2}
    assert evidence(*history)["nonmonotonic-send"] == [4, 5], "two operations; the other case takes three"


def test_a_poll_is_shown_without_what_is_beside_the_point() -> None:
    history = (
        send("a", 0),
        send("b", 1),
        {**poll((0, "zz"), (1, "b")), "positions": {"t-0": 2, "t-1": 9}, "records": {"t-0": [[0, "zz"], [1, "b"]]}},
    )
    verdict = judged(*history)
    case = next(each for each in verdict.findings if each.anomaly is Anomaly.PHANTOM)
    assert cited_operations(case, dict(enumerate(history, start=1))) == [
        (
            3,
            {
                "process": "c",
                "type": "ok",
                "f": "poll",
                "records": {"t-0": [[0, "zz"]]},
                "positions": {"t-0": 2},
            },
        )
    ]


def test_a_verdict_in_words_and_in_json() -> None:
    history = (send("a", 0), send("b", 1), poll((1, "b")), send("c", 2))
    operations = dict(enumerate(history, start=1))
    verdict = judged(*history)
    assert list(lines(verdict, operations)) == [
        "4 operations of 2 processes on 1 partition: 3 sends acknowledged, 0 failed, 0 unknown; 1 poll, 1 record",
        "",
        "lost-write: 1, acknowledged, and not there where somebody looked for it later",
        "  t-0: offset 0 was acknowledged and never polled, though 1 was polled",
        f"  line 1: {json.dumps(history[0])}",
        f"  line 3: {json.dumps(history[2])}",
        "",
        "unseen is not judged in 1 partition: after the last acknowledgement nobody polled until nothing came. "
        "Never polled there: 2 acknowledged records",
        "",
        "1 kind of anomalies: lost-write",
    ]
    assert (
        list(lines(verdict, operations, [Anomaly.LOST_WRITE]))[-1]
        == "no anomalies but those allowed in what was judged"
    )
    reported_json = as_json(verdict, operations)
    assert reported_json["valid"] is False
    assert reported_json["anomalies"]["lost-write"]["evidence"] == [
        {"line": 1, "operation": history[0]},
        {"line": 3, "operation": history[2]},
    ]
    assert as_json(verdict, operations, [Anomaly.LOST_WRITE])["valid"] is True


def test_counts_are_reported_by_partition() -> None:
    history = [poll((n, f"nobody's {n}")) for n in range(3)]
    history += [{**poll(), "records": {f"t-{n}": [[0, "x"]]}} for n in range(1, 7)]
    operations = dict(enumerate(history, start=1))
    assert "phantom: 9, polled, and nobody sent it (t-0 3, t-1 1, t-2 1, t-3 1, and 3 more)" in list(
        lines(judged(*history), operations)
    )

"""The anomalies of transactions: each in the smallest history that has it, and in one that nearly has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tanist.lab.history import Anomaly, HistoryError, Verdict
from tanist.lab.history.report import as_json, cited_operations, failures, lines
from tests.lab.test_history_anomalies import does, evidence, found, judged, poll, send

Line = dict[str, Any]
T0, T1 = "t-0", "t-1"


def s(value: Any, offset: int | None = None, partition: str = T0) -> Line:
    line: Line = {"f": "send", "partition": partition, "value": value}
    return line if offset is None else {**line, "offset": offset}


def p(*records: tuple[int, Any], partition: str = T0, **fields: Any) -> Line:
    return {"f": "poll", "records": {partition: [list(each) for each in records]}, **fields}


def txn(*ops: Line, process: Any = "t", outcome: str = "ok", **fields: Any) -> Line:
    """Its polls are of committed records."""
    line: Line = {"process": process, "type": outcome, "f": "txn", "ops": list(ops), "isolation": "read_committed"}
    return {**line, **fields}


def begun(*ops: Line, process: Any = "t", **fields: Any) -> Line:
    return {"process": process, "type": "invoke", "f": "txn", "ops": list(ops), **fields}


def aborted(*ops: Line, process: Any = "t") -> Line:
    return txn(*ops, process=process, outcome="fail", aborted=True)


def reads(*records: tuple[int, Any], partition: str = T0, process: Any = "c") -> Line:
    """A reader of committed records."""
    polled = {partition: [list(each) for each in records]}
    return does("poll", process, records=polled, isolation="read_committed")


def settled(end: int, *, partition: str = T0, process: Any = "c", stable: int | None = None) -> tuple[Line, ...]:
    """A reader comes to the end of all that is committed: by line, after it has polled something."""
    return (
        does("end", process, partition=partition, offset=end),
        does("end", process, partition=partition, offset=end if stable is None else stable, isolation="read_committed"),
        does("poll", process, isolation="read_committed"),
    )


def expected(*history: Line) -> dict[str, int]:
    """The cases that Kafka's model allows."""
    return {each.anomaly.value: each.count for each in judged(*history).expected}


def proves_itself(*history: Line) -> None:
    """The evidence of each anomaly, as a history of its own, has the anomaly."""
    operations = dict(enumerate(history, start=1))
    verdict = judged(*history)
    assert verdict.findings or verdict.expected
    for kind, name in ((verdict.findings, "findings"), (verdict.expected, "expected")):
        for each in kind:
            again = judged(*(line for _, line in json.loads(json.dumps(cited_operations(each, operations)))))
            assert each.anomaly in {one.anomaly for one in getattr(again, name)}, each.anomaly


# -- what a transaction is


def test_a_sound_history() -> None:
    history = (
        begun(s("a"), {"f": "poll"}, s("b", partition=T1)),
        txn(s("a", 0), p(), s("b", 0, T1)),
        aborted(s("x"), s("y", partition=T1)),
        txn(s("u"), outcome="info"),
        reads((0, "a")),
        reads((0, "b"), partition=T1),
        *settled(5),
    )
    verdict = judged(*history)
    assert verdict.findings == verdict.expected == ()
    assert verdict.transactions == {"committed": 1, "aborted": 1, "failed": 0, "unknown": 1}
    assert (verdict.acknowledged, verdict.failed, verdict.unknown, verdict.polls) == (2, 2, 1, 4)
    assert "3 transactions: 1 committed, 1 aborted, 0 failed, 1 unknown" in list(lines(verdict, {}))


def test_what_a_transaction_has_begun_to_send_may_be_there() -> None:
    """Its client is gone, and its outcome is unknown."""
    assert found(begun(s("a")), reads((0, "a"))) == {}
    assert judged(begun(s("a"))).transactions["unknown"] == 1
    assert found(reads((0, "a"))) == {"phantom": 1}


def test_the_values_of_transactions_are_unique() -> None:
    with pytest.raises(HistoryError, match="line 2: its value was sent to t-0 before, in line 1"):
        judged(txn(s("a")), txn(s("a")))


@pytest.mark.parametrize(
    ("history", "problem"),
    [
        ((begun(s("a")), txn(s("b"))), "line 2: its sends are not those of line 1"),
        ((begun(s("a"), s("b")), txn(s("a"))), "line 2: it is committed, and has 1 of the 2 sends of line 1"),
        ((txn({"f": "seek"}),), "line 1: f of one of ops is 'seek': send or poll is wanted"),
        ((txn(7),), "line 1: one of ops is 7: an object is wanted"),  # type: ignore[arg-type]
        ((txn(ops={}),), "line 1: ops is {}: an array is wanted"),
        ((txn(aborted=True),), "line 1: it is aborted, but not failed"),
        ((begun(p((0, "a"))),), "line 1: a transaction that begins has no records yet"),
        ((begun(), begun()), "line 2: process t has an open operation since line 1"),
        ((txn(time_ns=9, invoked_ns=1, ending_ns=10),), "line 1: ending_ns is not between its beginning and its end"),
        ((txn(p(time_ns=12), time_ns=9, invoked_ns=1),), "line 1: a poll of it is not within its time"),
    ],
)
def test_a_malformed_transaction(history: tuple[Line, ...], problem: str) -> None:
    with pytest.raises(HistoryError) as raised:
        judged(*history)
    assert str(raised.value).startswith(problem)


def test_a_transaction_that_ends_early_has_the_first_of_its_sends() -> None:
    assert found(begun(s("a"), s("b")), aborted(s("a")), begun(s("c"), s("d")), txn(outcome="info")) == {}


# -- the anomalies of any send, of transactions


def test_a_committed_record_that_is_passed_over_is_lost() -> None:
    history = (txn(s("a", 0), s("b", 1)), reads((1, "b")))
    assert found(*history) == {"lost-write": 1}
    proves_itself(*history)
    assert found(aborted(s("a"), s("x")), txn(s("b", 2)), reads((2, "b"))) == {}


def test_a_committed_record_that_only_readers_of_uncommitted_ones_get_is_lost() -> None:
    """The marker was lost, or said abort, for this one."""
    history = (txn(s("a", 0)), poll((0, "a")), txn(s("b", 2)), reads((2, "b"), process="d"))
    assert found(*history) == {"lost-write": 1}
    proves_itself(*history)
    assert found(*history[:2], txn(s("b", 2)), reads((0, "a"), process="d"), reads((2, "b"), process="d")) == {}


def test_inconsistent_offsets() -> None:
    history = (txn(s("a", 0)), txn(s("b", 0)), reads((0, "a")))
    assert found(*history)["inconsistent-offsets"] == 1
    assert "inconsistent-offsets" not in found(txn(s("a", 0)), txn(s("b", 0, T1)))


def test_duplicate() -> None:
    history = (txn(s("a", 0)), reads((0, "a"), (1, "a")))
    assert found(*history) == {"duplicate": 1}
    proves_itself(*history)
    assert found(txn(s("a", 0)), reads((0, "a")), reads((0, "a"), process="d")) == {}


def test_aborted_read() -> None:
    history = (aborted(s("a")), reads((0, "a")))
    assert found(*history) == {"G1a": 1}
    proves_itself(*history)
    assert found(aborted(s("a")), poll((0, "a"))) == {}, "a reader of uncommitted records"
    assert found(txn(s("a"), outcome="fail"), poll((0, "a"))) == {"G1a": 1}, "it was certainly not written"
    assert found(txn(s("a"), outcome="info"), reads((0, "a"))) == {}


def test_aborted_read_by_a_transaction() -> None:
    history = (begun(s("a")), aborted(s("a")), begun({"f": "poll"}, process="u"), txn(p((0, "a")), process="u"))
    assert found(*history) == {"G1a": 1}
    proves_itself(*history)
    assert found(*history[:-1], txn(p((0, "a")), process="u", isolation=None)) == {}


def test_nonmonotonic_send() -> None:
    history = (txn(s("a", 3)), txn(s("b", 1)))
    assert found(*history) == {"nonmonotonic-send": 1}
    proves_itself(*history)
    assert found(txn(s("a", 3)), txn(s("b", 1), process="u")) == {}
    assert found(txn(s("a", 3)), begun(s("b")), txn(s("b", 1))) == {"nonmonotonic-send": 1, "realtime-order": 1}
    assert found(txn(s("a", 3)), txn(s("b", 4))) == {}
    assert found(aborted(s("a", 3)), txn(s("b", 1))) == {}, "nobody promised where an aborted record is"


def test_int_nonmonotonic_send() -> None:
    history = (txn(s("a", 3), s("b", 1)),)
    assert found(*history) == {"int-nonmonotonic-send": 1}
    proves_itself(*history)
    assert found(txn(s("a", 3), s("b", 1, T1))) == {}


def test_int_send_skip_is_allowed() -> None:
    history = (txn(s("a", 0), s("b", 2)), txn(s("c", 1), process="u"))
    assert (found(*history), expected(*history)) == ({}, {"G0": 1, "int-send-skip": 1})
    proves_itself(*history)
    assert expected(txn(s("a", 0), s("b", 1)), txn(s("c", 2), process="u")) == {}
    assert expected(txn(s("a", 0), s("b", 2))) == {}, "a marker of another one, or an aborted record"


# -- polls


def test_poll_skip_and_nonmonotonic_poll_between_transactions() -> None:
    sends = (send("a", 0), send("b", 1), send("c", 2), poll((0, "a"), (1, "b"), (2, "c"), process="all"))
    assert found(*sends, txn(p((0, "a"))), txn(p((2, "c")))) == {"poll-skip": 1}
    assert found(*sends, txn(p((1, "b"))), txn(p((0, "a")))) == {"nonmonotonic-poll": 1}
    assert found(*sends, txn(p((0, "a"))), txn(p((1, "b"))), aborted(p((2, "c")))) == {}
    back = does("seek", "t", positions={T0: 0})
    assert found(*sends, aborted(p((0, "a"))), back, txn(p((0, "a"), (1, "b")))) == {}


def test_int_poll_skip() -> None:
    sends = (send("a", 0), send("b", 1), send("c", 2), poll((0, "a"), (1, "b"), (2, "c"), process="all"))
    for ops in ((p((0, "a"), (2, "c")),), (p((0, "a")), p((2, "c")))):
        history = (*sends, txn(*ops))
        assert found(*history) == {"int-poll-skip": 1}
        proves_itself(*history)
    assert found(*sends, txn(p((0, "a")), p((1, "b")))) == {}
    hidden = (aborted(s("x")), txn(s("a", 0), s("c", 2), process="u"), poll((1, "x")))
    assert found(*hidden, txn(p((0, "a"), (2, "c")), process="v")) == {}, "an aborted one is not there for it"


def test_int_nonmonotonic_poll() -> None:
    sends = (send("a", 0), send("b", 1))
    for ops in ((p((1, "b"), (0, "a")),), (p((1, "b")), p((0, "a"))), (p((0, "a")), p((0, "a")))):
        history = (*sends, txn(*ops))
        assert found(*history)["int-nonmonotonic-poll"] == 1
        proves_itself(*history)
    assert found(*sends, txn(p((0, "a")), p((0, "x"), partition=T1), p((1, "b")))) == {"phantom": 1}


def test_a_skip_over_an_unknown_transaction_is_one_if_another_reader_got_it() -> None:
    history = (
        txn(s("a", 0)),
        txn(s("u"), outcome="info", process="u"),
        txn(s("c", 2), process="v"),
        poll((1, "u"), process="raw"),
        txn(p((0, "a")), p((2, "c")), process="r"),
    )
    assert found(*history) == {}, "it may be aborted"
    assert found(*history, reads((1, "u"))) == {"int-poll-skip": 1}


def test_a_group_may_go_on_elsewhere_with_each_transaction() -> None:
    sends = (send("a", 0), send("b", 1), send("c", 2), poll((0, "a"), (1, "b"), (2, "c"), process="all"))
    group = (*sends, does("subscribe", "t"))
    skips = (*group, txn(p((0, "a"))), txn(p((2, "c"))))
    assert found(*skips) == {}
    assert expected(*skips) == {"poll-skip": 1}
    goes_back = (*group, txn(p((1, "b"))), txn(p((0, "a"))))
    assert (found(*goes_back), expected(*goes_back)) == ({}, {"nonmonotonic-poll": 1})
    assert found(*group, txn(p((0, "a")), p((2, "c")))) == {"int-poll-skip": 1}, "but not within one"
    moved = (*group, txn(p((0, "a")), p((2, "c"), rebalanced=True)))
    assert (found(*moved), expected(*moved)) == ({}, {"poll-skip": 1}), "unless partitions were moved meanwhile"
    assert expected(*group, poll((0, "a"), process="t"), poll((2, "c"), process="t")) == {"poll-skip": 1}


# -- isolation


def test_a_transaction_that_reads_its_own_record() -> None:
    history = (txn(s("a", 0), p((0, "a"))),)
    assert found(*history) == {"precommitted-read": 1}
    proves_itself(*history)
    assert found(txn(s("a", 0), p((0, "a")), isolation="read_uncommitted")) == {}
    assert found(txn(s("a", 0)), txn(p((0, "a")))) == {}, "an earlier one's"


def test_a_read_that_ended_before_the_commit_was_asked_for() -> None:
    sent = txn(s("a", 0), invoked_ns=10, ending_ns=20, time_ns=30)

    def seen(ended_ns: int, **fields: Any) -> tuple[Line, ...]:
        reader = {**reads((0, "a")), "invoked_ns": ended_ns - 2, "time_ns": ended_ns, **fields}
        return (sent, reader)

    assert found(*seen(19)) == {"precommitted-read": 1}
    proves_itself(*seen(19))
    assert found(*seen(20)) == found(*seen(25)) == {}
    assert found(*seen(19, isolation="read_uncommitted")) == {}
    later = {**reads((0, "a"), process="d"), "invoked_ns": 40, "time_ns": 41}
    assert found(sent, later, seen(19)[1]) == {"precommitted-read": 1}, "whichever line stands first"
    in_a_poll = txn(p((0, "a"), invoked_ns=12, time_ns=19), process="u", invoked_ns=11, time_ns=50)
    assert found(sent, in_a_poll) == {"precommitted-read": 1}, "a poll of a transaction has times of its own"
    assert found(sent, txn(p((0, "a")), process="u", invoked_ns=11, time_ns=50)) == {}


# -- atomicity


TORN = (txn(s("a", 0), s("b", 0, T1), outcome="info"), reads((0, "a")))


def _read_to_the_end(end: int, stable: int | None = None) -> tuple[Line, ...]:
    assigned = does("assign", "e", partitions=[T1], positions={T1: 0})
    return (assigned, *settled(end, partition=T1, process="e", stable=stable))


def test_a_transaction_of_which_a_part_is_missing_is_torn() -> None:
    history = (*TORN, *_read_to_the_end(1))
    assert found(*history) == {"torn": 1}
    proves_itself(*history)
    assert found(*TORN) == {}, "nobody has read the other partition to its end"
    assert found(*TORN, *_read_to_the_end(1, stable=0)) == {}, "the end of what is committed may come later"
    assert found(*_read_to_the_end(1), *TORN) == {}, "the end was asked for before"
    assert found(*TORN, reads((0, "b"), partition=T1), *_read_to_the_end(1)) == {}


def test_the_end_counts_from_when_the_commit_was_asked_for() -> None:
    """The reader of one partition comes to the end before that of another one finds a record."""
    sent = txn(s("a", 0), s("b", 0, T1), outcome="info", invoked_ns=1, ending_ns=20, time_ns=30)

    def at(first_ns: int) -> tuple[Line, ...]:
        timed = [{**line, "time_ns": first_ns + at} for at, line in enumerate(_read_to_the_end(1))]
        return (sent, *timed, {**reads((0, "a")), "time_ns": 90})

    assert found(*at(40)) == {"torn": 1}
    proves_itself(*at(40))
    assert found(*at(10)) == {}


def test_a_record_that_is_there_but_not_committed_is_missing() -> None:
    history = (*TORN, poll((0, "b"), process="raw") | {"records": {T1: [[0, "b"]]}}, *_read_to_the_end(2))
    assert found(*history) == {"torn": 1}
    proves_itself(*history)


def test_an_aborted_transaction_is_not_torn_but_read() -> None:
    assert found(aborted(s("a"), s("b", partition=T1)), reads((0, "a")), *_read_to_the_end(1)) == {"G1a": 1}


def test_a_committed_transaction_of_which_nothing_is_there_is_unseen() -> None:
    history = (txn(s("a", 0)), does("assign", "c", partitions=[T0], positions={T0: 0}), *settled(1))
    assert found(*history) == {"unseen": 1}
    proves_itself(*history)
    assert judged(*history).not_polled_at_the_end == {}
    waiting = (*history[:2], *settled(1, stable=0))
    assert found(*waiting) == {}, "another transaction is open before it"
    assert judged(*waiting).not_polled_at_the_end == {T0: 1}


def test_an_empty_poll_of_committed_records_is_no_end() -> None:
    """The markers may be on their way, or an earlier transaction may be open."""
    assert found(txn(s("a", 0)), reads((0, "a")), txn(s("b", 2)), reads()) == {}
    assert found(send("a", 0), reads((0, "a")), send("b", 2), reads(), reads()) == {"lost-write": 1, "unseen": 1}


# -- cycles


def test_transactions_that_read_each_other() -> None:
    one = begun(s("a"), {"f": "poll"}, process="t")
    two = begun(s("b", partition=T1), {"f": "poll"}, process="u")
    history = (one, two, txn(s("a", 0), p((0, "b"), partition=T1)), txn(s("b", 0, T1), p((0, "a")), process="u"))
    assert found(*history) == {"G1c": 1}
    proves_itself(*history)
    assert found(*history[:3], txn(s("b", 0, T1), process="u")) == {}
    uncommitted = [{**line, "isolation": None} for line in history]
    assert found(*uncommitted) == {}, "readers of uncommitted records may"


_PAIRS = (("a", "b"), ("b", "c"), ("c", "a"))


def test_three_transactions_in_a_circle() -> None:
    ops = [(s(v, 0, f"t-{n}"), p((0, w), partition=f"t-{(n + 1) % 3}")) for n, (v, w) in enumerate(_PAIRS)]
    begins = [begun(s(v, partition=f"t-{n}"), {"f": "poll"}, process=n) for n, v in enumerate("abc")]
    history = (*begins, *(txn(*each, process=n) for n, each in enumerate(ops)))
    assert found(*history) == {"G1c": 1}
    assert len(evidence(*history)["G1c"]) == 6
    proves_itself(*history)


def test_writes_that_are_not_isolated_are_allowed() -> None:
    history = (
        begun(s("a"), s("b"), process="t"),
        begun(s("c"), process="u"),
        txn(s("a", 0), s("b", 2)),
        txn(s("c", 1), process="u"),
    )
    assert (found(*history), expected(*history)) == ({}, {"G0": 1, "int-send-skip": 1})
    proves_itself(*history)
    one_way = (*history[:2], txn(s("a", 0), s("b", 1)), txn(s("c", 2), process="u"))
    assert expected(*one_way) == {}


def test_a_circle_of_a_read_and_a_write_is_allowed() -> None:
    """u reads what t has sent, and its own record stands before another one of t."""
    history = (
        begun(s("a"), s("b", partition=T1), process="t"),
        begun(s("c", partition=T1), {"f": "poll"}, process="u"),
        txn(s("a", 0), s("b", 1, T1)),
        txn(s("c", 0, T1), p((0, "a")), process="u"),
    )
    assert (found(*history), expected(*history)) == ({}, {"G1c": 1})
    proves_itself(*history)
    behind = (*history[:2], txn(s("a", 0), s("b", 0, T1)), txn(s("c", 1, T1), p((0, "a")), process="u"))
    assert expected(*behind) == {}


# -- the report


def test_what_kafka_allows_is_shown_and_is_no_failure() -> None:
    history = (txn(s("a", 0), s("b", 2)), txn(s("c", 1), process="u"))
    operations = dict(enumerate(history, start=1))
    verdict: Verdict = judged(*history)
    assert failures(verdict) == ()
    printed = list(lines(verdict, operations))
    assert "int-send-skip: 1 (Kafka allows it), another record stands between those of one transaction" in printed
    assert printed[-1] == "no anomalies but those allowed in what was judged"
    reported = as_json(verdict, operations)
    assert (reported["valid"], reported["anomalies"]) == (True, {})
    assert reported["allowed_by_kafka"][Anomaly.INT_SEND_SKIP.value]["count"] == 1


def test_the_evidence_has_only_what_is_meant() -> None:
    history = (
        begun(s("z", partition="t-9"), s("a"), {"f": "poll"}),
        txn(s("z", 5, "t-9"), s("a", 0), p((0, "a"), (1, "q"))),
        send("q", 1),
    )
    (each,) = judged(*history).findings
    assert [line["ops"] for _, line in cited_operations(each, dict(enumerate(history, start=1)))] == [
        [s("a")],
        [s("a", 0), p((0, "a"))],
    ]

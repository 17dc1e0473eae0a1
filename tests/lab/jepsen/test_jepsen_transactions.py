"""What the transactional load writes into the history: its clients with a Kafka that is played, and the final reads."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tanist.client.positions import EARLIEST, Fetched
from tanist.lab.history import Checker, Verdict
from tanist.lab.jepsen import confluent_transactions, final, own_transactions
from tanist.lab.jepsen.outcome import account
from tanist.lab.jepsen.outside import OutsideCluster
from tanist.lab.jepsen.plan import Plan
from tanist.lab.jepsen.transactions import POLL, Drawn, Noted, Pace, draw
from tanist.runtime.client.client import KafkaError, Unreachable
from tanist.wire.errors import ErrorCode
from tests.lab.jepsen.test_jepsen_clients import Lines

PLAN = Plan("transactor", "t1", "tanist", (("h", 1), ("h", 2)), "t", 2, 1000.0, 3)
SENDS_AND_POLLS = Drawn((0, POLL, 1), aborts=False, crashes=False)


def _judged(lines: Lines) -> Verdict:
    checker = Checker()
    for number, line in enumerate(lines.read(), start=1):
        checker.take(number, line)
    return checker.verdict()


def _ends(lines: Lines) -> list[tuple[str, bool, bool, int]]:
    """Type, aborted, whether the commit was asked for, and the sends of each transaction that has ended."""
    return [
        (
            line["type"],
            line.get("aborted", False),
            "ending_ns" in line,
            sum(op["f"] == "send" for op in line["ops"]),
        )
        for line in lines.read()
        if line["f"] == "txn" and line["type"] != "invoke"
    ]


# -- the notes


def test_transactions_are_drawn_from_the_seed() -> None:
    first, again = ([draw(random.Random(5), 3) for _ in range(200)] for _ in range(2))
    assert first == again
    rng = random.Random(5)
    drawn = [draw(rng, 3) for _ in range(500)]
    assert {step for each in drawn for step in each.steps} == {POLL, 0, 1, 2}
    assert 20 < sum(each.aborts for each in drawn) < 100
    assert 1 <= sum(each.crashes for each in drawn) < 20


def test_a_transaction_is_noted_with_all_it_may_have_sent() -> None:
    lines = Lines()
    noted = Noted(PLAN, lines, SENDS_AND_POLLS, 7)
    noted.sends()["offset"] = 3
    noted.polled({}, 5)
    noted.polled({"t-0": [(1, "t2/1")]}, 5)
    noted.sends()
    noted.commits()
    noted.committed()
    begun, done = lines.read()
    assert [op.get("value") for op in begun["ops"]] == ["t1/7", None, "t1/8"]
    assert [(op["f"], op.get("offset")) for op in done["ops"]] == [("send", 3), ("poll", None), ("send", None)]
    assert done["isolation"] == "read_committed"
    assert begun["time_ns"] <= done["ending_ns"] <= done["time_ns"]
    assert account(lines.read()).acknowledged == 2
    assert account(lines.read()).polled_ns == [(done["ops"][1]["time_ns"], 1)]


def test_what_is_given_up_is_unknown_only_if_its_commit_was_asked_for() -> None:
    lines = Lines()
    Noted(PLAN, lines, SENDS_AND_POLLS, 0).given_up("before")
    late = Noted(PLAN, lines, SENDS_AND_POLLS, 2)
    late.commits()
    late.given_up("after")
    assert _ends(lines) == [("fail", True, False, 0), ("info", False, True, 0)]
    assert (account(lines.read()).refused, account(lines.read()).unknown) == (2, 2)


def test_the_pace_is_of_records() -> None:
    pace = Pace(10.0)
    assert pace.wait_s() == 0.0
    pace.takes(5)
    assert 0.3 < pace.wait_s() <= 0.5


# -- tanist's own client


class _Producer:
    """A transactional producer that is played."""

    ended: list[bool]
    fails: dict[int, Exception]
    offsets: Iterator[int]

    def __init__(self, client: Any, name: str, **_: Any) -> None:
        self.transactional_id, self.producer_id, self.producer_epoch = name, 7, 0

    def initialize(self) -> None:
        pass

    def add_partitions(self, places: Any) -> None:
        assert places

    def write(self, *_: Any, **__: Any) -> int:
        return next(_Producer.offsets)

    def end(self, *, committed: bool) -> None:
        _Producer.ended.append(committed)
        error = _Producer.fails.get(len(_Producer.ended))
        if error is not None:
            raise error


def _own(monkeypatch: pytest.MonkeyPatch, drawn: list[Drawn], fails: dict[int, Exception]) -> tuple[Lines, list[bool]]:
    stopping, lines = threading.Event(), Lines()
    _Producer.ended, _Producer.fails, _Producer.offsets = [], fails, iter(range(100))

    def next_drawn(rng: random.Random, partitions: int) -> Drawn:
        if len(drawn) == 1:
            stopping.set()
        return drawn.pop(0)

    monkeypatch.setattr(own_transactions, "draw", next_drawn)
    monkeypatch.setattr(own_transactions, "TransactionalProducer", _Producer)
    monkeypatch.setattr(own_transactions, "fetch", lambda *_, **__: Fetched((), 0, 0))
    own_transactions.work(PLAN, lines, stopping)
    return lines, _Producer.ended


def test_our_own_client_ends_each_transaction_as_it_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [SENDS_AND_POLLS, Drawn((1,), aborts=True, crashes=False), Drawn((POLL,), aborts=False, crashes=False)]
    lines, ended = _own(monkeypatch, drawn, {})
    assert ended == [True, False], "one that has sent nothing is none for the coordinator"
    assert _ends(lines) == [("ok", False, True, 2), ("fail", True, False, 1), ("ok", False, True, 0)]
    assert _judged(lines).findings == ()


def test_our_own_client_begins_anew_after_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [SENDS_AND_POLLS] * 3 + [Drawn((0,), aborts=True, crashes=False), Drawn((0,), aborts=False, crashes=True)]
    lines, ended = _own(monkeypatch, drawn, {1: Unreachable("nobody"), 4: KafkaError(ErrorCode.INVALID_TXN_STATE)})
    assert ended == [True, True, True, False]
    assert [end[:3] for end in _ends(lines)] == [
        ("info", False, True),
        ("ok", False, True),
        ("ok", False, True),
        ("fail", True, False),
        ("fail", True, False),
    ]
    assert sum(line["f"] == "crash" for line in lines.read()) == 3
    assert _judged(lines).transactions == {"committed": 2, "aborted": 2, "failed": 0, "unknown": 1}


# -- librdkafka


class Trouble(Exception):
    """A KafkaException with a KafkaError of librdkafka's."""

    def __init__(self, name: str, *, retriable: bool = False, abort: bool = False) -> None:
        super().__init__(
            SimpleNamespace(name=lambda: name, retriable=lambda: retriable, txn_requires_abort=lambda: abort)
        )


class Kafka:
    """Its producer and consumer."""

    def __init__(self, troubles: list[tuple[str, Trouble]]) -> None:
        self.calls: list[str] = []
        self._troubles = troubles

    def __call__(self, settings: dict[str, Any]) -> Kafka:
        if "group.id" in settings:
            assert settings["isolation.level"] == "read_committed"
        return self

    def __getattr__(self, name: str) -> Any:
        def call(*_: Any, **fields: Any) -> Any:
            self.calls.append(name)
            if self._troubles and self._troubles[0][0] == name:
                raise self._troubles.pop(0)[1]
            if name == "produce":
                fields["on_delivery"](None, SimpleNamespace(offset=lambda: len(self.calls)))
            if name == "flush":
                return 0
            return [] if name in ("assignment", "position") else None

        return call


def _confluent(
    monkeypatch: pytest.MonkeyPatch, drawn: list[Drawn], *troubles: tuple[str, Trouble], name: str = "t1"
) -> tuple[Lines, list[str]]:
    stopping, lines, kafka = threading.Event(), Lines(), Kafka(list(troubles))

    def next_drawn(rng: random.Random, partitions: int) -> Drawn:
        if len(drawn) == 1:
            stopping.set()
        return drawn.pop(0)

    codes = SimpleNamespace(_AUTO_OFFSET_RESET=-140, OFFSET_OUT_OF_RANGE=1)
    module = SimpleNamespace(
        Producer=kafka, Consumer=kafka, KafkaException=Trouble, KafkaError=codes, TopicPartition=lambda *about: about
    )
    monkeypatch.setitem(sys.modules, "confluent_kafka", module)
    monkeypatch.setattr(confluent_transactions, "draw", next_drawn)
    plan = Plan("transactor", name, "confluent", (("h", 1),), "t", 2, 1000.0, 3)
    confluent_transactions.work(plan, lines, stopping)
    return lines, kafka.calls


def test_librdkafkas_client_commits_and_aborts(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, calls = _confluent(monkeypatch, [SENDS_AND_POLLS, Drawn((1,), aborts=True, crashes=False)])
    assert _ends(lines) == [("ok", False, True, 2), ("fail", True, False, 1)]
    assert calls.index("flush") < calls.index("commit_transaction") < calls.index("abort_transaction")
    assert calls[calls.index("abort_transaction") - 1] == "flush", "what is aborted is in the log"
    verdict = _judged(lines)
    assert (verdict.acknowledged, verdict.failed, verdict.findings) == (2, 1, ())


@pytest.mark.parametrize(
    ("troubles", "ends"),
    [
        ([("commit_transaction", Trouble("_TIMED_OUT", retriable=True))], ("ok", False, True)),
        ([("commit_transaction", Trouble("_FENCED"))], ("info", False, True)),
        ([("commit_transaction", Trouble("_PURGE_QUEUE", abort=True))], ("fail", True, True)),
        ([("produce", Trouble("_QUEUE_FULL", abort=True))], ("fail", True, False)),
        ([("produce", Trouble("_FENCED"))], ("fail", True, False)),
        (
            [("commit_transaction", Trouble("_STATE", abort=True)), ("abort_transaction", Trouble("INVALID"))],
            ("info", False, True),
        ),
    ],
)
def test_librdkafkas_troubles(
    monkeypatch: pytest.MonkeyPatch, troubles: list[tuple[str, Trouble]], ends: tuple[str, bool, bool]
) -> None:
    lines, _ = _confluent(monkeypatch, [SENDS_AND_POLLS, SENDS_AND_POLLS], *troubles)
    first, second = _ends(lines)
    assert first[:3] == ends
    assert second[0] == "ok", "it goes on"
    assert _judged(lines).findings == ()


def test_a_client_with_an_even_number_is_a_member_of_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, calls = _confluent(monkeypatch, [SENDS_AND_POLLS], name="t2")
    assert "subscribe" in calls
    assert "assign" not in calls
    assert lines.read()[0]["f"] == "subscribe"


# -- the final reads


def _final(monkeypatch: pytest.MonkeyPatch, stable: list[int], patience_s: float = 60.0) -> tuple[list[str], Lines]:
    lines = Lines()

    def list_offset(client: Any, topic: str, partition: int, at: int, *, read_committed: bool = False) -> int:
        if at == EARLIEST:
            return 0
        return (stable.pop(0) if len(stable) > 1 else stable[0]) if read_committed else 3

    def fetch(client: Any, topic: str, partition: int, position: int, **fields: Any) -> Fetched:
        assert fields["read_committed"]
        record = SimpleNamespace(offset=0, value=b"t1/0")
        return Fetched((record,) if position == 0 else (), 3, 3)  # type: ignore[arg-type]

    monkeypatch.setattr(final, "list_offset", list_offset)
    monkeypatch.setattr(final, "fetch", fetch)
    monkeypatch.setattr(final, "_PATIENCE_S", patience_s)
    monkeypatch.setattr(final, "_ASK_EVERY_S", 0.001)
    with lines as writer:
        hanging = final.read_everything(writer, OutsideCluster({1: ("h", 1)}, {}), "t", 1, "transactions")
    return hanging, lines


def test_the_final_reads_wait_for_the_last_stable_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging, lines = _final(monkeypatch, [1, 2, 3])
    assert hanging == []
    ends = [(line["isolation"], line["offset"]) for line in lines.read() if line["f"] == "end"]
    assert ends == [("read_uncommitted", 3), *(("read_committed", offset) for offset in (1, 2, 3))]
    sent = {"process": "t1", "type": "ok", "f": "txn", "invoked_ns": 1, "ending_ns": 2, "time_ns": 2}
    sent["ops"] = [{"f": "send", "partition": "t-0", "value": f"t1/{n}"} for n in range(2)]
    checker = Checker()
    for number, line in enumerate([sent, *lines.read()], start=1):
        checker.take(number, line)
    assert {each.anomaly.value for each in checker.verdict().findings} == {"unseen", "torn"}


def test_a_transaction_that_stays_open_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging, _ = _final(monkeypatch, [1], patience_s=0.02)
    assert hanging == ["t-0"]

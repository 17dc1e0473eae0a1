"""What the load writes into the history: with a confluent-kafka that is played, and a cluster that is not there."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tanist.client.positions import Fetched
from tanist.lab.history import HistoryWriter
from tanist.lab.jepsen import confluent_client, own_client
from tanist.lab.jepsen.plan import Plan, Role
from tanist.runtime.client.client import KafkaError, Unreachable
from tanist.wire.errors import ErrorCode

RECORDS = 1203
"""More than two full batches of a reader, and not a whole number of them."""


class Lines:
    """A history in memory."""

    def __init__(self) -> None:
        self._file = io.StringIO()

    def __enter__(self) -> HistoryWriter:
        return HistoryWriter(self._file)

    def __exit__(self, *_: object) -> None:
        pass

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._file.getvalue().splitlines()]


def _plan(role: Role, partitions: int = 1) -> Plan:
    return Plan(role, f"{role[0]}1", "confluent", (("h", 1), ("h", 2)), "t", partitions, 1000.0, 3)


class Message:
    def __init__(self, offset: int, error: Any = None) -> None:
        self._offset, self._error = offset, error

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"w1/%d" % self._offset

    def error(self) -> Any:
        return self._error


class Trouble:
    """A KafkaError of librdkafka's."""

    _AUTO_OFFSET_RESET = -140
    OFFSET_OUT_OF_RANGE = 1

    def __init__(self, code: int, *, fatal: bool = False) -> None:
        self._code, self._fatal = code, fatal

    def code(self) -> int:
        return self._code

    def fatal(self) -> bool:
        return self._fatal


class Raised(Exception):
    """Its KafkaException."""


def _consumer(messages: list[Message], stopping: threading.Event, noted: list[tuple[str, int]]) -> type:
    class Consumer:
        def __init__(self, settings: dict[str, Any]) -> None:
            assert settings["auto.offset.reset"] == "error"

        def assign(self, found: list[tuple[str, int, int]]) -> None:
            noted.append(("assign", found[0][2]))

        def incremental_unassign(self, found: list[tuple[str, int]]) -> None:
            pass

        def incremental_assign(self, found: list[tuple[str, int, int]]) -> None:
            noted.append(("seek", found[0][2]))

        def poll(self, timeout: float) -> Message | None:
            if not messages:
                stopping.set()
                return None
            return messages.pop(0)

        def close(self) -> None:
            noted.append(("close", 0))

    return Consumer


def _played(monkeypatch: pytest.MonkeyPatch, **names: Any) -> None:
    module = SimpleNamespace(KafkaError=Trouble, KafkaException=Raised, TopicPartition=lambda *about: about, **names)
    monkeypatch.setitem(sys.modules, "confluent_kafka", module)


def test_a_reader_notes_every_record_also_behind_a_full_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping, lines, noted = threading.Event(), Lines(), list[tuple[str, int]]()
    _played(monkeypatch, Consumer=_consumer([Message(offset) for offset in range(RECORDS)], stopping, noted))
    confluent_client.work(_plan("reader"), lines, stopping)
    polled = [pair for line in lines.read() if line["f"] == "poll" for pair in line["records"]["t-0"]]
    assert polled == [[offset, f"w1/{offset}"] for offset in range(RECORDS)]
    assert noted[0] == ("assign", 0)
    assert noted[-1] == ("close", 0)


def test_a_reader_whose_log_has_lost_its_end_goes_back_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping, lines, noted = threading.Event(), Lines(), list[tuple[str, int]]()
    messages = [Message(offset) for offset in range(400)] + [Message(-1, Trouble(Trouble.OFFSET_OUT_OF_RANGE))]
    _played(monkeypatch, Consumer=_consumer(messages, stopping, noted))
    confluent_client.work(_plan("reader"), lines, stopping)
    (seek,) = [line for line in lines.read() if line["f"] == "seek"]
    assert [("seek", seek["positions"]["t-0"])] == [each for each in noted if each[0] == "seek"]
    assert 0 <= seek["positions"]["t-0"] < 400


def test_a_producer_that_gives_up_is_replaced_under_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping, lines = threading.Event(), Lines()
    made: list[Any] = []

    class Producer:
        def __init__(self, settings: dict[str, Any]) -> None:
            assert settings["enable.idempotence"] is True
            assert settings["acks"] == "all"
            made.append(self)
            self.waiting: list[Callable[[Any, Any], None]] = []

        def produce(self, topic: str, value: bytes, *, partition: int, on_delivery: Callable[[Any, Any], None]) -> None:
            self.waiting.append(on_delivery)

        def poll(self, timeout: float) -> None:
            if len(made) == 1 and len(self.waiting) == 3:
                self.waiting.pop(0)(None, Message(7))
                raise Raised(Trouble(45, fatal=True))
            if len(made) == 2 and len(self.waiting) == 2:
                stopping.set()

        def purge(self) -> None:
            assert len(made) == 1

        def flush(self, timeout: float) -> None:
            while self.waiting:
                if len(made) == 1:
                    self.waiting.pop(0)(Trouble(-152), Message(-1))
                else:
                    self.waiting.pop(0)(None, Message(-1))

    _played(monkeypatch, Producer=Producer)
    confluent_client.work(_plan("writer"), lines, stopping)
    assert len(made) == 2
    outcomes = [
        (line["process"], line["type"], line.get("offset")) for line in lines.read() if line["type"] != "invoke"
    ]
    first, second = outcomes[:4], outcomes[4:]
    # What was acknowledged before is; what was still under way is unknown. The third waits with those two.
    assert first[0] == ("w1/0", "ok", 7)
    assert {outcome[:2] for outcome in first[1:3]} == {("w1/0", "info")}
    assert {outcome[0] for outcome in second} == {"w1/1"}
    # An acknowledgement without an offset has none in the history.
    assert all(outcome[1:] == ("ok", None) for outcome in second)
    values = [line["value"] for line in lines.read() if line["type"] == "invoke"]
    assert len(values) == len(set(values))


def test_our_own_reader_follows_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping, lines = threading.Event(), Lines()
    asked: list[int] = []

    def fetch(client: Any, topic: str, partition: int, offset: int, **_: Any) -> Fetched:
        asked.append(offset)
        if len(asked) == 4:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if len(asked) == 6:
            stopping.set()
            raise Unreachable("nobody")
        found = (
            SimpleNamespace(offset=offset, value=b"w1/%d" % offset),
            SimpleNamespace(offset=offset + 2, value=None),
        )
        return Fetched(found, offset + 3, offset + 3)  # type: ignore[arg-type]

    monkeypatch.setattr(own_client, "fetch", fetch)
    own_client.work(_plan("reader"), lines, stopping)
    found = lines.read()
    assert found[0]["positions"] == {"t-0": 0}
    (seek,) = [line for line in found if line["f"] == "seek"]
    assert asked[:4] == [0, 3, 6, 9]
    assert asked[4] == seek["positions"]["t-0"] < 9
    assert asked[5] == asked[4] + 3
    assert next(line["records"]["t-0"] for line in found if line["f"] == "poll") == [[0, "w1/0"], [2, ""]]


def test_our_own_writer_begins_anew_when_the_outcome_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping, lines = threading.Event(), Lines()
    made: list[tuple[str, int]] = []

    class Producer:
        def __init__(self, client: Any, **_: Any) -> None:
            made.append(client._bootstrap[0])
            self.sent = 0

        def send(self, topic: str, partition: int, records: Any, *, timeout_s: float) -> int:
            self.sent += 1
            if len(made) == 2 and self.sent == 2:
                stopping.set()
                return -1
            if self.sent == 2:
                raise Unreachable("nobody")
            return 40 + self.sent

    monkeypatch.setattr(own_client, "Producer", Producer)
    own_client.work(_plan("writer"), lines, stopping)
    # It asks another broker first.
    assert made == [("h", 1), ("h", 2)]
    reported = [(line["process"], line["type"], line.get("value"), line.get("offset")) for line in lines.read()]
    assert reported == [
        ("w1/0/0", "invoke", "w1/0", None),
        ("w1/0/0", "ok", None, 41),
        ("w1/0/0", "invoke", "w1/1", None),
        ("w1/0/0", "info", None, None),
        ("w1/0/1", "invoke", "w1/2", None),
        ("w1/0/1", "ok", None, 41),
        ("w1/0/1", "invoke", "w1/3", None),
        ("w1/0/1", "ok", None, None),
    ]


def test_a_failure_of_one_partition_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping = threading.Event()

    def broken(*_: Any) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(own_client, "_write", broken)
    with pytest.raises(ValueError, match="broken"):
        own_client.work(_plan("writer", partitions=2), Lines(), stopping)

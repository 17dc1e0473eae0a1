"""Rates from the counters of two samples."""

from __future__ import annotations

import pytest

from tanist.web.rates import Rates, rounded
from tanist.web.state import Json
from tanist.web.traffic import Traffic
from tanist.wire.metadata import PartitionChangeRecord
from tests.web.test_web_metadata import TOPIC, beginning, replayed


def test_a_rate_is_what_a_counter_grew_by_a_second() -> None:
    rates = Rates()
    assert rates.of((1,), 10.0, {"bytes": 5_000}) is None
    assert rates.of((1,), 12.0, {"bytes": 7_000}) == {"bytes": 1_000.0}
    # Too soon after the last: the same again, and what came meanwhile is counted later.
    assert rates.of((1,), 12.1, {"bytes": 7_100}) == {"bytes": 1_000.0}
    assert rates.of((1,), 13.0, {"bytes": 7_500}) == {"bytes": 500.0}
    assert rates.of((1,), 14.0, {"bytes": 7_500}) == {"bytes": 0.0}


def test_a_counter_that_began_again_and_one_that_was_away() -> None:
    rates = Rates()
    rates.of(("t", 0, 1), 1.0, {"records": 100})
    assert rates.of(("t", 0, 1), 2.0, {"records": 3}) == {"records": 0.0}
    rates.keep({(2,)})
    assert rates.of(("t", 0, 1), 9.0, {"records": 50}) is None


def test_three_digits_are_enough() -> None:
    assert [rounded(each) for each in (0.0, 123_456.7, 0.012345)] == [0.0, 123_000.0, 0.0123]


class Clock:
    """`time` with a monotonic clock of our own."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


def test_traffic_of_a_broker_and_of_a_watched_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("tanist.web.traffic.time", clock)
    view, traffic = replayed(beginning()), Traffic()
    names = ("records_in", "bytes_in", "bytes_out", "replication_in", "replication_out")

    def sample(counted: int, end: int, committed: int) -> dict[str, Json]:
        row = {"topic": "t", "partition": 0, "role": "leader", "log_end_offset": end, "size_bytes": end * 100}
        traffic.commits([{"group": "g", "partitions": [{"topic": "t", "partition": 0, "committed": committed}]}])
        page = {"traffic": dict.fromkeys(names, counted), "replicas": [row]}
        found = traffic.read(view, {1: [page], 1001: [{"traffic": None, "replicas": []}]}, [("t", 0), ("gone", 0)])
        clock.now_s += 2
        return found

    assert sample(50, 10, 5) == {}
    assert sample(70, 30, 9) == {
        "b/1": {"broker": 1, **dict.fromkeys(names, 10.0)},
        "t/t/0": {"topic": "t", "partition": 0, "records_in": 10.0, "bytes_in": 1000.0, "records_out": 2.0},
    }
    assert sample(70, 30, 9)["t/t/0"]["records_in"] == 0.0
    # Another leader's log is no growth of this one's.
    view.replay(view.next_offset, 2000, PartitionChangeRecord(topic_id=TOPIC, partition_id=0, isr=(2, 3), leader=2))
    assert "t/t/0" not in sample(70, 40, 9)

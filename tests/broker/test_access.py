"""Denials for the operator: one of each kind in a second, and not more of all than so many."""

from __future__ import annotations

import pytest

from tanist.broker import access
from tanist.broker.access import Denials
from tanist.broker.counters import Metrics
from tanist.events.event import Event
from tanist.events.process import AuthorizationDenied
from tanist.events.stream import Events
from tanist.ports import Timer
from tanist.security import requirements as rows
from tanist.security.principal import Principal
from tanist.security.requirements import BROKER_ROWS
from tanist.security.session import Session
from tanist.wire.apis import ApiKey


class Time:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.ms = 0

    def now_ns(self) -> int:
        return self.now_ms() * 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def wall_ms(self) -> int:
        return self.ms

    def call_at(self, when_ms: int, callback: object) -> Timer:
        raise NotImplementedError

    def call_soon(self, callback: object) -> None:
        raise NotImplementedError


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def heard() -> list[Event]:
    return []


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def denials(time: Time, heard: list[Event], metrics: Metrics) -> Denials:
    events = Events()
    events.subscribe(heard.append)
    return Denials(time, events, metrics)


def session(name: str = "a") -> Session:
    return Session("L", "SSL", "10.0.0.1", Principal("User", name))


def test_a_denial_names_the_principal_the_resource_and_the_request(denials: Denials, heard: list[Event]) -> None:
    denials(session("CN=a,O=b"), rows.PRODUCE_TOPIC, "t")
    assert heard == [AuthorizationDenied("User:CN=a,O=b", "10.0.0.1", "WRITE", "TOPIC", "t", "PRODUCE", 0)]
    heard.clear()
    of_cluster = next(row for row in BROKER_ROWS if row.api == ApiKey.WRITE_TXN_MARKERS)
    denials(session(), of_cluster, "whatever")
    (event,) = heard
    assert isinstance(event, AuthorizationDenied)
    assert (event.operation, event.resource_type, event.resource) == ("CLUSTER_ACTION", "CLUSTER", "kafka-cluster")


def test_one_of_each_kind_in_a_second_with_the_number_of_the_others(
    denials: Denials, time: Time, heard: list[Event]
) -> None:
    for _ in range(10):
        denials(session(), rows.PRODUCE_TOPIC, "t")
        denials(session(), rows.FETCH_TOPIC, "t")
        denials(session("b"), rows.PRODUCE_TOPIC, "t")
    assert len(heard) == 3
    time.ms = 999
    denials(session(), rows.PRODUCE_TOPIC, "t")
    assert len(heard) == 3
    time.ms = 1_000
    denials(session(), rows.PRODUCE_TOPIC, "t")
    assert [getattr(each, "left_out", None) for each in heard] == [0, 0, 0, 10]
    time.ms = 5_000
    denials(session(), rows.PRODUCE_TOPIC, "t")
    assert getattr(heard[-1], "left_out", None) == 0


def test_a_client_that_asks_for_ever_new_names_does_not_fill_the_disk(
    denials: Denials, time: Time, heard: list[Event], metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_EVENTS_MAX", 5)
    monkeypatch.setattr(access, "_KEYS_MAX", 8)
    for number in range(100):
        denials(session(), rows.PRODUCE_TOPIC, f"t{number}")
    assert len(heard) == 5
    assert metrics.authorization_denied == 100
    assert len(denials._known) <= 8
    time.ms = 1_000
    denials(session(), rows.PRODUCE_TOPIC, "t1")
    assert len(heard) == 6

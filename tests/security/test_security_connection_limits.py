"""Limits of connections by hand: slots, the protected listener, rates, addresses."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from tanist.security.connection_limits import UNLIMITED, ConnectionLimits, Limits, ListenerLimits, Outcome
from tanist.security.quotas import Windows

BETWEEN, CLIENTS = "BETWEEN", "CLIENTS"


def limits(value: Limits | None = None, *listeners: str) -> ConnectionLimits:
    made = ConnectionLimits(listeners or (BETWEEN, CLIENTS), BETWEEN, Windows())
    made.limits = value or Limits()
    return made


def taken(made: ConnectionLimits, listener: str, host: str = "h", now_ms: int = 0) -> int:
    """The rest that the listener has to have."""
    admission = made.accepted(listener, host, now_ms)
    assert admission.outcome is Outcome.TAKEN
    return admission.rest_ms


def test_slots_of_the_broker() -> None:
    made = limits(Limits(connections=2))
    assert made.has_slot(CLIENTS)
    assert taken(made, CLIENTS) == taken(made, CLIENTS) == 0
    assert not made.has_slot(CLIENTS)
    made.closed(CLIENTS, "h")
    assert made.has_slot(CLIENTS)
    assert made.count == 1


def test_the_listener_between_brokers_may_exceed_them() -> None:
    made = limits(Limits(connections=2))
    taken(made, CLIENTS)
    taken(made, CLIENTS)
    assert made.has_slot(BETWEEN)
    assert made.exceeded_by == 0
    taken(made, BETWEEN)
    assert made.exceeded_by == 1
    assert not made.has_slot(CLIENTS)
    made.closed(CLIENTS, "h")
    assert made.exceeded_by == 0
    assert not made.has_slot(CLIENTS)


def test_it_is_not_protected_where_it_is_the_only_one() -> None:
    made = limits(Limits(connections=1), BETWEEN)
    taken(made, BETWEEN)
    assert not made.has_slot(BETWEEN)
    assert not limits(None, "CONTROLLER", "OTHER").is_protected(BETWEEN)


def test_slots_of_a_listener_are_for_the_protected_one_too() -> None:
    made = limits(Limits(listeners={BETWEEN: ListenerLimits(connections=1), CLIENTS: ListenerLimits(connections=2)}))
    taken(made, BETWEEN)
    taken(made, CLIENTS)
    assert not made.has_slot(BETWEEN)
    assert made.has_slot(CLIENTS)


def test_an_address_has_its_limit() -> None:
    made = limits(Limits(per_host=2, per_host_overrides={"10.0.0.1": 1, "10.0.0.2": 3}))
    for host, count in (("10.0.0.1", 1), ("10.0.0.2", 3), ("10.0.0.3", 2)):
        for _ in range(count):
            taken(made, CLIENTS, host)
        assert made.accepted(CLIENTS, host, 0).outcome is Outcome.TOO_MANY
    assert made.count == 6
    made.closed(CLIENTS, "10.0.0.1")
    taken(made, CLIENTS, "10.0.0.1")


def test_a_rate_makes_the_listener_rest_for_a_second_at_most() -> None:
    made = limits(Limits(creation_rate=1))
    assert [taken(made, CLIENTS, now_ms=0) for _ in range(10)] == [0] * 10  # ten in ten seconds
    assert taken(made, CLIENTS, now_ms=0) == 1_000  # 0.1 too many, which takes a second
    assert taken(made, CLIENTS, now_ms=0) == 1_000
    assert taken(made, BETWEEN, now_ms=0) == 0  # protected, and not counted
    made.limits = Limits(creation_rate=100)
    assert [taken(made, CLIENTS, now_ms=0) for _ in range(988)] == [0] * 988
    assert taken(made, CLIENTS, now_ms=0) == 10


def test_the_longer_rest_counts() -> None:
    made = limits(Limits(creation_rate=100, listeners={CLIENTS: ListenerLimits(creation_rate=50)}))
    for _ in range(500):
        taken(made, CLIENTS, now_ms=0)
    assert taken(made, CLIENTS, now_ms=0) == 20
    between = limits(Limits(creation_rate=1, listeners={BETWEEN: ListenerLimits(creation_rate=2)}))
    for _ in range(20):
        assert taken(between, BETWEEN, now_ms=0) == 0
    assert taken(between, BETWEEN, now_ms=0) == 500


def test_an_address_that_is_too_fast_is_kept_and_not_counted() -> None:
    made = limits(Limits(creation_rate=2))
    made.host_rates = {"slow": 1.0, None: 2.0}
    for _ in range(10):
        taken(made, CLIENTS, "slow")
    for _ in range(100):
        refused = made.accepted(CLIENTS, "slow", 0)
        assert (refused.outcome, refused.close_after_ms, refused.rest_ms) == (Outcome.TOO_FAST, 1_000, 0)
    assert made.count == 10
    for _ in range(10):  # so the listener has ten left, of twenty
        assert taken(made, CLIENTS, "other") == 0
    assert taken(made, CLIENTS, "third") > 0
    made.host_rates = {}
    assert made.accepted(CLIENTS, "slow", 0).outcome is Outcome.TAKEN
    made.host_rates = {None: float(UNLIMITED)}
    assert made.accepted(CLIENTS, "slow", 0).outcome is Outcome.TAKEN


_STEP = st.tuples(st.sampled_from([BETWEEN, CLIENTS]), st.sampled_from("abc"), st.integers(0, 300), st.booleans())


@given(st.lists(_STEP, max_size=80), st.integers(1, 6), st.integers(1, 4), st.integers(1, 3))
def test_no_number_is_exceeded(
    steps: list[tuple[str, str, int, bool]], most: int, of_clients: int, per_host: int
) -> None:
    """Who asks for a slot first, and closes what is too much, has never more than is allowed."""
    made = limits(
        Limits(connections=most, per_host=per_host, listeners={CLIENTS: ListenerLimits(connections=of_clients)})
    )
    open_now: list[tuple[str, str]] = []
    now_ms = 0
    for listener, host, pause_ms, closes in steps:
        now_ms += pause_ms
        if closes and open_now:
            made.closed(*open_now.pop(0))
        if not made.has_slot(listener):
            continue
        if made.accepted(listener, host, now_ms).outcome is Outcome.TAKEN:
            open_now.append((listener, host))
        for _ in range(made.exceeded_by):
            unprotected = [each for each in open_now if each[0] == CLIENTS]
            if unprotected:
                open_now.remove(unprotected[0])
                made.closed(*unprotected[0])
        clients = [each for each in open_now if each[0] == CLIENTS]
        assert made.count == len(open_now)
        assert len(clients) <= of_clients
        assert not clients or len(open_now) <= most
        assert all(sum(each[1] == name for each in open_now) <= per_host for name in "abc")
    while open_now:
        made.closed(*open_now.pop())
    assert made.count == 0
    assert made._by_host == {}


def test_addresses_are_forgotten_after_an_hour() -> None:
    made = limits()
    made.host_rates = {None: 1_000.0}
    rates: Mapping[str, object] = made._host_rates
    taken(made, CLIENTS, "a", 0)
    taken(made, CLIENTS, "b", 1)
    taken(made, CLIENTS, "a", 2)
    taken(made, CLIENTS, "c", 3_600_001)
    assert set(rates) == {"a", "c"}

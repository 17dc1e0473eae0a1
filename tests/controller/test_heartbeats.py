"""Sessions and the decision table of heartbeats (rules 90, 92, 94, 95)."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.controller.heartbeats import NO_ACTIVE_BROKER, BrokerState, HeartbeatTable, next_state, state_of
from tanist.controller.image.registration import BrokerRegistration

FENCED, UNFENCED = BrokerState.FENCED, BrokerState.UNFENCED
SHUTTING_DOWN, SHUTDOWN_NOW = BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW


def _next(current: BrokerState, **given: object) -> BrokerState:
    facts: dict[str, object] = {
        "want_fence": False,
        "want_shut_down": False,
        "metadata_offset": 100,
        "register_offset": 100,
        "controlled_shutdown_offset": -1,
        "leads": False,
        "lowest_active_offset": NO_ACTIVE_BROKER,
    } | given
    leads, lowest = facts.pop("leads"), facts.pop("lowest_active_offset")
    return next_state(current, leads_any=lambda: leads, lowest_active_offset=lambda: lowest, **facts)  # type: ignore


@pytest.mark.parametrize(
    ("current", "given_facts", "expected"),
    [
        (FENCED, {"want_shut_down": True}, SHUTDOWN_NOW),
        (FENCED, {"want_shut_down": True, "want_fence": True}, SHUTDOWN_NOW),
        (FENCED, {}, UNFENCED),
        (FENCED, {"metadata_offset": 99}, FENCED),
        (FENCED, {"want_fence": True}, FENCED),
        (UNFENCED, {}, UNFENCED),
        (UNFENCED, {"metadata_offset": 0}, UNFENCED),
        (UNFENCED, {"want_fence": True}, FENCED),
        (UNFENCED, {"want_fence": True, "want_shut_down": True, "leads": True}, SHUTDOWN_NOW),
        (UNFENCED, {"want_shut_down": True, "leads": True}, SHUTTING_DOWN),
        (UNFENCED, {"want_shut_down": True}, SHUTDOWN_NOW),
        (SHUTTING_DOWN, {"leads": True}, SHUTTING_DOWN),
        (SHUTTING_DOWN, {"leads": True, "want_fence": True}, SHUTTING_DOWN),
        (SHUTTING_DOWN, {"controlled_shutdown_offset": 50, "lowest_active_offset": 49}, SHUTTING_DOWN),
        (SHUTTING_DOWN, {"controlled_shutdown_offset": 50, "lowest_active_offset": 50}, SHUTDOWN_NOW),
        (SHUTTING_DOWN, {"controlled_shutdown_offset": 50}, SHUTDOWN_NOW),
    ],
)
def test_rule_90_the_decision_table(
    current: BrokerState, given_facts: dict[str, object], expected: BrokerState
) -> None:
    assert _next(current, **given_facts) is expected


def test_rule_90_nobody_goes_on_from_shutdown() -> None:
    with pytest.raises(ValueError, match="nothing that a broker can be"):
        _next(SHUTDOWN_NOW)


def _broker(broker_id: int, epoch: int, *, fenced: bool = False, shutting_down: bool = False) -> BrokerRegistration:
    return BrokerRegistration(
        id=broker_id,
        incarnation_id=UUID(int=broker_id + 1),
        epoch=epoch,
        fenced=fenced,
        in_controlled_shutdown=shutting_down,
    )


def test_states_of_registrations() -> None:
    assert state_of(_broker(1, 1)) is UNFENCED
    assert state_of(_broker(1, 1, fenced=True)) is FENCED
    assert state_of(_broker(1, 1, shutting_down=True)) is SHUTTING_DOWN
    assert state_of(_broker(1, 1, fenced=True, shutting_down=True)) is FENCED


def test_rule_92_only_the_first_shutdown_offset_counts() -> None:
    table = HeartbeatTable(9000)
    assert table.controlled_shutdown_offset(0) == -1
    table.set_controlled_shutdown_offset(0, 98)
    table.set_controlled_shutdown_offset(0, 99)
    assert table.controlled_shutdown_offset(0) == 98


def test_rule_92_active_means_unfenced_and_not_shutting_down() -> None:
    table = HeartbeatTable(9000)
    brokers = [_broker(0, 1), _broker(1, 1), _broker(2, 1, fenced=True), _broker(3, 1, shutting_down=True)]
    for broker_id, offset in ((0, 50), (1, 40), (2, 10), (3, 5)):
        table.set_metadata_offset(broker_id, offset)
    assert table.lowest_active_offset(brokers) == 40
    assert table.lowest_active_offset(brokers[2:]) == NO_ACTIVE_BROKER
    assert table.lowest_active_offset([*brokers, _broker(4, 1)]) == -1  # not heard of yet: nothing can be assumed


def test_rule_94_a_session_ends_strictly_after_the_timeout() -> None:
    table = HeartbeatTable(9000)
    table.contact(1, 7, 1000)
    assert table.next_expiry_ms == 10_001
    assert table.has_valid_session(1, 7, 10_000)
    assert table.pop_expired(10_000) is None
    assert not table.has_valid_session(1, 7, 10_001)
    assert table.pop_expired(10_001) == (1, 7)
    assert table.pop_expired(10_001) is None
    assert table.next_expiry_ms is None


def test_rule_94_sessions_end_one_at_a_time_oldest_first() -> None:
    table = HeartbeatTable(100)
    for broker_id, when in ((1, 0), (2, 1), (3, 2)):
        table.contact(broker_id, 1, when)
    table.contact(1, 1, 3)
    assert [table.pop_expired(1000) for _ in range(4)] == [(2, 1), (3, 1), (1, 1), None]


def test_rule_94_a_session_belongs_to_one_epoch() -> None:
    table = HeartbeatTable(9000)
    table.contact(0, 100, 0)
    assert table.has_valid_session(0, 100, 0)
    assert not table.has_valid_session(0, 200, 0)
    assert not table.has_valid_session(3, 300, 0)


def test_rule_95_unfenced_brokers_get_a_fresh_session() -> None:
    table = HeartbeatTable(9000)
    table.contact(5, 1, 0)
    table.set_controlled_shutdown_offset(1, 3)
    table.activate({0: _broker(0, 100, fenced=True), 1: _broker(1, 123)}, 1000, 77)
    assert table.contact_time_ms(0, 100) is None
    assert table.contact_time_ms(1, 123) == 1000
    assert table.contact_time_ms(5, 1) is None
    # What an earlier controller knew is replaced by the end of the log it left.
    assert table.register_offset(0) == 77
    assert table.controlled_shutdown_offset(1) == 77


def test_a_fence_ends_the_session_and_a_forgotten_broker_leaves_nothing() -> None:
    table = HeartbeatTable(9000)
    table.contact(1, 1, 0)
    table.set_metadata_offset(1, 5)
    table.set_register_offset(1, 6)
    table.end_session(1)
    assert not table.has_valid_session(1, 1, 0)
    assert (table.metadata_offset(1), table.register_offset(1)) == (5, 6)
    table.forget(1)
    assert (table.metadata_offset(1), table.register_offset(1)) == (-1, -1)


def test_an_overslept_controller_blames_nobody() -> None:
    table = HeartbeatTable(9000)
    table.contact(1, 1, 0)
    table.contact(2, 1, 4000)
    table.overslept(8000, 10_000)
    assert [table.contact_time_ms(broker_id, 1) for broker_id in (1, 2)] == [8000, 10_000]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 500)), max_size=40),
    st.integers(1, 400),
)
def test_expiry_agrees_with_a_plain_list_of_contacts(contacts: list[tuple[int, int, int]], timeout_ms: int) -> None:
    table = HeartbeatTable(timeout_ms)
    now_ms, last = 0, {}
    for broker_id, epoch, wait_ms in contacts:
        now_ms += wait_ms
        table.contact(broker_id, epoch, now_ms)
        last[broker_id] = (now_ms, epoch)
    assert table.next_expiry_ms == (min(last.values())[0] + timeout_ms + 1 if last else None)
    expired = []
    while (one := table.pop_expired(now_ms)) is not None:
        expired.append(one)
    assert sorted(expired) == sorted(
        (broker_id, epoch) for broker_id, (when, epoch) in last.items() if when + timeout_ms < now_ms
    )


def test_a_timeout_must_be_positive() -> None:
    with pytest.raises(ValueError, match="session timeout"):
        HeartbeatTable(0)

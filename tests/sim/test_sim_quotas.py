"""Quotas in the simulator: drawn for a share of the secured seeds, survived, and judged (S31, S32, L17)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.client.positions import fetch_request
from tanist.controller.image.client_quotas import Entity
from tanist.lab.mutations.examination import healthy, hunt
from tanist.lab.mutations.rules_of_quotas import QUOTA_MUTANTS
from tanist.lab.simulation.shrinking import shrink
from tanist.security.quotas import Limits
from tanist.sim.checkers.quotas import QuotaChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.metered import ADDRESSES, CLIENT_ID, CLIENT_IDS, CLIENTS, FETCH, ORDER, PRODUCE, UNLIMITED, USER
from tanist.sim.quota_oracle import QuotaOracle, Quotas, shares
from tanist.sim.run.additions import QUOTAS_SHARE
from tanist.sim.run.chaos_run import ChaosRun, Plan
from tanist.sim.run.config import ChaosConfig
from tanist.sim.run.drawing import Restriction, config_of, operations_of
from tanist.sim.secured import METERED_USERS
from tanist.sim.workload.operations import QUOTA_OPERATIONS, Topic
from tanist.wire.frames import encode_request
from tanist.wire.metadata import ClientQuotaRecord, EndTransactionRecord
from tanist.wire.metadata_records_security import EntityData

CONFIG = ChaosConfig(
    topics=(Topic("events", 1, 3),),
    kinds=(),
    pause_ms=200,
    fault_time_ms=6_000,
    secured=True,
    quotas=True,
    quota_operations=(*QUOTA_OPERATIONS, "set_quota", "set_quota"),
    quota_pause_ms=(50, 400),
)
AT_ONCE = {"quota-precedence": "S31", "quota-removed": "S31", "quota-heard": "S32", "quota-muted": "S32"}
PATIENCE = 3


# -- the addition


def test_a_share_of_the_secured_seeds_draws_it() -> None:
    drawn = [config_of(seed, secured=True) for seed in range(300)]
    with_quotas = [config for config in drawn if config.quotas]
    assert abs(len(with_quotas) - QUOTAS_SHARE * 300) < 30
    assert all(config.quota_operations for config in with_quotas)
    assert not any(config.quotas for config in map(config_of, range(300)) if not config.secured)


def test_what_else_a_seed_draws_is_the_same_with_it() -> None:
    config = next(config for config in (config_of(seed, secured=True) for seed in range(20)) if config.quotas)
    without = replace(config, quotas=False, quota_operations=(), quota_pause_ms=ChaosConfig().quota_pause_ms)
    others = [each for each in operations_of(7, config) if each.kind not in QUOTA_OPERATIONS]
    assert others == operations_of(7, without)
    assert not Restriction(without=frozenset(QUOTA_OPERATIONS)).applied(config).quota_operations
    assert not config.calm().quota_operations


# -- runs


def test_quotas_change_and_each_throttle_is_right() -> None:
    outcome = ChaosRun(1, CONFIG).run()
    assert outcome.violation is None
    for name in (
        "throttled PRODUCE",
        "throttled CREATE_TOPICS",
        "changes refused",
        "within a quota",
        "connections within a quota",
    ):
        assert outcome.counts[f"quotas: {name}"] > 0, name


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_broken_rule_shows(name: str) -> None:
    seen, _ = hunt(QUOTA_MUTANTS[name], range(1, 1 + PATIENCE))
    assert seen is not None
    assert seen.property_id == AT_ONCE[name], seen.message


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in QUOTA_MUTANTS if name not in AT_ONCE])
def test_a_broken_rule_shows_at_last(name: str) -> None:
    seen, _ = hunt(QUOTA_MUTANTS[name], range(1, 10))
    assert seen is not None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_the_runs_of_the_mutations_hold_with_the_rules_as_they_are(seed: int) -> None:
    assert healthy(QUOTA_MUTANTS["quota-muted"], seed) is None


class _Node:
    metadata = SimpleNamespace(applied_offset=1)


class _End:
    """A connection's end at a node."""

    host, peer_host, accepted = "node1", "dora-one", True


@pytest.mark.parametrize(("throttle_ms", "accused"), [(13_200, False), (15_100, True)])
def test_a_fetch_under_way_may_bring_the_head_of_its_answer_too(throttle_ms: int, accused: bool) -> None:
    """S31: 464 bytes are under way and 464 are refused; their clients asked for 400 each, and share 40 a second."""
    host = SimpleNamespace(name="node1", node=_Node())
    network = SimpleNamespace(readers=[])
    world: Any = SimpleNamespace(now_ms=0, now_us=0, hosts={1: host}, network=network, watchers=[], counts=Counter())
    checks = QuotaChecks(world, SimpleNamespace(applied_offset=1))  # type: ignore[arg-type]
    entity = (EntityData(entity_type=USER, entity_name="dora"),)
    checks.oracle.replay(1, ClientQuotaRecord(entity=entity, key=FETCH, value=40.0, remove=False))
    frame = memoryview(encode_request(fetch_request(("metered", 0), 0, max_bytes=400, max_wait_ms=0), 12, 7, None))[4:]
    ends: list[Any] = [_End(), _End()]
    for end, client_id in zip(ends, CLIENT_IDS, strict=True):
        checks._request(CLIENTS[f"dora-{client_id}"], end, frame)
    talk = checks._talks[ends[1]]
    response = SimpleNamespace(throttle_time_ms=throttle_ms, error_code=0, responses=[])
    if accused:
        with pytest.raises(Violation, match="S31"):
            checks._answer(talk, talk.asked.pop(7), response, 17)
    else:
        checks._answer(talk, talk.asked.pop(7), response, 17)


# -- the model of precedence

_NAMES = {USER: ("dora", "emil", None), CLIENT_ID: ("one", "two", None)}
_ENTITIES = st.one_of(
    st.tuples(st.tuples(st.just(CLIENT_ID), st.sampled_from(_NAMES[CLIENT_ID]))),
    st.tuples(st.tuples(st.just(USER), st.sampled_from(_NAMES[USER]))),
    st.tuples(
        st.tuples(st.just(CLIENT_ID), st.sampled_from(_NAMES[CLIENT_ID])),
        st.tuples(st.just(USER), st.sampled_from(_NAMES[USER])),
    ),
)


@given(
    st.dictionaries(_ENTITIES, st.floats(1, 100), max_size=8),
    st.sampled_from(("dora", "emil", "otto")),
    st.sampled_from(("one", "two", "x")),
)
def test_the_model_and_the_product_choose_alike(values: dict[Entity, float], user: str, client_id: str) -> None:
    expected = Limits(values.items()).of(user, client_id)
    found = Quotas({(frozenset(entity), PRODUCE): value for entity, value in values.items()}).limit(
        PRODUCE, user, client_id
    )
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.bound == expected.bound
        assert tuple(name or "" for name in found.counter) == expected.counter
        assert shares(found.counter, user, client_id)


def _record(value: float | None, *parts: tuple[str, str | None]) -> ClientQuotaRecord:
    entity = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in parts)
    return ClientQuotaRecord(entity=entity, key=PRODUCE, value=value or 0.0, remove=value is None)


def test_a_quota_stands_from_its_record_to_its_removal() -> None:
    oracle = QuotaOracle()
    both = ((USER, "dora"), (CLIENT_ID, "one"))
    oracle.replay(3, _record(5.0, *both))
    oracle.replay(4, EndTransactionRecord())
    oracle.replay(6, _record(7.0, *reversed(both)))
    oracle.replay(9, _record(None, *both))

    def bounds(first: int, last: int) -> list[float | None]:
        limits = [state.limit(PRODUCE, "dora", "one") for state in oracle.between(first, last)]
        return [None if limit is None else limit.bound for limit in limits]

    assert bounds(0, 2) == [None]
    assert bounds(2, 4) == [None, 5.0]
    assert bounds(5, 10) == [5.0, 7.0, None]


def test_an_address_has_its_own_quota_before_the_default() -> None:
    own, default = frozenset({("ip", ADDRESSES[0])}), frozenset({("ip", None)})
    key = "connection_creation_rate"
    quotas = Quotas({(own, key): 2.0, (default, key): 15.0})
    assert [quotas.connections(address) for address in ADDRESSES] == [2.0, 15.0]
    assert Quotas().connections(ADDRESSES[0]) is None


def test_the_quotas_that_stay_are_exceeded_by_some_of_the_clients() -> None:
    quotas = Quotas({(frozenset(entity), PRODUCE): value for entity, value in ORDER.items()})
    limits = [quotas.limit(PRODUCE, user, client_id) for user in METERED_USERS for client_id in CLIENT_IDS]
    assert sorted(limit.bound for limit in limits if limit is not None) == [500, 500, 500, UNLIMITED]


def test_shrinking_leaves_quotas_out() -> None:
    """A failure that needs none of them: the run stops to be one with quotas."""
    plan = Plan.drawn(1, replace(CONFIG, fault_time_ms=1_000, settle_time_ms=1))
    violation = plan.begin().run().violation
    assert violation is not None
    smaller = shrink(plan, violation, lambda: 0.0).plan
    assert not smaller.config.quotas

"""Runs with Streams groups: what processes do, what the checks judge, and that they do judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tanist.coordinator.streams.topology import configure
from tanist.lab.mutations.examination import hunt
from tanist.lab.mutations.rules_of_streams import STREAMS_MUTANTS
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.config import STREAMS, ChaosConfig
from tanist.sim.run.drawing import config_of
from tanist.sim.workload.streams_settings import SHAPES, StreamsPlan, needs_of
from tanist.wire.streams_group_records import StreamsTopologyValue

PATIENCE = 12
"""Seeds: which of them shows a mutation first depends on timing, and so on changes that have nothing to do with it."""

SHOWN_BY = {
    "streams-free": {"W1"},
    "streams-revoked": {"W1"},
    "streams-patience": {"W1"},
    "streams-session": {"W1"},
    "streams-early": {"W1", "W2"},
    "streams-anew": {"W2"},
    "streams-roles": {"W3"},
    "streams-nobodys": {"W4"},
    "streams-standbys": {"W4"},
    "streams-partitions": {"W5"},
    "streams-joined": {"W5"},
    "streams-fenced": {"W6", "C4"},
}
SOON = ("streams-session", "streams-nobodys", "streams-partitions", "streams-joined", "streams-fenced")
"""Shown by the first seeds, within their first seconds."""


def calm(seed: int = 1, **settings: Any) -> ChaosConfig:
    """One group, and nothing happens but what its processes do."""
    config = replace(config_of(seed, STREAMS).calm(), fault_time_ms=6_000)
    plan = StreamsPlan("a", 2, 2, tuple(topic.name for topic in config.topics), ("count",))
    return config.with_settings(**{"plans": (plan,), **settings})


def test_the_tasks_of_an_application_are_shared_out_and_committed_for() -> None:
    outcome = ChaosRun(3, calm(3)).run()
    assert outcome.violation is None
    counts = outcome.counts
    assert counts["streams: tasks given"] >= 2
    assert counts["streams: missing internal topics"] > 0
    assert counts["groups: commits acknowledged"] > 10
    assert counts["coordinators: compared with the replay of their log"] > 5


def test_the_same_seed_is_the_same_run() -> None:
    short = replace(config_of(2, STREAMS), fault_time_ms=2_500)
    first, second = ChaosRun(2, short).run(), ChaosRun(2, short).run()
    assert first.violation is None
    assert (first.digest, first.events) == (second.digest, second.events)
    assert first.digest != ChaosRun(2, short.calm()).run().digest


@pytest.mark.parametrize("shape", SHAPES)
def test_a_topology_is_as_was_worked_out_by_hand(shape: str) -> None:
    for events, orders in ((1, 1), (3, 2), (2, 4)):
        sources = {"events": events, "orders": orders}
        needs = needs_of(StreamsPlan("a", 1, 1, ("events", "orders"), (shape,)), 0, sources)
        value = StreamsTopologyValue(epoch=0, subtopologies=needs.topology.subtopologies)
        counts = {**sources, **needs.internal}
        configured = configure(value, counts.get)
        assert configured.status is None
        assert {name: part.tasks for name, part in configured.subtopologies.items()} == dict(needs.tasks)
        assert {name for name, part in configured.subtopologies.items() if part.is_stateful} == needs.stateful
        assert {each.name: each.num_partitions for each in configure(value, sources.get).missing.values()} == dict(
            needs.internal
        )


# -- the checks


def shown(name: str) -> str:
    seen, _ = hunt(STREAMS_MUTANTS[name], range(1, PATIENCE + 1))
    return "" if seen is None else seen.property_id


def test_each_rule_is_broken() -> None:
    assert SHOWN_BY.keys() == STREAMS_MUTANTS.keys()
    assert {f"W{number}" for number in range(1, 7)} <= {each for ids in SHOWN_BY.values() for each in ids}


@pytest.mark.parametrize("name", SOON)
def test_a_broken_rule_shows_soon(name: str) -> None:
    assert shown(name) in SHOWN_BY[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SHOWN_BY.keys() - set(SOON)))
def test_a_broken_rule_shows(name: str) -> None:
    assert shown(name) in SHOWN_BY[name]

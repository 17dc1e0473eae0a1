"""Runs with share groups: what members do, what the checks judge, and that they do judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tanist.lab.mutations.examination import hunt
from tanist.lab.mutations.rules_of_shares import SHARE_MUTANTS
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.config import SHARES, ChaosConfig
from tanist.sim.run.drawing import config_of, operations_of
from tanist.sim.workload.operations import SHARE_OPERATIONS
from tanist.sim.workload.share_settings import SharePlan

PATIENCE = 12
"""Seeds: which of them shows a mutation first depends on timing, and so on changes that have nothing to do with it."""

SHOWN_BY = {
    "share-early": {"Q1", "Q6"},
    "share-uncommitted": {"Q1", "Q6"},
    "share-start-alone": {"Q1"},
    "share-fence": {"Q1", "Q4", "Q6"},
    "share-counts": {"Q2"},
    "share-limit": {"Q2"},
    "share-stored-counts": {"Q2"},
    "share-locks": {"Q3"},
    "share-start": {"Q4"},
    "share-snapshot": {"Q4"},
    "share-released": {"Q5"},
    "share-for-ever": {"Q5"},
    "share-refused": {"Q6"},
    "share-ahead": {"Q7"},
    "share-aborted": {"Q7"},
    "share-open": {"Q7"},
    "share-trimmed": {"Q5"},
    "share-altered": {"Q8"},
    "share-kept": {"Q8"},
    "share-no-letter": {"Q9"},
    "share-letter-resumed": {"Q9"},
    "share-letter-accepted": {"Q9"},
}
SOON = ("share-start-alone", "share-counts", "share-locks", "share-ahead", "share-aborted", "share-altered")
"""Shown by the first seeds, within their first seconds."""


def calm(seed: int = 1, **settings: Any) -> ChaosConfig:
    """One group of three, and nothing happens but what members do."""
    config = replace(config_of(seed, SHARES).calm(), fault_time_ms=3_000)
    plan = SharePlan("s", 3, tuple(topic.name for topic in config.topics))
    return config.with_settings(**{"plans": (plan,), **settings})


def test_members_share_the_records_of_a_topic_until_all_are_done_with() -> None:
    run = ChaosRun(3, calm(3, release_share=0.2, silent_share=0.1, late_share=0.1, reject_share=0.1))
    outcome = run.run()
    assert outcome.violation is None
    counts = outcome.counts
    assert counts["shares: records received"] > 50
    assert counts["shares: words stored"] > 10
    assert counts["share leader: record given again"] > 5
    assert counts["share leader: record archived"] > 0
    assert counts["share leader: lock expired"] > 0
    assert counts["coordinators: compared with the replay of their log"] > 10


def test_the_same_seed_is_the_same_run() -> None:
    short = replace(config_of(2, SHARES), fault_time_ms=2_500)
    first, second = ChaosRun(2, short).run(), ChaosRun(2, short).run()
    assert first.violation is None
    assert (first.digest, first.events) == (second.digest, second.events)
    assert first.digest != ChaosRun(2, short.calm()).run().digest


@pytest.mark.parametrize("exact", [False, True])
def test_acknowledgements_come_with_fetches_and_alone(exact: bool) -> None:
    for share in (0.0, 1.0):
        outcome = ChaosRun(5, calm(5, explicit_share=share, exact=exact)).run()
        assert outcome.violation is None
        assert outcome.counts["shares: words stored"] > 10


def test_a_group_that_reads_committed_passes_over_aborted_transactions() -> None:
    config = calm(4, applications=2, abort_share=0.6)
    plans = tuple(replace(plan, read_committed=True) for plan in config.shares.plans)
    outcome = ChaosRun(4, config.with_settings(plans=plans)).run()
    assert outcome.violation is None
    assert outcome.counts["shares: records received"] > 50
    assert outcome.counts["shares: markers received"] > 10
    assert outcome.counts["shares: aborted records passed over"] > 10


def test_other_groups_get_aborted_records_too() -> None:
    outcome = ChaosRun(4, calm(4, applications=2, abort_share=0.6)).run()
    assert outcome.violation is None
    assert outcome.counts["shares: aborted records received"] > 10


def test_a_group_goes_on_where_a_trimmed_log_begins() -> None:
    config = replace(config_of(6, SHARES, trims=True), kinds=(), operations=(), fault_time_ms=3_000)
    outcome = ChaosRun(6, config.with_settings(churn=())).run()
    assert outcome.violation is None
    assert outcome.counts["trimming: log starts moved"] > 2
    assert outcome.counts["shares: records gone before they were given"] > 0


def test_what_nobody_could_process_is_a_dead_letter() -> None:
    config = calm(8, release_share=0.4, reject_share=0.2, silent_share=0.1)
    plans = tuple(replace(plan, dead_letters=True) for plan in config.shares.plans)
    properties = {**config.properties, "errors.deadletterqueue.auto.create.topics.enable": "true"}
    outcome = ChaosRun(8, replace(config, properties=properties).with_settings(plans=plans)).run()
    assert outcome.violation is None
    assert outcome.counts["shares: dead letters written"] > 10
    assert outcome.counts["shares: dead letters left out"] == 0


def test_without_its_topic_it_is_archived() -> None:
    config = calm(8, reject_share=0.2)
    plans = tuple(replace(plan, dead_letters=True) for plan in config.shares.plans)
    properties = {**config.properties, "errors.deadletterqueue.auto.create.topics.enable": "false"}
    outcome = ChaosRun(8, replace(config, properties=properties).with_settings(plans=plans)).run()
    assert outcome.violation is None
    assert outcome.counts["shares: dead letters left out"] > 5


@pytest.mark.parametrize("kind", sorted(SHARE_OPERATIONS))
def test_an_operator_changes_offsets(kind: str) -> None:
    config = replace(calm(7), share_operations=(kind,), share_pause_ms=(300, 800))
    outcome = ChaosRun(7, config).run()
    assert outcome.violation is None
    assert outcome.counts["shares: records received"] > 50
    counted = "shares: offsets not changed" if kind == "alter_offsets_in_use" else "shares: offsets changed"
    assert outcome.counts[counted] > 1


def test_additions_leave_other_seeds_as_they_were() -> None:
    drawn = {seed: config_of(seed, SHARES) for seed in range(1, 60)}
    with_transactions = {seed for seed, config in drawn.items() if config.shares.applications}
    with_operators = {seed for seed, config in drawn.items() if config.share_operations}
    trimmed = {seed for seed, config in drawn.items() if config.trims}
    for chosen in (with_transactions, with_operators, trimmed):
        assert 0 < len(chosen) < 40
    for seed in drawn.keys() - trimmed:
        other = replace(drawn[seed], share_operations=("delete_offsets",))
        assert [each for each in operations_of(seed, other) if each.kind not in SHARE_OPERATIONS] == [
            each for each in operations_of(seed, drawn[seed]) if each.kind not in SHARE_OPERATIONS
        ]
        assert config_of(seed, SHARES, trims=True).shares == drawn[seed].shares
    assert all(config_of(seed, SHARES, trims=True) == drawn[seed] for seed in trimmed)


# -- the checks


def shown(name: str) -> str:
    seen, _ = hunt(SHARE_MUTANTS[name], range(1, PATIENCE + 1))
    return "" if seen is None else seen.property_id


def test_each_rule_is_broken() -> None:
    assert SHOWN_BY.keys() == SHARE_MUTANTS.keys()
    assert {each for ids in SHOWN_BY.values() for each in ids} == {f"Q{number}" for number in range(1, 10)}


@pytest.mark.parametrize("name", SOON)
def test_a_broken_rule_shows_soon(name: str) -> None:
    assert shown(name) in SHOWN_BY[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SHOWN_BY.keys() - set(SOON)))
def test_a_broken_rule_shows(name: str) -> None:
    assert shown(name) in SHOWN_BY[name]

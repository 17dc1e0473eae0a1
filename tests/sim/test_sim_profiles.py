"""What runs are drawn from: every kind of fault and operation can be done, every profile is one that can be played."""

from __future__ import annotations

from collections import Counter

from tanist.sim.faults.schedule import KINDS
from tanist.sim.run.chaos_run import WORKLOADS, ChaosRun
from tanist.sim.run.coverage import EXPECTED, SELDOM, lacking
from tanist.sim.run.drawing import config_of
from tanist.sim.run.profiles import EXTRAS, LEANINGS
from tanist.sim.workload.operations import OPERATIONS, RARE_OPERATIONS, Admin
from tanist.sim.world.link_conditions import WINDOW_BYTES


def test_every_operation_can_be_done() -> None:
    assert all(hasattr(Admin, f"_{kind}") for kind in {**OPERATIONS, **RARE_OPERATIONS})
    assert not set(OPERATIONS) & set(RARE_OPERATIONS)


def test_the_same_seed_draws_the_same_run_and_another_one_another() -> None:
    assert config_of(7) == config_of(7)
    assert len({repr(config_of(seed)) for seed in range(200)}) == 200


def test_drawn_runs_make_sense_and_are_of_every_sort() -> None:
    drawn = [config_of(seed) for seed in range(600)]
    for config in drawn:
        brokers = sum("broker" in role for role in config.roles.values())
        assert set(config.kinds) <= set(KINDS)
        assert config.kinds
        assert set(config.operations) <= {*OPERATIONS, *RARE_OPERATIONS}
        assert all(topic.replication_factor <= brokers for topic in config.topics)
        assert config.directories > 1 or "log-dir-failed" not in config.kinds
    # Exceptions are drawn beside the others (`ChaosConfig.raise_pause_ms`).
    assert {kind for config in drawn for kind in config.kinds} == set(KINDS) - {"raise"}
    assert {kind for config in drawn for kind in config.operations} == {*OPERATIONS, *RARE_OPERATIONS}
    assert {len(config.roles) for config in drawn} >= {3, 4, 5, 6}
    assert {config.properties["unclean.recovery.manager.enabled"] for config in drawn} == {"true", "false"}
    assert sum(LEANINGS.values()) == 100
    assert sum(EXTRAS.values()) == 100


def test_a_share_of_the_seeds_has_answers_that_stay_half_sent() -> None:
    drawn = [config_of(seed, workload) for workload in WORKLOADS for seed in range(200)]
    small = [config for config in drawn if config.receive_bytes]
    windows = [config for config in drawn if config.window_bytes < WINDOW_BYTES]
    stalled = [config for config in drawn if config.stall_ms]
    assert abs(len(small) - 0.15 * len(drawn)) < 30
    assert abs(len(windows) - 0.25 * len(drawn)) < 40
    assert len(stalled) > 60
    assert all(config in small or config in windows for config in stalled)
    assert all(config.receive_bytes.keys() <= config.roles.keys() for config in small)


def test_features_change_only_where_nobody_loses_anything() -> None:
    changing = [config for config in map(config_of, range(600)) if "features" in config.operations]
    assert changing
    for config in changing:
        assert not config.may_lose
        assert not {"unclean", "unregister"} & set(config.operations)
        assert not {"power-loss", "blackout", "rot"} & set(config.kinds)


def test_a_run_plans_its_faults_and_operations_before_it_begins() -> None:
    one, other = ChaosRun(11), ChaosRun(11)
    assert one.faults
    assert (one.faults, one.operations) == (other.faults, other.operations)
    assert [fault.at_us for fault in one.faults] == sorted(fault.at_us for fault in one.faults)


def test_what_did_not_happen_is_lacking() -> None:
    required = [name for name in EXPECTED if name not in SELDOM]
    assert set(SELDOM) < set(EXPECTED)
    assert lacking(Counter()) == required
    assert lacking(Counter(dict.fromkeys(EXPECTED, 1))) == []
    assert lacking(Counter({name: 1 for name in EXPECTED if name != "losses"})) == ["losses"]

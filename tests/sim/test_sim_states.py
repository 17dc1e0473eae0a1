"""The states of partitions are recorded by the events of a run, and change nothing in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tanist.lab.simulation.guided import play_plan
from tanist.sim.faults.schedule import Fault
from tanist.sim.run.chaos_run import Plan
from tanist.sim.run.config import ChaosConfig
from tanist.sim.workload.operations import Topic

CONFIG = ChaosConfig(
    fault_time_ms=4_000,
    topics=(Topic("events", 1, 3),),
    producers=1,
    pause_ms=200,
    down_max=3,
    properties={"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"},
)
POWER_LOST = Fault(500_000, "power-loss", 3, 1, 1_500_000, 0.5)
PLAN = Plan(11, CONFIG, (POWER_LOST,), ())


def test_a_run_is_the_same_with_its_states_and_without() -> None:
    recorded = play_plan(PLAN, None)
    assert recorded.states
    assert replace(recorded, states={}) == PLAN.begin().run()


def test_a_loss_of_power_leads_through_the_states_of_its_replica() -> None:
    states = play_plan(PLAN, None).states
    assert "ISR: ISR; leader" in states
    assert any(state.startswith("ISR: one out fenced lost power") for state in states), sorted(states)
    assert any("joins" in state for state in states), "it comes back into the ISR"


def test_a_state_names_no_node_and_counts_nothing() -> None:
    states = play_plan(PLAN, None).states
    assert not [state for state in states if any(letter.isdigit() for letter in state)]


def test_the_time_of_a_state_is_on_the_clock_of_the_faults() -> None:
    states = play_plan(PLAN, None).states
    lost = min(at_us for state, at_us in states.items() if "lost power" in state)
    assert POWER_LOST.at_us <= lost < POWER_LOST.at_us + 100_000


@pytest.mark.parametrize("node", [1, 2])
def test_the_same_fault_of_another_node_leads_through_like_states(node: int) -> None:
    """Whether the node led decides what else happens: but it is out, and in another life, in the same words."""
    struck = replace(PLAN, faults=(replace(POWER_LOST, host=node, other=3),))
    again = {state for state in play_plan(struck, None).states if "lost power" in state}
    assert again & {state for state in play_plan(PLAN, None).states if "lost power" in state}

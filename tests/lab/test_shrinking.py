"""Failures made small: to the plan that is known to be the smallest, and by the same property."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

import pytest

from tanist.lab.simulation.breaking import broken
from tanist.lab.simulation.scenario import Scenario, as_document, from_document
from tanist.lab.simulation.shrinking import Limits, Shrunk, shrink, violation_of
from tanist.sim.checkers.replicas import ReplicaChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.faults.schedule import Fault
from tanist.sim.run.chaos_run import Plan
from tanist.sim.run.config import ChaosConfig
from tanist.sim.workload.operations import Operation, Topic
from tanist.sim.world.world import Host

CONFIG = ChaosConfig(
    fault_time_ms=3_000, topics=(Topic("events", 2, 3),), producers=1, observers=1, pause_ms=500, down_max=3
)


def _fault(at_ms: int, kind: str, node: int) -> Fault:
    return Fault(at_ms * 1000, kind, node, node % 3 + 1, 50_000, 0.5)


PLAN = Plan(
    1,
    CONFIG,
    (
        _fault(200, "pause", 1),
        _fault(300, "crash", 3),
        _fault(400, "skew", 2),
        _fault(600, "crash", 2),
        _fault(900, "reset", 2),
        _fault(1_200, "crash", 3),
        _fault(1_500, "pause", 3),
    ),
    (Operation(500_000, "preferred", 0.1, 0.1), Operation(1_100_000, "strategy", 0.1, 0.1)),
)


@contextmanager
def three_stays_after_two() -> Iterator[None]:
    """A property of which the smallest violation is known: node 3 does not go down after node 2 has."""
    went_down = ReplicaChecks.went_down
    gone: set[int] = set()

    def judged(self: ReplicaChecks, host: Host, *, lost_power: bool, mid_turn: bool) -> None:
        went_down(self, host, lost_power=lost_power, mid_turn=mid_turn)
        if host.node_id == 1:
            raise Violation("S98", host.world.scheduler.now_us, "1 went down")
        if host.node_id == 2:
            gone.add(id(host.world))
        elif id(host.world) in gone:
            raise Violation("S99", host.world.scheduler.now_us, "3 went down after 2")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReplicaChecks, "went_down", judged)
        yield


def _failing(plan: Plan) -> Violation:
    found = violation_of(plan)
    if found is None:
        raise AssertionError("the plan does not fail")
    return found


@pytest.fixture(scope="module")
def made() -> tuple[Shrunk, list[int]]:
    """What becomes of the plan, and how long it was after each step."""
    lengths: list[int] = []
    with three_stays_after_two():
        limits = Limits(later_ms=200)
        shrunk = shrink(PLAN, _failing(PLAN), lambda: 0.0, limits, lambda tries, plan: lengths.append(plan.length))
    return shrunk, lengths


def test_the_smallest_plan_is_found(made: tuple[Shrunk, list[int]]) -> None:
    shrunk, lengths = made
    assert [(fault.kind, fault.host) for fault in shrunk.plan.faults] == [("crash", 2), ("crash", 3)]
    assert shrunk.plan.operations == ()
    assert shrunk.complete
    assert shrunk.violation.property_id == "S99"
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == 2


def test_the_cluster_gets_smaller_too_and_the_pauses_shorter(made: tuple[Shrunk, list[int]]) -> None:
    least = made[0].plan
    assert least.config.topics == (Topic("events", 1, 3),)
    assert least.config.observers == 0
    assert [fault.at_us for fault in least.faults] == [200_000, 400_000]


def test_the_conditions_of_nodes_and_links_go_too() -> None:
    ordinary = replace(CONFIG, topics=(Topic("events", 1, 3),), observers=0)
    config = replace(
        ordinary,
        plain=(2,),
        slices={1: 1},
        skews_ms={3: 700},
        large_write_bytes=1,
        window_bytes=400,
        receive_bytes={1: 8, 2: 40},
        stall_ms=20,
        value_bytes=64,
        event_age_ms=1_000,
        inquirers=True,
        properties={"tanist.new.logs.turn.max": "1", "tanist.new.logs.pause.ms": "100"},
    )
    plan = Plan(1, config, (_fault(100, "crash", 2), _fault(400, "crash", 3)), ())
    with three_stays_after_two():
        shrunk = shrink(plan, _failing(plan), lambda: 0.0, Limits(later_ms=200))
    assert shrunk.complete
    assert shrunk.plan.config == ordinary


def test_what_breaks_another_property_is_another_failure() -> None:
    """Without the freezing of node 2, nobody but one being allowed to be down, node 1 is killed."""
    faults = (replace(_fault(100, "pause", 2), duration_us=400_000), _fault(300, "crash", 1), *PLAN.faults[3:])
    plan = Plan(1, replace(CONFIG, down_max=1), faults, ())
    with three_stays_after_two():
        shrunk = shrink(plan, _failing(plan), lambda: 0.0, Limits(later_ms=200))
        without = violation_of(replace(shrunk.plan, faults=plan.faults[1:]))
    assert shrunk.violation.property_id == "S99"
    assert without is not None
    assert without.property_id == "S98"


def test_it_stops_after_so_many_tries() -> None:
    with three_stays_after_two():
        shrunk = shrink(PLAN, _failing(PLAN), lambda: 0.0, Limits(tries=3))
        assert (shrunk.tries, shrunk.complete) == (3, False)
        assert _failing(shrunk.plan).property_id == "S99"


def test_it_stops_when_its_time_is_over() -> None:
    clock = count()
    with three_stays_after_two():
        shrunk = shrink(PLAN, _failing(PLAN), lambda: float(next(clock)), Limits(seconds=4))
    assert not shrunk.complete
    assert shrunk.tries < 5


def test_a_plan_that_does_not_fail_in_time_does_not_count() -> None:
    assert violation_of(replace(PLAN, faults=()), until_ms=50) is None


def test_a_broken_rule_in_little_and_its_file_plays_to_the_same() -> None:
    """A21: a fenced broker stays in its ISRs. One broker that dies is enough, and nothing else is needed."""
    with broken("A21"):
        violation = _failing(PLAN)
        shrunk = shrink(PLAN, violation, lambda: 0.0, Limits(later_ms=500))
        scenario = from_document(json.loads(json.dumps(as_document(Scenario(shrunk.plan, "", "S12", "A21")))))
        again = _failing(scenario.plan)
    assert violation.property_id == again.property_id == "S12"
    assert [fault.kind for fault in shrunk.plan.faults] == ["crash"]
    assert shrunk.plan.operations == ()
    assert str(again) == str(shrunk.violation)
    assert violation_of(scenario.plan, until_ms=again.now_us // 1000 + 1_000) is None  # the rule is whole again

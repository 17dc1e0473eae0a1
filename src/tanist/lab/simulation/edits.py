"""Edits of plans: a plan that was worth playing, changed a little, so that its run goes on in another way.

Faults and operations are moved, left out, added, copied, aimed at other nodes, brought close together, and joined with
those of another plan; links get the conditions of another plan's; the streams of clients and links are drawn anew.

Owns the kinds of edits. A plan that comes out is one that a seed could have drawn, but for the mixture: a cluster whose
checks depend on what its faults leave out (compacted topics, ELR that is switched) gets no kind that it has not drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final

from tanist.sim.checkers.compaction import POLICY
from tanist.sim.faults.schedule import DURATIONS_US, Fault, draw_fault
from tanist.sim.run.chaos_run import Plan
from tanist.sim.run.config import ChaosConfig
from tanist.sim.workload.operations import Operation

_EDITS_MAX: Final = 5
_AGAIN: Final = 0.6
"""Probability of one more edit."""
_CLOSE_US: Final = 150_000
"""Events that are so close together meet before a cluster has got over the first."""
_SEED_BITS: Final = 40
_OF_LINKS: Final = ("latency_us", "window_bytes", "value_bytes", "stall_ms")


def edited(plan: Plan, rng: Random, donor: Plan) -> Plan:
    """The plan after one edit or a few. `donor`: another plan, parts of which it may get."""
    for _ in range(_EDITS_MAX):
        plan = rng.choice(_EDITS)(plan, rng, donor)
        if rng.random() > _AGAIN:
            break
    return plan.with_events(plan.events)


Edit = Callable[[Plan, Random, Plan], Plan]
_Event = Fault | Operation


def _time_us(plan: Plan, rng: Random) -> int:
    """Any time at which faults happen, or one that is close to another event's."""
    time_us = plan.config.fault_time_ms * 1000
    if plan.length and rng.random() < 0.5:
        near_us = rng.choice(plan.events).at_us
        return min(max(0, near_us + rng.randint(-_CLOSE_US, 4 * _CLOSE_US)), time_us)
    return rng.randrange(time_us)


def _moved(plan: Plan, rng: Random, donor: Plan) -> Plan:
    return _changed(plan, rng, lambda event: replace(event, at_us=_time_us(plan, rng)))


def _left_out(plan: Plan, rng: Random, donor: Plan) -> Plan:
    events = plan.events
    if events:
        del events[rng.randrange(len(events))]
    return plan.with_events(events)


def _added(plan: Plan, rng: Random, donor: Plan) -> Plan:
    kinds = _kinds(plan.config, donor.config)
    if not kinds:
        return plan
    return plan.with_events([*plan.events, draw_fault(rng, kinds, list(plan.config.roles), _time_us(plan, rng))])


def _copied(plan: Plan, rng: Random, donor: Plan) -> Plan:
    events = plan.events
    return plan.with_events([*events, replace(rng.choice(events), at_us=_time_us(plan, rng))]) if events else plan


def _aimed(plan: Plan, rng: Random, donor: Plan) -> Plan:
    """It strikes others, or chooses otherwise."""

    def aimed(event: _Event) -> _Event:
        if isinstance(event, Operation):
            return replace(event, first=rng.random(), second=rng.random())
        host, other = rng.sample(list(plan.config.roles), 2)
        return replace(event, host=host, other=other, detail=rng.choice((event.detail, rng.random())))

    return _changed(plan, rng, aimed)


def _lasting(plan: Plan, rng: Random, donor: Plan) -> Plan:
    def lasting(event: _Event) -> _Event:
        return replace(event, duration_us=rng.choice(DURATIONS_US)) if isinstance(event, Fault) else event

    return _changed(plan, rng, lasting)


def _joined(plan: Plan, rng: Random, donor: Plan) -> Plan:
    """Its events up to a moment, and those of the donor from there on."""
    at_us = rng.randrange(plan.config.fault_time_ms * 1000)
    nodes, kinds = list(plan.config.roles), _kinds(plan.config, donor.config)
    theirs = {node_id: nodes[number % len(nodes)] for number, node_id in enumerate(donor.config.roles)}
    later: list[_Event] = []
    for event in donor.events:
        if event.at_us < at_us:
            continue
        if isinstance(event, Operation):
            if event.kind in plan.config.all_operations:
                later.append(event)
        elif event.kind in kinds and theirs[event.host] != theirs[event.other]:
            later.append(replace(event, host=theirs[event.host], other=theirs[event.other]))
    return plan.with_events([*(event for event in plan.events if event.at_us < at_us), *later])


def _on_other_links(plan: Plan, rng: Random, donor: Plan) -> Plan:
    name = rng.choice(_OF_LINKS)
    return replace(plan, config=replace(plan.config, **{name: getattr(donor.config, name)}))


def _drawn_anew(plan: Plan, rng: Random, donor: Plan) -> Plan:
    """The same events, while clients and links do otherwise."""
    return replace(plan, seed=rng.getrandbits(_SEED_BITS))


_EDITS: Final[tuple[Edit, ...]] = (
    _moved, _moved, _left_out, _added, _added, _copied, _aimed, _lasting, _joined, _on_other_links, _drawn_anew
)  # fmt: skip


def _changed(plan: Plan, rng: Random, change: Callable[[_Event], _Event]) -> Plan:
    """With a change of one event."""
    events = plan.events
    if not events:
        return plan
    number = rng.randrange(len(events))
    events[number] = change(events[number])
    return plan.with_events(events)


def _kinds(config: ChaosConfig, donor: ChaosConfig) -> tuple[str, ...]:
    """The kinds of faults that a run of this cluster may have."""
    own = (*config.kinds, *(("raise",) if any(config.raise_pause_ms) else ()))
    compacted = any(name == POLICY for topic in config.topics for name, _ in topic.configs)
    return own if compacted or "features" in config.operations else (*own, *donor.kinds)

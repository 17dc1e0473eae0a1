"""Edits of plans: a run goes on in another way from a moment that was worth reaching.

A run depends on nothing but its plan, so an edited plan plays the same up to the first event that is another one. Most
edits leave what is before the moment as it is. Behind it, faults and operations are added, moved, left out, copied,
aimed at other nodes, and joined with those of another plan. The others change the plan from its beginning: links get
the conditions of another plan's, and the streams of clients and links are drawn anew.

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

_EDITS_MAX: Final = 4
_AGAIN: Final = 0.5
"""Probability of one more edit."""
_ELSEWHERE: Final = 0.15
"""Probability of an edit that changes the plan from its beginning."""
_BEFORE_US: Final = 200_000
"""A fault so long before the moment may be what was missing, and spoils it seldom."""
_CLOSE_US: Final = 1_000_000
"""So soon after it most new faults strike."""
_SEED_BITS: Final = 40
_OF_LINKS: Final = ("latency_us", "window_bytes", "value_bytes", "stall_ms")


def edited(plan: Plan, moment_us: int, rng: Random, donor: Plan) -> Plan:
    """The plan after one edit or a few. `donor`: another plan, parts of which it may get.

    `moment_us`: on the clock of its faults, and before they end.
    """
    if rng.random() < _ELSEWHERE:
        plan, moment_us = rng.choice((_on_other_links, _drawn_anew))(plan, rng, donor), 0
    begin_us = max(0, moment_us - _BEFORE_US)
    before = [event for event in plan.events if event.at_us < begin_us]
    after = [event for event in plan.events if event.at_us >= begin_us]
    scope = _Scope(plan.config, donor, rng, begin_us, moment_us)
    for _ in range(_EDITS_MAX):
        after = rng.choice(_EDITS)(scope, after)
        if rng.random() > _AGAIN:
            break
    edited_plan = plan.with_events([*before, *after])
    return edited_plan.with_events(edited_plan.events)


_Event = Fault | Operation
Edit = Callable[["_Scope", list[_Event]], list[_Event]]
"""(what there is to choose from, the events behind the moment) -> other ones."""


class _Scope:
    """What an edit may choose from."""

    def __init__(self, config: ChaosConfig, donor: Plan, rng: Random, begin_us: int, moment_us: int) -> None:
        self.nodes = list(config.roles)
        self.kinds = _kinds(config, donor.config)
        self.operations = frozenset(config.all_operations)
        self.donor = donor
        self.rng = rng
        self.begin_us = begin_us
        self._moment_us = moment_us
        self.end_us = config.fault_time_ms * 1000
        """Nothing breaks any more from here on."""

    def time_us(self) -> int:
        """Most often soon after the moment, else at any time from shortly before it."""
        if self.rng.random() < 0.6:
            soon_us = min(_CLOSE_US, self.end_us - self._moment_us)
            return self._moment_us + int(soon_us * self.rng.random() ** 2)
        return self.rng.randrange(self.begin_us, self.end_us)


def _added(scope: _Scope, events: list[_Event]) -> list[_Event]:
    if not scope.kinds:
        return events
    return [*events, draw_fault(scope.rng, scope.kinds, scope.nodes, scope.time_us())]


def _moved(scope: _Scope, events: list[_Event]) -> list[_Event]:
    return _changed(scope, events, lambda event: replace(event, at_us=scope.time_us()))


def _left_out(scope: _Scope, events: list[_Event]) -> list[_Event]:
    gone = scope.rng.randrange(len(events)) if events else 0
    return [event for number, event in enumerate(events) if number != gone]


def _copied(scope: _Scope, events: list[_Event]) -> list[_Event]:
    return [*events, replace(scope.rng.choice(events), at_us=scope.time_us())] if events else events


def _aimed(scope: _Scope, events: list[_Event]) -> list[_Event]:
    """It strikes others, or chooses otherwise."""
    rng = scope.rng

    def aimed(event: _Event) -> _Event:
        if isinstance(event, Operation):
            return replace(event, first=rng.random(), second=rng.random())
        host, other = rng.sample(scope.nodes, 2)
        return replace(event, host=host, other=other, detail=rng.choice((event.detail, rng.random())))

    return _changed(scope, events, aimed)


def _lasting(scope: _Scope, events: list[_Event]) -> list[_Event]:
    def lasting(event: _Event) -> _Event:
        return replace(event, duration_us=scope.rng.choice(DURATIONS_US)) if isinstance(event, Fault) else event

    return _changed(scope, events, lasting)


def _joined(scope: _Scope, events: list[_Event]) -> list[_Event]:
    """The events of the donor in place of these."""
    nodes, donor = scope.nodes, scope.donor
    theirs = {node_id: nodes[number % len(nodes)] for number, node_id in enumerate(donor.config.roles)}
    joined: list[_Event] = []
    for event in donor.events:
        if not scope.begin_us <= event.at_us < scope.end_us:
            continue
        if isinstance(event, Operation):
            if event.kind in scope.operations:
                joined.append(event)
        elif event.kind in scope.kinds and theirs[event.host] != theirs[event.other]:
            joined.append(replace(event, host=theirs[event.host], other=theirs[event.other]))
    return joined


_EDITS: Final[tuple[Edit, ...]] = (_added, _added, _added, _moved, _left_out, _copied, _aimed, _lasting, _joined)


def _changed(scope: _Scope, events: list[_Event], change: Callable[[_Event], _Event]) -> list[_Event]:
    """With a change of one event."""
    changed = scope.rng.randrange(len(events)) if events else 0
    return [change(event) if number == changed else event for number, event in enumerate(events)]


def _on_other_links(plan: Plan, rng: Random, donor: Plan) -> Plan:
    name = rng.choice(_OF_LINKS)
    return replace(plan, config=replace(plan.config, **{name: getattr(donor.config, name)}))


def _drawn_anew(plan: Plan, rng: Random, donor: Plan) -> Plan:
    """The same events, while clients and links do otherwise."""
    return replace(plan, seed=rng.getrandbits(_SEED_BITS))


def _kinds(config: ChaosConfig, donor: ChaosConfig) -> tuple[str, ...]:
    """The kinds of faults that a run of this cluster may have."""
    own = (*config.kinds, *(("raise",) if any(config.raise_pause_ms) else ()))
    compacted = any(name == POLICY for topic in config.topics for name, _ in topic.configs)
    return own if compacted or "features" in config.operations else (*own, *donor.kinds)

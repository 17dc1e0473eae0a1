"""What the search leaves out it may leave out: it is searched in full, and comes to the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tanist.lab.model.partition.components import Budget, SentAnswer, SentFetch
from tanist.lab.model.partition.configuration import Configuration
from tanist.lab.model.partition.controller_events import ControllerEvents
from tanist.lab.model.partition.events import BrokerEvents
from tanist.lab.model.partition.model import PartitionModel
from tanist.lab.model.partition.symmetry import BROKERS, BUDGET, CONTROLLER, HISTORY, NETWORK
from tanist.lab.model.search import search
from tanist.lab.model.steps import State


def _configuration(**budget: int) -> Configuration:
    return Configuration("test", "", Budget(**budget))


def _states(model: PartitionModel) -> list[State]:
    """All states, each under every name."""
    found: list[State] = []
    judge = model.violation_of
    model.representative = lambda state: state

    def see(state: State) -> Any:
        found.append(state)
        return judge(state)

    model.violation_of = see
    outcome = search(model)
    assert outcome.exhausted
    return found


def _contents(model: PartitionModel, states: list[State], seen_as: Callable[[State], State]) -> set[Any]:
    """What is in the states, so that those of two models can be compared."""
    tables, brokers = model.tables, model.configuration.brokers
    inboxes = BROKERS + brokers
    contents = set()
    for each in states:
        state = seen_as(each)
        contents.add(
            (
                tables.controllers[state[CONTROLLER]],
                frozenset(tables.messages[message] for message in tables.networks[state[NETWORK]]),
                tables.histories[state[HISTORY]],
                tables.budgets[state[BUDGET]],
                tuple(tables.brokers[broker] for broker in state[BROKERS:inboxes]),
                tuple(tuple(tables.views[view] for view in tables.inboxes[inbox]) for inbox in state[inboxes:]),
            )
        )
    return contents


def _as_it_is(state: State) -> State:
    return state


def _without_fetches(model: PartitionModel) -> Callable[[State], State]:
    tables = model.tables

    def seen_as(state: State) -> State:
        left = [
            number
            for number in tables.networks[state[NETWORK]]
            if not isinstance(tables.messages[number], SentFetch | SentAnswer)
        ]
        return (*state[:NETWORK], tables.network(left), *state[NETWORK + 1 :])

    return seen_as


SPLIT = [
    pytest.param({"writes": 1}),
    pytest.param({"fences": 1}),
    pytest.param({"preferred": 1}),
    pytest.param({"writes": 1, "losses": 1}, marks=pytest.mark.slow),
    pytest.param({"writes": 1, "fences": 1}, marks=pytest.mark.slow),
    pytest.param({"writes": 1, "preferred": 1}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("budget", SPLIT)
def test_a_fetch_and_its_answer_may_be_one_step(budget: dict[str, int]) -> None:
    """With requests and answers that are late or lost, there are far more states, and not one that matters."""
    configuration = _configuration(**budget)
    whole = PartitionModel(configuration)
    in_one = _contents(whole, _states(whole), _as_it_is)
    split = PartitionModel(replace(configuration, split_fetches=True))
    in_messages = _states(split)
    assert _contents(split, in_messages, _without_fetches(split)) == in_one
    assert len(in_messages) > 5 * len(in_one)


class Unhurried(BrokerEvents):
    """No metadata is applied before its time."""

    def _catch_up(self, broker: int, state: int, inbox: int) -> int:
        return inbox


class EveryMessage(ControllerEvents):
    """Every message arrives."""

    def leaves_no_trace(self, controller: int, message: int, receiver: int) -> bool:
        return False


class UnhurriedModel(PartitionModel):
    BROKER_EVENTS = Unhurried
    CONTROLLER_EVENTS = EveryMessage


def _hurried(model: PartitionModel) -> Callable[[State], State]:
    """What is of no consequence is done."""
    events = BrokerEvents(model.configuration, model.tables)
    decisions = ControllerEvents(model.configuration, model.tables, events)
    tables, brokers = model.tables, model.configuration.brokers

    def seen_as(state: State) -> State:
        changed = list(state)
        for broker in range(brokers):
            at = BROKERS + brokers + broker
            changed[at] = events._catch_up(broker, state[BROKERS + broker], state[at])
        for message in tables.networks[state[NETWORK]]:
            hears = getattr(tables.messages[message], "hears", 0)
            if decisions.leaves_no_trace(state[CONTROLLER], message, state[BROKERS + hears]):
                changed[NETWORK] = tables.exchange(changed[NETWORK], message, ())
        return tuple(changed)

    return seen_as


HURRIED = [
    pytest.param({"fences": 1}),
    pytest.param({"writes": 1, "fences": 1}, marks=pytest.mark.slow),
    pytest.param({"fences": 1, "losses": 1}, marks=pytest.mark.slow),
    pytest.param({"fences": 1, "shrinks": 1}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("budget", HURRIED)
def test_what_is_of_no_consequence_may_be_done_at_once(budget: dict[str, int]) -> None:
    configuration = _configuration(**budget)
    hurried = PartitionModel(configuration)
    unhurried = UnhurriedModel(configuration)
    few, many = _states(hurried), _states(unhurried)
    assert len(many) > len(few)
    assert _contents(unhurried, many, _hurried(unhurried)) == _contents(hurried, few, _hurried(hurried))

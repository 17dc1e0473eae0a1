"""A controller that is made anew for each question, with its epochs raised to one level, decides as one that lives."""

from __future__ import annotations

import random

import pytest

from tanist.controller.partitions.recovery_strategy import Strategy
from tanist.lab.model.partition.components import AlterRequest, Controller, Proposal, Recovery, Registration, Reply
from tanist.lab.model.partition.controlling import Controlling, moves
from tanist.lab.model.partition.levels import Event
from tanist.lab.model.partition.symmetry import CONTROLLER, NETWORK
from tanist.wire.errors import ErrorCode
from tests.lab.model.models import partition_model

ALL_WELL = Controller(
    leader=0,
    leader_epoch=4,
    partition_epoch=9,
    replicas=0b111,
    isr=0b111,
    elr=0,
    last_known_elr=0,
    adding=0,
    removing=0,
    recovering=False,
    min_isr=2,
    registrations=tuple(Registration(epoch, fenced=False, shutting_down=False) for epoch in (3, 5, 8)),
    recovery=None,
)


def _controlling(strategy: Strategy = Strategy.NONE) -> Controlling:
    return Controlling(strategy=strategy)


def _only(controlling: Controlling, state: Controller, *event: object) -> Controller:
    (decided,) = controlling.decide(state, event)
    return decided.controller


def test_a_fence() -> None:
    after = _only(_controlling(), ALL_WELL, "fence", 2)
    assert (after.isr, after.elr, after.leader) == (0b011, 0, 0)
    assert (after.leader_epoch, after.partition_epoch) == (4, 10)
    assert after.registrations[2] == Registration(8, fenced=True, shutting_down=False)


def test_an_election_may_choose_any_of_those_who_can_lead() -> None:
    """Who it is depends on the order of the replicas, which the state does not have."""
    decided = _controlling().decide(ALL_WELL, ("fence", 0))
    assert {each.controller.leader for each in decided} == {1, 2}
    assert {each.controller.leader_epoch for each in decided} == {5}


def test_the_last_one_leaves_for_the_elr() -> None:
    controlling = _controlling()
    state = ALL_WELL
    for broker in (2, 1, 0):
        state = _only(controlling, state, "fence", broker)
    assert (state.isr, state.elr, state.leader, state.leader_epoch) == (0, 0b011, -1, 5)
    state = _only(controlling, state, "unfence", 1)
    assert (state.isr, state.elr, state.leader, state.leader_epoch) == (0b010, 0b001, 1, 6)


@pytest.mark.parametrize(("previous_epoch", "elr"), [(3, 0b001), (2, 0), (-1, 0)])
def test_a_restart(previous_epoch: int, elr: int) -> None:
    """Clean only if the epoch it found is that of its last registration."""
    controlling = _controlling()
    alone = _only(controlling, _only(controlling, ALL_WELL, "fence", 1), "fence", 2)
    after = _only(controlling, alone, "register", 0, previous_epoch)
    assert (after.isr, after.elr & 0b001, after.leader) == (0, elr, -1)
    assert after.registrations[0] == Registration(4, fenced=True, shutting_down=False)


@pytest.mark.parametrize(
    ("proposal", "sender_epoch", "error"),
    [
        (Proposal(4, 9, ((0, 3), (1, 5))), 3, ErrorCode.NONE),
        (Proposal(4, 9, ((0, 3), (1, 4))), 3, ErrorCode.INELIGIBLE_REPLICA),
        (Proposal(4, 9, ((0, 3), (1, -1))), 3, ErrorCode.NONE),
        (Proposal(4, 8, ((0, 3), (1, 5))), 3, ErrorCode.INVALID_UPDATE_VERSION),
        (Proposal(3, 9, ((0, 3), (1, 5))), 3, ErrorCode.FENCED_LEADER_EPOCH),
        (Proposal(4, 9, ((1, 5),)), 3, ErrorCode.INVALID_REQUEST),
        (Proposal(4, 9, ((0, 3), (1, 5))), 2, None),
    ],
)
def test_an_alter_partition(proposal: Proposal, sender_epoch: int, error: ErrorCode | None) -> None:
    (decided,) = _controlling().decide(ALL_WELL, ("alter", 0, sender_epoch, proposal))
    assert decided.refused is (error is None)
    assert decided.error == (error or 0)
    assert (decided.controller.isr == 0b011) is (error is ErrorCode.NONE)


def _lost(strategy: Strategy) -> tuple[Controlling, Controller]:
    """All have crashed one after the other: nobody is left who surely has everything."""
    controlling = _controlling(strategy)
    state = controlling.decide(ALL_WELL, ("register", 0, -1))[0].controller
    state = _only(controlling, state, "register", state.leader, -1)
    return controlling, _only(controlling, state, "register", state.leader, -1)


def _reply(state: Controller, broker: int, last_epoch: int, end_offset: int) -> Event:
    epoch = state.registrations[broker].epoch
    return ("reply", Reply(broker, epoch, state.leader_epoch, last_epoch, end_offset, ()))


def test_balanced_waits_for_the_last_known() -> None:
    controlling, state = _lost(Strategy.BALANCED)
    assert (state.leader, state.candidates, state.last_known_elr) == (-1, 0, 0b110)
    assert state.recovery is None
    state = _only(controlling, state, "unfence", 1)
    assert (state.recovery, controlling.questions(state)) == (None, ())
    state = _only(controlling, state, "unfence", 2)
    assert state.recovery == Recovery(0, ())
    assert controlling.questions(state) == (1, 2)
    state = _only(controlling, state, *_reply(state, 1, 4, 7))
    assert controlling.questions(state) == (2,)
    (decided,) = controlling.decide(state, _reply(state, 2, 5, 3))
    assert decided.controller.leader == 2
    assert decided.controller.recovering
    assert {reply.broker for reply in decided.compared} == {1, 2}
    assert decided.compared[0].broker_epoch == state.registrations[1].epoch


def test_a_restart_makes_a_reply_void() -> None:
    controlling, state = _lost(Strategy.BALANCED)
    for broker in (1, 2):
        state = _only(controlling, state, "unfence", broker)
    state = _only(controlling, state, *_reply(state, 1, 4, 7))
    state = _only(controlling, state, "register", 1, -1)
    assert state.recovery is None
    state = _only(controlling, state, "unfence", 1)
    assert controlling.questions(state) == (1, 2)


def test_an_old_reply_is_not_believed() -> None:
    controlling, state = _lost(Strategy.BALANCED)
    for broker in (1, 2):
        state = _only(controlling, state, "unfence", broker)
    name, reply = _reply(state, 1, 4, 7)
    after = _only(controlling, state, name, reply._replace(broker_epoch=reply.broker_epoch - 1))
    assert controlling.questions(after) == (1, 2)


def test_aggressive_takes_who_is_there_once_the_grace_is_over() -> None:
    controlling, state = _lost(Strategy.AGGRESSIVE)
    state = _only(controlling, state, "unfence", 0)
    assert controlling.questions(state) == (0,)
    state = _only(controlling, state, *_reply(state, 0, -1, 0))
    assert state.leader == -1
    state = _only(controlling, state, "clock")
    assert state.leader == 0


def test_another_controller_begins_anew() -> None:
    controlling, state = _lost(Strategy.BALANCED)
    for broker in (1, 2):
        state = _only(controlling, state, "unfence", broker)
    state = _only(controlling, state, *_reply(state, 1, 4, 7))
    assert controlling.questions(_only(controlling, state, "failover")) == (1, 2)


def test_moves_replace_one_replica() -> None:
    four = ALL_WELL._replace(registrations=(*ALL_WELL.registrations, Registration(0, False, False)))
    assert sorted(moves(four)) == [0b1011, 0b1101, 0b1110]
    assert moves(ALL_WELL) == ()


@pytest.mark.parametrize("name", ["slow-followers", "controlled-shutdown", "reassignment", "min-isr-changes"])
def test_epochs_are_compared_and_nothing_else(name: str) -> None:
    """The level on which a question is asked does not matter: with other epochs at hand the answer is the same."""
    model = partition_model(name)
    rng = random.Random(7)
    state = model.initial()
    for _ in range(60):
        controller = model.tables.controllers[state[CONTROLLER]]
        higher = controller._replace(
            leader_epoch=controller.leader_epoch + 3,
            partition_epoch=controller.partition_epoch + 11,
            registrations=tuple(each._replace(epoch=each.epoch + 5) for each in controller.registrations),
        )
        for message in (model.tables.messages[number] for number in model.tables.networks[state[NETWORK]]):
            if isinstance(message, AlterRequest):
                was = message.proposal
                isr = tuple((broker, epoch if epoch < 0 else epoch + 5) for broker, epoch in was.isr)
                proposal = Proposal(was.leader_epoch + 3, was.partition_epoch + 11, isr)
                here = model.controller_events.controlling._ask(
                    controller, ("alter", message.sender, message.sender_epoch, was)
                )
                there = model.controller_events.controlling._ask(
                    higher, ("alter", message.sender, message.sender_epoch + 5, proposal)
                )
                assert [each.error for each in here] == [each.error for each in there]
                assert [each.controller.isr for each in here] == [each.controller.isr for each in there]
        for event in (("fence", 0), ("unfence", 1), ("register", 2, -1), ("prefer",)):
            here, there = (model.controller_events.controlling._ask(each, event) for each in (controller, higher))
            for one, other in zip(here, there, strict=True):
                assert other.controller.leader_epoch - one.controller.leader_epoch == 3
                assert other.controller.partition_epoch - one.controller.partition_epoch == 11
                assert (one.controller.leader, one.controller.isr, one.controller.elr) == (
                    other.controller.leader,
                    other.controller.isr,
                    other.controller.elr,
                )
        possible = [after for _, after, broken in model.expand(state) if broken is None]
        state = rng.choice(possible) if possible else model.initial()

"""A controller's epochs raised to one level, and back: one question for all states that differ in their values only.

The decisions depend on the order of epochs, never on the values. An epoch that is compared with another keeps its
distance from it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from tanist.lab.model.partition.components import Controller, Proposal, Reply

LEVEL = 100
"""The value of all epochs of the controller in a question."""


class Decided(NamedTuple):
    """The controller after a decision."""

    controller: Controller
    error: int = 0
    """Of an AlterPartition."""
    refused: bool = False
    """The request as a whole is refused: its sender has restarted."""
    compared: tuple[Reply, ...] = ()
    """The replies by which an unclean recovery has elected, if it has."""


Event: TypeAlias = tuple[Any, ...]
"""The name of an event of `controlling.Controlling`, and its arguments."""


def leveled(controller: Controller) -> Controller:
    """All epochs at `LEVEL`; epochs that are compared with them keep their distance."""
    recovery = controller.recovery
    if recovery is not None:
        recovery = recovery._replace(replies=tuple(_leveled_reply(controller, reply) for reply in recovery.replies))
    return controller._replace(
        leader_epoch=LEVEL,
        partition_epoch=LEVEL,
        registrations=tuple(each._replace(epoch=LEVEL) for each in controller.registrations),
        recovery=recovery,
    )


def _leveled_reply(controller: Controller, reply: Reply) -> Reply:
    return reply._replace(
        broker_epoch=reply.broker_epoch - controller.registrations[reply.broker].epoch + LEVEL,
        leader_epoch=reply.leader_epoch - controller.leader_epoch + LEVEL,
    )


def leveled_event(controller: Controller, event: Event) -> Event:
    registrations = controller.registrations
    match event:
        case ("alter", int(sender), int(sender_epoch), Proposal() as proposal):
            leveled = Proposal(
                proposal.leader_epoch - controller.leader_epoch + LEVEL,
                proposal.partition_epoch - controller.partition_epoch + LEVEL,
                tuple(
                    (member, epoch if epoch < 0 else epoch - registrations[member].epoch + LEVEL)
                    for member, epoch in proposal.isr
                ),
            )
            return ("alter", sender, sender_epoch - registrations[sender].epoch + LEVEL, leveled)
        case ("register", int(broker), int(previous_epoch)):
            if previous_epoch >= 0:
                previous_epoch += LEVEL - registrations[broker].epoch
            return ("register", broker, previous_epoch)
        case ("reply", Reply() as reply):
            return ("reply", _leveled_reply(controller, reply))
    return event


def lifted(controller: Controller, decided: Decided) -> Decided:
    """The inverse of `leveled`, for the result."""
    after = decided.controller
    recovery = after.recovery
    registrations = tuple(
        each._replace(epoch=each.epoch - LEVEL + was.epoch)
        for each, was in zip(after.registrations, controller.registrations, strict=True)
    )
    if recovery is not None:
        recovery = recovery._replace(replies=tuple(_lifted_reply(controller, reply) for reply in recovery.replies))
    after = after._replace(
        leader_epoch=controller.leader_epoch + after.leader_epoch - LEVEL,
        partition_epoch=controller.partition_epoch + after.partition_epoch - LEVEL,
        registrations=registrations,
        recovery=recovery,
    )
    compared = tuple(_lifted_reply(controller, reply) for reply in decided.compared)
    return decided._replace(controller=after, compared=compared)


def _lifted_reply(controller: Controller, reply: Reply) -> Reply:
    return reply._replace(
        broker_epoch=reply.broker_epoch - LEVEL + controller.registrations[reply.broker].epoch,
        leader_epoch=reply.leader_epoch - LEVEL + controller.leader_epoch,
    )

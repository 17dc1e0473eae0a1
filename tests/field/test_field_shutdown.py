"""Bugs of stopping and starting: whether a broker may have lost records, and what becomes of its roles."""

from __future__ import annotations

from typing import Any

from tanist.controller.partitions import elections
from tanist.lab.mutations.patching import Patch, fixed, no_records
from tests.controller.partitions.test_elections import expect, world
from tests.field.catalogue import NEITHER_HAS_IT, bug


@bug("KAFKA-18106", planted=fixed(elections, "broker_new_incarnation", no_records))
def test_a_broker_that_comes_back_uncleanly_leads_nothing_in_its_old_epoch() -> None:
    """A broker kept its leaderships through an unclean shutdown, without a new leader epoch."""
    there = world([1, 2, 3])
    there.register({"broker": 1, "clean": False})
    expect(there, leader=2, leader_epoch=1, isr=[2, 3])
    there.unfence(1)
    expect(there, leader=2, leader_epoch=1)
    alone = world([1])
    alone.register({"broker": 1, "clean": False})
    expect(alone, leader=-1, leader_epoch=1, isr=[], elr=[])


def _always_clean() -> tuple[Patch, ...]:
    registered = elections.broker_new_incarnation

    def cleanly(image: Any, broker_id: int, settings: Any, clean: bool) -> Any:
        return registered(image, broker_id, settings, True)

    return (Patch(elections, "broker_new_incarnation", cleanly),)


@bug("KAFKA-18635", planted=_always_clean, mutations=("A3",), shown=NEITHER_HAS_IT)
def test_an_unclean_shutdown_is_noticed() -> None:
    """The detection of unclean shutdowns was off, and a broker that may have lost records stayed eligible."""
    there = world()
    for broker in (3, 2, 1):
        there.fence(broker)
    expect(there, isr=[], elr=[1, 2], leader=-1)
    there.register({"broker": 2, "clean": False})
    expect(there, isr=[], elr=[1])
    there.unfence(2)
    expect(there, leader=-1)
    there.register({"broker": 1, "clean": True})
    there.unfence(1)
    expect(there, leader=1, isr=[1])

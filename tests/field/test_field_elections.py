"""Bugs of elections, and of reassignments that end with one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from tanist.controller.image import committed_events
from tanist.controller.image.image import MetadataImage
from tanist.controller.partitions import change, elections
from tanist.controller.partitions.assignment import Completion, Reassignment
from tanist.controller.partitions.change import Elected
from tanist.controller.partitions.context import PartitionContexts
from tanist.events.event import Event
from tanist.events.metadata import LeaderElected
from tanist.lab.mutations.patching import Breaks, Patch, fixed
from tanist.wire.ids import UNASSIGNED_DIRECTORY
from tanist.wire.metadata import PartitionChangeRecord
from tests.controller.partitions.test_elections import expect, leaderless, world
from tests.controller.world import World
from tests.field.catalogue import NEITHER_HAS_IT, bug


def _anyone_who_led() -> tuple[Patch, ...]:
    elect = change._elect

    def elects(before: Any, target: Any, intent: Any, context: Any) -> Elected:
        elected = elect(before, target, intent, context)
        last = change._last_known_leader(before, target, context)
        return elected if elected.leader >= 0 or last is None else Elected(last, unclean=True)

    return (Patch(change, "_elect", elects),)


@bug("KAFKA-19522", planted=_anyone_who_led)
def test_a_fenced_last_leader_is_not_elected() -> None:
    """A partition without leader elected its last known leader though that broker was fenced."""
    there = leaderless()
    for broker in (1, 2):
        there.register({"broker": broker, "clean": False})
    expect(there, isr=[], elr=[], leader=-1, last_known_elr=[1])
    there.unfence(4)
    there.unclean_sweep({})
    expect(there, leader=-1, isr=[], last_known_elr=[1])
    there.unfence(1)
    expect(there, leader=1, isr=[1], recovery="RECOVERING")


# -- what counts as unclean


def _elected(there: World, records: list[Any]) -> LeaderElected:
    """The event of the one election among the records."""
    (event,) = (
        event
        for record in records
        for event in committed_events.committed_events(record, there.image)
        if isinstance(event, LeaderElected)
    )
    return event


def _unclean_if(is_unclean: Callable[[Any, int], bool]) -> Breaks:
    def judge(event: LeaderElected, before: Any) -> LeaderElected:
        return LeaderElected(
            event.partition,
            event.leader,
            event.leader_epoch,
            event.leader_before,
            event.from_elr,
            is_unclean(before, event.leader),
        )

    def planted() -> tuple[Patch, ...]:
        events_of = committed_events._changed_partition

        def judged(record: PartitionChangeRecord, image: MetadataImage) -> list[Event]:
            before = image.partition(record.topic_id, record.partition_id)
            events = events_of(record, image)
            return [judge(event, before) if isinstance(event, LeaderElected) else event for event in events]

        return (Patch(committed_events, "_EVENTS", {**committed_events._EVENTS, PartitionChangeRecord: judged}),)

    return planted


@bug("KAFKA-18940", planted=_unclean_if(lambda before, leader: leader not in before.isr))
def test_an_election_from_the_elr_is_clean() -> None:
    """An election from the ELR was counted as unclean."""
    there = leaderless()
    event = _elected(there, elections.broker_unfenced(there.image, 2, there.settings))
    assert (event.leader, event.from_elr, event.unclean) == (2, True, False)


@bug("KAFKA-19212", planted=_unclean_if(lambda before, leader: leader not in (*before.isr, *before.elr)))
def test_the_end_of_a_reassignment_that_elects_who_joined_last_is_clean() -> None:
    """A reassignment whose last replica to join became the leader was counted as an unclean election."""
    there = world([3, 1], unfenced=(1, 2, 3))
    there.reassign({"topic": "foo", "p": 0, "replicas": [2, 1]})
    before = there.image
    topic_id, state = there.partition("foo", 0)
    assert (state.leader, set(state.isr), state.adding) == (3, {1, 3}, (2,))
    intent = change.Intent(topic_id=topic_id, partition=0, target_isr=(3, 1, 2))
    record = change.partition_change(state, intent, PartitionContexts(before, there.settings).of(topic_id, state))
    event = _elected(there, [record])
    assert (event.leader, event.unclean) == (2, False)


# -- who may lead


def _no_directory_asked() -> tuple[Patch, ...]:
    context = PartitionContexts.acceptable

    def anywhere(contexts: Any, state: Any) -> Callable[[int], bool]:
        return context(contexts, replace(state, directories=(UNASSIGNED_DIRECTORY,) * len(state.replicas)))

    return (Patch(PartitionContexts, "acceptable", anywhere),)


@bug("KAFKA-18845", planted=_no_directory_asked, apache="was in a test of its own")
def test_a_broker_on_another_disk_does_not_lead_with_what_it_has_lost() -> None:
    """A test expected a broker with another log directory to lead a partition of the old one."""
    there = leaderless()
    old = there.image.brokers[2].epoch
    cluster = there._cluster
    cluster.kept_in[2] = (UUID(int=(1 << 90) + 2),)
    there.register({"broker": 2, "clean": True})
    there.heartbeat({"broker": 2, "broker_epoch": old, "offset": 1 << 40, "expect_error": "STALE_BROKER_EPOCH"})
    assert there.image.brokers[2].fenced
    there.unfence(2)
    expect(there, leader=-1, isr=[])


def _without_elr() -> tuple[Patch, ...]:
    return (Patch(change, "_populate_elr", lambda before, target, intent, context: target),)


@bug("KAFKA-19452", planted=_without_elr, apache="was in a test of its own")
def test_of_brokers_that_stop_together_each_can_lead_again() -> None:
    """Of two brokers that stopped together, the order of fencing decided which could lead again."""
    for first, second in ((1, 2), (2, 1)):
        for returning in (1, 2):
            there = world([1, 2], unfenced=(1, 2))
            there.fence(first)
            there.fence(second)
            there.register({"broker": returning, "clean": True})
            there.unfence(returning)
            expect(there, leader=returning, isr=[returning])


# -- reassignments


def _ends_with_what_is_added(moving: Reassignment, isr: tuple[int, ...]) -> Completion | None:
    """As it was: the replicas that are added count, those that stay do not."""
    staying = tuple(replica for replica in moving.replicas if replica not in moving.removing)
    staying_isr = tuple(replica for replica in isr if replica not in moving.removing)
    if not (moving.removing or moving.adding) or not staying_isr or not set(moving.adding) <= set(staying_isr):
        return None
    return Completion(staying, staying_isr)


@bug("KAFKA-15665", planted=fixed(change, "complete", _ends_with_what_is_added), shown=NEITHER_HAS_IT)
def test_a_reassignment_does_not_end_with_fewer_copies() -> None:
    """A reassignment completed while a replica that stayed was not in sync, and the partition fell below
    min.insync.replicas.
    """
    for elr in (True, False):
        there = world([1, 2, 3], elr=elr, unfenced=(1, 3))
        there.reassign({"topic": "foo", "p": 0, "replicas": [1, 2]})
        expect(there, replicas=[1, 2, 3], removing=[3], isr=[1, 3])

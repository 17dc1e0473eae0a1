"""The server-side assignors of KIP-848, by their names in Apache Kafka.

Pure functions: the same members, topics and former target give the same target on every broker. Both give every
partition of a subscribed topic to exactly one of its subscribers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from tanist.coordinator.consumer.member import Target

UNIFORM: Final = "uniform"
RANGE: Final = "range"


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member, as an assignor sees it."""

    topics: frozenset[UUID]
    instance_id: str | None
    target: Target
    """Its former target."""


Assignor = Callable[[Mapping[str, Subscriber], Mapping[UUID, int]], dict[str, Target]]
"""Members by id, and the number of partitions of each topic that one of them has subscribed to -> targets by member."""


def assign_range(members: Mapping[str, Subscriber], partitions: Mapping[UUID, int]) -> dict[str, Target]:
    """Each topic in as many consecutive ranges as it has subscribers, the first ones longer by one if need be.

    Members stand in one order for all topics, static ones first by their instance ids, so that members with the same
    topics get the same partitions of each (co-partitioning).
    """
    order = sorted(members, key=lambda member_id: _place(member_id, members[member_id]))
    result: dict[str, dict[UUID, frozenset[int]]] = {member_id: {} for member_id in members}
    for topic_id in sorted(partitions):
        readers = [member_id for member_id in order if topic_id in members[member_id].topics]
        if not readers:
            continue
        length, longer = divmod(partitions[topic_id], len(readers))
        start = 0
        for number, member_id in enumerate(readers):
            end = start + length + (number < longer)
            if end > start:
                result[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(result)


def _place(member_id: str, member: Subscriber) -> tuple[bool, str, str]:
    return (member.instance_id is None, member.instance_id or "", member_id)


def assign_uniform(members: Mapping[str, Subscriber], partitions: Mapping[UUID, int]) -> dict[str, Target]:
    """As even as the subscriptions allow, counted over all topics, with as few partitions as possible on the move."""
    counts = {
        topic_id: count
        for topic_id, count in partitions.items()
        if any(topic_id in member.topics for member in members.values())
    }
    held = {member_id: _still_held(member, counts) for member_id, member in members.items()}
    _give_back_doubles(held)
    readers = {
        topic_id: sorted(member_id for member_id, member in members.items() if topic_id in member.topics)
        for topic_id in counts
    }
    if len({member.topics.intersection(counts) for member in members.values()}) <= 1:
        _level_alike(held, sum(counts.values()))
    taken = {place for places in held.values() for place in places}
    free = [(t, index) for t in sorted(counts) for index in range(counts[t]) if (t, index) not in taken]
    # Topics with few subscribers first: those with many can still even out the result.
    free.sort(key=lambda place: (len(readers[place[0]]), place))
    for place in free:
        least = min(readers[place[0]], key=lambda member_id: (len(held[member_id]), member_id))
        held[least].add(place)
    _even_out(held, readers)
    return {member_id: _as_target(places) for member_id, places in held.items()}


_Place = tuple[UUID, int]


def _still_held(member: Subscriber, counts: Mapping[UUID, int]) -> set[_Place]:
    return {
        (topic_id, index)
        for topic_id, indexes in member.target.items()
        if topic_id in member.topics and topic_id in counts
        for index in indexes
        if index < counts[topic_id]
    }


def _give_back_doubles(held: Mapping[str, set[_Place]]) -> None:
    seen: set[_Place] = set()
    for member_id in sorted(held):
        held[member_id].difference_update(seen)
        seen |= held[member_id]


def _level_alike(held: Mapping[str, set[_Place]], total: int) -> None:
    """All members have the same topics: no member keeps more than its share, and as few as possible have one more."""
    if not held:
        return
    share, more = divmod(total, len(held))
    for member_id in sorted(held, key=lambda each: (-len(held[each]), each)):
        places = held[member_id]
        keep = share
        if more and len(places) > share:
            keep += 1
            more -= 1
        for place in sorted(places, reverse=True)[: max(len(places) - keep, 0)]:
            places.discard(place)


def _even_out(held: Mapping[str, set[_Place]], readers: Mapping[UUID, list[str]]) -> None:
    """Move partitions to subscribers with at least two fewer, until there are none."""
    while True:
        moved = False
        for member_id in sorted(held, key=lambda each: (-len(held[each]), each)):
            for place in sorted(held[member_id]):
                least = min(readers[place[0]], key=lambda each: (len(held[each]), each))
                if len(held[least]) + 1 < len(held[member_id]):
                    held[member_id].discard(place)
                    held[least].add(place)
                    moved = True
        if not moved:
            return


def _as_target(places: set[_Place]) -> Target:
    by_topic: dict[UUID, set[int]] = defaultdict(set)
    for topic_id, index in places:
        by_topic[topic_id].add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in sorted(by_topic.items())}


ASSIGNORS: Final[Mapping[str, Assignor]] = {UNIFORM: assign_uniform, RANGE: assign_range}
"""The first is the default (`group.consumer.assignors`)."""

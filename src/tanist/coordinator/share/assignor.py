"""The assignor of share groups, by Apache Kafka's name "simple": members share partitions if there are fewer of those.

Each partition goes to the same number of members, as few as give each member one; and each member gets nearly as many
as any other, of its former ones as far as possible. Topics that have the same subscribers are assigned together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from tanist.coordinator.consumer.assignors import Subscriber
from tanist.coordinator.consumer.member import Target

SIMPLE: Final = "simple"

_Place = tuple[UUID, int]


def assign_simple(members: Mapping[str, Subscriber], partitions: Mapping[UUID, frozenset[int]]) -> dict[str, Target]:
    """The members' new targets."""
    pools: dict[tuple[str, ...], list[_Place]] = defaultdict(list)
    for topic_id in sorted(partitions):
        readers = tuple(sorted(each for each, member in members.items() if topic_id in member.topics))
        if readers:
            pools[readers] += [(topic_id, index) for index in sorted(partitions[topic_id])]
    result: dict[str, dict[UUID, set[int]]] = {member_id: defaultdict(set) for member_id in members}
    for readers, places in pools.items():
        former = {each: members[each].target for each in readers}
        for member_id, mine in _assign_pool(readers, places, former).items():
            for topic_id, index in mine:
                result[member_id][topic_id].add(index)
    return {
        member_id: {topic_id: frozenset(indexes) for topic_id, indexes in sorted(target.items())}
        for member_id, target in result.items()
    }


def _assign_pool(
    readers: Sequence[str], places: Sequence[_Place], former: Mapping[str, Target]
) -> dict[str, set[_Place]]:
    if not places:
        return {}
    sharing = -(-len(readers) // len(places))
    total = sharing * len(places)
    ends = [-(-total * number // len(readers)) for number in range(len(readers) + 1)]
    left = {member_id: end - begin for member_id, begin, end in zip(readers, ends, ends[1:])}
    held: dict[str, set[_Place]] = {member_id: set() for member_id in readers}
    wanted = dict.fromkeys(places, sharing)

    def give(member_id: str, place: _Place) -> None:
        held[member_id].add(place)
        left[member_id] -= 1
        wanted[place] -= 1

    for member_id in readers:
        for place in places:
            if left[member_id] and wanted[place] and place[1] in former[member_id].get(place[0], frozenset()):
                give(member_id, place)
    for place in places:
        while wanted[place]:
            free = [each for each in readers if place not in held[each]]
            give(max(free, key=lambda each: (left[each], -readers.index(each))), place)
    return held

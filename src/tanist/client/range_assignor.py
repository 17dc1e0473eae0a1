"""The range assignor of the classic group protocol, as the leader of a group applies it. Pure.

Owns the rule of Kafka's `RangeAssignor` without racks: each topic is divided into as many consecutive ranges as it has
subscribers, and the first ranges are longer by one if the division leaves a remainder. Every topic uses the same order
of members, static members first, so members with the same topics get the same partitions of each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

RANGE: Final = "range"
"""The name of this assignor in JoinGroup."""


@dataclass(frozen=True, slots=True)
class Subscription:
    topics: Collection[str]
    group_instance_id: str | None = None


def assign_range(
    subscriptions: Mapping[str, Subscription], partitions: Mapping[str, int]
) -> dict[str, dict[str, range]]:
    """Subscriptions by member id, and the number of partitions of each topic -> partitions by member id and topic.

    A topic that `partitions` does not name does not exist, and nobody gets anything of it.
    """

    def order(member_id: str) -> tuple[bool, str, str]:
        instance_id = subscriptions[member_id].group_instance_id
        return (instance_id is None, instance_id or "", member_id)

    members = sorted(subscriptions, key=order)
    assigned: dict[str, dict[str, range]] = {member_id: {} for member_id in subscriptions}
    for topic, count in sorted(partitions.items()):
        subscribers = [member_id for member_id in members if topic in subscriptions[member_id].topics]
        start = 0
        for number, member_id in enumerate(subscribers):
            length, remainder = divmod(count, len(subscribers))
            end = start + length + (number < remainder)
            if end > start:
                assigned[member_id][topic] = range(start, end)
            start = end
    return assigned

"""One step of a member towards its target (KIP-848, "Reconciliation of the group").

A member first gives up the partitions outside its target, in its old epoch; then it takes the new epoch, and gets
partitions as others give them up. So a partition never has two owners: it is not assigned while a member has it or has
yet to give it up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from tanist.coordinator.consumer.member import Current, MemberState, Owned, Target

Reported = Mapping[UUID, frozenset[int]]
"""The partitions that a member reports."""


def next_current(
    current: Current,
    target_epoch: int,
    target: Target,
    reported: Reported | None,
    is_free: Callable[[UUID, int], bool],
    *,
    subscribed: frozenset[UUID] | None,
) -> Current:
    """The member's next assignment.

    `reported`: None if it reports none, because nothing has changed. `is_free`: whether no member has the partition.
    `subscribed`: the topics of its subscription, if that has changed since the target was made.
    """
    if current.state is MemberState.STABLE and current.epoch == target_epoch:
        return current if subscribed is None else _without_unsubscribed(current, subscribed, reported)
    if current.state is MemberState.UNREVOKED_PARTITIONS and _has_any(current.revoking, reported):
        return current
    return _computed(current, target_epoch, target, reported, is_free)


def _computed(
    current: Current,
    target_epoch: int,
    target: Target,
    reported: Reported | None,
    is_free: Callable[[UUID, int], bool],
) -> Current:
    kept: dict[UUID, dict[int, int]] = {}
    revoking: dict[UUID, dict[int, int]] = {}
    for topic_id, partitions in current.assigned.items():
        for index, epoch in partitions.items():
            into = kept if index in target.get(topic_id, frozenset()) else revoking
            into.setdefault(topic_id, {})[index] = epoch
    if revoking and _has_any(revoking, reported):
        return Current(
            current.epoch, current.previous_epoch, MemberState.UNREVOKED_PARTITIONS, assigned=kept, revoking=revoking
        )
    mine = {
        (topic_id, index) for owned in (revoking, current.revoking) for topic_id in owned for index in owned[topic_id]
    }
    waits = False
    for topic_id, indexes in target.items():
        for index in sorted(indexes):
            if index in kept.get(topic_id, {}):
                continue
            if is_free(topic_id, index) or (topic_id, index) in mine:
                kept.setdefault(topic_id, {})[index] = target_epoch
            else:
                waits = True
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    previous = current.epoch if target_epoch != current.epoch else current.previous_epoch
    return Current(target_epoch, previous, state, assigned=kept)


def _without_unsubscribed(current: Current, subscribed: frozenset[UUID], reported: Reported | None) -> Current:
    """The subscription became smaller, and the target is not made anew yet: revoke the partitions outside it."""
    revoking = {topic_id: partitions for topic_id, partitions in current.assigned.items() if topic_id not in subscribed}
    if not revoking:
        return current
    kept = {topic_id: partitions for topic_id, partitions in current.assigned.items() if topic_id in subscribed}
    if _has_any(revoking, reported):
        return Current(current.epoch, current.previous_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    return Current(current.epoch, current.previous_epoch, MemberState.STABLE, kept)


def _has_any(owned: Owned, reported: Reported | None) -> bool:
    """Whether the member has any of these. Without a report it has its assignment."""
    if reported is None:
        return any(owned.values())
    return any(index in reported.get(topic_id, frozenset()) for topic_id, indexes in owned.items() for index in indexes)

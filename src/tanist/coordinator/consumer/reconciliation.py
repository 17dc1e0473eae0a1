"""One step of a member towards its target (KIP-848, "Reconciliation of the group"; KIP-1071 has the same).

A member first gives up the partitions outside its target, in its old epoch; then it takes the new epoch, and gets
partitions as others give them up. So a partition never has two owners: it is not assigned while a member has it or has
yet to give it up. Of a Streams group the same goes for tasks: `K` is what partitions or tasks are counted within.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias
from uuid import UUID

from tanist.coordinator.consumer.member import Current, K, MemberState

Indexes: TypeAlias = Mapping[K, frozenset[int]]
Owned: TypeAlias = Mapping[K, Mapping[int, int]]
Reported = Indexes[UUID]
"""The partitions that a member reports."""


def next_current(
    current: Current[K],
    target_epoch: int,
    target: Indexes[K],
    reported: Indexes[K] | None,
    is_free: Callable[[K, int], bool],
    *,
    subscribed: frozenset[K] | None,
) -> Current[K]:
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
    current: Current[K],
    target_epoch: int,
    target: Indexes[K],
    reported: Indexes[K] | None,
    is_free: Callable[[K, int], bool],
) -> Current[K]:
    kept: dict[K, dict[int, int]] = {}
    revoking: dict[K, dict[int, int]] = {}
    for key, partitions in current.assigned.items():
        for index, epoch in partitions.items():
            into = kept if index in target.get(key, frozenset()) else revoking
            into.setdefault(key, {})[index] = epoch
    if revoking and _has_any(revoking, reported):
        return Current(
            current.epoch, current.previous_epoch, MemberState.UNREVOKED_PARTITIONS, assigned=kept, revoking=revoking
        )
    mine = {(key, index) for owned in (revoking, current.revoking) for key in owned for index in owned[key]}
    waits = False
    for key, indexes in target.items():
        for index in sorted(indexes):
            if index in kept.get(key, {}):
                continue
            if is_free(key, index) or (key, index) in mine:
                kept.setdefault(key, {})[index] = target_epoch
            else:
                waits = True
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    previous = current.epoch if target_epoch != current.epoch else current.previous_epoch
    return Current(target_epoch, previous, state, assigned=kept)


def _without_unsubscribed(current: Current[K], subscribed: frozenset[K], reported: Indexes[K] | None) -> Current[K]:
    """The subscription became smaller, and the target is not made anew yet: revoke the partitions outside it."""
    revoking = {key: partitions for key, partitions in current.assigned.items() if key not in subscribed}
    if not revoking:
        return current
    kept = {key: partitions for key, partitions in current.assigned.items() if key in subscribed}
    if _has_any(revoking, reported):
        return Current(current.epoch, current.previous_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    return Current(current.epoch, current.previous_epoch, MemberState.STABLE, kept)


def _has_any(owned: Owned[K], reported: Indexes[K] | None) -> bool:
    """Whether the member has any of these. Without a report it has its assignment."""
    if reported is None:
        return any(owned.values())
    return any(index in reported.get(key, frozenset()) for key, indexes in owned.items() for index in indexes)

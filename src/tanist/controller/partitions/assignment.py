"""Replica lists of a reassignment: those that it adds and removes, when it is complete, and the result of a cancel.

Owns the arithmetic of KIP-455 (rules 104-106). Pure functions over tuples of broker ids; must never read an image, a
broker's state, or a configuration.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reassignment:
    """The replica lists of a partition while it moves."""

    replicas: tuple[int, ...]
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reversal:
    """The replicas after a cancelled reassignment. `unclean`: none of the remaining replicas was in sync."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    unclean: bool


def reassign(current: tuple[int, ...], target: tuple[int, ...], adding: tuple[int, ...] = ()) -> Reassignment:
    """Rule 104: the target's order first, then the replicas that are to go.

    `current` is the whole present list, of which `adding` is still on its way by a first reassignment. A second one
    removes those that are not in its target, and its own targets are still being added: the same reassignment twice
    equals one, and can be cancelled.
    """
    removing = tuple(sorted(set(current) - set(target)))
    adding = tuple(sorted(set(target) - (set(current) - set(adding))))
    return Reassignment(target + removing, removing, adding)


def complete(moving: Reassignment, isr: tuple[int, ...]) -> Completion | None:
    """Rule 105: the final lists, if this in-sync set allows the reassignment to end.

    All added replicas must be in sync without those that go. When more replicas go than come, all that stay must be in
    sync: the new ones alone would not keep the number of copies.
    """
    if not moving.removing and not moving.adding:
        return None
    staying = tuple(replica for replica in moving.replicas if replica not in moving.removing)
    staying_isr = tuple(replica for replica in isr if replica not in moving.removing)
    if not staying_isr or not set(moving.adding) <= set(staying_isr):
        return None
    if len(moving.adding) < len(moving.removing) and not set(staying) <= set(staying_isr):
        return None
    return Completion(staying, staying_isr)


def revert(moving: Reassignment, isr: tuple[int, ...]) -> Reversal:
    """Rule 106: back to the replicas that were not being added. Their original order is not restored.

    If none of them is in sync, the first is declared to be, which may lose records: `unclean`.
    """
    replicas = tuple(replica for replica in moving.replicas if replica not in moving.adding)
    if not replicas:
        raise ValueError("cancelling would leave no replica")
    remaining = tuple(replica for replica in isr if replica not in moving.adding)
    if remaining:
        return Reversal(replicas, remaining, unclean=False)
    return Reversal(replicas, replicas[:1], unclean=True)

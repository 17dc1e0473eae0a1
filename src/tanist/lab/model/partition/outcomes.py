"""Results of events, and their prices: the values that `events` and `controller_events` remember.

A result names states, inboxes and messages by their numbers in `tables`.
"""

from __future__ import annotations

from typing import NamedTuple

from tanist.lab.model.partition.components import Budget, Reply
from tanist.lab.model.partition.replicating import Advance
from tanist.lab.model.steps import Label

FREE = -1
WRITES, LOSSES, CRASHES, RESTARTS, FENCES, SHUTDOWNS, SHRINKS, PREFERRED = range(8)
REASSIGNMENTS, CANCELLATIONS, MIN_ISR_CHANGES, FAILOVERS, UNANSWERED_REQUESTS, OLD_FETCHES, OLD_REPLIES = range(8, 15)
"""Places of the prices in a `Budget`."""

if len(Budget._fields) != OLD_REPLIES + 1:
    raise RuntimeError("a budget has other prices")


class Effects(NamedTuple):
    """The effects of a broker's turn on others. Most turns have none, so they are kept apart."""

    advance: Advance | None
    messages: tuple[int, ...]
    cut: bool
    """The follower's log lost records."""


class MetadataApplied(NamedTuple):
    """The result of metadata that a broker applies."""

    broker: int
    inbox: int
    effects: Effects | None
    old_fetch: int
    """A fetch that it may have sent before, as a message; -1: none."""
    label: Label


class Fetched(NamedTuple):
    """The result of a fetch whose answer arrives or is lost."""

    leader: int
    follower: int
    effects: Effects | None
    label: Label


class ControllerActed(NamedTuple):
    """The result of an event at the controller. `cost` is the place of its price, or FREE."""

    cost: int
    controller: int
    compared: tuple[Reply, ...]
    label: Label


class Restarted(NamedTuple):
    """The result of a broker's restart."""

    cost: int
    controller: int
    broker: int
    effects: Effects | None
    clean: bool
    lost: bool
    compared: tuple[Reply, ...]
    label: Label


class Altered(NamedTuple):
    """The result of an AlterPartition at the controller. `answer` are messages."""

    controller: int
    answer: tuple[int, ...]
    overtaken: bool
    """It names epochs that have passed."""
    label: Label


class BrokerChanged(NamedTuple):
    """The result of an event at a broker."""

    broker: int
    effects: Effects | None
    label: Label

"""A state as producers and consumers see it: lost acknowledged records, and availability.

Owns `Losses`. A record is acknowledged with acks=all when it is committed, with fewer acks when a leader has it. It is
lost when the partition has a leader without it: from then on no consumer reads it, and replicas that still have it will
truncate it. The partition is needlessly unavailable if it has no leader although a replica with all records is up.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tanist.lab.model.partition.components import Controller, members
from tanist.lab.model.partition.configuration import ACKS_ALL
from tanist.lab.model.partition.judgements import common_prefix
from tanist.lab.model.partition.model import PartitionModel
from tanist.lab.model.partition.symmetry import BROKERS, BUDGET, CONTROLLER, HISTORY
from tanist.lab.model.steps import State


class Until(Enum):
    """The event that a partition without a leader waits for."""

    CANDIDATE = "a member of the ISR or the ELR is back"
    LAST_KNOWN = "its last known leader is back"
    RECOVERY = "the recovery has heard the replicas that it waits for"
    OPERATOR = "an operator elects"


class Loss(NamedTuple):
    """Lost acknowledged records, by payload."""

    lost: tuple[int, ...]
    acknowledged: int


class Losses:
    """Looks at the states of one model."""

    def __init__(self, model: PartitionModel) -> None:
        self._tables = model.tables
        self._all = model.configuration.acks == ACKS_ALL
        self._model = model
        self._end = BROKERS + model.configuration.brokers
        self._known: dict[tuple[int, int, int, int], Loss] = {}

    def of(self, state: State) -> Loss:
        """The loss in this state."""
        leader = self._tables.controllers[state[CONTROLLER]].leader
        chosen = state[BROKERS + leader] if leader >= 0 else -1
        key = (leader, chosen, state[HISTORY], -1 if self._all else state[BUDGET])
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._loss_of(chosen, state)
        return known

    def _loss_of(self, chosen: int, state: State) -> Loss:
        history = self._tables.histories[state[HISTORY]]
        kept = None if chosen < 0 else self._tables.brokers[chosen].log
        if not self._all:
            written = range(self._model.writes - self._tables.budgets[state[BUDGET]].writes)
            has = None if kept is None else {payload for _, payload in kept}
            return Loss(() if has is None else tuple(each for each in written if each not in has), len(written))
        if history.lost:
            # An unclean election has lost them, and the history was cut to the rest.
            gone = tuple(range(len(history.committed), len(history.committed) + history.lost))
            return Loss(gone, len(history.committed) + history.lost)
        whole = history.committed
        shared = len(whole) if kept is None else common_prefix(kept, whole)
        return Loss(tuple(payload for _, payload in whole[shared:]), len(whole))

    def unavailable(self, state: State) -> Until | None:
        """The event that it waits for, if it has no leader although a replica with all records is up."""
        at = self._tables.controllers[state[CONTROLLER]]
        if at.leader >= 0:
            return None
        whole = self._tables.histories[state[HISTORY]].committed
        for replica in members(at.replicas):
            log = self._tables.brokers[state[BROKERS + replica]].log
            if at.registrations[replica].active and common_prefix(log, whole) == len(whole):
                return _until(at)
        return None


def _until(at: Controller) -> Until:
    if at.candidates:
        return Until.CANDIDATE
    if at.recovery is not None:
        return Until.RECOVERY
    return Until.LAST_KNOWN if at.last_known_elr else Until.OPERATOR

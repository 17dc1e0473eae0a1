"""The verdict on a state or a step, for the cost of a few look-ups.

Owns the memo of `judgements`: each is asked once for the parts of a state that it uses. Unwatched properties (a
mutation may break one by definition) are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tanist.lab.model.partition import judgements
from tanist.lab.model.partition.components import Broker, Controller, History, Reply, SentFetch
from tanist.lab.model.partition.configuration import Configuration
from tanist.lab.model.partition.judgements import common_prefix
from tanist.lab.model.partition.replicating import Advance
from tanist.lab.model.partition.symmetry import BROKERS, CONTROLLER, HISTORY
from tanist.lab.model.partition.tables import LEADS, StateTables
from tanist.lab.model.steps import State, Violation


class _Replica(NamedTuple):
    """The part of a broker that the properties over several brokers need."""

    common: int
    """The number of records of H that it has."""
    sight: Violation | None


class Properties:
    """The verdicts of one search."""

    def __init__(
        self, configuration: Configuration, tables: StateTables, unwatched: frozenset[str] = frozenset()
    ) -> None:
        self._configuration = configuration
        self._tables = tables
        self._unwatched = unwatched
        self._end = BROKERS + configuration.brokers
        self._replicas: dict[tuple[int, int], _Replica] = {}
        self._structure: dict[tuple[int, int], Violation | None] = {}
        self._leaders: dict[tuple[int, int, int], Violation | None] = {}
        self._pairs: dict[tuple[int, int], Violation | None] = {}
        self._changes: dict[tuple[int, int], Violation | None] = {}

    def _watched(self, violations: Iterable[Violation]) -> Violation | None:
        return next((each for each in violations if each.name not in self._unwatched), None)

    # -- of a state

    def of_state(self, state: State) -> Violation | None:
        """The first property that does not hold."""
        controller, history = state[CONTROLLER], state[HISTORY]
        ghosts = self._tables.histories[history]
        if ghosts.lost:
            return None  # lost by a reported unclean election: nothing more is promised
        try:
            found = self._structure[controller, history]
        except KeyError:
            found = self._structure[controller, history] = self._watched(
                judgements.structure(self._configuration, self._tables.controllers[controller], ghosts)
            )
        if found is not None:
            return found
        brokers = state[BROKERS : self._end]
        follows, replicas = self._tables.follows, self._replicas
        common = []
        for broker, number in enumerate(brokers):
            try:
                replica = replicas[history, number]
            except KeyError:
                replica = self._replica(history, number)
            if replica.sight is not None:
                return replica.sight
            common.append(replica.common)
            if follows[number] == LEADS:
                try:
                    found = self._leaders[controller, history, number]
                except KeyError:
                    found = self._leader(controller, history, broker, number)
                if found is not None:
                    return found
        whole = len(ghosts.committed)
        if whole and min(common) < whole:
            at = self._tables.controllers[controller]
            found = self._watched(judgements.possession(self._configuration, at, ghosts, common))
            if found is not None:
                return found
        return self._match(brokers)

    def _replica(self, history: int, number: int) -> _Replica:
        at, ghosts = self._tables.brokers[number], self._tables.histories[history]
        sight = self._watched(judgements.sight(at, ghosts))
        found = self._replicas[history, number] = _Replica(common_prefix(at.log, ghosts.committed), sight)
        return found

    def _leader(self, controller: int, history: int, broker: int, number: int) -> Violation | None:
        tables = self._tables
        at, ghosts = tables.controllers[controller], tables.histories[history]
        found = self._leaders[controller, history, number] = self._watched(
            judgements.leadership(at, ghosts, broker, tables.brokers[number])
        )
        return found

    def _match(self, brokers: tuple[int, ...]) -> Violation | None:
        pairs, log_of = self._pairs, self._tables.log_of
        logs = [log_of[number] for number in brokers]
        for at, one in enumerate(logs, 1):
            for two in logs[at:]:
                if one == two:
                    continue
                try:
                    found = pairs[one, two]
                except KeyError:
                    found = pairs[one, two] = self._watched(
                        judgements.matching(self._tables.logs[one], self._tables.logs[two])
                    )
                if found is not None:
                    return found
        return None

    # -- of a step

    def of_change(self, before: int, after: int) -> Violation | None:
        """The controller has decided something."""
        try:
            return self._changes[before, after]
        except KeyError:
            controllers = self._tables.controllers
            found = self._changes[before, after] = self._watched(
                judgements.change(controllers[before], controllers[after])
            )
            return found

    def of_joining(
        self, after: Controller, joined: int, brokers: list[Broker], sender: int, history: History
    ) -> Violation | None:
        return self._watched(judgements.joining(after, joined, brokers, brokers[sender], history))

    def of_unclean_election(
        self,
        before: Controller,
        after: Controller,
        compared: tuple[Reply, ...],
        brokers: list[Broker],
        history: History,
    ) -> Violation | None:
        configuration = self._configuration
        found = self._watched(judgements.unclean_election(configuration, before, after, compared))
        return found or self._watched(
            judgements.comparison(configuration, before, after.leader, compared, brokers, history)
        )

    def of_advance(self, advance: Advance, leader: int, brokers: list[Broker], history: History) -> Violation | None:
        return self._watched(judgements.advance(advance, leader, brokers, history))

    def of_truncation(self, follower: int, before: Broker, after: Broker, history: History) -> Violation | None:
        return self._watched(judgements.truncation(follower, before.log, after.log, history))

    def of_old_fetch(self, sent: SentFetch, receiver: Broker, believed: bool) -> Violation | None:
        return self._watched(judgements.old_fetch(sent, receiver, believed))

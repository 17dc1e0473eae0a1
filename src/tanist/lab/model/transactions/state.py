"""The layout of a state of the transactions' model, and the values of its parts.

Owns the places in a state's tuple, the program of a client, and the reading of a partition's log: which transaction is
committed, aborted or open in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tanist.coordinator.transactions.state import TransactionValues
from tanist.log.producers import ProducerStates

COORDINATOR: Final = 0
PARTITIONS: Final = slice(1, 3)
CLIENTS: Final = slice(3, 5)
STALE, GHOSTS, BUDGET = 5, 6, 7
"""The places in a state: the coordinator, two partitions, two clients, requests that are late, ghosts, the budget."""

NEW: Final = ("init", "write 0", "write 1", "end")
OLD: Final = ("init", "add", "write 0", "write 1", "end")
"""The requests of a client, with bumps and without."""
READY: Final = 1
"""The stage after "init"."""
DEAD: Final = 9
"""The stage of a client that is fenced, or has no more to do."""


class TransactionBudget(NamedTuple):
    """How often each event may still happen."""

    transactions: int = 0
    failovers: int = 0
    timeouts: int = 0
    unanswered: int = 0
    """Answers that are lost."""
    delayed: int = 0
    """Requests and markers that arrive late, after the same were sent again."""
    aborts: int = 0


class Pending(NamedTuple):
    """An append under way, and the client that waits for it (-1: nobody)."""

    values: TransactionValues
    client: int
    response: Any


class CoordinatorState(NamedTuple):
    """The coordinator of the id: what its log holds, and what it is about."""

    epoch: int = 0
    values: TransactionValues | None = None
    pending: Pending | None = None
    left: frozenset[int] = frozenset()
    """Partitions without the marker of a prepared transaction."""


class Batch(NamedTuple):
    """A batch of a partition's log."""

    kind: str
    """data, commit, abort"""
    epoch: int
    detail: int
    """Of data its sequence, of a marker the coordinator's epoch."""
    attempt: int = -1


class Client(NamedTuple):
    """One instance of the application."""

    stage: int = 0
    epoch: int = -1
    attempt: int = -1
    sequence: int = 0
    waits: bool = False
    """The coordinator has its request."""
    aborts: bool = False


class Request(NamedTuple):
    """A request, or a marker."""

    kind: str
    client: int
    epoch: int
    attempt: int
    partition: int
    sequence: int
    """Of a marker the coordinator's epoch."""
    committed: bool

    @property
    def text(self) -> str:
        if self.kind == "write":
            return f"write of {self.attempt} to {self.partition}"
        if self.kind == "end":
            return f"{'commit' if self.committed else 'abort'} in epoch {self.epoch}"
        if self.kind == "marker":
            return f"marker of epoch {self.epoch} to {self.partition}"
        return self.kind


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The transactions of one log."""

    committed: frozenset[int]
    aborted: frozenset[int]
    open: tuple[int, ...] = ()
    wrong: str = field(default="")
    """A marker that has ended another epoch's transaction."""


class Ghosts(NamedTuple):
    """Ghost variables: only the checker knows them."""

    newest: int = -1
    """The newest epoch that a client has."""
    attempts: int = 0
    committed: frozenset[int] = frozenset()
    """Transactions whose commit was acknowledged."""
    aborted: frozenset[int] = frozenset()
    asked: frozenset[int] = frozenset()
    """Transactions that a client has asked to commit."""

    def acknowledged(self, attempt: int, *, committed: bool) -> Ghosts:
        if committed:
            return self._replace(committed=self.committed | {attempt})
        return self._replace(aborted=self.aborted | {attempt})


def producers_of(log: tuple[Batch, ...], producer_id: int) -> ProducerStates:
    """The real producers' states after this log."""
    states = ProducerStates()
    for offset, batch in enumerate(log):
        if batch.kind == "data":
            states.append(producer_id, batch.epoch, batch.detail, offset, offset, 0, transactional=True)
        else:
            aborted = batch.kind == "abort"
            states.append_marker(producer_id, batch.epoch, batch.detail, offset, 0, aborted=aborted)
    return states


def outcomes_in(log: tuple[Batch, ...], version: int) -> Outcomes:
    """Which transactions a log commits, aborts, and has open."""
    ended: dict[str, set[int]] = {"commit": set(), "abort": set()}
    started: list[Batch] = []
    wrong = ""
    for batch in log:
        if batch.kind == "data":
            started.append(batch)
            continue
        most = (1 if version == 2 else 0) if batch.kind == "commit" else 2
        for data in started:
            if not 0 <= batch.epoch - data.epoch <= most:
                wrong = f"a {batch.kind} of epoch {batch.epoch} ends a transaction of epoch {data.epoch}"
        ended[batch.kind].update(data.attempt for data in started)
        started = []
    open_now = tuple(batch.attempt for batch in started)
    return Outcomes(frozenset(ended["commit"]), frozenset(ended["abort"]), open_now, wrong)

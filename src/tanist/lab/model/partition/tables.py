"""The parts of a state, by number.

Owns the tables of one search, and the changes that need no decision: one more view at the end of the metadata log, one
message more or less under way, a price that is paid. Decisions are in `events` and `controller_events`.
"""

from __future__ import annotations

from collections.abc import Iterable

from tanist.lab.model.partition.components import (
    AlterAnswer,
    Broker,
    Budget,
    Controller,
    History,
    LeaderReplica,
    Log,
    Message,
    SentAnswer,
    View,
)
from tanist.lab.model.steps import Table

LEADS = -2
WAITS = -1
"""In place of the broker that a replica follows."""

NOTHING = 0
"""The number of the empty inbox, and of the empty network."""


class StateTables:
    """All tables of one search."""

    def __init__(self) -> None:
        self.controllers: Table[Controller] = Table()
        self.views: Table[View] = Table()
        self.inboxes: Table[tuple[int, ...]] = Table()
        """Views that a broker has yet to apply, oldest first."""
        self.messages: Table[Message] = Table()
        self.networks: Table[tuple[int, ...]] = Table()
        self.histories: Table[History] = Table()
        self.budgets: Table[Budget] = Table()
        self.brokers: Table[Broker] = Table()
        self.follows: list[int] = []
        """By number of a broker's state: its leader, LEADS or WAITS."""
        self.logs: Table[Log] = Table()
        self.log_of: list[int] = []
        """By number of a broker's state: its log."""
        self.view_of: list[int] = []
        """By number of a controller's state: its view."""
        self.spent: list[tuple[int, ...]] = []
        """By number of a budget: the budget after each price, -1 if it cannot be paid. Empty: not computed."""
        self.exchanged: dict[tuple[int, int, tuple[int, ...]], int] = {}
        self.hung_up: dict[tuple[int, int], int] = {}
        if self.inboxes.number(()) != NOTHING or self.networks.number(()) != NOTHING:
            raise RuntimeError("what is empty has another number")

    def broker(self, state: Broker) -> int:
        number = self.brokers.number(state)
        if number == len(self.follows):
            role = state.role
            self.log_of.append(self.logs.number(state.log))
            self.follows.append(LEADS if isinstance(role, LeaderReplica) else WAITS if role is None else role.leader)
        return number

    def controller(self, state: Controller) -> int:
        number = self.controllers.number(state)
        if number == len(self.view_of):
            self.view_of.append(self.views.number(state.view()))
        return number

    def budget(self, budget: Budget) -> int:
        number = self.budgets.number(budget)
        if number == len(self.spent):
            self.spent.append(())
        return number

    def spend(self, number: int) -> tuple[int, ...]:
        """The budget after each price."""
        budget = self.budgets[number]
        known = self.spent[number] = tuple(
            [
                self.budget(budget._replace(**{name: left - 1})) if left > 0 else -1
                for name, left in zip(Budget._fields, budget, strict=True)
            ]
        )
        return known

    def network(self, messages: Iterable[int]) -> int:
        """A message that is sent twice counts once: both have the same effect."""
        return self.networks.number(tuple(sorted(set(messages))))

    # -- the metadata log

    def post(self, broker: int, inbox: int, view: int) -> int:
        """The broker has one more view to apply, unless it equals the one before for this broker."""
        waiting = self.inboxes[inbox]
        seen = self.views[view].seen_by(broker)
        if waiting and seen.says_no_more_than(self.views[waiting[-1]]):
            return inbox
        return self.inboxes.number((*waiting, self.views.number(seen)))

    # -- messages under way

    def exchange(self, network: int, taken: int, sent: tuple[int, ...]) -> int:
        """`taken` (-1: none) has arrived, `sent` are under way now."""
        known = self.exchanged.get((network, taken, sent))
        if known is None:
            left = [message for message in self.networks[network] if message != taken]
            known = self.exchanged[network, taken, sent] = self.network([*left, *sent])
        return known

    def hang_up(self, network: int, broker: int) -> int:
        """A process is gone with its connections: answers do not reach the next one. Its requests may still arrive."""
        known = self.hung_up.get((network, broker))
        if known is None:
            left = []
            for number in self.networks[network]:
                message = self.messages[number]
                to_it = isinstance(message, AlterAnswer) and message.receiver == broker
                to_it = to_it or (isinstance(message, SentAnswer) and message.answer.request.broker == broker)
                if not to_it:
                    left.append(number)
            known = self.hung_up[network, broker] = self.network(left)
        return known

"""Consequences of an event in the partition model: views posted, messages sent, ghosts moved, properties checked.

Owns the common end of every step, after the real objects have decided: the controller's change reaches brokers as
views, and a broker's turn sends messages and commits records. Ghosts (`History`) are kept here. Decides nothing.
"""

from __future__ import annotations

from tanist.lab.model.partition.components import AlterAnswer, AlterRequest, Broker, Controller, History, Reply
from tanist.lab.model.partition.controller_events import ControllerEvents
from tanist.lab.model.partition.events import BrokerEvents
from tanist.lab.model.partition.judgements import common_prefix
from tanist.lab.model.partition.outcomes import Effects
from tanist.lab.model.partition.properties import Properties
from tanist.lab.model.partition.symmetry import BROKERS, CONTROLLER, HISTORY, NETWORK
from tanist.lab.model.partition.tables import NOTHING, StateTables
from tanist.lab.model.steps import Label, State, Step, Violation


class Consequences:
    """Completes the steps of one search."""

    def __init__(
        self,
        tables: StateTables,
        events: BrokerEvents,
        controller_events: ControllerEvents,
        properties: Properties,
        brokers: int,
    ) -> None:
        self._tables = tables
        self._events = events
        self._controller_events = controller_events
        self._properties = properties
        self._brokers = brokers
        self._inboxes = BROKERS + brokers

    def decide(
        self,
        state: State,
        changed: list[int],
        controller: int,
        label: Label,
        steps: list[Step],
        *,
        proposal: AlterRequest | None = None,
        compared: tuple[Reply, ...] = (),
        restarted: int = -1,
    ) -> None:
        """The controller is `controller` now; `changed` is the state so far."""
        before = state[CONTROLLER]
        if restarted >= 0:
            changed[self._inboxes + restarted] = NOTHING
        if controller == before:
            if changed[NETWORK] != NOTHING:
                self.forget_moot(changed)
            steps.append((label, tuple(changed), None))
            return
        tables = self._tables
        changed[CONTROLLER] = controller
        view = tables.view_of[controller]
        if view != tables.view_of[before]:
            posted = self._events.posted
            for broker in range(self._brokers):
                at = self._inboxes + broker
                if broker != restarted:
                    key = (broker, changed[BROKERS + broker], changed[at], view)
                    known = posted.get(key)
                    changed[at] = self._events.post(*key) if known is None else known
        if changed[NETWORK] != NOTHING:
            self.forget_moot(changed)
        violation = self._properties.of_change(before, controller)
        if violation is None:
            violation = self._judge(state, changed, proposal, compared)
        steps.append((label, tuple(changed), violation))

    def forget_moot(self, changed: list[int]) -> None:
        """Remove messages that change nothing whenever they arrive."""
        tables = self._tables
        for message in tables.networks[changed[NETWORK]]:
            sent = tables.messages[message]
            if isinstance(sent, AlterRequest | AlterAnswer):
                key = (changed[CONTROLLER], message, changed[BROKERS + sent.hears])
                moot = self._controller_events.moot.get(key)
                if self._controller_events.leaves_no_trace(*key) if moot is None else moot:
                    changed[NETWORK] = tables.exchange(changed[NETWORK], message, ())

    def _judge(
        self, state: State, changed: list[int], proposal: AlterRequest | None, compared: tuple[Reply, ...]
    ) -> Violation | None:
        """Check S14 and U1-U5, and update their ghosts."""
        tables = self._tables
        before, after = tables.controllers[state[CONTROLLER]], tables.controllers[changed[CONTROLLER]]
        joined = after.isr & ~before.isr if proposal is not None else 0
        leader = after.leader
        entitled = before.candidates | joined
        uncleanly = leader >= 0 and leader != before.leader and not entitled >> leader & 1
        if not joined and not uncleanly:
            return None
        history = tables.histories[changed[HISTORY]]
        brokers = [tables.brokers[number] for number in changed[BROKERS : self._inboxes]]
        violation = None
        if joined and proposal is not None:
            violation = self._properties.of_joining(after, joined, brokers, proposal.sender, history)
            history = history._replace(lossy=history.lossy & ~joined, unclean=history.unclean & ~joined)
        if uncleanly:
            violation = violation or self._properties.of_unclean_election(before, after, compared, brokers, history)
            history = _recovered(history, after, brokers[leader])
        changed[HISTORY] = tables.histories.number(history)
        return violation

    def finish(self, changed: list[int], broker: int, effects: Effects | None, label: Label, steps: list[Step]) -> None:
        """The effects of a broker's turn on others: messages, and newly committed records."""
        if effects is None:
            steps.append((label, tuple(changed), None))
            return
        tables = self._tables
        violation = None
        if effects.messages:
            changed[NETWORK] = tables.exchange(changed[NETWORK], -1, effects.messages)
        if effects.advance is not None:
            history = tables.histories[changed[HISTORY]]
            brokers = [tables.brokers[number] for number in changed[BROKERS : self._inboxes]]
            violation = self._properties.of_advance(effects.advance, broker, brokers, history)
            changed[HISTORY] = tables.histories.number(
                _committed(history, brokers[broker], effects.advance.high_watermark)
            )
        steps.append((label, tuple(changed), violation))


def _committed(history: History, leader: Broker, high_watermark: int) -> History:
    """H after a leader's high watermark has moved."""
    fresh = leader.log[:high_watermark]
    if len(fresh) <= len(history.committed):
        return history
    if leader.leader_epoch < history.recovered_in:
        # It does not know that another replica was elected uncleanly, and the records that it commits will be lost.
        return history._replace(lost=len(fresh) - len(history.committed))
    return history._replace(committed=fresh)


def _recovered(history: History, after: Controller, chosen: Broker) -> History:
    """H after an unclean election: the elected replica's part of H. The records that it lacks are lost."""
    kept = common_prefix(chosen.log, history.committed)
    others = ~(1 << after.leader)
    return History(
        committed=history.committed[:kept],
        lossy=history.lossy & others,
        unclean=history.unclean & others,
        recovered_in=after.leader_epoch,
        lost=len(history.committed) - kept,
    )

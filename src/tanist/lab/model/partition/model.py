"""One partition, its controller and its brokers, as a space of states.

Owns `PartitionModel`: the first state, and `expand`, which takes all steps from a state. A step looks up the result
of the real objects (`events`, `controller_events`), and `consequences` completes it. Decides nothing itself.

These are single steps, for these reasons:
- A fetch and its answer. Nothing can happen to the follower between them that would make the answer count and differ,
  except that it is lost (`ask`). A fetch whose sender has restarted meanwhile is a message of its own (`SentFetch`), if
  the budget allows it.
- A crash and the next registration. A dead broker equals a slow one. When it takes its first role, it has applied the
  metadata up to its own registration.
- Metadata that changes nothing for a broker is applied at once.
- AlterPartition is three steps: the proposal (with the fetch that leads to it), the decision, the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tanist.lab.model.partition.components import (
    AlterRequest,
    Broker,
    Budget,
    Controller,
    History,
    Registration,
    SentAnswer,
    SentFetch,
    SentReply,
)
from tanist.lab.model.partition.configuration import Configuration
from tanist.lab.model.partition.consequences import Consequences
from tanist.lab.model.partition.controller_events import ControllerEvents
from tanist.lab.model.partition.events import BrokerEvents
from tanist.lab.model.partition.outcomes import (
    CRASHES,
    FREE,
    LOSSES,
    OLD_FETCHES,
    OLD_REPLIES,
    RESTARTS,
    SHRINKS,
    UNANSWERED_REQUESTS,
    WRITES,
    Effects,
    Restarted,
)
from tanist.lab.model.partition.properties import Properties
from tanist.lab.model.partition.symmetry import BROKERS, BUDGET, CONTROLLER, HISTORY, NETWORK, Symmetry
from tanist.lab.model.partition.tables import LEADS, NOTHING, StateTables
from tanist.lab.model.partition.trace_format import PartitionTraceFormat
from tanist.lab.model.steps import Label, State, Step, Violation, directed


class PartitionModel:
    """The model that a `Configuration` describes."""

    BROKER_EVENTS: ClassVar = BrokerEvents
    CONTROLLER_EVENTS: ClassVar = ControllerEvents

    def __init__(self, configuration: Configuration, unwatched: frozenset[str] = frozenset()) -> None:
        self.configuration = configuration
        self.tables = StateTables()
        self.events = self.BROKER_EVENTS(configuration, self.tables)
        self.controller_events = self.CONTROLLER_EVENTS(configuration, self.tables, self.events)
        self.properties = Properties(configuration, self.tables, unwatched)
        self.trace_format = PartitionTraceFormat(self.tables, configuration)
        self._brokers = configuration.brokers
        self._inboxes = BROKERS + configuration.brokers
        consequences = Consequences(
            self.tables, self.events, self.controller_events, self.properties, configuration.brokers
        )
        self._decide, self._finish = consequences.decide, consequences.finish
        self._forget_moot = consequences.forget_moot
        self.writes = configuration.budget.writes
        """Of the whole run: a record's payload is the number of records before it."""
        self._symmetry = Symmetry(self.tables, configuration.brokers)
        self.representative = self._symmetry.representative
        self.rename = self._symmetry.rename
        self.violation_of = self.properties.of_state

    def initial(self) -> State:
        """All replicas are in sync and have applied all metadata, and the log is empty; then the directed start is
        taken."""
        return self.begin([self.configuration.start])[0]

    def begin(self, starts: Sequence[tuple[str, ...]]) -> list[State]:
        """The state at the end of each directed start. All of them write the same number of records."""
        budget = self.configuration.budget
        written = {sum(1 for text in start if text.startswith("write ")) for start in starts}
        if len(written) != 1:
            raise ValueError(f"directed starts with {sorted(written)} records have no model in common")
        self.writes = budget.writes + written.pop()
        # The costs of a start are not taken from the budget; it begins with enough of everything.
        longest = max(len(start) for start in starts)
        everything = Budget(*(left + longest for left in budget))._replace(writes=self.writes)
        if longest:
            self.controller_events.afford(everything)
            states = [directed(self, self._beginning(everything), start) for start in starts]
        else:
            states = [self._beginning(budget)]
        self.controller_events.afford(budget)
        return [(*state[:BUDGET], self.tables.budget(budget), *state[BUDGET + 1 :]) for state in states]

    def _beginning(self, budget: Budget) -> State:
        configuration = self.configuration
        replicas = (1 << configuration.replication_factor) - 1
        controller = Controller(
            leader=0,
            leader_epoch=0,
            partition_epoch=0,
            replicas=replicas,
            isr=replicas,
            elr=0,
            last_known_elr=0,
            adding=0,
            removing=0,
            recovering=False,
            min_isr=configuration.min_isr,
            registrations=(Registration(0, fenced=False, shutting_down=False),) * configuration.brokers,
            recovery=None,
        )
        tables = self.tables
        number = tables.controller(controller)
        view = tables.view_of[number]
        blank = tables.broker(Broker(0, (), (), 0, None))
        brokers = tuple(self.events.join(broker, blank, view) for broker in range(configuration.brokers))
        return (
            number,
            tables.network(()),
            tables.histories.number(History((), 0, 0, -1, 0)),
            tables.budget(budget),
            *brokers,
            *(NOTHING for _ in brokers),
        )

    # -- steps

    def expand(self, state: State) -> list[Step]:
        """All steps from `state`, with the property that a step breaks, if it breaks one."""
        steps: list[Step] = []
        if self.tables.histories[state[HISTORY]].lost:
            return steps
        self._expand_brokers(state, steps)
        self._expand_messages(state, steps)
        self._expand_controller(state, steps)
        return steps

    def _expand_brokers(self, state: State, steps: list[Step]) -> None:
        events, tables = self.events, self.tables
        inboxes = self._inboxes
        follows, brokers = tables.follows, state[BROKERS:inboxes]
        spent = tables.spent[state[BUDGET]] or tables.spend(state[BUDGET])
        for broker, number in enumerate(brokers):
            at = BROKERS + broker
            leader = follows[number]
            if leader >= 0:
                if self.configuration.split_fetches:
                    self._send_fetch(state, broker, steps)
                elif follows[brokers[leader]] == LEADS:
                    self._fetch(state, broker, leader, steps)
            elif leader == LEADS:
                if spent[WRITES] >= 0:
                    self._write(state, broker, spent[WRITES], steps)
                if spent[SHRINKS] >= 0:
                    slow = events.lagging.get((broker, number))
                    for after, effects, label in events.lag(broker, number) if slow is None else slow:
                        changed = list(state)
                        changed[at], changed[BUDGET] = after, spent[SHRINKS]
                        self._finish(changed, broker, effects, label, steps)
            if state[inboxes + broker] != NOTHING:
                self._learn(state, broker, spent, steps)

    def arrivals(self, state: State) -> list[Step]:
        """The steps in which something arrives: metadata, a proposal, its answer, a reply."""
        steps: list[Step] = []
        spent = self.tables.spent[state[BUDGET]] or self.tables.spend(state[BUDGET])
        for broker in range(self._brokers):
            if state[self._inboxes + broker] != NOTHING:
                self._learn(state, broker, spent, steps)
        self._expand_messages(state, steps)
        self._ask_replicas(state, steps)
        return steps

    def fetches(self, state: State, broker: int) -> list[Step]:
        """The fetch steps of a broker, if it follows a leader."""
        steps: list[Step] = []
        follows = self.tables.follows
        leader = follows[state[BROKERS + broker]]
        if leader >= 0 and follows[state[BROKERS + leader]] == LEADS:
            self._fetch(state, broker, leader, steps)
        return steps

    def _fetch(self, state: State, broker: int, leader: int, steps: list[Step]) -> None:
        events, at = self.events, BROKERS + broker
        number, other = state[at], state[BROKERS + leader]
        found = events.fetched.get((broker, number, other))
        for heard, after, effects, label in events.fetch(broker, number, leader, other) if found is None else found:
            changed = list(state)
            changed[BROKERS + leader] = heard
            if effects is None:
                changed[at] = after
                steps.append((label, tuple(changed), None))
            else:
                self._fetch_with_effects(state, changed, leader, at, after, effects, label, steps)

    def _learn(self, state: State, broker: int, spent: tuple[int, ...], steps: list[Step]) -> None:
        events, tables = self.events, self.tables
        at, waiting = BROKERS + broker, self._inboxes + broker
        key = (broker, state[at], state[waiting])
        known = events.applied.get(key)
        for after, left, effects, old_fetch, label in events.apply_metadata(*key) if known is None else known:
            changed = list(state)
            changed[at], changed[waiting] = after, left
            if changed[NETWORK] != NOTHING:
                self._forget_moot(changed)
            if effects is None:
                steps.append((label, tuple(changed), None))
            else:
                self._finish(changed, broker, effects, label, steps)
            if old_fetch >= 0 and spent[OLD_FETCHES] >= 0:
                changed = list(state)
                changed[at], changed[waiting] = after, left
                changed[BUDGET] = spent[OLD_FETCHES]
                changed[NETWORK] = tables.exchange(state[NETWORK], -1, (old_fetch,))
                self._finish(changed, broker, effects, leaving_something(label), steps)

    def _write(self, state: State, broker: int, budget: int, steps: list[Step]) -> None:
        payload = self.writes - self.tables.budgets[state[BUDGET]].writes
        key = (broker, state[BROKERS + broker], payload)
        events = self.events
        written = events.written[key] if key in events.written else events.write(*key)
        if written is not None:
            changed = list(state)
            changed[BROKERS + broker], changed[BUDGET] = written.broker, budget
            self._finish(changed, broker, written.effects, written.label, steps)

    def _fetch_with_effects(
        self,
        state: State,
        changed: list[int],
        leader: int,
        follower_at: int,
        after: int,
        effects: Effects,
        label: Label,
        steps: list[Step],
    ) -> None:
        """The leader counts before its answer is taken, so its effects are judged before that."""
        self._finish(changed, leader, effects, label, steps)
        if after == state[follower_at]:
            return
        _, so_far, violation = steps.pop()
        taken = (*so_far[:follower_at], after, *so_far[follower_at + 1 :])
        if effects.cut and violation is None:
            violation = self._cut(state, so_far[HISTORY], follower_at, after)
        steps.append((label, taken, violation))

    def _cut(self, state: State, history: int, follower_at: int, after: int) -> Violation | None:
        tables = self.tables
        before, now = tables.brokers[state[follower_at]], tables.brokers[after]
        return self.properties.of_truncation(follower_at - BROKERS, before, now, tables.histories[history])

    def _expand_messages(self, state: State, steps: list[Step]) -> None:
        tables, events, decisions = self.tables, self.events, self.controller_events
        network = state[NETWORK]
        for message in tables.networks[network]:
            sent = tables.messages[message]
            if isinstance(sent, AlterRequest):
                found = decisions.altered.get((state[CONTROLLER], message))
                if found is None:
                    found = decisions.alter(state[CONTROLLER], message)
                for controller, answer, _, label in found:
                    changed = list(state)
                    changed[NETWORK] = tables.exchange(network, message, answer)
                    self._decide(state, changed, controller, label, steps, proposal=sent)
                continue
            changed = list(state)
            changed[NETWORK] = tables.exchange(network, message, ())
            if isinstance(sent, SentReply):
                self._hear_old_reply(state, changed, message, sent, steps)
                continue
            if isinstance(sent, SentFetch):
                self._hear_fetch(state, changed, message, sent, steps)
                continue
            if isinstance(sent, SentAnswer):
                self._take_answer(state, changed, message, sent, steps)
                continue
            at = BROKERS + sent.receiver
            arrived, lost = events.alter_responses.get((message, state[at])) or events.answer(message, state[at])
            changed[at] = arrived.broker
            if changed[NETWORK] != NOTHING:
                self._forget_moot(changed)
            self._finish(changed, sent.receiver, arrived.effects, arrived.label, steps)
            budget = (tables.spent[state[BUDGET]] or tables.spend(state[BUDGET]))[UNANSWERED_REQUESTS]
            if lost is not None and budget >= 0:
                changed = list(state)
                changed[NETWORK] = tables.exchange(network, message, ())
                changed[at], changed[BUDGET] = lost.broker, budget
                self._finish(changed, sent.receiver, lost.effects, lost.label, steps)

    def _hear_old_reply(
        self, state: State, changed: list[int], message: int, sent: SentReply, steps: list[Step]
    ) -> None:
        decisions, controller = self.controller_events, state[CONTROLLER]
        if controller not in decisions.asking:
            decisions.order(controller)
        if sent.reply.broker in decisions.asking[controller]:
            found = decisions.late.get((controller, message))
            for _, after, compared, label in (
                self.controller_events.late_reply(controller, message) if found is None else found
            ):
                self._decide(state, list(changed), after, label, steps, compared=compared)

    def _send_fetch(self, state: State, broker: int, steps: list[Step]) -> None:
        """A follower has one fetch under way at a time, as long as it is the same follower."""
        tables, network = self.tables, state[NETWORK]
        message = self.events.fetch_of(broker, state[BROKERS + broker])
        sent = tables.messages[message] if message >= 0 else None
        if not isinstance(sent, SentFetch):
            return
        for number in tables.networks[network]:
            each = tables.messages[number]
            if number == message or (isinstance(each, SentAnswer) and each.answer.request == sent.request):
                return
        changed = list(state)
        changed[NETWORK] = tables.exchange(network, -1, (message,))
        steps.append((Label("send", broker), tuple(changed), None))

    def _hear_fetch(self, state: State, changed: list[int], message: int, sent: SentFetch, steps: list[Step]) -> None:
        split = self.configuration.split_fetches
        if split:
            steps.append((Label("drop", sent.request.broker, "the fetch"), tuple(changed), None))
        at = BROKERS + sent.receiver
        key = (message, state[at])
        heard, back = self.events.fetch_requests.get(key) or self.events.hear(*key)
        changed[at] = heard.broker
        if split and back >= 0:
            changed[NETWORK] = self.tables.exchange(changed[NETWORK], -1, (back,))
        self._finish(changed, sent.receiver, heard.effects, heard.label, steps)
        label, after, violation = steps[-1]
        if violation is None:
            receiver = self.tables.brokers[state[at]]
            violation = self.properties.of_old_fetch(sent, receiver, believed=after[at] != state[at])
            steps[-1] = (label, after, violation)

    def _take_answer(self, state: State, changed: list[int], message: int, sent: SentAnswer, steps: list[Step]) -> None:
        follower = sent.answer.request.broker
        at = BROKERS + follower
        steps.append((Label("drop", follower, "the answer"), tuple(changed), None))
        key = (message, state[at])
        heard, cut = self.events.fetch_responses.get(key) or self.events.handle_fetch_response(*key)
        if heard.broker != state[at]:
            changed[at] = heard.broker
            violation = self._cut(state, state[HISTORY], at, heard.broker) if cut else None
            steps.append((heard.label, tuple(changed), violation))

    def _expand_controller(self, state: State, steps: list[Step]) -> None:
        decisions = self.controller_events
        controller = state[CONTROLLER]
        spent = self.tables.spent[state[BUDGET]] or self.tables.spend(state[BUDGET])
        ordered = decisions.ordered.get(controller)
        if ordered is None:
            ordered = decisions.order(controller)
        for cost, after, compared, label in ordered:
            budget = state[BUDGET] if cost == FREE else spent[cost]
            if budget >= 0:
                changed = list(state)
                changed[BUDGET] = budget
                self._decide(state, changed, after, label, steps, compared=compared)
        self._ask_replicas(state, steps)
        for broker in range(self._brokers):
            self._restart(state, broker, spent, steps)

    def _ask_replicas(self, state: State, steps: list[Step]) -> None:
        """The replicas that an unclean recovery waits for may reply."""
        decisions, controller = self.controller_events, state[CONTROLLER]
        if controller not in decisions.asking:
            decisions.order(controller)
        for broker in decisions.asking[controller]:
            key = (controller, broker, state[BROKERS + broker])
            replied = decisions.replied.get(key)
            for _, after, compared, label in decisions.reply(*key) if replied is None else replied:
                self._decide(state, list(state), after, label, steps, compared=compared)

    def _restart(self, state: State, broker: int, spent: tuple[int, ...], steps: list[Step]) -> None:
        events, decisions, tables = self.events, self.controller_events, self.tables
        if spent[RESTARTS] < 0 and spent[CRASHES] < 0 and spent[LOSSES] < 0:
            return
        at = BROKERS + broker
        key = (state[CONTROLLER], broker, state[at])
        found = decisions.restarted.get(key)
        for each in decisions.restart(*key) if found is None else found:
            if spent[each.cost] < 0:
                continue
            changed = list(state)
            changed[BUDGET] = spent[each.cost]
            changed[at] = each.broker
            changed[NETWORK] = tables.hang_up(state[NETWORK], broker)
            if not each.clean:
                history = tables.histories[state[HISTORY]]
                history = history._replace(
                    unclean=history.unclean | 1 << broker, lossy=history.lossy | each.lost << broker
                )
                changed[HISTORY] = tables.histories.number(history)
            self._come_back(state, list(changed), broker, each, each.label, steps)
            left = tables.spent[changed[BUDGET]] or tables.spend(changed[BUDGET])
            if left[OLD_FETCHES] >= 0:
                message = events.fetch_of(broker, state[at])
                self._leave_behind(state, changed, broker, each, left[OLD_FETCHES], message, steps)
            if left[OLD_REPLIES] >= 0 and broker in decisions.asking[state[CONTROLLER]]:
                message = decisions.reply_before(broker, state[at])
                self._leave_behind(state, changed, broker, each, left[OLD_REPLIES], message, steps)

    def _leave_behind(
        self,
        state: State,
        changed: list[int],
        broker: int,
        each: Restarted,
        budget: int,
        message: int,
        steps: list[Step],
    ) -> None:
        """The same, with a message of the former life still under way."""
        if message >= 0:
            so_far = list(changed)
            so_far[BUDGET] = budget
            so_far[NETWORK] = self.tables.exchange(changed[NETWORK], -1, (message,))
            self._come_back(state, so_far, broker, each, leaving_something(each.label), steps)

    def _come_back(
        self, state: State, changed: list[int], broker: int, each: Restarted, label: Label, steps: list[Step]
    ) -> None:
        self._decide(state, changed, each.controller, label, steps, compared=each.compared, restarted=broker)
        if each.effects is not None:
            _, so_far, violation = steps.pop()
            self._finish(list(so_far), broker, each.effects, label, steps)
            if violation is not None:
                steps[-1] = (label, steps[-1][1], violation)


def leaving_something(label: Label) -> Label:
    """The step, with an earlier message still under way."""
    return label._replace(detail=f"{label.detail} with a message under way".strip())

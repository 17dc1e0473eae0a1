"""The events of the controller, asked once and remembered: its own decisions, orders, AlterPartition, restarts.

Owns the memo of each. Must never decide anything; `controlling` asks the real controller. A restart is the controller's
event because the new process registers with it.
"""

from __future__ import annotations

from tanist.lab.model.partition import replicating
from tanist.lab.model.partition.components import (
    AlterAnswer,
    AlterRequest,
    Broker,
    Budget,
    Controller,
    LeaderReplica,
    Proposal,
    Reply,
    SentReply,
    ids_of,
    members,
)
from tanist.lab.model.partition.configuration import Configuration
from tanist.lab.model.partition.controlling import Controlling, moves
from tanist.lab.model.partition.events import BrokerEvents
from tanist.lab.model.partition.levels import Decided, Event
from tanist.lab.model.partition.outcomes import (
    CANCELLATIONS,
    CRASHES,
    FAILOVERS,
    FENCES,
    FREE,
    LOSSES,
    MIN_ISR_CHANGES,
    PREFERRED,
    REASSIGNMENTS,
    RESTARTS,
    SHUTDOWNS,
    Altered,
    ControllerActed,
    Effects,
    Restarted,
)
from tanist.lab.model.partition.tables import StateTables
from tanist.lab.model.steps import Label
from tanist.replica.metadata import NO_EPOCH
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import NO_LEADER

_OVERTAKEN = (int(ErrorCode.FENCED_LEADER_EPOCH), int(ErrorCode.INVALID_UPDATE_VERSION))


class ControllerEvents:
    """The memos of all events of the controller in one search."""

    def __init__(self, configuration: Configuration, tables: StateTables, brokers: BrokerEvents) -> None:
        self.configuration = configuration
        self.tables = tables
        self._brokers = brokers
        self.controlling = Controlling(
            strategy=configuration.strategy,
            recovery_manager=configuration.recovery_manager,
            elr=configuration.elr,
        )
        self._prices = frozenset(range(len(Budget._fields)))
        self.ordered: dict[int, tuple[ControllerActed, ...]] = {}
        self.asking: dict[int, tuple[int, ...]] = {}
        self.replied: dict[tuple[int, int, int], tuple[ControllerActed, ...]] = {}
        self.late: dict[tuple[int, int], tuple[ControllerActed, ...]] = {}
        self.restarted: dict[tuple[int, int, int], tuple[Restarted, ...]] = {}
        self.altered: dict[tuple[int, int], tuple[Altered, ...]] = {}
        self.moot: dict[tuple[int, int, int], bool] = {}

    def afford(self, budget: Budget) -> None:
        """From here on events beyond this budget do not happen, so they need not be computed."""
        self._prices = frozenset(price for price, left in enumerate(budget) if left > 0)
        self.ordered.clear()
        self.restarted.clear()

    # -- AlterPartition

    def alter(self, controller: int, message: int) -> tuple[Altered, ...]:
        asked = self.tables.messages[message]
        if not isinstance(asked, AlterRequest):
            raise TypeError(f"{asked} is no request to the controller")
        event = ("alter", asked.sender, asked.sender_epoch, asked.proposal)
        outcomes = []
        for decided in self.controlling.decide(self.tables.controllers[controller], event):
            after = decided.controller
            answer: tuple[int, ...] = ()
            if not decided.refused:
                sent = AlterAnswer(
                    receiver=asked.sender,
                    proposal=asked.proposal,
                    error=decided.error,
                    leader_epoch=0 if decided.error else after.leader_epoch,
                    isr=0 if decided.error else after.isr,
                    partition_epoch=0 if decided.error else after.partition_epoch,
                    recovering=False if decided.error else after.recovering,
                )
                answer = (self.tables.messages.number(sent),)
            before = self.tables.controllers[controller]
            label = elected(before, after, Label("alter", asked.sender))
            overtaken = decided.refused or decided.error in _OVERTAKEN
            outcomes.append(Altered(self.tables.controller(after), answer, overtaken, label))
        known = self.altered[controller, message] = tuple(outcomes)
        return known

    def leaves_no_trace(self, controller: int, message: int, receiver: int) -> bool:
        """Whether a message changes nothing now, nor later, by its epochs: it need not arrive.

        `receiver` is the state of the broker that gets the answer.
        """
        asked = self.tables.messages[message]
        if isinstance(asked, AlterRequest):
            found = self.altered.get((controller, message)) or self.alter(controller, message)
            moot = found[0].overtaken and all(
                each.controller == controller and self._is_no_news(answer, receiver)
                for each in found
                for answer in each.answer
            )
        else:
            moot = self._is_no_news(message, receiver)
        self.moot[controller, message, receiver] = moot
        return moot

    def _is_no_news(self, message: int, receiver: int) -> bool:
        sent = self.tables.messages[message]
        if not isinstance(sent, AlterAnswer):
            raise TypeError(f"{sent} is no answer of the controller")
        if not self._changes_nothing(message, receiver):
            return False
        if sent.error in _OVERTAKEN:
            return True
        role = self.tables.brokers[receiver].role
        if not isinstance(role, LeaderReplica):
            return True
        if (role.leader_epoch, role.partition_epoch) <= (sent.proposal.leader_epoch, sent.proposal.partition_epoch):
            return False
        # It may have another proposal pending when the answer comes.
        isr = tuple((member, NO_EPOCH) for member in members(role.isr))
        another = role._replace(pending=Proposal(role.leader_epoch, role.partition_epoch, isr), maximal=role.replicas)
        proposing = self.tables.brokers[receiver]._replace(role=another)
        return role.pending is not None or self._changes_nothing(message, self.tables.broker(proposing))

    def _changes_nothing(self, message: int, receiver: int) -> bool:
        arrived, _ = self._brokers.alter_responses.get((message, receiver)) or self._brokers.answer(message, receiver)
        return arrived.broker == receiver and arrived.effects is None

    # -- the controller

    def order(self, controller: int) -> tuple[ControllerActed, ...]:
        """All events that start at the controller, with an operator, or with time."""
        state = self.tables.controllers[controller]
        found: list[ControllerActed] = []

        def try_it(cost: int, event: Event, label: Label) -> None:
            if cost != FREE and cost not in self._prices:
                return
            for decided in self.controlling.decide(state, event):
                after = self.tables.controller(decided.controller)
                if after != controller:
                    said = elected(state, decided.controller, label)
                    found.append(ControllerActed(cost, after, decided.compared, said))

        for broker, registration in enumerate(state.registrations):
            if registration.fenced:
                try_it(FREE, ("unfence", broker), Label("unfence", broker))
            else:
                try_it(FENCES, ("fence", broker), Label("fence", broker))
                if registration.active:
                    try_it(SHUTDOWNS, ("shut_down", broker), Label("shut_down", broker))
        try_it(PREFERRED, ("prefer",), Label("prefer"))
        for replicas in moves(state):
            try_it(
                REASSIGNMENTS,
                ("reassign", replicas),
                Label("reassign", -1, "to " + ",".join(str(number) for number in ids_of(replicas))),
            )
        if state.adding or state.removing:
            try_it(CANCELLATIONS, ("cancel",), Label("cancel"))
        for min_isr in {max(1, state.min_isr - 1), state.min_isr + 1}:
            try_it(MIN_ISR_CHANGES, ("min_isr", min_isr), Label("min_isr", -1, str(min_isr)))
        if state.recovery is not None:
            if state.recovery.clock < 2:
                try_it(FREE, ("clock",), Label("clock"))
            try_it(FAILOVERS, ("failover",), Label("failover"))
        self.asking[controller] = self.controlling.questions(state)
        known = self.ordered[controller] = tuple(found)
        return known

    def reply(self, controller: int, broker: int, state: int) -> tuple[ControllerActed, ...]:
        """A replica replies with its log's end, and the controller compares its replies."""
        reply = self._reply_of(broker, state)
        found = () if reply is None else self._replied(controller, reply, Label("reply", broker))
        self.replied[controller, broker, state] = found
        return found

    def late_reply(self, controller: int, message: int) -> tuple[ControllerActed, ...]:
        """The reply of an earlier life arrives while the controller waits for one."""
        sent = self.tables.messages[message]
        if not isinstance(sent, SentReply):
            raise TypeError(f"{sent} is no reply")
        found = self._replied(controller, sent.reply, Label("old_reply", sent.reply.broker))
        self.late[controller, message] = found
        return found

    def reply_before(self, broker: int, state: int) -> int:
        """A broker's reply as a message that is still under way; -1: none."""
        reply = self._reply_of(broker, state)
        return -1 if reply is None else self.tables.messages.number(SentReply(reply))

    def _reply_of(self, broker: int, state: int) -> Reply | None:
        at = self.tables.brokers[state]
        if at.role is None:
            return None
        last_epoch = at.log[-1][0] if at.log else -1
        return Reply(broker, at.epoch, at.leader_epoch, last_epoch, len(at.log), at.epochs)

    def _replied(self, controller: int, reply: Reply, label: Label) -> tuple[ControllerActed, ...]:
        before = self.tables.controllers[controller]
        found = []
        for decided in self.controlling.decide(before, ("reply", reply)):
            after = self.tables.controller(decided.controller)
            if after != controller:
                found.append(ControllerActed(FREE, after, decided.compared, elected(before, decided.controller, label)))
        return tuple(found)

    def restart(self, controller: int, broker: int, state: int) -> tuple[Restarted, ...]:
        """The process dies and a new one registers. A dead broker equals a slow one, so both are one step."""
        before = self.tables.brokers[state]
        at = self.tables.controllers[controller]
        whole = len(before.log)
        found: list[Restarted] = []
        ways = [(RESTARTS, whole, "restart"), (CRASHES, whole, "crash")]
        ways += [(LOSSES, keep, "lose") for keep in range(whole)]
        for cost, keep, name in ways:
            if cost not in self._prices:
                continue
            clean = cost == RESTARTS
            marked = clean_shutdown_epoch(before, clean=clean)
            for decided in self.controlling.decide(at, ("register", broker, marked)):
                for checkpoint in self._checkpoints(before, clean=clean):
                    restarted = self._restarted(broker, before, decided, keep, checkpoint)
                    keeps = f"keeps {keep}" if cost == LOSSES else ""
                    label = elected(at, decided.controller, Label(name, broker, keeps))
                    outcome = Restarted(cost, *restarted, clean, cost == LOSSES, decided.compared, label)
                    if outcome not in found:
                        found.append(outcome)
        known = self.restarted[controller, broker, state] = tuple(found)
        return known

    def _checkpoints(self, before: Broker, *, clean: bool) -> tuple[int, ...]:
        """High watermarks that a new process may find: written at a clean shutdown, else some time ago."""
        if clean:
            return (before.high_watermark,)
        return (0, before.high_watermark) if self.configuration.checkpoints else (0,)

    def _restarted(
        self, broker: int, before: Broker, decided: Decided, keep: int, checkpoint: int
    ) -> tuple[int, int, Effects | None]:
        """It first applies the metadata up to its registration, and takes its role."""
        controller = self.tables.controller(decided.controller)
        epoch = decided.controller.registrations[broker].epoch
        fresh = replicating.restart(before, epoch, keep, checkpoint)
        view = decided.controller.view()
        if not view.replicas >> broker & 1:
            return controller, self.tables.broker(replicating.unreplicated(fresh)), None
        turn = replicating.learn(broker, fresh, view)
        return controller, self.tables.broker(turn.broker), self._brokers.effects(turn, broker)


def clean_shutdown_epoch(before: Broker, *, clean: bool) -> int:
    """The mark of the predecessor's clean shutdown: its broker epoch, or -1 for none (rules 86-89)."""
    return before.epoch if clean else -1


def elected(before: Controller, after: Controller, label: Label) -> Label:
    """The label, with the new leader if it has changed."""
    if after.leader in (before.leader, NO_LEADER):
        return label
    return label._replace(detail=f"{label.detail} -> {after.leader + 1}".strip())

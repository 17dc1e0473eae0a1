"""What the real objects made of each event: asked once, remembered.

Owns the memo of every event. What a broker does depends on its own state and on what it is given, never on the whole:
so the real code runs once for each pair that occurs, and the search, which meets the same pairs in a great many states,
runs at the speed of dictionaries. The dictionaries are public, for the search looks into them itself before it calls
the method that fills them.

Must never decide anything; `controlling` and `replicating` ask those who do.
"""

from __future__ import annotations

from typing import NamedTuple

from tanist.lab.model import replicating
from tanist.lab.model.components import (
    AlterAnswer,
    AlterRequest,
    Answer,
    Broker,
    Budget,
    Controller,
    FollowerReplica,
    LeaderReplica,
    Proposal,
    Reply,
    Request,
    SentAnswer,
    SentFetch,
    SentReply,
    ids_of,
    members,
)
from tanist.lab.model.configuration import Configuration
from tanist.lab.model.controlling import Controlling, Decided, Event, moves
from tanist.lab.model.interning import Table
from tanist.lab.model.replicating import Advance, Turn
from tanist.lab.model.steps import Label
from tanist.lab.model.tables import StateTables
from tanist.replica.isr import AlterPartitionResult
from tanist.replica.metadata import NO_EPOCH
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import NO_LEADER

FREE = -1
WRITES, LOSSES, CRASHES, RESTARTS, FENCES, SHUTDOWNS, SHRINKS, PREFERRED = range(8)
REASSIGNMENTS, CANCELLATIONS, MIN_ISR_CHANGES, FAILOVERS, UNANSWERED_REQUESTS, OLD_FETCHES, OLD_REPLIES = range(8, 15)
"""Places of the prices in a `Budget`."""

_OVERTAKEN = (int(ErrorCode.FENCED_LEADER_EPOCH), int(ErrorCode.INVALID_UPDATE_VERSION))

if len(Budget._fields) != OLD_REPLIES + 1:
    raise RuntimeError("a budget has other prices")


class Effects(NamedTuple):
    """What a broker's turn means for others. Most turns have none, so these are looked at apart."""

    advance: Advance | None
    messages: tuple[int, ...]
    cut: bool
    """The follower's log lost records."""


class MetadataApplied(NamedTuple):
    """A broker that has applied metadata."""

    broker: int
    inbox: int
    effects: Effects | None
    old_fetch: int
    """A fetch that its former self may have sent, as a message; -1: none."""
    label: Label


class Fetched(NamedTuple):
    """A fetch that a leader has heard, and whose answer was taken or lost."""

    leader: int
    follower: int
    effects: Effects | None
    label: Label


class ControllerActed(NamedTuple):
    """The controller has decided something by itself. `cost` is the place of its price, or FREE."""

    cost: int
    controller: int
    compared: tuple[Reply, ...]
    label: Label


class Restarted(NamedTuple):
    """A broker that came back."""

    cost: int
    controller: int
    broker: int
    effects: Effects | None
    clean: bool
    lost: bool
    compared: tuple[Reply, ...]
    label: Label


class Altered(NamedTuple):
    """An AlterPartition that the controller has looked at. `answer` are messages."""

    controller: int
    answer: tuple[int, ...]
    overtaken: bool
    """It names epochs that have passed."""
    label: Label


class BrokerChanged(NamedTuple):
    """What became of a broker."""

    broker: int
    effects: Effects | None
    label: Label


class Events:
    """All memos of one search."""

    def __init__(self, configuration: Configuration, tables: StateTables) -> None:
        self.configuration = configuration
        self.tables = tables
        self.controlling = Controlling(
            strategy=configuration.strategy,
            recovery_manager=configuration.recovery_manager,
            elr=configuration.elr,
        )
        self._prices = frozenset(range(len(Budget._fields)))
        self.applied: dict[tuple[int, int, int], tuple[MetadataApplied, ...]] = {}
        self.posted: dict[tuple[int, int, int, int], int] = {}
        self.written: dict[tuple[int, int, int], BrokerChanged | None] = {}
        self.fetched: dict[tuple[int, int, int], tuple[Fetched, ...]] = {}
        self.lagging: dict[tuple[int, int], tuple[BrokerChanged, ...]] = {}
        self.ordered: dict[int, tuple[ControllerActed, ...]] = {}
        self.asking: dict[int, tuple[int, ...]] = {}
        self.replied: dict[tuple[int, int, int], tuple[ControllerActed, ...]] = {}
        self.late: dict[tuple[int, int], tuple[ControllerActed, ...]] = {}
        self.restarted: dict[tuple[int, int, int], tuple[Restarted, ...]] = {}
        self.altered: dict[tuple[int, int], tuple[Altered, ...]] = {}
        self.answered: dict[tuple[int, int], tuple[BrokerChanged, BrokerChanged | None]] = {}
        self.moot: dict[tuple[int, int, int], bool] = {}
        self.fetch_heard: dict[tuple[int, int], tuple[BrokerChanged, int]] = {}
        self.fetch_answered: dict[tuple[int, int], tuple[BrokerChanged, bool]] = {}
        self._requests: Table[Request] = Table()
        self._answers: Table[Answer] = Table()
        self._learned: dict[tuple[int, int, int], tuple[int, Effects | None]] = {}
        self._wanted: dict[tuple[int, int], int] = {}
        self._asked: dict[tuple[int, int, int], tuple[int, Effects | None, int]] = {}
        self._taken: dict[tuple[int, int, int], tuple[int, bool]] = {}

    def afford(self, budget: Budget) -> None:
        """From here on nothing happens whose price cannot be paid, so it need not be worked out either."""
        self._prices = frozenset(price for price, left in enumerate(budget) if left > 0)
        self.ordered.clear()
        self.restarted.clear()

    def _effects(self, turn: Turn, broker: int) -> Effects | None:
        if turn.advance is None and not turn.proposals:
            return None
        epoch = turn.broker.epoch
        number = self.tables.messages.number
        messages = tuple(number(AlterRequest(broker, epoch, proposal)) for proposal in turn.proposals)
        return Effects(turn.advance, messages, cut=False)

    # -- metadata

    def post(self, broker: int, state: int, inbox: int, view: int) -> int:
        """The metadata log has a view more. What changes nothing for a broker it applies at once."""
        after = self._catch_up(broker, state, self.tables.post(broker, inbox, view))
        self.posted[broker, state, inbox, view] = after
        return after

    def apply_metadata(self, broker: int, state: int, inbox: int) -> tuple[MetadataApplied, ...]:
        """The broker applies some of the views that it has yet to apply, as one batch."""
        waiting = self.tables.inboxes[inbox]
        applied: list[MetadataApplied] = []
        for last in range(len(waiting)):
            after, effects = self._learn(broker, state, waiting[last])
            left = self._catch_up(broker, after, self.tables.inboxes.number(waiting[last + 1 :]))
            still = len(waiting) - last - 1
            label = Label("learn", broker, f"but for {still}" if still else "")
            each = MetadataApplied(after, left, effects, self._old_fetch(broker, state, after), label)
            if each._replace(label=label) not in [one._replace(label=label) for one in applied]:
                applied.append(each)
        known = self.applied[broker, state, inbox] = tuple(applied)
        return known

    def _catch_up(self, broker: int, state: int, inbox: int) -> int:
        """Views that change nothing for a broker are applied at once: nobody can tell when it was."""
        waiting = self.tables.inboxes[inbox]
        done = 0
        while done < len(waiting) and self._learn(broker, state, waiting[done]) == (state, None):
            done += 1
        return self.tables.inboxes.number(waiting[done:]) if done else inbox

    def join(self, broker: int, state: int, view: int) -> int:
        """What becomes of a broker that has known of nothing."""
        return self._learn(broker, state, view)[0]

    def _learn(self, broker: int, state: int, view: int) -> tuple[int, Effects | None]:
        known = self._learned.get((broker, state, view))
        if known is None:
            turn = replicating.learn(broker, self.tables.brokers[state], self.tables.views[view])
            known = self._learned[broker, state, view] = self.tables.broker(turn.broker), self._effects(turn, broker)
        return known

    def _old_fetch(self, broker: int, before: int, after: int) -> int:
        brokers = self.tables.brokers
        return self.fetch_of(broker, before) if brokers[before].leader_epoch != brokers[after].leader_epoch else -1

    def fetch_of(self, broker: int, state: int) -> int:
        """The fetch that a follower would send, as a message; -1: it would not."""
        role = self.tables.brokers[state].role
        if not isinstance(role, FollowerReplica) or role.leader < 0:
            return -1
        request = self._want(broker, state)
        return -1 if request < 0 else self.tables.messages.number(SentFetch(role.leader, self._requests[request]))

    # -- records

    def write(self, broker: int, state: int, payload: int) -> BrokerChanged | None:
        turn = replicating.write(broker, self.tables.brokers[state], payload, self.configuration.acks)
        found = None
        if turn is not None:
            found = BrokerChanged(self.tables.broker(turn.broker), self._effects(turn, broker), Label("write", broker))
        self.written[broker, state, payload] = found
        return found

    def fetch(self, follower: int, state: int, leader: int, leader_state: int) -> tuple[Fetched, ...]:
        """One round of a follower's fetch; or the answer is lost, and only the leader is the wiser."""
        outcomes: list[Fetched] = []
        request = self._want(follower, state)
        if request >= 0:
            heard, effects, answer = self._ask(leader, leader_state, request)
            after, cut = state, False
            if answer >= 0:
                after, cut = self._take(follower, state, answer)
            if after != state:
                cutting = effects
                if cut:
                    cutting = Effects(None, (), cut=True) if effects is None else effects._replace(cut=True)
                outcomes.append(Fetched(heard, after, cutting, Label("fetch", follower)))
            if heard != leader_state or effects is not None:
                name = "fetch" if after == state else "ask"
                outcomes.append(Fetched(heard, state, effects, Label(name, follower)))
        known = self.fetched[follower, state, leader_state] = tuple(outcomes)
        return known

    def _want(self, follower: int, state: int) -> int:
        known = self._wanted.get((follower, state))
        if known is None:
            request = replicating.request(follower, self.tables.brokers[state])
            known = self._wanted[follower, state] = -1 if request is None else self._requests.number(request)
        return known

    def _ask(self, leader: int, state: int, request: int) -> tuple[int, Effects | None, int]:
        known = self._asked.get((leader, state, request))
        if known is None:
            turn, answer = replicating.fetch(
                leader, self.tables.brokers[state], self._requests[request], self.configuration.records_a_fetch
            )
            known = self._asked[leader, state, request] = (
                self.tables.broker(turn.broker),
                self._effects(turn, leader),
                -1 if answer is None else self._answers.number(answer),
            )
        return known

    def _take(self, follower: int, state: int, answer: int) -> tuple[int, bool]:
        known = self._taken.get((follower, state, answer))
        if known is None:
            before = self.tables.brokers[state]
            after = replicating.take(follower, before, self._answers[answer])
            cut = after.log[: len(before.log)] != before.log
            known = self._taken[follower, state, answer] = self.tables.broker(after), cut
        return known

    def hear(self, message: int, state: int) -> tuple[BrokerChanged, int]:
        """A fetch arrives at a broker; with its answer as a message, -1 if there is none."""
        sent = self.tables.messages[message]
        if not isinstance(sent, SentFetch):
            raise TypeError(f"{sent} is no fetch")
        after, effects, answer = self._ask(sent.receiver, state, self._requests.number(sent.request))
        answered = self._answers[answer] if answer >= 0 else None
        back = -1 if answered is None else self.tables.messages.number(SentAnswer(answered))
        label = Label("hear", sent.receiver, f"the fetch of {sent.request.broker + 1}")
        found = self.fetch_heard[message, state] = BrokerChanged(after, effects, label), back
        return found

    def answered_fetch(self, message: int, state: int) -> tuple[BrokerChanged, bool]:
        """The answer to a fetch arrives; and whether it costs the follower records. For a former life there is none."""
        sent = self.tables.messages[message]
        if not isinstance(sent, SentAnswer):
            raise TypeError(f"{sent} is no answer to a fetch")
        follower = sent.answer.request.broker
        after, cut = state, False
        if self.tables.brokers[state].epoch == sent.answer.request.broker_epoch:
            after, cut = self._take(follower, state, self._answers.number(sent.answer))
        found = self.fetch_answered[message, state] = BrokerChanged(after, None, Label("take", follower)), cut
        return found

    # -- the ISR

    def lag(self, broker: int, state: int) -> tuple[BrokerChanged, ...]:
        """Followers are slow, some or all of those that are behind."""
        before = self.tables.brokers[state]
        behind = members(replicating.late_members(before))
        outcomes = []
        for chosen in range(1, 1 << len(behind)):
            late = sum(1 << member for at, member in enumerate(behind) if chosen >> at & 1)
            turn = replicating.lag(broker, before, late)
            if turn is not None:
                label = Label("lag", broker, "for " + ",".join(str(number) for number in ids_of(late)))
                outcomes.append(BrokerChanged(self.tables.broker(turn.broker), self._effects(turn, broker), label))
        known = self.lagging[broker, state] = tuple(outcomes)
        return known

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

    def answer(self, message: int, state: int) -> tuple[BrokerChanged, BrokerChanged | None]:
        """The answer arrives; or it is lost, and the leader asks again (None if it would not)."""
        sent = self.tables.messages[message]
        if not isinstance(sent, AlterAnswer):
            raise TypeError(f"{sent} is no answer of the controller")
        before = self.tables.brokers[state]
        broker = sent.receiver
        result = AlterPartitionResult(
            error=sent.error,
            leader=broker + 1,
            leader_epoch=sent.leader_epoch,
            isr=tuple(member + 1 for member in members(sent.isr)),
            partition_epoch=sent.partition_epoch,
            recovering=sent.recovering,
        )
        turn = replicating.proposal_answered(broker, before, sent.proposal, result)
        arrived = BrokerChanged(self.tables.broker(turn.broker), self._effects(turn, broker), Label("answer", broker))
        turn = replicating.proposal_answered(broker, before, sent.proposal, None)
        after, effects = self.tables.broker(turn.broker), self._effects(turn, broker)
        lost = None
        if after != state or effects is not None:
            lost = BrokerChanged(after, effects, Label("unanswered", broker))
        known = self.answered[message, state] = arrived, lost
        return known

    def leaves_no_trace(self, controller: int, message: int, receiver: int) -> bool:
        """Whether a message changes nothing now, and epochs being what they are, never will: it need not arrive.

        `receiver` is the state of the broker that the answer goes to.
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
        # It may have another proposal out by the time the answer comes.
        isr = tuple((member, NO_EPOCH) for member in members(role.isr))
        another = role._replace(pending=Proposal(role.leader_epoch, role.partition_epoch, isr), maximal=role.replicas)
        proposing = self.tables.brokers[receiver]._replace(role=another)
        return role.pending is not None or self._changes_nothing(message, self.tables.broker(proposing))

    def _changes_nothing(self, message: int, receiver: int) -> bool:
        arrived, _ = self.answered.get((message, receiver)) or self.answer(message, receiver)
        return arrived.broker == receiver and arrived.effects is None

    # -- the controller

    def order(self, controller: int) -> tuple[ControllerActed, ...]:
        """Whatever may happen at the controller of itself, or because an operator or the time wants it."""
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
        """A replica says how far its log goes, and the controller compares what it has."""
        reply = self._reply_of(broker, state)
        found = () if reply is None else self._replied(controller, reply, Label("reply", broker))
        self.replied[controller, broker, state] = found
        return found

    def late_reply(self, controller: int, message: int) -> tuple[ControllerActed, ...]:
        """What it said in an earlier life arrives, while the controller waits for it."""
        sent = self.tables.messages[message]
        if not isinstance(sent, SentReply):
            raise TypeError(f"{sent} is no reply")
        found = self._replied(controller, sent.reply, Label("old_reply", sent.reply.broker))
        self.late[controller, message] = found
        return found

    def reply_before(self, broker: int, state: int) -> int:
        """What a broker would have replied, as a message that is still under way; -1: nothing."""
        reply = self._reply_of(broker, state)
        return -1 if reply is None else self.tables.messages.number(SentReply(reply))

    def _reply_of(self, broker: int, state: int) -> Reply | None:
        at = self.tables.brokers[state]
        if at.role is None:
            return None
        last_epoch = at.log[-1][0] if at.log else -1
        return Reply(broker, at.epoch, at.leader_epoch, last_epoch, len(at.log))

    def _replied(self, controller: int, reply: Reply, label: Label) -> tuple[ControllerActed, ...]:
        before = self.tables.controllers[controller]
        found = []
        for decided in self.controlling.decide(before, ("reply", reply)):
            after = self.tables.controller(decided.controller)
            if after != controller:
                found.append(ControllerActed(FREE, after, decided.compared, elected(before, decided.controller, label)))
        return tuple(found)

    def restart(self, controller: int, broker: int, state: int) -> tuple[Restarted, ...]:
        """The process dies and another registers. A dead broker is one that is slow, so both are one step."""
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
        """High watermarks that a new process may find: written down at a clean shutdown, else some time ago."""
        if clean:
            return (before.high_watermark,)
        return (0, before.high_watermark) if self.configuration.checkpoints else (0,)

    def _restarted(
        self, broker: int, before: Broker, decided: Decided, keep: int, checkpoint: int
    ) -> tuple[int, int, Effects | None]:
        """It applies the metadata up to its registration before anything else, and takes its role."""
        controller = self.tables.controller(decided.controller)
        epoch = decided.controller.registrations[broker].epoch
        fresh = replicating.restart(before, epoch, keep, checkpoint)
        view = decided.controller.view()
        if not view.replicas >> broker & 1:
            return controller, self.tables.broker(replicating.unreplicated(fresh)), None
        turn = replicating.learn(broker, fresh, view)
        return controller, self.tables.broker(turn.broker), self._effects(turn, broker)


def clean_shutdown_epoch(before: Broker, *, clean: bool) -> int:
    """What a new process finds of its predecessor's clean shutdown: the broker epoch, or -1 (rules 86-89)."""
    return before.epoch if clean else -1


def elected(before: Controller, after: Controller, label: Label) -> Label:
    """The label, with who leads from here on if that is another."""
    if after.leader in (before.leader, NO_LEADER):
        return label
    return label._replace(detail=f"{label.detail} -> {after.leader + 1}".strip())

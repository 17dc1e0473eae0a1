"""The events of brokers, asked once and remembered: metadata, records, fetches, and answers about the ISR.

Owns the memo of each. A broker's reaction depends on its own state and its input, never on the whole state. So the real
code runs once for each pair that occurs, and the search, which meets the same pairs in very many states, runs at the
speed of dictionaries. The dictionaries are public: the search looks into them before it calls the method that fills
them. The events of the controller are in `controller_events`.

Must never decide anything; `replicating` asks the real broker's objects.
"""

from __future__ import annotations

from tanist.lab.model.partition import replicating
from tanist.lab.model.partition.components import (
    AlterAnswer,
    AlterRequest,
    Answer,
    FollowerReplica,
    Request,
    SentAnswer,
    SentFetch,
    ids_of,
    members,
)
from tanist.lab.model.partition.configuration import Configuration
from tanist.lab.model.partition.outcomes import (
    BrokerChanged,
    Effects,
    Fetched,
    MetadataApplied,
)
from tanist.lab.model.partition.replicating import BrokerResult
from tanist.lab.model.partition.tables import StateTables
from tanist.lab.model.steps import Label, Table
from tanist.replica.isr import AlterPartitionResult


class BrokerEvents:
    """The memos of all events of brokers in one search."""

    def __init__(self, configuration: Configuration, tables: StateTables) -> None:
        self.configuration = configuration
        self.tables = tables
        self.applied: dict[tuple[int, int, int], tuple[MetadataApplied, ...]] = {}
        self.posted: dict[tuple[int, int, int, int], int] = {}
        self.written: dict[tuple[int, int, int], BrokerChanged | None] = {}
        self.fetched: dict[tuple[int, int, int], tuple[Fetched, ...]] = {}
        self.lagging: dict[tuple[int, int], tuple[BrokerChanged, ...]] = {}
        self.alter_responses: dict[tuple[int, int], tuple[BrokerChanged, BrokerChanged | None]] = {}
        self.fetch_requests: dict[tuple[int, int], tuple[BrokerChanged, int]] = {}
        self.fetch_responses: dict[tuple[int, int], tuple[BrokerChanged, bool]] = {}
        self._requests: Table[Request] = Table()
        self._answers: Table[Answer] = Table()
        self._learned: dict[tuple[int, int, int], tuple[int, Effects | None]] = {}
        self._wanted: dict[tuple[int, int], int] = {}
        self._asked: dict[tuple[int, int, int], tuple[int, Effects | None, int]] = {}
        self._taken: dict[tuple[int, int, int], tuple[int, bool]] = {}

    def effects(self, result: BrokerResult, broker: int) -> Effects | None:
        if result.advance is None and not result.proposals:
            return None
        epoch = result.broker.epoch
        number = self.tables.messages.number
        messages = tuple(number(AlterRequest(broker, epoch, proposal)) for proposal in result.proposals)
        return Effects(result.advance, messages, cut=False)

    # -- metadata

    def post(self, broker: int, state: int, inbox: int, view: int) -> int:
        """The metadata log has one more view. A broker applies it at once if it changes nothing for the broker."""
        after = self._catch_up(broker, state, self.tables.post(broker, inbox, view))
        self.posted[broker, state, inbox, view] = after
        return after

    def apply_metadata(self, broker: int, state: int, inbox: int) -> tuple[MetadataApplied, ...]:
        """The broker applies some of its pending views, as one batch."""
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
        """Views that change nothing for a broker are applied at once: the time makes no difference."""
        waiting = self.tables.inboxes[inbox]
        done = 0
        while done < len(waiting) and self._learn(broker, state, waiting[done]) == (state, None):
            done += 1
        return self.tables.inboxes.number(waiting[done:]) if done else inbox

    def join(self, broker: int, state: int, view: int) -> int:
        """The state of a blank broker after its first metadata."""
        return self._learn(broker, state, view)[0]

    def _learn(self, broker: int, state: int, view: int) -> tuple[int, Effects | None]:
        known = self._learned.get((broker, state, view))
        if known is None:
            result = replicating.learn(broker, self.tables.brokers[state], self.tables.views[view])
            known = self._learned[broker, state, view] = self.tables.broker(result.broker), self.effects(result, broker)
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
        result = replicating.write(broker, self.tables.brokers[state], payload, self.configuration.acks)
        found = None
        if result is not None:
            found = BrokerChanged(
                self.tables.broker(result.broker), self.effects(result, broker), Label("write", broker)
            )
        self.written[broker, state, payload] = found
        return found

    def fetch(self, follower: int, state: int, leader: int, leader_state: int) -> tuple[Fetched, ...]:
        """One round of a follower's fetch; or the answer is lost, and only the leader has changed."""
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
            result, answer = replicating.fetch(
                leader, self.tables.brokers[state], self._requests[request], self.configuration.records_a_fetch
            )
            known = self._asked[leader, state, request] = (
                self.tables.broker(result.broker),
                self.effects(result, leader),
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
        """A fetch arrives at a broker. Returns its answer too, as a message; -1 if there is none."""
        sent = self.tables.messages[message]
        if not isinstance(sent, SentFetch):
            raise TypeError(f"{sent} is no fetch")
        after, effects, answer = self._ask(sent.receiver, state, self._requests.number(sent.request))
        answered = self._answers[answer] if answer >= 0 else None
        back = -1 if answered is None else self.tables.messages.number(SentAnswer(answered))
        label = Label("hear", sent.receiver, f"the fetch of {sent.request.broker + 1}")
        found = self.fetch_requests[message, state] = BrokerChanged(after, effects, label), back
        return found

    def handle_fetch_response(self, message: int, state: int) -> tuple[BrokerChanged, bool]:
        """The answer to a fetch arrives; and whether it truncates the follower's log. A former life gets no answer."""
        sent = self.tables.messages[message]
        if not isinstance(sent, SentAnswer):
            raise TypeError(f"{sent} is no answer to a fetch")
        follower = sent.answer.request.broker
        after, cut = state, False
        if self.tables.brokers[state].epoch == sent.answer.request.broker_epoch:
            after, cut = self._take(follower, state, self._answers.number(sent.answer))
        found = self.fetch_responses[message, state] = BrokerChanged(after, None, Label("take", follower)), cut
        return found

    # -- the ISR

    def lag(self, broker: int, state: int) -> tuple[BrokerChanged, ...]:
        """Some or all of the followers that are behind are too slow."""
        before = self.tables.brokers[state]
        behind = members(replicating.late_members(before))
        outcomes = []
        for chosen in range(1, 1 << len(behind)):
            late = sum(1 << member for at, member in enumerate(behind) if chosen >> at & 1)
            result = replicating.lag(broker, before, late)
            if result is not None:
                label = Label("lag", broker, "for " + ",".join(str(number) for number in ids_of(late)))
                outcomes.append(BrokerChanged(self.tables.broker(result.broker), self.effects(result, broker), label))
        known = self.lagging[broker, state] = tuple(outcomes)
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
        turn = replicating.handle_alter_partition_response(broker, before, sent.proposal, result)
        arrived = BrokerChanged(self.tables.broker(turn.broker), self.effects(turn, broker), Label("answer", broker))
        turn = replicating.handle_alter_partition_response(broker, before, sent.proposal, None)
        after, effects = self.tables.broker(turn.broker), self.effects(turn, broker)
        lost = None
        if after != state or effects is not None:
            lost = BrokerChanged(after, effects, Label("unanswered", broker))
        known = self.alter_responses[message, state] = arrived, lost
        return known

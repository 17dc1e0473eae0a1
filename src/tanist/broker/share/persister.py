"""Questions to the coordinators of the states of share partitions, from brokers that lead partitions or have groups.

Owns where each goes, and the asking again: a coordinator may be moving. Those to one broker, of one kind and one group,
go together; of one share partition there is one under way, so that they keep their order. Repeating a question does no
harm: what is combined in the coordinator takes nothing back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tanist.broker.context import NodeContext
from tanist.broker.metadata.internal_topics import InternalTopics
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.peers import Peer, Peers
from tanist.broker.share.state_coordinator import ShareStateCoordinator
from tanist.broker.share.state_requests import StateRequest, message_of, outcomes_in
from tanist.coordinator.share.state_shard import Outcome, SharePartitionId
from tanist.ports import Timer
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import id_text
from tanist.wire.internal_topics import SHARE_STATE_TOPIC, partition_of

_TIMEOUT_MS: Final = 10_000
_RETRY_MS: Final = 100
_PATIENCE_MS: Final = 30_000
_MAX_FRAME_BYTES: Final = 16 << 20
NO_COORDINATOR: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""It is away or moving: another may answer later."""

OnOutcome = Callable[[Outcome], None]


def coordinator_key(where: SharePartitionId) -> str:
    """By which the coordinator of a share partition is found."""
    return f"{where.group_id}:{id_text(where.topic_id)}:{where.partition}"


@dataclass(slots=True, eq=False)
class _Question:
    where: SharePartitionId
    request: StateRequest
    then: OnOutcome
    until_ms: int


class Persister:
    """The questions of this broker."""

    def __init__(
        self,
        context: NodeContext,
        metadata: MetadataView,
        internal_topics: InternalTopics,
        coordinator: Callable[[], ShareStateCoordinator],
    ) -> None:
        """`coordinator` gives the one of this broker, for the states that it has itself."""
        self._context = context
        self._metadata = metadata
        self._internal_topics = internal_topics
        self._coordinator = coordinator
        self._peers: Peers[list[_Question]] = Peers(
            context, metadata.inter_broker_endpoint, "share-state", _MAX_FRAME_BYTES, list, self._send
        )
        self._timers: set[Timer] = set()
        self._closed = False

    def ask(self, where: SharePartitionId, request: StateRequest, then: OnOutcome) -> None:
        """Call `then` with the coordinator's answer, or with an error when it could not be had in time."""
        self._ask(_Question(where, request, then, self._context.clock.now_ms() + _PATIENCE_MS))

    def close(self) -> None:
        """The broker is going down; nobody waits any more."""
        self._closed = True
        for timer in self._timers:
            timer.cancel()
        self._peers.close()

    def _ask(self, question: _Question) -> None:
        if self._closed:
            return
        topic = self._metadata.image.topic(SHARE_STATE_TOPIC)
        if topic is None:
            self._internal_topics.create(SHARE_STATE_TOPIC, _Creation(self, question))
            return
        key = coordinator_key(question.where)
        leader = topic.partitions[partition_of(key, len(topic.partitions))].leader
        if leader == self._context.node_id:
            self._ask_here(question, key)
            return
        peer = self._peers.find(leader)
        if peer is None:
            self.answered(question, Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        peer.queue.append(question)
        peer.schedule()

    def _ask_here(self, question: _Question, key: str) -> None:
        coordinator = self._coordinator()
        found = coordinator.find(key)
        if isinstance(found, int):
            self.answered(question, Outcome(found))
            return
        ticket = partial(self.answered, question)
        wall_ms = self._context.clock.wall_ms()
        decide = partial(question.request.decide, found.shard, question.where, ticket, wall_ms)
        coordinator.carry_out(found, decide, partial(ticket, Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)))

    def _send(self, peer: Peer[list[_Question]]) -> None:
        if not peer.queue or self._closed:
            return
        first = peer.queue[0]
        sent: dict[SharePartitionId, _Question] = {}
        rest: list[_Question] = []
        blocked: set[SharePartitionId] = set()
        for each in peer.queue:
            alike = each.request.KEY == first.request.KEY and each.where.group_id == first.where.group_id
            if alike and each.where not in blocked and each.where not in sent:
                sent[each.where] = each
            else:
                blocked.add(each.where)
                rest.append(each)
        peer.queue = rest
        message = message_of(first.where.group_id, {where: each.request for where, each in sent.items()})
        peer.call(message, first.request.VERSION, _TIMEOUT_MS, partial(self._received, sent))

    def _received(self, sent: dict[SharePartitionId, _Question], response: Any | None) -> None:
        lost = Outcome(ErrorCode.NETWORK_EXCEPTION)
        try:
            group_id = next(iter(sent)).group_id
            outcomes = {} if response is None else outcomes_in(group_id, response)
        except Exception as error:
            self._context.unexpected.met("an answer of a share coordinator", error)
            outcomes, lost = {}, Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)
        for where, question in sent.items():
            self.answered(question, outcomes.get(where, lost))

    def answered(self, question: _Question, outcome: Outcome) -> None:
        """An answer has come; if it says that another may come later, ask again."""
        now_ms = self._context.clock.now_ms()
        if outcome.error not in NO_COORDINATOR or now_ms >= question.until_ms or self._closed:
            question.then(outcome)
            return

        def again() -> None:
            self._timers.discard(timer)
            self._ask(question)

        timer = self._context.clock.call_at(now_ms + _RETRY_MS, again)
        self._timers.add(timer)


class _Creation:
    """A question that waits for the topic."""

    def __init__(self, persister: Persister, question: _Question) -> None:
        self._persister = persister
        self._question = question

    def __call__(self) -> None:
        """The topic is there, or could not be made now: ask again, a little later."""
        self._persister.answered(self._question, Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def fail(self, error: Exception) -> None:
        self()

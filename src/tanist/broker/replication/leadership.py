"""Whether this broker still leads a partition: it must know before it answers from memory, as only a leader may.

A produce needs no such question: it is done when the ISR has it, and an ISR that follows another leader does not fetch
here any more. Answers from memory (a group's committed offsets) are another matter: a leader that is cut off from the
controller goes on believing in itself, while its successor has given newer ones. So, before it answers, it asks:

* the members of its maximal ISR, from which alone a successor can be elected while it is large enough. Each says in
  which leader epoch it is, by refusing an OffsetForLeaderEpoch: a follower of this epoch says NOT_LEADER_OR_FOLLOWER,
  a replica that knows a later one FENCED_LEADER_EPOCH. It says so after the question was put, so this is as good as a
  read of the log;
* the clock, when the ISR is smaller than `min.insync.replicas` and members of the ELR (KIP-966) may be elected, too.
  That takes a leader that is fenced, and no controller fences it within a session of a heartbeat that it answered.

Owns the questions and the connections by which they are asked. Nothing here runs for Produce and Fetch. It must never
take silence for an answer: a client whose coordinator cannot be sure in time is to ask again.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Final

from tanist.broker.context import NodeContext
from tanist.broker.metadata.lifecycle import Lifecycle
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.peers import Peer, Peers
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.purgatory import Purgatory
from tanist.ports import Timer
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tanist.wire.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse

_VERSION: Final = 4
_NO_CONSUMER: Final = -2
"""`replica_id` of a client that is neither a consumer nor a follower (Kafka's "debugging consumer")."""
_ANSWER_MS: Final = 1_000
_RETRY_MS: Final = 50
_MAX_FRAME_BYTES: Final = 1 << 20
_FOLLOWS = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH})
"""Answers of a replica that knows of no later leader: it is in the same epoch, or has yet to hear of it."""


class Confirmation(Enum):
    """Whether this broker led when it was asked to make sure."""

    YES = auto()
    NO = auto()
    UNKNOWN = auto()
    """That could not be found out in time."""


OnConfirmation = Callable[[Confirmation], None]


class _Question:
    """One partition in one leader epoch, until it is known, or its time is up. A `purgatory.Waiter`."""

    def __init__(self, leadership: Leadership, hosted: HostedPartition, confirmed: OnConfirmation) -> None:
        self._leadership = leadership
        self.hosted = hosted
        self.leader_epoch = hosted.leader_epoch
        self.asked: set[int] = set()
        """They have been asked and have not answered."""
        self.heard: set[int] = set()
        """They know of no later leader."""
        self._confirmed = confirmed
        self.done = False

    def finish(self, confirmation: Confirmation) -> None:
        if not self.done:
            self.done = True
            self._leadership.closed(self)
            self._confirmed(confirmation)

    def expire(self) -> None:
        self.finish(Confirmation.UNKNOWN)


class Leadership:
    """Questions that are open, and those who are asked."""

    def __init__(
        self, context: NodeContext, metadata: MetadataView, lifecycle: Lifecycle, purgatory: Purgatory
    ) -> None:
        self._context = context
        self._metadata = metadata
        self._lifecycle = lifecycle
        self._purgatory = purgatory
        self._open: dict[_Question, None] = {}
        self._peers: Peers[list[_Question]] = Peers(
            context, metadata.inter_broker_endpoint, "leadership", _MAX_FRAME_BYTES, list, self._send
        )
        self._timer: Timer | None = None
        self._closed = False

    def __len__(self) -> int:
        """Questions that are open."""
        return len(self._open)

    @property
    def requests_under_way(self) -> int:
        """To the one replica to which there are most."""
        return max((peer.channel.requests_under_way for peer in self._peers), default=0)

    def confirm(self, hosted: HostedPartition, patience_ms: int, confirmed: OnConfirmation) -> None:
        """Find out in `patience_ms` whether this broker leads a partition; at once if no other broker could."""
        question = _Question(self, hosted, confirmed)
        self._open[question] = None
        self._review(question)
        if not question.done:
            self._purgatory.add(self._context.clock.now_ms() + patience_ms, question)

    def heard(self, question: _Question, broker_id: int, error: int) -> None:
        """A replica has answered; -1 if it has not."""
        if question.done:
            return
        if error == ErrorCode.FENCED_LEADER_EPOCH:
            question.finish(Confirmation.NO)
            return
        if error in _FOLLOWS:
            question.heard.add(broker_id)
            self._review(question)
        else:
            self._review_later()

    def closed(self, question: _Question) -> None:
        self._open.pop(question, None)

    def close(self) -> None:
        """The broker is going down; so are the connections of those who wait."""
        self._closed = True
        self._open.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._peers.close()

    def _review(self, question: _Question) -> None:
        """Ask the replicas that have to be asked by what is known now: the ISR may have changed since."""
        hosted, leader = question.hosted, question.hosted.leader
        if leader is None or hosted.stale or hosted.leader_epoch != question.leader_epoch:
            question.finish(Confirmation.NO)
            return
        alone = set(leader.metadata.replicas) == {self._context.node_id}
        missing = leader.maximal_isr - {self._context.node_id} - question.heard
        in_session = not leader.under_min_isr or self._lifecycle.in_session
        if alone or (not missing and in_session):
            question.finish(Confirmation.YES)
            return
        if not in_session:
            self._review_later()
        for broker_id in sorted(missing - question.asked):
            peer = self._peers.find(broker_id)
            if peer is None:
                self._review_later()
            else:
                question.asked.add(broker_id)
                peer.queue.append(question)
                peer.schedule()

    def _send(self, peer: Peer[list[_Question]]) -> None:
        """All questions of a turn in one request."""
        sent, peer.queue = [each for each in peer.queue if not each.done], []
        if not sent:
            return
        topics: dict[str, dict[int, int]] = {}
        for each in sent:
            topics.setdefault(each.hosted.topic, {})[each.hosted.index] = each.leader_epoch
        request = OffsetForLeaderEpochRequest(
            replica_id=_NO_CONSUMER,
            topics=tuple(
                OffsetForLeaderTopic(
                    topic=topic,
                    partitions=tuple(
                        OffsetForLeaderPartition(partition=index, current_leader_epoch=epoch, leader_epoch=epoch)
                        for index, epoch in epochs.items()
                    ),
                )
                for topic, epochs in topics.items()
            ),
        )
        peer.call(request, _VERSION, _ANSWER_MS, partial(self._handle_response, peer.broker_id, sent))

    def _handle_response(
        self, broker_id: int, sent: list[_Question], response: OffsetForLeaderEpochResponse | None
    ) -> None:
        errors: dict[tuple[str, int], int] = {}
        for topic in response.topics if response is not None else ():
            for each in topic.partitions:
                errors[topic.topic, each.partition] = each.error_code
        for question in sent:
            question.asked.discard(broker_id)
            self.heard(question, broker_id, errors.get((question.hosted.topic, question.hosted.index), -1))

    def _review_later(self) -> None:
        if self._timer is None and not self._closed:
            self._timer = self._context.clock.call_at(self._context.clock.now_ms() + _RETRY_MS, self._review_all)

    def _review_all(self) -> None:
        self._timer = None
        for question in list(self._open):
            if not question.done:
                self._review(question)

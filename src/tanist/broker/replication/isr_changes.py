"""AlterPartition from this broker's leaders to the controller (rules 17-21).

At most one request is under way; what is proposed meanwhile goes into the next one, all partitions together. A leader
has one proposal out at a time and hears its outcome here; what a leader does with it is `replica.leader`'s business.

A new ISR takes effect with the metadata that has it, not with an answer that comes before. The controller may have kept
an ELR by a min.insync.replicas of which this broker has yet to hear, and by the old one the high watermark would leave
that ELR behind. (Apache acts on the answer. The simulator then found members of an ELR without committed records.)
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.lifecycle import Lifecycle
from tanist.broker.metadata.view import MetadataView
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.replica_effects import ReplicaEffects
from tanist.events.replication import IsrAnswerIgnored
from tanist.replica.effects import ProposeIsr
from tanist.replica.isr import AlterPartitionResult
from tanist.replica.leader import LeaderState
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from tanist.wire.messages.alter_partition_response import AlterPartitionResponse
from tanist.wire.messages.alter_partition_response import PartitionData as Answer

_VERSION = 3
_TIMEOUT_MS = 10_000


class IsrChanges:
    """The queue of proposals and the one request under way."""

    def __init__(
        self,
        context: NodeContext,
        metadata: MetadataView,
        controller_channel: ControllerChannel,
        lifecycle: Lifecycle,
        effects: ReplicaEffects,
    ) -> None:
        self._context = context
        self._metadata = metadata
        self._controller_channel = controller_channel
        self._lifecycle = lifecycle
        self._effects = effects
        self._queued: dict[tuple[UUID, int], tuple[HostedPartition, LeaderState, ProposeIsr]] = {}
        self._in_flight: dict[tuple[UUID, int], tuple[HostedPartition, LeaderState, ProposeIsr]] = {}
        self._scheduled = False
        self._retry_pending = False

    def __len__(self) -> int:
        """Proposals that wait or are under way."""
        return len(self._queued) + len(self._in_flight)

    def propose(self, hosted: HostedPartition, leader: LeaderState, proposal: ProposeIsr) -> None:
        """Queue a proposal; the newest one of a partition stands (an older one belongs to an older leader epoch)."""
        self._queued[(proposal.topic_id, proposal.partition)] = (hosted, leader, proposal)
        if proposal.delay_ms > 0:
            # Only an attempt that failed as a whole is delayed, so the delay holds for the next attempt as a whole.
            if not self._retry_pending:
                self._retry_pending = True
                self._context.clock.call_at(self._context.clock.now_ms() + proposal.delay_ms, self._retry)
            return
        self._schedule()

    def _schedule(self) -> None:
        if self._queued and not self._in_flight and not self._scheduled and not self._retry_pending:
            self._scheduled = True
            self._context.clock.call_soon(self._send)

    def _send(self) -> None:
        self._scheduled = False
        if self._in_flight or not self._queued or self._context.stopping:
            return
        broker_epoch = self._lifecycle.broker_epoch
        if broker_epoch < 0:
            return  # registered() sends
        self._in_flight, self._queued = self._queued, {}
        topics: dict[UUID, list[PartitionData]] = {}
        for (topic_id, partition), (_, _, proposal) in self._in_flight.items():
            topics.setdefault(topic_id, []).append(
                PartitionData(
                    partition_index=partition,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=tuple(
                        BrokerState(broker_id=broker, broker_epoch=epoch) for broker, epoch in proposal.isr
                    ),
                    leader_recovery_state=1 if proposal.recovering else 0,
                    partition_epoch=proposal.partition_epoch,
                )
            )
        request = AlterPartitionRequest(
            broker_id=self._context.node_id,
            broker_epoch=broker_epoch,
            topics=tuple(
                TopicData(topic_id=topic_id, partitions=tuple(partitions)) for topic_id, partitions in topics.items()
            ),
        )
        self._controller_channel.call(request, _VERSION, _TIMEOUT_MS, self._handle_response)

    def registered(self) -> None:
        """The broker has an epoch (again): proposals that waited for one can go."""
        self._schedule()

    def _handle_response(self, response: AlterPartitionResponse | None) -> None:
        sent, self._in_flight = self._in_flight, {}
        if response is None or response.error_code != 0:
            # Top-level trouble (not the controller, stale broker epoch, no answer) says nothing about the proposals.
            now_ms = self._context.clock.now_ms()
            for hosted, leader, proposal in sent.values():
                if self._still_leads(hosted, leader):
                    self._effects.carry_out(hosted, partial(leader.alter_partition_failed, proposal, now_ms))
            self._schedule()
            return
        now_ms = self._context.clock.now_ms()
        for topic in response.topics:
            for answer in topic.partitions:
                entry = sent.pop((topic.topic_id, answer.partition_index), None)
                if entry is None:
                    continue
                hosted, leader, proposal = entry
                if not self._still_leads(hosted, leader):
                    continue
                if not answer.error_code and not self._is_known(topic.topic_id, answer):
                    # The leader stays pending, as large as before, until the metadata says so.
                    self._context.events.emit(IsrAnswerIgnored(hosted.name, "ahead"))
                    continue
                result = AlterPartitionResult(
                    error=answer.error_code,
                    leader=answer.leader_id,
                    leader_epoch=answer.leader_epoch,
                    isr=answer.isr,
                    partition_epoch=answer.partition_epoch,
                    recovering=answer.leader_recovery_state == 1,
                )
                self._effects.carry_out(hosted, partial(leader.alter_partition_done, proposal, result, now_ms))
        for hosted, leader, proposal in sent.values():  # the controller did not speak of it
            if self._still_leads(hosted, leader):
                result = AlterPartitionResult(error=ErrorCode.UNKNOWN_SERVER_ERROR)
                self._effects.carry_out(hosted, partial(leader.alter_partition_done, proposal, result, now_ms))
        self._schedule()

    def _still_leads(self, hosted: HostedPartition, leader: LeaderState) -> bool:
        """Rule 20: an answer for a state that was replaced meanwhile is dropped."""
        if hosted.leader is leader:
            return True
        self._context.events.emit(IsrAnswerIgnored(hosted.name, "replaced"))
        return False

    def _is_known(self, topic_id: UUID, answer: Answer) -> bool:
        """Whether this broker's metadata has what the answer speaks of."""
        state = self._metadata.image.partition(topic_id, answer.partition_index)
        return state is not None and state.partition_epoch >= answer.partition_epoch

    def _retry(self) -> None:
        self._retry_pending = False
        self._schedule()

"""AlterPartition: a leader proposes another ISR.

Owns the checks of rules 24-26, in Kafka's order, and the answers of 27-29. Because of the broker epochs of KIP-903, a
replica whose log is that of an earlier incarnation stays out of the ISR (safety A5, A6); partition epochs keep an old
request from undoing a newer change (A7). Must change partitions only by `partition_change`.
"""

from __future__ import annotations

from uuid import UUID

from tanist.controller.decision import ControllerSettings, Decision
from tanist.controller.image.image import MetadataImage, PartitionState
from tanist.controller.image.partition_state import RECOVERED, RECOVERING
from tanist.controller.partitions.change import Intent, merge, partition_change
from tanist.controller.partitions.context import PartitionContexts
from tanist.events.metadata import AlterPartitionRefused, StaleBrokerEpochRefused
from tanist.events.stream import NOBODY, Events
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState
from tanist.wire.messages.alter_partition_request import PartitionData as Proposed
from tanist.wire.messages.alter_partition_response import AlterPartitionResponse, PartitionData, TopicData
from tanist.wire.schema import MetadataRecord

ANY_EPOCH = -1
"""A leader that does not know a follower's broker epoch, or a request too old to carry it."""


def alter_partition(
    image: MetadataImage, request: AlterPartitionRequest, settings: ControllerSettings, events: Events = NOBODY
) -> Decision:
    """Rule 24, then each partition by itself; none depends on another, so the records may be split into batches."""
    registration = image.brokers.get(request.broker_id)
    if registration is None or registration.epoch != request.broker_epoch:
        events.emit(StaleBrokerEpochRefused("AlterPartition", request.broker_id, request.broker_epoch))
        return Decision(response=AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    change = _IsrChange(image, settings, request.broker_id, events)
    topics = tuple(
        TopicData(
            topic_id=topic.topic_id,
            partitions=tuple(change.decide(topic.topic_id, proposed) for proposed in topic.partitions),
        )
        for topic in request.topics
    )
    return Decision(records=tuple(change.records), response=AlterPartitionResponse(topics=topics), atomic=False)


class _IsrChange:
    """One request. A partition that is named twice is judged the second time by its state after the first."""

    __slots__ = ("_changed", "_contexts", "_events", "_image", "_sender", "records")

    def __init__(self, image: MetadataImage, settings: ControllerSettings, sender: int, events: Events) -> None:
        self._events = events
        self._image = image
        self._contexts = PartitionContexts(image, settings)
        self._sender = sender
        self._changed: dict[tuple[UUID, int], PartitionState] = {}
        self.records: list[MetadataRecord] = []

    def decide(self, topic_id: UUID, proposed: Proposed) -> PartitionData:
        if topic_id not in self._image.topics:
            return self._refused(topic_id, proposed, ErrorCode.UNKNOWN_TOPIC_ID)
        key = (topic_id, proposed.partition_index)
        before = self._changed.get(key) or self._image.partition(*key)
        if before is None:
            return self._refused(topic_id, proposed, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        members = _members(proposed)
        error = self._error(before, proposed, members)
        if error is not ErrorCode.NONE:
            return self._refused(topic_id, proposed, error)
        intent = Intent(
            topic_id=topic_id,
            partition=proposed.partition_index,
            target_isr=tuple(member.broker_id for member in members),
            election=self._contexts.election(topic_id),  # rule 29
            target_recovering=proposed.leader_recovery_state == RECOVERING,
        )
        record = partition_change(before, intent, self._contexts.of(topic_id, before))
        after = before
        if record is not None:  # rule 28: no change, no record: a success
            after = self._changed[key] = merge(before, record)
            self.records.append(record)
        if after.leader != self._sender:
            # Rule 27: the ISR ended a reassignment that takes the sender away. It is done, but not for the sender to
            # know.
            return self._refused(topic_id, proposed, ErrorCode.NEW_LEADER_ELECTED)
        return PartitionData(
            partition_index=proposed.partition_index,
            leader_id=after.leader,
            leader_epoch=after.leader_epoch,
            isr=after.isr,
            leader_recovery_state=RECOVERING if after.recovering else RECOVERED,
            partition_epoch=after.partition_epoch,
        )

    def _refused(self, topic_id: UUID, proposed: Proposed, error: ErrorCode) -> PartitionData:
        topic = self._image.topics.get(topic_id)
        name = f"{topic_id if topic is None else topic.name}-{proposed.partition_index}"
        self._events.emit(AlterPartitionRefused(name, self._sender, error.name))
        return PartitionData(partition_index=proposed.partition_index, error_code=error)

    def _error(self, before: PartitionState, proposed: Proposed, members: tuple[BrokerState, ...]) -> ErrorCode:
        """Rule 25; the order matters to the leader, which treats the answers differently (rule 18)."""
        if proposed.leader_epoch > before.leader_epoch or proposed.partition_epoch > before.partition_epoch:
            return ErrorCode.NOT_CONTROLLER  # the leader knows a newer epoch: this node is no longer the controller
        if proposed.leader_epoch < before.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if self._sender != before.leader:
            return ErrorCode.INVALID_REQUEST
        if proposed.partition_epoch < before.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        isr = [member.broker_id for member in members]
        if len(set(isr)) != len(isr) or not set(isr) <= set(before.replicas) or before.leader not in isr:
            return ErrorCode.INVALID_REQUEST
        recovering = proposed.leader_recovery_state == RECOVERING
        if proposed.leader_recovery_state not in (RECOVERED, RECOVERING):
            return ErrorCode.INVALID_REQUEST
        if recovering and (len(isr) > 1 or not before.recovering):
            return ErrorCode.INVALID_REQUEST
        if not all(self._eligible(member) for member in members):
            return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.NONE

    def _eligible(self, member: BrokerState) -> bool:
        """Rule 26, for every member, also those that are in the ISR already."""
        registration = self._image.brokers.get(member.broker_id)
        if registration is None or not registration.active:
            return False
        return member.broker_epoch in (ANY_EPOCH, registration.epoch)


def _members(proposed: Proposed) -> tuple[BrokerState, ...]:
    """Version 3 has epochs (KIP-903); version 2 has bare ids, whose epochs are not checked (rule 26)."""
    if proposed.new_isr_with_epochs:
        return proposed.new_isr_with_epochs
    return tuple(BrokerState(broker_id=broker_id, broker_epoch=ANY_EPOCH) for broker_id in proposed.new_isr)

"""A member of the consumer protocol (KIP-848): a sequence of heartbeats, which carry everything.

The coordinator assigns. The member takes what it is assigned, gives up the rest, and reports it at once, because others
may wait for it. A heartbeat without an answer may not have arrived, or its answer was lost with an assignment in it:
the next one says everything, and so the coordinator does, too.
"""

from __future__ import annotations

from tanist.client.epoch_member import JOINING, EpochMember
from tanist.client.membership import Effects, MemberSettings
from tanist.client.topic_partition import TopicPartition
from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from tanist.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse


class ConsumerGroupMember(EpochMember):
    """A member of a consumer group."""

    ANSWER = ConsumerGroupHeartbeatResponse

    def __init__(self, settings: MemberSettings, member_id: str) -> None:
        super().__init__(settings, member_id)
        self._owned: frozenset[TopicPartition] = frozenset()
        self._has_changed = False
        """Its partitions differ from those in its last heartbeat."""

    def _continue(self) -> Effects:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.settings.group,
            member_id=self.member_id,
            instance_id=self.settings.instance_id,
            member_epoch=self.epoch,
            topic_partitions=None,
        )
        if self._says_all or not self.is_in:
            request.rebalance_timeout_ms = self.settings.rebalance_timeout_ms
            request.subscribed_topic_names = self.settings.topics
        if self._says_all or not self.is_in or self._has_changed:
            request.topic_partitions = tuple(
                TopicPartitions(topic_id=self._view.topics[name].topic_id, partitions=tuple(indexes))
                for name, indexes in indexes_by_topic(self._owned).items()
            )
        self._has_changed = False
        yield from self._ask(request)

    def _heard(self, answer: ConsumerGroupHeartbeatResponse) -> Effects:
        self.epoch = answer.member_epoch
        pause_ms = answer.heartbeat_interval_ms
        if answer.assignment is not None:
            before = self._owned
            yield from self._assign(answer.assignment)
            if self._owned != before:
                pause_ms = 0
        yield from self._wait(pause_ms)

    def _own(self, partitions: frozenset[TopicPartition]) -> Effects:
        self._has_changed = self._has_changed or partitions != self._owned
        self._owned = partitions
        yield from super()._own(partitions)

    def _rejoin(self) -> None:
        super()._rejoin()
        self._owned = frozenset()

    def _goodbye(self) -> Effects:
        yield from self._ask(
            ConsumerGroupHeartbeatRequest(
                group_id=self.settings.group,
                member_id=self.member_id,
                instance_id=self.settings.instance_id,
                member_epoch=self._last_epoch,
                topic_partitions=None,
            )
        )
        self.epoch, self._owned = JOINING, frozenset()

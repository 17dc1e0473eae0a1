"""A member of the consumer protocol (KIP-848): a sequence of heartbeats, which carry everything.

The coordinator assigns. The member takes what it is assigned, gives up the rest, and reports it at once, because others
may wait for it. A heartbeat without an answer may not have arrived, or its answer was lost with an assignment in it:
the next one says everything, and so the coordinator does, too.
"""

from __future__ import annotations

from typing import Final

from tanist.client.errors import Meaning, meaning_in
from tanist.client.membership import Assigned, Effects, GroupMember, Lost, MemberSettings
from tanist.client.topic_partition import TopicPartition
from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from tanist.wire.messages.consumer_group_heartbeat_response import Assignment, ConsumerGroupHeartbeatResponse
from tanist.wire.schema import Response

JOINING: Final = 0
LEAVING: Final = -1


class ConsumerGroupMember(GroupMember):
    """Its id is of its own making, and the same for its whole life."""

    def __init__(self, settings: MemberSettings, member_id: str) -> None:
        super().__init__(settings, member_id)
        self.epoch = JOINING
        self._owned: frozenset[TopicPartition] = frozenset()
        self._says_all = True
        """The last heartbeat may not have arrived."""
        self._has_changed = False
        """Its partitions differ from those in its last heartbeat."""
        self._unresolved: Assignment | None = None
        """The last assignment, while it has topics that the member does not know yet."""
        self._begun = False

    @property
    def is_in(self) -> bool:
        return self.epoch > JOINING

    def _continue(self) -> Effects:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.settings.group, member_id=self.member_id, member_epoch=self.epoch, topic_partitions=None
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

    def _take(self, answer: Response | None) -> Effects:
        meaning = meaning_in(answer)
        if meaning is not Meaning.DONE or not isinstance(answer, ConsumerGroupHeartbeatResponse):
            self._says_all = True
            if meaning is Meaning.JOIN and self.is_in:
                self.epoch, self._owned, self._unresolved = JOINING, frozenset(), None
                yield Lost()
            yield from self._try_again(answer)
            return
        self._says_all = False
        self.epoch = answer.member_epoch
        pause_ms = answer.heartbeat_interval_ms
        if answer.assignment is not None:
            before = self._owned
            yield from self._assign(answer.assignment)
            if self._owned != before:
                pause_ms = 0
        yield from self._wait(pause_ms)

    def _assign(self, assignment: Assignment) -> Effects:
        """Take the partitions of known topics. Another broker may have assigned one that this member does not know."""
        names = {topic.topic_id: name for name, topic in self._view.topics.items()}
        partitions = frozenset(
            (names[topic.topic_id], index)
            for topic in assignment.topic_partitions
            if topic.topic_id in names
            for index in topic.partitions
        )
        if all(topic.topic_id in names for topic in assignment.topic_partitions):
            self._unresolved = None
        else:
            self._unresolved = assignment
            yield from self._watch_topics(self.settings.backoff_ms)
        self._has_changed = self._has_changed or partitions != self._owned
        self._owned = partitions
        yield Assigned(partitions)

    def _topics_learnt(self) -> Effects:
        if not self._begun:
            self._begun = True
            yield from self._continue()
        elif self._unresolved is not None and self.is_in:
            yield from self._assign(self._unresolved)

    def _goodbye(self) -> Effects:
        yield from self._ask(
            ConsumerGroupHeartbeatRequest(
                group_id=self.settings.group, member_id=self.member_id, member_epoch=LEAVING, topic_partitions=None
            )
        )
        self.epoch, self._owned = JOINING, frozenset()

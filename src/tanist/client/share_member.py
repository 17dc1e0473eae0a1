"""A member of a share group (KIP-932), as its coordinator sees it: a sequence of heartbeats.

As in the consumer protocol the coordinator assigns; a member gives up nothing first, because members share partitions.
What it fetches and says of records is between it and the partitions' leaders (`share_session`).
"""

from __future__ import annotations

from tanist.client.errors import Meaning, meaning_in
from tanist.client.membership import Assigned, Effects, GroupMember, Lost, MemberSettings
from tanist.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tanist.wire.messages.share_group_heartbeat_response import Assignment, ShareGroupHeartbeatResponse
from tanist.wire.schema import Response

_JOINING, _LEAVING = 0, -1


class ShareGroupMember(GroupMember):
    """Its id is of its own making, and the same for its whole life."""

    def __init__(self, settings: MemberSettings, member_id: str) -> None:
        super().__init__(settings, member_id)
        self.epoch = _JOINING
        self._says_all = True
        """The last heartbeat may not have arrived."""
        self._unresolved: Assignment | None = None
        """The last assignment, while it has topics that the member does not know yet."""
        self._begun = False

    @property
    def is_in(self) -> bool:
        return self.epoch > _JOINING

    def _continue(self) -> Effects:
        says_all = self._says_all or not self.is_in
        yield from self._ask(self._heartbeat(self.settings.topics if says_all else None))

    def _heartbeat(self, topics: tuple[str, ...] | None) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self.settings.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            subscribed_topic_names=topics,
        )

    def _take(self, answer: Response | None) -> Effects:
        meaning = meaning_in(answer)
        if meaning is not Meaning.DONE or not isinstance(answer, ShareGroupHeartbeatResponse):
            self._says_all = True
            if meaning is Meaning.JOIN and self.is_in:
                self.epoch, self._unresolved = _JOINING, None
                yield Lost()
            yield from self._try_again(answer)
            return
        self._says_all = False
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            yield from self._assign(answer.assignment)
        yield from self._wait(answer.heartbeat_interval_ms)

    def _assign(self, assignment: Assignment) -> Effects:
        """Take the partitions of known topics, and learn the others."""
        names = {topic.topic_id: name for name, topic in self._view.topics.items()}
        self._unresolved = None
        if not all(topic.topic_id in names for topic in assignment.topic_partitions):
            self._unresolved = assignment
            yield from self._watch_topics(self.settings.backoff_ms)
        yield Assigned(
            frozenset(
                (names[topic.topic_id], index)
                for topic in assignment.topic_partitions
                if topic.topic_id in names
                for index in topic.partitions
            )
        )

    def _topics_learnt(self) -> Effects:
        if not self._begun:
            self._begun = True
            yield from self._continue()
        elif self._unresolved is not None and self.is_in:
            yield from self._assign(self._unresolved)

    def _goodbye(self) -> Effects:
        self.epoch = _LEAVING
        yield from self._ask(self._heartbeat(None))
        self.epoch = _JOINING

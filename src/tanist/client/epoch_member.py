"""A member whose coordinator assigns, and which says in each heartbeat its epoch: of consumer and of share groups."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Final

from tanist.client.errors import Meaning, meaning_in
from tanist.client.membership import Assigned, Effects, GroupMember, Lost, MemberSettings
from tanist.client.topic_partition import TopicPartition
from tanist.wire.schema import Response

JOINING: Final = 0
LEAVING: Final = -1
LEAVING_STATIC: Final = -2
"""For a while: what it has is kept for the member that takes its place."""


class EpochMember(GroupMember):
    """Its id is of its own making, and the same for its whole life."""

    ANSWER: ClassVar[type[Response]]
    """Of a heartbeat."""

    def __init__(self, settings: MemberSettings, member_id: str) -> None:
        super().__init__(settings, member_id)
        self.epoch = JOINING
        self._says_all = True
        """The last heartbeat may not have arrived."""
        self._unresolved: Any | None = None
        """The last assignment, while it has topics that the member does not know yet."""
        self._begun = False

    @property
    def is_in(self) -> bool:
        return self.epoch > JOINING

    @abstractmethod
    def _heard(self, answer: Any) -> Effects:
        """A heartbeat was taken: what comes of its answer."""

    @property
    def _last_epoch(self) -> int:
        """The epoch of a goodbye."""
        return LEAVING if self.settings.instance_id is None else LEAVING_STATIC

    def _own(self, partitions: frozenset[TopicPartition]) -> Effects:
        """The member has these partitions now."""
        yield Assigned(partitions)

    def _take(self, answer: Response | None) -> Effects:
        meaning = meaning_in(answer)
        if meaning is not Meaning.DONE or not isinstance(answer, self.ANSWER):
            self._says_all = True
            if meaning is Meaning.JOIN and self.is_in:
                self._rejoin()
                yield Lost()
            yield from self._try_again(answer)
            return
        self._says_all = False
        yield from self._heard(answer)

    def _rejoin(self) -> None:
        self.epoch, self._unresolved = JOINING, None

    def _assign(self, assignment: Any) -> Effects:
        """Take the partitions of known topics. Another broker may have assigned one that this member does not know."""
        names = {topic.topic_id: name for name, topic in self._view.topics.items()}
        self._unresolved = None
        if not all(topic.topic_id in names for topic in assignment.topic_partitions):
            self._unresolved = assignment
            yield from self._watch_topics(self.settings.backoff_ms)
        yield from self._own(
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

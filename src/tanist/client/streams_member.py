"""A member of a Streams group (KIP-1071): a sequence of heartbeats, in which a coordinator assigns tasks.

The first one brings the application's topology. The member goes on with what it has until its driver has given up what
the last answer takes away (`moved`), and says so at once, because others may wait for it. After a heartbeat without an
answer it says all that it has: what it was given and has not begun it forgets, and hears of it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from tanist.client.epoch_member import JOINING, EpochMember
from tanist.client.membership import Effect, Effects, MemberSettings
from tanist.client.topic_partition import TopicPartition
from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, TaskIds, Topology
from tanist.wire.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse

Task: TypeAlias = TopicPartition
"""Subtopology and partition."""

_NOTHING: Final[frozenset[Task]] = frozenset()


class StreamsGroupMember(EpochMember):
    """A member of a Streams group. `Assigned` has the tasks that it is to work on, and `standbys` those to follow."""

    ANSWER = StreamsGroupHeartbeatResponse

    def __init__(self, settings: MemberSettings, member_id: str, process_id: str, topology: Topology) -> None:
        """`process_id`: members of one process have no task twice."""
        super().__init__(settings, member_id)
        self.process_id = process_id
        self.topology = topology
        self.standbys = _NOTHING
        self.status: frozenset[int] = frozenset()
        """What is the matter with the group, by the last answer."""
        self._actives = _NOTHING
        self._has = (_NOTHING, _NOTHING)
        """The tasks that it works on, and those that it follows."""
        self._has_changed = False

    def moved(self) -> list[Effect]:
        """It has given up what it was to give up, and begins with what it was given."""
        if not self.is_in or self._has == (self._actives, self.standbys):
            return []
        self._has, self._has_changed = (self._actives, self.standbys), True
        if self._pause is None:
            return []
        self._pause = None
        return list(self._continue())

    def _continue(self) -> Effects:
        request = StreamsGroupHeartbeatRequest(
            group_id=self.settings.group,
            member_id=self.member_id,
            instance_id=self.settings.instance_id,
            member_epoch=self.epoch,
        )
        if self._says_all or not self.is_in:
            request.rebalance_timeout_ms = self.settings.rebalance_timeout_ms
            request.process_id = self.process_id
        if not self.is_in:
            request.topology = self.topology
        if self._says_all or not self.is_in or self._has_changed:
            if self._says_all:
                self._actives, self.standbys = self._has
            request.active_tasks, request.standby_tasks = map(_ids, self._has)
            request.warmup_tasks = ()
        self._has_changed = False
        yield from self._ask(request)

    def _heard(self, answer: StreamsGroupHeartbeatResponse) -> Effects:
        self.epoch = answer.member_epoch
        self.status = frozenset(each.status_code for each in answer.status or ())
        if answer.active_tasks is not None:
            self._actives, self.standbys = _tasks(answer.active_tasks), _tasks(answer.standby_tasks or ())
            yield from self._own(self._actives)
        yield from self._wait(0 if self._has_changed else answer.heartbeat_interval_ms)

    def _rejoin(self) -> None:
        super()._rejoin()
        self._forget()

    def _forget(self) -> None:
        self._actives, self.standbys, self._has = _NOTHING, _NOTHING, (_NOTHING, _NOTHING)

    def _goodbye(self) -> Effects:
        yield from self._ask(
            StreamsGroupHeartbeatRequest(
                group_id=self.settings.group,
                member_id=self.member_id,
                instance_id=self.settings.instance_id,
                member_epoch=self._last_epoch,
            )
        )
        self.epoch = JOINING
        self._forget()


def _ids(tasks: Iterable[Task]) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=name, partitions=tuple(indexes)) for name, indexes in indexes_by_topic(tasks).items()
    )


def _tasks(ids: Iterable[Any]) -> frozenset[Task]:
    return frozenset((each.subtopology_id, index) for each in ids for index in each.partitions)

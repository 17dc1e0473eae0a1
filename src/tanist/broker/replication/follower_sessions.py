"""Fetch sessions of followers (KIP-227), at the leader: a request costs in proportion to the partitions that changed.

A session knows all partitions that its follower fetches, with the position that the follower last gave for each. A
partition is *active* if the next request has to look at it: the follower has named it, its log or high watermark has
moved, its role or ISR has changed, or the last request did not find it caught up. It is *caught up* once the follower
has all of the log, is in the ISR and has heard everything: then a request says for it, without a look, that the
follower is still there (rule 13), which its leader counts when it becomes active again.

A connection has one session at most, and a session lives as long as its connection: a follower that connects anew
begins with a full request, which is always right. So does one that has lost step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from tanist.broker.replication.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, PARTITIONS_MAX, Topic
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.ports import Random
from tanist.replica.leader import LeaderState
from tanist.wire.errors import ErrorCode
from tanist.wire.fetch import FetchCall, FetchedPartition, FetchTarget

_IDS: Final = 2**31 - 1


class SessionWait(Protocol):
    """The request of a session that waits for news."""

    def try_complete(self, followed: FollowedPartition, hosted: HostedPartition) -> None:
        """A partition has changed: answer if that is enough."""

    def expire(self) -> None:
        """Answer with what there is."""


class SessionConnection(Protocol):
    """The connection of a follower, which closes its session when it ends."""

    follower_session: FollowerSession | None


class _Reported(NamedTuple):
    """The last report to the follower on a partition, beyond its records."""

    high_watermark: int
    log_start_offset: int


class FollowedPartition:
    """A partition in a session: where its follower is, and what it has heard. A `hosted_partition.FollowerWatch`."""

    __slots__ = ("_caught_up_epoch", "_caught_up_with", "hosted", "reported", "session", "target", "topic")

    def __init__(self, session: FollowerSession, topic: Topic, target: FetchTarget) -> None:
        self.session = session
        self.topic = topic
        self.target = target
        self.hosted: HostedPartition | None = None
        """The partition that tells of its changes: the one that was last read."""
        self.reported: _Reported | None = None
        self._caught_up_with: LeaderState | None = None
        self._caught_up_epoch = -1

    def activate(self) -> None:
        """The partition changes: the next request looks at it."""
        active = self.session.active
        if self not in active:
            active[self] = None
            leader = None if self.hosted is None else self.hosted.leader
            if leader is not None and leader is self._caught_up_with and leader.leader_epoch == self._caught_up_epoch:
                leader.follower_was_there(self.session.replica_id, self.session.last_fetch_ms)
            self._caught_up_with = None

    def partition_changed(self) -> None:
        """The partition has changed, and what was appended is written."""
        self.activate()
        wait, hosted = self.session.wait, self.hosted
        if wait is not None and hosted is not None:
            wait.try_complete(self, hosted)

    def role_changed(self) -> None:
        """The partition has another leader epoch, or is gone."""
        self.activate()
        if self.session.wait is not None:
            self.session.wait.expire()

    def watch(self, hosted: HostedPartition | None) -> None:
        """Hear of the changes of this partition, and of no other."""
        if self.hosted is not hosted:
            if self.hosted is not None:
                self.hosted.followers.remove(self)
            if hosted is not None:
                hosted.followers.append(self)
            self.hosted = hosted

    def has_news(self, result: FetchedPartition) -> bool:
        """Whether an answer has to have this result: the follower does not know it yet."""
        return (
            result.records is not None
            or bool(result.error)
            or result.diverging_epoch is not None
            or self.reported != (result.high_watermark, result.log_start_offset)
        )

    def report(self, result: FetchedPartition) -> None:
        """The result is sent. Errors and divergences are reported until they are gone."""
        if result.error or result.diverging_epoch is not None:
            self.reported = None
        else:
            self.reported = _Reported(result.high_watermark, result.log_start_offset)

    def deactivate_if_caught_up(self, result: FetchedPartition) -> None:
        """A request that has just come has read it: need the next one look again?"""
        hosted = self.hosted
        leader = None if hosted is None else hosted.leader
        if (
            hosted is not None
            and leader is not None
            and not self.has_news(result)
            and not hosted.dirty
            and self.target.fetch_offset == hosted.log.log_end_offset
            and self.session.replica_id in leader.maximal_isr
        ):
            self._caught_up_with, self._caught_up_epoch = leader, leader.leader_epoch
            del self.session.active[self]


class FollowerSession:
    """One follower's session with this broker."""

    __slots__ = (
        "_all",
        "active",
        "by_id",
        "epoch",
        "id",
        "last_fetch_ms",
        "partitions",
        "replica_epoch",
        "replica_id",
        "wait",
    )

    def __init__(
        self, session_id: int, call: FetchCall, now_ms: int, all_sessions: dict[FollowerSession, None]
    ) -> None:
        """`all_sessions`: those of the broker, which have this one until it is closed."""
        self.id = session_id
        self._all = all_sessions
        self.epoch = 1
        """Of the next request."""
        self.replica_id = call.replica_id
        self.replica_epoch = call.replica_epoch
        self.last_fetch_ms = now_ms
        self.partitions: dict[tuple[Topic, int], FollowedPartition] = {}
        self.active: dict[FollowedPartition, None] = {}
        """In the order in which they are read: those that had records go to the end, so that none is starved."""
        self.by_id = any(isinstance(topic, UUID) for topic, _ in call.topics)
        self.wait: SessionWait | None = None
        self.take(call)

    def take(self, call: FetchCall) -> None:
        """Take the partitions that the follower names."""
        partitions = self.partitions
        for topic, targets in call.topics:
            for target in targets:
                place = (topic, target.partition)
                followed = partitions.get(place)
                if followed is None:
                    followed = partitions[place] = FollowedPartition(self, topic, target)
                followed.target = target
                followed.reported = None
                followed.activate()
        for topic, indexes in call.forgotten:
            for index in indexes:
                followed = partitions.pop((topic, index), None)
                if followed is not None:
                    followed.watch(None)
                    self.active.pop(followed, None)

    def activate_all(self) -> None:
        for followed in self.partitions.values():
            followed.activate()

    def read_last(self, followed: FollowedPartition) -> None:
        """It had records: the others come first the next time."""
        del self.active[followed]
        self.active[followed] = None

    def close(self) -> None:
        """The follower does not go on with it: hear of no changes any more."""
        self._all.pop(self, None)
        for followed in self.partitions.values():
            followed.watch(None)
        self.partitions.clear()
        self.active.clear()
        self.wait = None


class FollowerSessions:
    """The sessions of all followers. They are not among those of consumers: no consumer can displace a follower."""

    def __init__(self, random: Random, slots: int) -> None:
        self._random = random
        self._slots = slots
        self._sessions: dict[FollowerSession, None] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[FollowerSession]:
        return iter(self._sessions)

    def made(self, hosted: HostedPartition) -> None:
        """The log of a new replica is there: sessions that have the partition already hear of its changes."""
        for session in self._sessions:
            followed = session.partitions.get((hosted.topic_id if session.by_id else hosted.topic, hosted.index))
            if followed is not None:
                followed.watch(hosted)

    def resolve(self, call: FetchCall, connection: SessionConnection, now_ms: int) -> FollowerSession | int | None:
        """The session of a request, which it has taken; an error; or None for no session.

        A full request ends the session before, and begins another.
        """
        session = connection.follower_session
        if call.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session is not None:
                session.close()
                connection.follower_session = None
            return None if call.session_epoch == FINAL_EPOCH else self._begin(call, connection, now_ms)
        if session is None or session.id != call.session_id or session.replica_id != call.replica_id:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if call.session_epoch != session.epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if any(isinstance(topic, UUID) != session.by_id for topic, _ in call.topics):
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.epoch = session.epoch % _IDS + 1
        if call.replica_epoch != session.replica_epoch:
            # The broker has registered anew: its leaders are to compare the epoch with what they know (rule 16).
            session.replica_epoch = call.replica_epoch
            session.activate_all()
        session.take(call)
        session.last_fetch_ms = now_ms
        if len(session.partitions) > PARTITIONS_MAX:
            session.close()
            connection.follower_session = None
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        return session

    def _begin(self, call: FetchCall, connection: SessionConnection, now_ms: int) -> FollowerSession | None:
        count = sum(len(targets) for _, targets in call.topics)
        if len(self._sessions) >= self._slots or not 0 < count <= PARTITIONS_MAX:
            return None
        session = FollowerSession(1 + self._random.below(_IDS), call, now_ms, self._sessions)
        self._sessions[session] = None
        connection.follower_session = session
        return session

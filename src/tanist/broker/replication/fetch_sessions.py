"""Incremental fetch sessions (KIP-227): what a consumer reads is said once, and then only what changes.

A request in a session names the partitions that are new or whose offset has moved, and its answer those that have
something to say. Numbered requests keep both sides in step: one that was lost, or comes twice, ends the session, and
its client begins a new one with a full request, which is always right.

A consumer of few partitions gets no session: what it would save is less than the plan of `api.fetch` saves already,
which needs requests that begin alike. Declining is part of the protocol (session id 0).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from tanist.ports import Random
from tanist.wire.errors import ErrorCode
from tanist.wire.fetch import FetchCall, FetchedPartition, FetchTarget

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_IDS: Final = 2**31 - 1
LEAST_PARTITIONS: Final = 8
"""With fewer there is no session."""
PARTITIONS_MAX: Final = 100_000
"""Of one session; a client that reads more asks in full."""

Topic: TypeAlias = "str | UUID"
Answers = list[tuple[Topic, list[FetchedPartition]]]


class _Reported(NamedTuple):
    """The last report to the client on a partition, beyond its records."""

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class FetchSession:
    """One client's session with this broker. It outlives the connection it began on."""

    __slots__ = ("by_id", "epoch", "id", "replica_id", "reported", "targets", "used_ms")

    def __init__(self, session_id: int, call: FetchCall, now_ms: int) -> None:
        self.id = session_id
        self.epoch = 1
        """Of the next request."""
        self.used_ms = now_ms
        self.replica_id = call.replica_id
        self.by_id = any(isinstance(topic, UUID) for topic, _ in call.topics)
        self.targets: OrderedDict[tuple[Topic, int], FetchTarget] = OrderedDict()
        """In the order in which they are read: those that had records go to the end, so that none is starved."""
        self.reported: dict[tuple[Topic, int], _Reported] = {}
        self.take(call)

    def take(self, call: FetchCall) -> None:
        """Take the partitions that the client reads from now on."""
        for topic, parts in call.topics:
            for target in parts:
                self.targets[(topic, target.partition)] = target
        for topic, indexes in call.forgotten:
            for index in indexes:
                self.targets.pop((topic, index), None)
                self.reported.pop((topic, index), None)

    def topics(self) -> list[tuple[Topic, list[FetchTarget]]]:
        """All that is to be read. Neighbours of one topic stand together, and a topic may come more than once."""
        topics: list[tuple[Topic, list[FetchTarget]]] = []
        for (topic, _), target in self.targets.items():
            if topics and topics[-1][0] == topic:
                topics[-1][1].append(target)
            else:
                topics.append((topic, [target]))
        return topics

    def news(
        self, answers: Sequence[tuple[Topic, Sequence[FetchedPartition]]], *, whole: bool, answered: bool = True
    ) -> Answers:
        """Of what was read, what the client does not know yet; all of it if the answer is to be `whole`.

        `answered`: this is its answer.
        """
        by_topic: dict[Topic, list[FetchedPartition]] = {}
        for topic, results in answers:
            for result in results:
                place = (topic, result.partition)
                reported = _Reported(result.high_watermark, result.last_stable_offset, result.log_start_offset)
                unusual = bool(result.error) or result.diverging_epoch is not None
                if result.records is not None:
                    if answered:
                        self.targets.move_to_end(place)
                elif not (
                    whole or unusual or result.preferred_read_replica >= 0 or self.reported.get(place) != reported
                ):
                    continue
                if not answered:
                    pass
                elif unusual:
                    self.reported.pop(place, None)  # reported again, until the error is gone
                else:
                    self.reported[place] = reported
                by_topic.setdefault(topic, []).append(result)
        return list(by_topic.items())


class FetchSessions:
    """The sessions of a broker: no more than `max.incremental.fetch.session.cache.slots`."""

    def __init__(self, random: Random, slots: int, eviction_ms: int) -> None:
        self._random = random
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        """The one that was not used for longest comes first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(self, call: FetchCall, now_ms: int) -> FetchSession | int | None:
        """The session that a request belongs to, its call made a full one; an error; or None for no session.

        A request in full ends the session that it names, and may begin another.
        """
        if call.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(call.session_id, None)
            return None if call.session_epoch == FINAL_EPOCH else self._begin(call, now_ms)
        session = self._sessions.get(call.session_id)
        if session is None or session.replica_id != call.replica_id:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if call.session_epoch != session.epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if any(isinstance(topic, UUID) != session.by_id for topic, _ in call.topics):
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.take(call)
        if not session.targets or len(session.targets) > PARTITIONS_MAX:
            del self._sessions[session.id]
            if session.targets:
                return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        session.epoch = session.epoch % _IDS + 1
        session.used_ms = now_ms
        if session.id in self._sessions:
            self._sessions.move_to_end(session.id)
        call.topics = session.topics()
        return session

    def end(self, session: FetchSession) -> None:
        """Its client does not know it."""
        self._sessions.pop(session.id, None)

    def _begin(self, call: FetchCall, now_ms: int) -> FetchSession | None:
        if not LEAST_PARTITIONS <= sum(len(parts) for _, parts in call.topics) <= PARTITIONS_MAX:
            return None
        if len(self._sessions) >= self._slots and not self._evict(now_ms):
            return None
        session_id = 1 + self._random.below(_IDS)
        while session_id in self._sessions:
            session_id = 1 + self._random.below(_IDS)
        session = self._sessions[session_id] = FetchSession(session_id, call, now_ms)
        return session

    def _evict(self, now_ms: int) -> bool:
        """Make way for another, if the oldest has not been used for long enough."""
        if not self._slots:
            return False
        oldest_id, oldest = next(iter(self._sessions.items()))
        if now_ms - oldest.used_ms <= self._eviction_ms:
            return False
        del self._sessions[oldest_id]
        return True

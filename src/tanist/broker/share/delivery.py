"""The requests of members: sessions, acknowledgements, and the reading of records for them.

Owns the share partitions that are led here and the sessions; both APIs, ShareFetch and ShareAcknowledge, come here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from tanist.broker.coordinator_runtime.components import CoordinatorComponents
from tanist.broker.metadata.image_queries import GroupValues
from tanist.broker.network.call import Call
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.share.dead_letters import DeadLetters
from tanist.broker.share.partitions import LedShare, LedShares
from tanist.broker.share.persister import Persister
from tanist.broker.share.sessions import Place, ShareSession, ShareSessions
from tanist.coordinator.effects import Refused
from tanist.coordinator.share.partition import RENEW
from tanist.coordinator.share.portions import Acknowledgement
from tanist.coordinator.share.state_shard import SharePartitionId
from tanist.events.coordination import ShareSessionEnded, ShareSessionRefused
from tanist.wire.errors import ErrorCode

_LONGEST_MEMBER_ID: Final = 36
_LED_ELSEWHERE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

Errors = dict[Place, int]
OnAcknowledged = Callable[[Errors], None]
Reading = tuple[Callable[[str], bool], int]
"""Whether a client may read a topic, and the error where it may not."""


class AnswerKinds(NamedTuple):
    """Of what the response to a member is made."""

    response: Callable[..., Any]
    topic: Callable[..., Any]
    leader: Callable[..., Any]
    endpoint: Callable[..., Any]


def is_member_id(member_id: str | None) -> bool:
    """Whether it may be one: not longer than an id in its readable form (Apache Kafka's rule)."""
    return member_id is not None and 0 < len(member_id) <= _LONGEST_MEMBER_ID


class Deliveries:
    """What members have got of the partitions that are led here."""

    def __init__(self, components: CoordinatorComponents, persister: Persister, dead_letters: DeadLetters) -> None:
        context = components.context
        self.context = context
        self.metadata = components.metadata
        self.purgatory = components.purgatory
        self.turn = components.turn
        self._replicas = components.replicas
        self.values = GroupValues(context, components.metadata)
        self.sessions = ShareSessions(context.config.group_share_max_share_sessions, self._released)
        self.led = LedShares(context, self.values, persister, dead_letters, self.sessions.has_group)

    def hosted(self, place: Place) -> HostedPartition | int:
        """The partition, if it is led here; else the error."""
        hosted = self._replicas.get(*place)
        if hosted is None:
            return self._replicas.absent_error(*place)
        if hosted.stale:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return hosted if hosted.leader is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def follow(self, session: ShareSession, call: Call) -> None:
        """End the session with its connection."""
        call.connection.closing[session.group_id, session.member_id] = partial(self.sessions.end, session)

    def _released(self, session: ShareSession) -> None:
        """The session is over: others may have the member's records."""
        if self.context.events.fine:
            self.context.events.emit(ShareSessionEnded(session.group_id, session.member_id))
        limits = self.led.limits(session.group_id)
        for topic_id, index in session.places:
            share = self.led.find(SharePartitionId(session.group_id, topic_id, index))
            if share is not None and share.delivery is not None:
                self.led.store(share, share.delivery.release(session.member_id, limits))
        if not self.sessions.has_group(session.group_id):
            self.led.forget_group(session.group_id)

    def tell_refused(self, who: tuple[str, str], error: int) -> None:
        """A member's request is not of its session, or there are too many."""
        if self.context.events.fine:
            self.context.events.emit(ShareSessionRefused(*who, error))

    # -- acknowledgements

    def acknowledge(
        self,
        who: tuple[str, str],
        topics: Iterable[Any],
        reading: Reading,
        then: OnAcknowledged,
        *,
        renews: bool,
    ) -> None:
        """Take a member's word; `then` gets the error of each partition, when all is stored or could not be.

        `who`: the group's and the member's id. `reading`: what the client may read. `renews`: locks, too.
        """
        errors: Errors = {}
        left: set[Place] = set()
        whole = False

        def settled(place: Place, error: int) -> None:
            errors[place] = error
            left.discard(place)
            if whole and not left:
                then(errors)

        for topic in topics:
            for part in topic.partitions:
                place = (topic.topic_id, part.partition_index)
                error = self._refusal(place, part.acknowledgement_batches, reading, renews)
                if error or not part.acknowledgement_batches:
                    errors[place] = error
                    continue
                left.add(place)
                words = [
                    Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types)
                    for each in part.acknowledgement_batches
                ]
                self._acknowledge(who, place, words, partial(settled, place))
        whole = True
        if not left:
            then(errors)

    def _acknowledge(
        self, who: tuple[str, str], place: Place, words: list[Acknowledgement], then: Callable[[int], None]
    ) -> None:
        group_id, member_id = who
        share = self.led.find(SharePartitionId(group_id, *place))
        if share is None or share.delivery is None:
            hosted = self.hosted(place)
            then(hosted if isinstance(hosted, int) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        limits = self.led.limits(group_id)
        try:
            change = share.delivery.acknowledge(member_id, words, limits, self.context.clock.now_ms())
        except Refused as refused:
            then(refused.error)
            return
        self.led.store(share, change, then)
        self.led.arm(share)

    def _refusal(self, place: Place, batches: Iterable[Any], reading: Reading, renews: bool) -> int:
        topic = self.metadata.image.topics.get(place[0])
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        kinds = range(RENEW + 1 if renews else RENEW)
        last = -1
        for each in batches:
            types, size = each.acknowledge_types, each.last_offset - each.first_offset + 1
            if size < 1 or each.first_offset < last or len(types) not in (1, size) or not set(types) <= set(kinds):
                return ErrorCode.INVALID_REQUEST
            last = each.last_offset
        may, denied = reading
        if not may(topic.name):
            return denied
        return 0 if place[1] in topic.partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def answer(
        self, kinds: AnswerKinds, group_id: str, parts: Mapping[Place, Any], errors: Errors, listener: str
    ) -> Any:
        """The response of these parts. Where a partition is led elsewhere, by its error, it says by whom."""
        leaders: dict[Place, tuple[int, int]] = {}
        topics: dict[UUID, list[Any]] = {}
        for place, part in parts.items():
            leader = self.metadata.current_leader(*place) if errors[place] in _LED_ELSEWHERE else None
            if leader is not None:
                leaders[place] = leader
                part.current_leader = kinds.leader(leader_id=leader[0], leader_epoch=leader[1])
            topics.setdefault(place[0], []).append(part)
        endpoints = self.metadata.endpoints_of({leader for leader, _ in leaders.values()}, listener)
        return kinds.response(
            acquisition_lock_timeout_ms=self.values.number(group_id, "share.record.lock.duration.ms"),
            responses=tuple(kinds.topic(topic_id=each, partitions=tuple(topics[each])) for each in topics),
            node_endpoints=tuple(
                kinds.endpoint(node_id=each.id, host=each.host, port=each.port, rack=each.rack) for each in endpoints
            ),
        )

    # -- share partitions

    def open(self, group_id: str, place: Place) -> LedShare | int:
        """The share partition, if the partition is led here; else the error."""
        hosted = self.hosted(place)
        return hosted if isinstance(hosted, int) else self.led.open(SharePartitionId(group_id, *place), hosted)

    def close(self) -> None:
        """The broker is going down."""
        self.led.close()

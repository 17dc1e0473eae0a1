"""Where partitions end that share groups read, asked of their leaders, for the lag of share partitions (KIP-1226)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.peers import Peer, Peers
from tanist.broker.replication.replicas import Replicas
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

_TIMEOUT_MS: Final = 10_000
_MAX_FRAME_BYTES: Final = 16 << 20
_VERSION: Final = 7
_LATEST: Final = -1

Place: TypeAlias = tuple[UUID, int]
"""A topic id and a partition."""


@dataclass(slots=True, eq=False)
class _Question:
    place: Place
    topic: str
    then: Callable[[Place, int | None], None]


class EndOffsets:
    """The questions of this broker."""

    def __init__(self, context: NodeContext, metadata: MetadataView, replicas: Replicas) -> None:
        self._context = context
        self._metadata = metadata
        self._replicas = replicas
        self._peers: Peers[list[_Question]] = Peers(
            context, metadata.inter_broker_endpoint, "share-lag", _MAX_FRAME_BYTES, list, self._send
        )

    def ask(self, places: Iterable[Place], then: Callable[[Mapping[Place, int]], None]) -> None:
        """Call `then` with the high watermarks, without those that no leader has answered."""
        left, found = set(places), dict[Place, int]()

        def answered(place: Place, end: int | None) -> None:
            left.discard(place)
            if end is not None:
                found[place] = end
            if not left:
                then(found)

        if not left:
            then(found)
        for place in sorted(left):
            self._ask(place, answered)

    def close(self) -> None:
        """The broker is going down; nobody waits any more."""
        self._peers.close()

    def _ask(self, place: Place, then: Callable[[Place, int | None], None]) -> None:
        topic_id, index = place
        topic, leader = self._metadata.topic_name(topic_id), self._metadata.current_leader(topic_id, index)
        if topic is None or leader is None:
            then(place, None)
        elif leader[0] == self._context.node_id:
            hosted = self._replicas.get(topic, index)
            then(place, None if hosted is None or hosted.leader is None else hosted.leader.high_watermark)
        elif (peer := self._peers.find(leader[0])) is None:
            then(place, None)
        else:
            peer.queue.append(_Question(place, topic, then))
            peer.schedule()

    def _send(self, peer: Peer[list[_Question]]) -> None:
        asked, peer.queue = peer.queue, []
        topics: dict[str, set[int]] = {}
        for each in asked:
            topics.setdefault(each.topic, set()).add(each.place[1])
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=tuple(
                ListOffsetsTopic(
                    name=topic,
                    partitions=tuple(ListOffsetsPartition(partition_index=each, timestamp=_LATEST) for each in indexes),
                )
                for topic, indexes in topics.items()
            ),
        )
        peer.call(request, _VERSION, _TIMEOUT_MS, partial(self._received, asked))

    def _received(self, asked: list[_Question], response: Any | None) -> None:
        ends = {
            (topic.name, part.partition_index): part.offset
            for topic in (() if response is None else response.topics)
            for part in topic.partitions
            if part.error_code == ErrorCode.NONE and part.offset >= 0
        }
        for each in asked:
            each.then(each.place, ends.get((each.topic, each.place[1])))

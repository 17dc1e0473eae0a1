"""One node of a quorum under test: its clock, its effects, and the requests and answers that it gets by name.

Owns `NodeUnderTest`, a `RaftNode` with id 0. The other voters are only names: the requests that it sends to them are
kept, and answered when the scenario, or a test, says so.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from tanist.events.stream import Events
from tanist.quorum import (
    Effect,
    ElectionState,
    LogEnd,
    MemoryLog,
    QuorumRules,
    RaftConfig,
    RaftNode,
    ReplicaKey,
    Reply,
    Send,
    SnapshotId,
    SyncLog,
    Voter,
    VoterSet,
    messages,
)
from tanist.quorum.state.roles import Unattached
from tanist.quorum.storage import batches
from tanist.wire.ids import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID
from tanist.wire.messages import fetch_request, fetch_response, vote_request
from tanist.wire.schema import Request, Response

ME = 0
CLUSTER_ID = "scenario"
WALL_MS = 1_700_000_000_000
_ELECTIONS_MAX = 6
_EVERYBODY = 20
"""More nodes than any scenario names."""
_UNKNOWN = 2**63 - 1
"""The high watermark of a replica that is older than KIP-1166."""


def directory(node_id: int) -> UUID:
    return UUID(int=1000 + node_id)


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory(node_id))


def voters_of(ids: Iterable[int]) -> tuple[Voter, ...]:
    return tuple(Voter(node_id, directory(node_id), f"node{node_id}", 9000 + node_id) for node_id in ids)


EVERYBODY = VoterSet(voters_of(range(_EVERYBODY)))


def log_of(epochs: Iterable[Sequence[int]], snapshot: SnapshotId | None = None) -> MemoryLog:
    """A log of batches (epoch, number of records); with a snapshot, beginning at its end."""
    log = MemoryLog()
    for epoch, count in epochs:
        values = [b"%d@%d" % (epoch, log.end_offset + i) for i in range(count)]
        batch = batches.encode_values(values, base_offset=log.end_offset, epoch=epoch, timestamp=WALL_MS)
        log.append(memoryview(batch), epoch)
    if snapshot is not None:
        log.create_snapshot(snapshot, [b"state"], wall_ms=WALL_MS)
        if snapshot.end_offset > log.end_offset:
            log.restart_at(snapshot)
        else:
            log.clean(0, WALL_MS)
    return log


class SeededRandom:
    """`ports.Random`, the same in each run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)

    def bytes(self, n: int) -> bytes:
        return self._random.randbytes(n)


class _Node(RaftNode):
    """A node whose role can be read and, if no message leads to it, set."""

    @property
    def deadline_ms(self) -> int | None:
        return self._quorum.role.deadline_ms

    @property
    def known_leader_id(self) -> int | None:
        """Also itself, if it was the leader of the epoch in which it resigned."""
        return self._quorum.role.leader_id

    @property
    def voted(self) -> ReplicaKey | None:
        return self._quorum.role.voted

    def know_leader(self, leader_id: int | None) -> None:
        """Unattached, with a known leader but without its address."""
        role = self._quorum.role
        self._quorum.role = Unattached(
            epoch=role.epoch, leader_id=leader_id, voted=role.voted, deadline_ms=role.deadline_ms
        )


class NodeUnderTest:
    """Node 0, its clock, and its effects."""

    def __init__(
        self,
        voters: Iterable[int],
        *,
        stored: ElectionState | None = None,
        log: MemoryLog | None = None,
        config: RaftConfig | None = None,
        rules: QuorumRules | None = None,
        node_id: int = ME,
        seed: int = 1,
    ) -> None:
        self.now_ms = 0
        self.log = log if log is not None else MemoryLog()
        self.config = config or RaftConfig()
        self.effects: list[Effect] = []
        self.events = Events()
        self._answered: set[int] = set()
        self.node = _Node(
            node_id,
            directory(node_id),
            CLUSTER_ID,
            voters_of(voters),
            self.log,
            stored or ElectionState(),
            self.config,
            SeededRandom(seed),
            rules,
            events=self.events,
        )
        self.take(self.node.start(self.now_ms, WALL_MS))

    @property
    def state(self) -> str:
        return self.node.role.upper()

    # -- effects

    def take(self, effects: list[Effect]) -> list[Effect]:
        """Keep them; syncs complete at once."""
        self.effects += effects
        if any(isinstance(effect, SyncLog) for effect in effects):
            return effects + self.take(self.node.log_synced(self.log.end_offset, self.now_ms))
        return effects

    def sent(self, request: type[Request] = Request) -> list[Send]:
        """The requests of this kind, or all."""
        return [each for each in self.effects if isinstance(each, Send) and isinstance(each.request, request)]

    def last_sent(self, request: type[Request]) -> Send:
        sent = self.sent(request)
        if not sent:
            raise LookupError(f"the node sent no {request.__name__}")
        return sent[-1]

    # -- events

    def pass_time(self, duration_ms: int) -> list[Effect]:
        """Tick at each deadline on the way."""
        end_ms = self.now_ms + duration_ms
        effects: list[Effect] = []
        while True:
            deadline_ms = self.node.next_deadline_ms
            if deadline_ms is None or deadline_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, deadline_ms)
            effects += self.take(self.node.tick(self.now_ms))
            if self.node.next_deadline_ms == deadline_ms:
                raise RuntimeError(f"a tick at {self.now_ms} left its own deadline standing: {self.node.role}")
        self.now_ms = end_ms
        return effects

    def role_timeout(self) -> list[Effect]:
        """To the timeout of the present role, without any answers."""
        deadline_ms = self.node.deadline_ms
        if deadline_ms is None:
            raise LookupError(f"a {self.node.role} does not time out")
        self.now_ms = deadline_ms
        return self.take(self.node.tick(self.now_ms))

    def ask(self, request: Request, *, api_version: int | None = None) -> Any:
        """A request that must be answered at once."""
        source = object()
        for effect in self.receive(request, source=source, api_version=api_version):
            if isinstance(effect, Reply) and effect.source is source:
                return effect.response
        raise LookupError(f"no answer to {type(request).__name__}")

    def receive(self, request: Request, *, source: object = None, api_version: int | None = None) -> list[Effect]:
        version = request.VERSIONS[1] if api_version is None else api_version
        return self.take(self.node.receive(source, request, self.now_ms, api_version=version))

    def respond(self, send: Send, response: Response | None) -> list[Effect]:
        return self.take(self.node.response(send.request_id, response, self.now_ms))

    def become_leader(self) -> None:
        """By timeouts and the votes of all voters."""
        for _ in range(_ELECTIONS_MAX):
            if self.node.is_leader:
                return
            if self.node.role in ("Unattached", "Follower", "Resigned"):
                self.role_timeout()
            for send in self.sent(vote_request.VoteRequest):
                if send.request_id not in self._answered:
                    self._answered.add(send.request_id)
                    self.respond(send, granted(self.node.epoch))
        if not self.node.is_leader:
            raise LookupError(f"the node is {self.node.role} and does not become leader")


# -- messages


def vote(
    epoch: int,
    from_id: int,
    last_epoch: int,
    last_offset: int,
    *,
    pre_vote: bool = False,
    from_directory: UUID | None = None,
    to_id: int = ME,
    to_directory: UUID = ZERO_UUID,
    cluster_id: str | None = CLUSTER_ID,
    topic: str = METADATA_TOPIC,
    partition: int = 0,
) -> vote_request.VoteRequest:
    part = vote_request.PartitionData(
        partition_index=partition,
        replica_epoch=epoch,
        replica_id=from_id,
        replica_directory_id=directory(from_id) if from_directory is None else from_directory,
        voter_directory_id=to_directory,
        last_offset_epoch=last_epoch,
        last_offset=last_offset,
        pre_vote=pre_vote,
    )
    topics = (vote_request.TopicData(topic_name=topic, partitions=(part,)),)
    return vote_request.VoteRequest(cluster_id=cluster_id, voter_id=to_id, topics=topics)


def granted(epoch: int, *, leader_id: int | None = None, grant: bool = True, error: int = 0) -> Response:
    return messages.vote_reply(EVERYBODY, leader_id, epoch, error, grant)


def begin(leader_id: int, epoch: int, *, to_id: int = ME, cluster_id: str = CLUSTER_ID) -> Request:
    return messages.begin_quorum_epoch(cluster_id, _voter(leader_id), _voter(to_id), epoch, "CONTROLLER")


def end(leader_id: int, epoch: int, preferred: Iterable[int] = (), *, cluster_id: str = CLUSTER_ID) -> Request:
    return messages.end_quorum_epoch(cluster_id, _voter(leader_id), epoch, list(map(key, preferred)), "CONTROLLER")


def _voter(node_id: int) -> Voter:
    voter = EVERYBODY.get(node_id)
    if voter is None:
        raise LookupError(f"there is no node {node_id}")
    return voter


def fetch(
    epoch: int,
    from_id: int,
    offset: int,
    last_epoch: int,
    *,
    max_wait_ms: int = 500,
    high_watermark: int = _UNKNOWN,
    max_bytes: int = 1 << 20,
    cluster_id: str | None = CLUSTER_ID,
    from_directory: UUID | None = None,
    topic_id: UUID = METADATA_TOPIC_ID,
) -> fetch_request.FetchRequest:
    part = fetch_request.FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=max_bytes,
        replica_directory_id=directory(from_id) if from_directory is None else from_directory,
        high_watermark=high_watermark,
    )
    return fetch_request.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch_request.ReplicaState(replica_id=from_id),
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        topics=(fetch_request.FetchTopic(topic=METADATA_TOPIC, topic_id=topic_id, partitions=(part,)),),
    )


def fetched(
    leader_id: int | None,
    epoch: int,
    *,
    error: int = 0,
    high_watermark: int = -1,
    diverging: LogEnd | None = None,
    snapshot: SnapshotId | None = None,
    records: bytes | bytearray = b"",
) -> fetch_response.FetchResponse:
    part = fetch_response.PartitionData(error_code=error, high_watermark=high_watermark, records=bytes(records))
    if diverging is not None:
        part.diverging_epoch = fetch_response.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.offset)
    if snapshot is not None:
        part.snapshot_id = fetch_response.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch)
    return messages.fetch_reply(EVERYBODY, leader_id, epoch, part)


def part_of(message: Any) -> Any:
    """The one partition of any request or response of the quorum."""
    topics: Any = getattr(message, "topics", None) or getattr(message, "responses", ())
    return topics[0].partitions[0]


def error_of(response: Any) -> int:
    """The error of the response, or else of its partition."""
    return int(getattr(response, "error_code", 0) or part_of(response).error_code)

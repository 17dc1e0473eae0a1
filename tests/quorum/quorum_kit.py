"""One node under the hand: its messages built by name, its effects sorted, its state asked for by scenario words."""

from __future__ import annotations

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
    VoterSet,
    messages,
)
from tanist.quorum.storage import batches as quorum_batches
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID
from tanist.wire.messages import (
    fetch_request,
    fetch_response,
    fetch_snapshot_request,
    fetch_snapshot_response,
    vote_request,
)
from tanist.wire.schema import Request, Response
from tests.quorum.quorum_network import CLUSTER_ID, Rng, directory, voters_of

ME = 0
SELF = ReplicaKey(ME, directory(ME))
WALL_MS = 1_700_000_000_000
_HIGH_WATERMARK_UNKNOWN = 2**63 - 1
"""Of a replica that is older than KIP-1166."""


def log_of(batches: Iterable[Sequence[int]], snapshot: SnapshotId | None = None) -> MemoryLog:
    """A log of batches (epoch, number of records); with a snapshot, beginning at its end."""
    log = MemoryLog()
    for epoch, count in batches:
        values = [b"%d@%d" % (epoch, log.end_offset + i) for i in range(count)]
        batch = quorum_batches.encode_values(values, base_offset=log.end_offset, epoch=epoch, timestamp=WALL_MS)
        log.append(memoryview(batch), epoch)
    if snapshot is not None:
        log.create_snapshot(snapshot, [b"state"], wall_ms=WALL_MS)
        if snapshot.end_offset > log.end_offset:
            log.restart_at(snapshot)
        else:
            log.clean(0, WALL_MS)
    return log


class Kit:
    """A `RaftNode` with id 0 among `voters`, a clock, and everything it asked for."""

    def __init__(
        self,
        voters: Sequence[int] = (0, 1, 2),
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
        self.node = RaftNode(
            node_id,
            directory(node_id),
            CLUSTER_ID,
            voters_of(voters),
            self.log,
            stored or ElectionState(),
            self.config,
            Rng(seed),
            rules,
            events=self.events,
        )
        self.auto_sync = True
        self._start()

    def _start(self) -> None:
        self.take(self.node.start(self.now_ms, WALL_MS))

    # -- effects

    def take(self, effects: list[Effect]) -> list[Effect]:
        self.effects += effects
        if self.auto_sync and any(isinstance(effect, SyncLog) for effect in effects):
            return effects + self.take(self.node.log_synced(self.log.end_offset, self.now_ms))
        return effects

    def of(self, kind: type[Effect]) -> list[Effect]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def sent(self, request: type[Request] | None = None) -> list[Send]:
        """The requests that are under way."""
        return [
            effect
            for effect in self.effects
            if isinstance(effect, Send) and (request is None or isinstance(effect.request, request))
        ]

    def last_sent(self, request: type[Request]) -> Send:
        return self.sent(request)[-1]

    def reply_to(self, effects: list[Effect], source: object) -> Response | None:
        for effect in effects:
            if isinstance(effect, Reply) and effect.source == source:
                return effect.response
        return None

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
            before = self.node.next_deadline_ms
            effects += self.take(self.node.tick(self.now_ms))
            if self.node.next_deadline_ms == before:
                raise AssertionError(f"a tick at {self.now_ms} left its own deadline standing: {self.node.role}")
        self.now_ms = end_ms
        return effects

    def role_timeout(self) -> list[Effect]:
        """To the end of the present role, without an answer to anything."""
        deadline_ms = self.node._quorum.role.deadline_ms
        if deadline_ms is None:
            raise AssertionError(f"a {self.node.role} does not time out")
        self.now_ms = deadline_ms
        return self.take(self.node.tick(self.now_ms))

    def receive(self, request: Request, *, source: object = "peer", api_version: int | None = None) -> list[Effect]:
        version = request.VERSIONS[1] if api_version is None else api_version
        return self.take(self.node.receive(source, request, self.now_ms, api_version=version))

    def ask(self, request: Request, *, api_version: int | None = None) -> Any:
        """A request that must be answered at once."""
        source = object()
        response = self.reply_to(self.receive(request, source=source, api_version=api_version), source)
        if response is None:
            raise AssertionError("no answer")
        return response

    def respond(self, send: Send, response: Response | None) -> list[Effect]:
        return self.take(self.node.response(send.request_id, response, self.now_ms))

    # -- ways into roles

    def become_leader(self) -> None:
        """From Candidate or from a time-out, with everybody's votes."""
        for _ in range(6):
            if self.node.is_leader:
                return
            if self.node.role in ("Unattached", "Follower", "Resigned"):
                self.role_timeout()
            waiting = [s for s in self.sent(vote_request.VoteRequest) if s.request_id not in self._answered]
            for send in waiting:
                self._answered.add(send.request_id)
                self.respond(send, granted(self.node.epoch))
        if not self.node.is_leader:
            raise AssertionError(f"still {self.node.role}")

    @property
    def _answered(self) -> set[int]:
        if not hasattr(self, "_answered_ids"):
            self._answered_ids: set[int] = set()
        return self._answered_ids

    def commit_all(self, voter_ids: Sequence[int] | None = None) -> None:
        """The other voters fetch up to the end."""
        others = [voter.node_id for voter in self.node._quorum.voters if voter.node_id != ME]
        for voter_id in voter_ids if voter_ids is not None else others:
            self.ask(fetch(self.node.epoch, voter_id, self.log.end_offset, self.log.last_epoch, max_wait_ms=0))


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
    return messages.vote_reply(VOTERS, leader_id, epoch, error, grant)


VOTERS = VoterSet(voters_of(range(20)))


def begin(leader_id: int, epoch: int, *, to_id: int = ME, cluster_id: str = CLUSTER_ID) -> Request:
    leader, to = VOTERS.get(leader_id), VOTERS.get(to_id)
    assert leader is not None
    assert to is not None
    return messages.begin_quorum_epoch(cluster_id, leader, to, epoch, "CONTROLLER")


def end(leader_id: int, epoch: int, preferred: Sequence[int] = (), *, cluster_id: str = CLUSTER_ID) -> Request:
    leader = VOTERS.get(leader_id)
    assert leader is not None
    keys = [ReplicaKey(node_id, directory(node_id)) for node_id in preferred]
    return messages.end_quorum_epoch(cluster_id, leader, epoch, keys, "CONTROLLER")


def fetch(
    epoch: int,
    from_id: int,
    offset: int,
    last_epoch: int,
    *,
    max_wait_ms: int = 500,
    high_watermark: int = _HIGH_WATERMARK_UNKNOWN,
    max_bytes: int = 1024 * 1024,
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
    return messages.fetch_reply(VOTERS, leader_id, epoch, part)


def fetch_snapshot(
    epoch: int,
    from_id: int,
    snapshot_id: SnapshotId,
    position: int,
    *,
    max_bytes: int = 2**31 - 1,
    name: str = METADATA_TOPIC,
) -> fetch_snapshot_request.FetchSnapshotRequest:
    part = fetch_snapshot_request.PartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=fetch_snapshot_request.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
        position=position,
        replica_directory_id=directory(from_id),
    )
    return fetch_snapshot_request.FetchSnapshotRequest(
        cluster_id=CLUSTER_ID,
        replica_id=from_id,
        max_bytes=max_bytes,
        topics=(fetch_snapshot_request.TopicSnapshot(name=name, partitions=(part,)),),
    )


def snapshot_part(
    leader_id: int,
    epoch: int,
    snapshot_id: SnapshotId,
    *,
    size: int = 0,
    position: int = 0,
    data: bytes = b"",
    error: int = 0,
) -> fetch_snapshot_response.FetchSnapshotResponse:
    part = fetch_snapshot_response.PartitionSnapshot(
        error_code=error,
        snapshot_id=fetch_snapshot_response.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
        size=size,
        position=position,
        unaligned_records=data,
    )
    return messages.snapshot_reply(VOTERS, leader_id, epoch, part)


def part_of(message: Request | Response | None) -> Any:
    """The one partition of any request or response of the quorum."""
    topics: Any = getattr(message, "topics", None) or getattr(message, "responses", ())
    return topics[0].partitions[0]


def error_of(response: Response) -> str:
    """Name of the error of the response, or else of its partition."""
    code = getattr(response, "error_code", 0)
    if code == 0:
        code = part_of(response).error_code
    return ErrorCode(code).name


def leader(epoch: int = 5, *, log: MemoryLog | None = None, **options: Any) -> Kit:
    kit = Kit(stored=ElectionState(epoch, None, SELF), log=log, **options)
    kit.become_leader()
    return kit


def elected(epoch: int = 5, **options: Any) -> Kit:
    kit = leader(epoch, **options)
    kit.commit_all()
    return kit


def records_of(response: Any) -> list[bytes]:
    view = memoryview(part_of(response).records)
    found = [
        quorum_batches.decode_values(view[at : at + header.size_bytes], header)
        for at, header in quorum_batches.read_headers(view)
    ]
    return [value for batch in found for value in batch.values]


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory(node_id))

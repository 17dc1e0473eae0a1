"""A leader's work: append, answer fetches, commit, keep its quorum (rules 138, 141-146, 148, 149).

Owns the answers to Fetch and FetchSnapshot, the fetches that wait, and every advance of the high watermark on a leader.
A voter's records count only once it fetches beyond them, the leader's own only when they are durable.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

from tanist.events.quorum import BecameQuorumLeader, MetadataFetchRefused, SnapshotOffered, VoterAdded, VoterRemoved
from tanist.invariants import InvariantError
from tanist.ports import Chunk
from tanist.quorum import messages
from tanist.quorum.effects import BatchTooLarge, NotLeader, Reply
from tanist.quorum.state.fetch_purgatory import DelayedFetch, FetchPurgatory
from tanist.quorum.state.node_state import Quorum
from tanist.quorum.state.roles import Leader, Role
from tanist.quorum.state.rules import BOOTSTRAP_SNAPSHOT, Validity
from tanist.quorum.storage.batches import (
    cut_to_size,
    encode_leader_change,
    encode_values,
    encode_voters,
    voter_records,
)
from tanist.quorum.storage.raft_log import VoterMessage
from tanist.quorum.storage.voter_history import FROM_BOOTSTRAP
from tanist.quorum.voters import ReplicaKey, SnapshotId, Voter, VoterSet
from tanist.wire.errors import ErrorCode
from tanist.wire.messages import fetch_response, fetch_snapshot_response
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest
from tanist.wire.messages.fetch_response import EpochEndOffset, FetchResponse
from tanist.wire.messages.fetch_snapshot_request import FetchSnapshotRequest
from tanist.wire.messages.fetch_snapshot_response import FetchSnapshotResponse


class QuorumLeader:
    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        self._held = FetchPurgatory()
        self.wall_offset_ms = 0
        """Time of day less `now_ms`, as last given; batches' timestamps use it."""

    # -- the log

    def begin(self, leader: Leader, granting: Collection[int], now_ms: int) -> None:
        """Rule 143: a record of the new epoch: committing it commits all older records."""
        quorum = self._quorum
        quorum.log.begin_epoch(leader.epoch)
        history = quorum.history
        # Nobody else has the snapshot that this node was formatted with.
        more = history.as_of(0) if history.offset == FROM_BOOTSTRAP else ()
        batch = encode_leader_change(
            leader.leader_id,
            quorum.voters,
            granting,
            base_offset=quorum.log.end_offset,
            epoch=leader.epoch,
            timestamp=now_ms + self.wall_offset_ms,
            more=more,
        )
        self._write_control(leader, batch, now_ms)
        self._announce(leader)

    def change_voters(self, leader: Leader, records: Sequence[VoterMessage], now_ms: int) -> int:
        """Append records that change the voters; the offset of the last. The change counts at once."""
        quorum = self._quorum
        quorum.check_change(leader, records)
        batch = encode_voters(
            records,
            base_offset=quorum.log.end_offset,
            epoch=leader.epoch,
            timestamp=now_ms + self.wall_offset_ms,
        )
        self._write_control(leader, batch, now_ms)
        return quorum.log.end_offset - 1

    def _write_control(self, leader: Leader, batch: bytearray, now_ms: int) -> None:
        quorum = self._quorum
        quorum.log.append(memoryview(batch), leader.epoch)
        quorum.read_voters(voter_records(memoryview(batch)), now_ms)
        self._appended(leader)

    def append(self, values: Sequence[bytes], now_ms: int, wall_ms: int, *, atomic: bool) -> tuple[int, int]:
        quorum = self._quorum
        leader = quorum.role
        if not isinstance(leader, Leader) or not leader.announced:
            raise NotLeader(f"a {leader.NAME} of epoch {leader.epoch} appends nothing")
        if not values:
            raise ValueError("nothing to append")
        self.wall_offset_ms = wall_ms - now_ms
        first = quorum.log.end_offset
        batches = []
        offset = first
        for part in cut_to_size(values, quorum.config.append_max_bytes):
            batches.append(encode_values(part, base_offset=offset, epoch=leader.epoch, timestamp=wall_ms))
            offset += len(part)
        if atomic and len(batches) > 1:
            raise BatchTooLarge(f"{len(values)} records do not fit into one batch")
        largest = max(len(batch) for batch in batches)
        if largest > quorum.config.append_max_bytes:
            raise BatchTooLarge(f"a record makes a batch of {largest} bytes")
        for batch in batches:
            quorum.log.append(memoryview(batch), leader.epoch)
        self._appended(leader)
        return first, offset - 1

    def _appended(self, leader: Leader) -> None:
        quorum = self._quorum
        quorum.log_grew()
        self.own_log_durable(leader)
        self._answer(self._held.take_news(quorum.log.end_offset, self._reported_high_watermark(leader)))

    def own_log_durable(self, leader: Leader) -> None:
        """More of the leader's own log may count now (rule 142)."""
        quorum = self._quorum
        leader.progress.own_end(quorum.rules.own_end(quorum.log.end_offset, quorum.durability.durable_end))
        self._commit(leader)

    def _commit(self, leader: Leader) -> None:
        quorum = self._quorum
        ends = leader.progress.end_offsets(counts_own=quorum.rules.counts_own_end(quorum.is_voter))
        offset = quorum.rules.commit_offset(ends, leader.epoch_start_offset)
        if offset is None or (leader.committed is not None and offset <= leader.committed):
            return
        if offset > quorum.log.end_offset:
            raise InvariantError(
                "a quorum's high watermark is at most its leader's end",
                high_watermark=offset,
                log_end_offset=quorum.log.end_offset,
            )
        leader.committed = offset
        voters = quorum.history.committed(quorum.high_watermark)
        quorum.advance_high_watermark(offset)
        self._tell_voter_change(voters, quorum.history.committed(quorum.high_watermark))
        self._announce(leader)
        self._answer(self._held.take_news(quorum.log.end_offset, offset))

    def _tell_voter_change(self, before: VoterSet, after: VoterSet) -> None:
        """The last committed set is another one than before, perhaps."""
        if after is before:
            return
        events = self._quorum.events
        for voter in before:
            if _is_gone(voter, after):
                events.emit(VoterRemoved(voter.node_id, str(voter.directory_id)))
        for voter in after:
            if _is_gone(voter, before):
                events.emit(VoterAdded(voter.node_id, str(voter.directory_id)))

    def _announce(self, leader: Leader) -> None:
        quorum = self._quorum
        if not leader.announced and quorum.rules.may_announce(quorum.high_watermark, leader.epoch_start_offset):
            leader.announced = True
            quorum.emit(BecameQuorumLeader(leader.epoch, leader.epoch_start_offset))

    # -- Fetch

    def fetch(self, source: object, request: FetchRequest, now_ms: int, api_version: int) -> None:
        quorum = self._quorum
        if request.cluster_id is not None and request.cluster_id != quorum.cluster_id:
            quorum.emit(Reply(source, FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)))
            return
        part = messages.fetch_part(request, api_version)
        if part is None:
            quorum.emit(Reply(source, FetchResponse(error_code=ErrorCode.INVALID_REQUEST)))
            return
        error = self._fetch_error(request, part)
        if error != ErrorCode.NONE:
            if quorum.events.fine:
                fetching = messages.fetching_replica(request, part)
                quorum.events.emit(MetadataFetchRefused(fetching.node_id, error.name))
            quorum.emit(Reply(source, self._failed(error)))
            return
        leader = cast(Leader, quorum.role)
        replica = messages.fetching_replica(request, part)
        max_bytes = max(0, min(request.max_bytes, quorum.config.fetch_max_bytes))
        expires_ms = now_ms + request.max_wait_ms
        fetch = DelayedFetch(source, replica, part, max_bytes, expires_ms)
        position = quorum.rules.fetch_position(quorum.log, part.fetch_offset, part.last_fetched_epoch)
        if position.validity is Validity.VALID and replica.node_id >= 0:
            leader.progress.fetched(replica, part.fetch_offset, quorum.log.end_offset, now_ms)
            leader.unbegun.discard(replica.node_id)
            leader.deadline_ms = self._check_quorum_deadline(leader)
            self._commit(leader)
        has_news = part.fetch_offset < quorum.log.end_offset or part.high_watermark < self._reported_high_watermark(
            leader
        )
        if position.validity is not Validity.VALID or has_news or request.max_wait_ms == 0:
            self._answer([fetch])
        else:
            self._answer(self._held.hold(fetch))

    def _fetch_error(self, request: FetchRequest, part: FetchPartition) -> ErrorCode:
        """Rule 145, its checks in Kafka's order."""
        quorum = self._quorum
        if (
            request.max_wait_ms < 0
            or part.fetch_offset < 0
            or part.last_fetched_epoch < 0
            or part.last_fetched_epoch > part.current_leader_epoch
        ):
            return ErrorCode.INVALID_REQUEST
        error = self._leader_error(part.current_leader_epoch)
        if error == ErrorCode.NONE and messages.fetching_replica(request, part).node_id == quorum.me.node_id:
            return ErrorCode.INVALID_REQUEST
        return error

    def _leader_error(self, epoch: int) -> ErrorCode:
        quorum = self._quorum
        error = quorum.rules.leader_request_error(quorum.role, epoch, isinstance(quorum.role, Leader))
        if error == ErrorCode.NONE and quorum.stopping:
            return ErrorCode.BROKER_NOT_AVAILABLE
        return error

    def _answer(self, fetches: list[DelayedFetch]) -> None:
        for fetch in fetches:
            self._quorum.emit(Reply(fetch.source, self._fetched(fetch)))

    def _fetched(self, fetch: DelayedFetch) -> FetchResponse:
        """The answer as things stand now; a held fetch is checked again, because the log's start may have moved."""
        quorum = self._quorum
        error = self._leader_error(fetch.part.current_leader_epoch)
        if error != ErrorCode.NONE:
            return self._failed(error)
        leader = cast(Leader, quorum.role)
        part = fetch_response.PartitionData(
            high_watermark=self._reported_high_watermark(leader),
            log_start_offset=quorum.log.start_offset,
            records=b"",
        )
        position = quorum.rules.fetch_position(quorum.log, fetch.part.fetch_offset, fetch.part.last_fetched_epoch)
        if position.validity is Validity.DIVERGING:
            part.diverging_epoch = EpochEndOffset(epoch=position.epoch, end_offset=position.offset)
        elif position.validity is Validity.SNAPSHOT:
            quorum.events.emit(SnapshotOffered(fetch.replica.node_id, position.offset, position.epoch))
            part.snapshot_id = fetch_response.SnapshotId(end_offset=position.offset, epoch=position.epoch)
        else:
            chunk = quorum.log.read(fetch.part.fetch_offset, fetch.max_bytes)
            if chunk is not None:
                part.records = _records(chunk)
        return messages.fetch_reply(quorum, leader.leader_id, leader.epoch, part)

    def _failed(self, error: ErrorCode) -> FetchResponse:
        quorum = self._quorum
        part = fetch_response.PartitionData(
            error_code=error, high_watermark=-1, log_start_offset=quorum.log.start_offset, records=b""
        )
        return messages.fetch_reply(quorum, quorum.role.leader_id, quorum.epoch, part)

    def _reported_high_watermark(self, leader: Leader) -> int:
        """Not known (-1) until this epoch has committed something."""
        return -1 if leader.committed is None else leader.committed

    # -- FetchSnapshot

    def fetch_snapshot(self, source: object, request: FetchSnapshotRequest, now_ms: int) -> None:
        """Rule 148."""
        quorum = self._quorum
        if request.cluster_id is not None and request.cluster_id != quorum.cluster_id:
            quorum.emit(Reply(source, FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)))
            return
        asked = messages.snapshot_part(request)
        part = fetch_snapshot_response.PartitionSnapshot()
        if asked is None:
            part.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            part.error_code = self._leader_error(asked.current_leader_epoch)
        if asked is not None and part.error_code == ErrorCode.NONE:
            snapshot_id = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
            size = None if snapshot_id == BOOTSTRAP_SNAPSHOT else quorum.log.snapshot_size(snapshot_id)
            if size is None:
                part.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
            elif not 0 <= asked.position < size:
                part.error_code = ErrorCode.POSITION_OUT_OF_RANGE
            else:
                leader = cast(Leader, quorum.role)
                length = max(1, min(request.max_bytes, quorum.config.fetch_snapshot_max_bytes))
                part.snapshot_id = fetch_snapshot_response.SnapshotId(
                    end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch
                )
                part.size = size
                part.position = asked.position
                part.unaligned_records = _records(quorum.log.snapshot_chunk(snapshot_id, asked.position, length))
                leader.progress.heard_from(ReplicaKey(request.replica_id, asked.replica_directory_id), now_ms)
                leader.deadline_ms = self._check_quorum_deadline(leader)
        quorum.emit(Reply(source, messages.snapshot_reply(quorum, quorum.role.leader_id, quorum.epoch, part)))

    # -- time

    def act(self, now_ms: int) -> None:
        role = self._quorum.role
        if not isinstance(role, Leader):
            self._answer(self._held.take_all())
            return
        self._answer(self._held.take_expired(now_ms))
        leaves = self._quorum.stopping and self._quorum.has_others
        if leaves or role.expired(now_ms):
            self._quorum.become_resigned(now_ms, "SHUTDOWN" if leaves else "MAJORITY_SILENT")
            self._answer(self._held.take_all())
            return
        self._tell_voters(role, now_ms)

    def _tell_voters(self, leader: Leader, now_ms: int) -> None:
        """Rule 138: voters that do not fetch may not know the leader."""
        quorum = self._quorum
        period_ms = quorum.rules.begin_quorum_period_ms(quorum.config)
        if now_ms >= leader.begin_quorum_ms:
            leader.begin_quorum_ms = now_ms + period_ms
            leader.unbegun = set(leader.progress.silent_voters(now_ms - period_ms))
        me = quorum.get(leader.leader_id)
        for voter_id in sorted(leader.unbegun):
            voter = quorum.voters.get(voter_id)
            if me is not None and voter is not None and quorum.requests.is_free(voter_id, now_ms):
                request = messages.begin_quorum_epoch(
                    quorum.cluster_id, me, voter, leader.epoch, quorum.config.listener_name
                )
                quorum.send(voter_id, request, now_ms)
                leader.unbegun.discard(voter_id)

    def _check_quorum_deadline(self, leader: Leader) -> int | None:
        if leader.deadline_ms is None:
            return None
        return leader.progress.quorum_seen_ms + self._quorum.rules.check_quorum_ms(self._quorum.config)

    def next_deadline_ms(self, role: Role) -> int | None:
        times = [time for time in (self._held.next_deadline_ms(),) if time is not None]
        if isinstance(role, Leader) and self._quorum.has_others:
            times.append(role.begin_quorum_ms)
        return min(times, default=None)


def _is_gone(voter: Voter, voters: VoterSet) -> bool:
    """Whether the set lacks the voter. Static ones have no directory, and are the same under any."""
    other = voters.get(voter.node_id)
    return other is None or not (other.is_key(voter.key) or voter.is_key(other.key))


def _records(chunk: Chunk) -> bytes | memoryview:
    """A `FileRange` goes into the message as it is; the node sends it without reading it."""
    return cast("bytes | memoryview", chunk)

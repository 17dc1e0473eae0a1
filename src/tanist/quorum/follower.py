"""A follower's or observer's work on its log: fetch, truncate, append, install snapshots (rules 146-148).

Owns the one fetch that is under way and every change of the log that a leader's answer makes. A voter does not fetch
more until its log is durable: its fetch offset promises that everything below survives. The offset of an
observer that cannot become a voter counts for nothing, so it does not wait.
"""

from __future__ import annotations

from tanist.events.quorum import MetadataLogTruncated, SnapshotDownloaded, VoterChangeTruncated
from tanist.invariants import InvariantError
from tanist.quorum import messages
from tanist.quorum.effects import QuorumInconsistent
from tanist.quorum.elections import Elections
from tanist.quorum.state.node_state import Quorum
from tanist.quorum.state.requests import PendingRequest
from tanist.quorum.state.roles import Download, Follower, Role, Unattached
from tanist.quorum.storage.batches import voter_records
from tanist.quorum.storage.raft_log import CorruptBatch
from tanist.quorum.voters import LogEnd, SnapshotId
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.fetch_response import FetchResponse, PartitionData
from tanist.wire.messages.fetch_snapshot_response import FetchSnapshotResponse, PartitionSnapshot


class QuorumFollower:
    def __init__(self, quorum: Quorum, elections: Elections) -> None:
        self._quorum = quorum
        self._elections = elections

    # -- time

    def act(self, now_ms: int) -> None:
        role = self._quorum.role
        if not isinstance(role, (Follower, Unattached)) or not self._may_fetch(role):
            return
        peer = self._fetch_from(role, now_ms)
        if peer is None:
            return
        if isinstance(role, Follower) and role.download is not None and peer == role.leader_id:
            self._ask_for_snapshot(role, role.download, now_ms)
        else:
            self._ask_for_records(peer, now_ms)

    def _may_fetch(self, role: Role) -> bool:
        quorum = self._quorum
        if not quorum.requests.idle:
            return False
        if isinstance(role, Follower) and role.download is not None:
            return True
        return not quorum.syncs or quorum.rules.may_fetch(quorum.log.end_offset, quorum.durability.durable_end)

    def _fetch_from(self, role: Role, now_ms: int) -> int | None:
        """The leader; a node that knows none, or an observer that can't reach it, asks any voter."""
        quorum = self._quorum
        if isinstance(role, Follower):
            reachable = not quorum.requests.is_failing(role.leader_id, now_ms)
            if quorum.is_voter or (reachable and not role.expired(now_ms)):
                return role.leader_id if reachable else None
        return self._any_voter(now_ms)

    def _any_voter(self, now_ms: int) -> int | None:
        quorum = self._quorum
        free = [voter.node_id for voter in quorum.contacts() if quorum.requests.is_free(voter.node_id, now_ms)]
        return free[quorum.random.below(len(free))] if free else None

    def _ask_for_records(self, peer: int, now_ms: int) -> None:
        quorum = self._quorum
        request = messages.fetch(
            quorum.cluster_id,
            quorum.me,
            quorum.epoch,
            quorum.log_end,
            quorum.log.start_offset,
            quorum.high_watermark,
            quorum.config.fetch_max_wait_ms,
            quorum.config.fetch_max_bytes,
        )
        quorum.send(peer, request, now_ms)

    def _ask_for_snapshot(self, role: Follower, download: Download, now_ms: int) -> None:
        quorum = self._quorum
        request = messages.fetch_snapshot(
            quorum.cluster_id,
            quorum.me,
            role.epoch,
            download.snapshot_id,
            download.received_bytes,
            quorum.config.fetch_snapshot_max_bytes,
        )
        quorum.send(role.leader_id, request, now_ms)

    # -- Fetch

    def handle_fetch_response(self, pending: PendingRequest, response: FetchResponse, now_ms: int) -> bool:
        """True if the leader can be sent another request at once."""
        part = messages.fetch_answer_part(response)
        if response.error_code != ErrorCode.NONE or part is None:
            return False
        done = self._elections.common_answer(
            messages.answer(part.error_code, part.current_leader, response.node_endpoints), now_ms
        )
        if done is not None:
            return done
        role = self._quorum.role
        if part.error_code != ErrorCode.NONE or not isinstance(role, Follower):
            return False
        # A bootstrap server that answers without an error is the leader, under another number.
        if pending.to != role.leader_id and pending.to not in self._quorum.bootstrap:
            return False
        if not self._is_about_our_end(pending):
            return True
        if part.diverging_epoch.epoch >= 0:
            self._truncate(LogEnd(part.diverging_epoch.epoch, part.diverging_epoch.end_offset), now_ms)
        elif part.snapshot_id.epoch >= 0 or part.snapshot_id.end_offset >= 0:
            if not self._begin_download(role, SnapshotId(part.snapshot_id.end_offset, part.snapshot_id.epoch)):
                return False
        elif not self._append(role, part, now_ms):
            return False
        self._leader_lives(role, now_ms)
        return True

    def _is_about_our_end(self, pending: PendingRequest) -> bool:
        """Whether the fetch was sent from this log's present end: else its records would not follow."""
        request = pending.request
        if not isinstance(request, FetchRequest):
            return False
        part = request.topics[0].partitions[0]
        return LogEnd(part.last_fetched_epoch, part.fetch_offset) == self._quorum.log_end

    def _leader_lives(self, role: Follower, now_ms: int) -> None:
        role.has_fetched = True
        role.fetched_ms = now_ms
        if role.leader_left:
            return
        role.leader_lost = False
        role.deadline_ms = now_ms + self._quorum.config.fetch_timeout_ms
        self._quorum.lost_in_a_row = 0

    def _append(self, role: Follower, part: PartitionData, now_ms: int) -> bool:
        quorum = self._quorum
        if part.records:
            before = quorum.log.end_offset
            try:
                changes = list(voter_records(memoryview(part.records)))
                quorum.log.append(memoryview(part.records), role.epoch)
            except CorruptBatch:
                return False
            end = quorum.log.end_offset
            if end > before:
                quorum.read_voters([change for change in changes if before <= change[0] < end], now_ms)
                quorum.log_grew()
        if part.high_watermark >= 0:
            quorum.advance_high_watermark(part.high_watermark)
        return True

    def _truncate(self, leader_end: LogEnd, now_ms: int) -> None:
        """Rule 147."""
        quorum = self._quorum
        offset = quorum.rules.truncation_offset(quorum.log, leader_end)
        lowest = min(offset, leader_end.offset)
        if not quorum.rules.may_truncate(lowest, quorum.high_watermark):
            raise QuorumInconsistent(
                f"the leader wants the log cut at {lowest}, and {quorum.high_watermark} is committed"
            )
        quorum.log.truncate_to(offset)
        if quorum.log.end_offset < quorum.high_watermark:
            raise InvariantError(
                "committed metadata is never cut",
                log_end_offset=quorum.log.end_offset,
                high_watermark=quorum.high_watermark,
            )
        quorum.durability.cut(offset)
        if quorum.history.truncate_to(quorum.log.end_offset):
            quorum.events.emit(VoterChangeTruncated(quorum.log.end_offset))
            quorum.voters_changed(now_ms)
        quorum.emit(MetadataLogTruncated(offset))

    # -- FetchSnapshot

    def _begin_download(self, role: Follower, snapshot_id: SnapshotId) -> bool:
        quorum = self._quorum
        if snapshot_id.end_offset < 0 or snapshot_id.epoch < 0:
            return False
        if not quorum.rules.may_truncate(snapshot_id.end_offset, quorum.high_watermark):
            raise QuorumInconsistent(
                f"the leader starts the log at {snapshot_id.end_offset}, and {quorum.high_watermark} is committed"
            )
        quorum.log.begin_download(snapshot_id)
        role.download = Download(snapshot_id)
        return True

    def handle_snapshot_response(self, pending: PendingRequest, response: FetchSnapshotResponse, now_ms: int) -> bool:
        part = messages.snapshot_answer_part(response)
        if response.error_code != ErrorCode.NONE or part is None:
            return False
        done = self._elections.common_answer(
            messages.answer(part.error_code, part.current_leader, response.node_endpoints), now_ms
        )
        if done is not None:
            return done
        role = self._quorum.role
        if not isinstance(role, Follower) or role.download is None or pending.to != role.leader_id:
            return False
        gone = part.error_code in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)
        if gone or part.snapshot_id.end_offset < 0 or part.snapshot_id.epoch < 0:
            # The leader has a newer one by now. The next fetch will name it.
            self._abandon(role)
            self._leader_lives(role, now_ms)
            return True
        if part.error_code != ErrorCode.NONE:
            return False
        if not self._take_chunk(role, role.download, part, now_ms):
            return False
        self._leader_lives(role, now_ms)
        return True

    def _take_chunk(self, role: Follower, download: Download, part: PartitionSnapshot, now_ms: int) -> bool:
        data = memoryview(part.unaligned_records or b"")
        received = download.received_bytes + len(data)
        expected = (download.snapshot_id.end_offset, download.snapshot_id.epoch, download.received_bytes)
        given = (part.snapshot_id.end_offset, part.snapshot_id.epoch, part.position)
        if given != expected or not data or received > part.size:
            self._abandon(role)
            return False
        self._quorum.log.write_download(download.snapshot_id, part.position, data)
        download.received_bytes = received
        return self._install(role, download.snapshot_id, now_ms) if received == part.size else True

    def _install(self, role: Follower, snapshot_id: SnapshotId, now_ms: int) -> bool:
        quorum = self._quorum
        try:
            quorum.log.finish_download(snapshot_id)
        except CorruptBatch:
            self._abandon(role)
            return False
        role.download = None
        quorum.history.load(quorum.log)
        quorum.voters_changed(now_ms)
        quorum.durability.installed(snapshot_id.end_offset)
        quorum.emit(SnapshotDownloaded(snapshot_id.end_offset, snapshot_id.epoch))
        quorum.advance_high_watermark(snapshot_id.end_offset)
        return True

    def _abandon(self, role: Follower) -> None:
        self._quorum.log.abandon_download()
        role.download = None

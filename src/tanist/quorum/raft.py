"""One replica of the metadata log: KRaft's Raft as a sans-IO state machine.

A call of `RaftNode` says what happened (a request, an answer, a finished sync, the time) and returns the effects, in
order (`effects`). It only wires the parts: roles and stored state in `state`, elections in `elections`, leading in
`leader`, following in `follower`, decisions in `rules`. It never reads a clock, sends, waits or syncs. It appends to,
cuts and reads its log, in the call that needs it.

After every call `next_deadline_ms` says when `tick` is due.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from tanist.events.stream import NOBODY, Events
from tanist.ports import Random
from tanist.quorum.config import RaftConfig
from tanist.quorum.describe import QuorumInfo, describe_quorum, quorum_info
from tanist.quorum.effects import AppendOutcome, Effect, HighWatermark, NotLeader, Reply, SyncLog
from tanist.quorum.elections import Elections
from tanist.quorum.follower import QuorumFollower
from tanist.quorum.joining import Joining
from tanist.quorum.leader import QuorumLeader
from tanist.quorum.state.node_state import Quorum
from tanist.quorum.state.requests import PendingRequest
from tanist.quorum.state.roles import Follower, Leader, Resigned
from tanist.quorum.state.rules import QuorumRules
from tanist.quorum.storage.quorum_state_file import ElectionState
from tanist.quorum.storage.raft_log import MetadataBatch, RaftLog, VoterMessage
from tanist.quorum.voter_changes import VoterChanges
from tanist.quorum.voters import Endpoint, ReplicaKey, SnapshotId, Voter, VoterSet
from tanist.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from tanist.wire.messages.add_raft_voter_response import AddRaftVoterResponse
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tanist.wire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from tanist.wire.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from tanist.wire.messages.describe_quorum_request import DescribeQuorumRequest
from tanist.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from tanist.wire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.fetch_snapshot_request import FetchSnapshotRequest
from tanist.wire.messages.fetch_snapshot_response import FetchSnapshotResponse
from tanist.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from tanist.wire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from tanist.wire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from tanist.wire.messages.update_raft_voter_response import UpdateRaftVoterResponse
from tanist.wire.messages.vote_request import VoteRequest
from tanist.wire.messages.vote_response import VoteResponse
from tanist.wire.schema import Request, Response


class RaftNode:
    """A voter, or, if it is not among the voters, an observer.

    `voters` are the static ones; the log's own take their place as soon as it names some (kraft.version 1).
    """

    def __init__(
        self,
        node_id: int,
        directory_id: UUID,
        cluster_id: str,
        voters: Sequence[Voter],
        log: RaftLog,
        stored: ElectionState,
        config: RaftConfig,
        random: Random,
        rules: QuorumRules | None = None,
        *,
        own: Voter | None = None,
        bootstrap: Sequence[Endpoint] = (),
        events: Events = NOBODY,
    ) -> None:
        """`own`: this node as a voter, if it is a controller, which can become one. `bootstrap`: servers that know the
        voters, where `voters` is empty."""
        self._quorum = Quorum(
            ReplicaKey(node_id, directory_id),
            cluster_id,
            VoterSet(voters),
            log,
            stored,
            config,
            random,
            rules or QuorumRules(),
            own=own,
            bootstrap=bootstrap,
            can_become_voter=own is not None,
            events=events,
        )
        self._leading = QuorumLeader(self._quorum)
        self._elections = Elections(self._quorum, self._leading)
        self._following = QuorumFollower(self._quorum, self._elections)
        self._changing = VoterChanges(self._quorum, self._leading)
        self._joining = Joining(self._quorum)
        self._now_ms = 0
        self._started = False

    # -- what is known

    @property
    def node_id(self) -> int:
        return self._quorum.me.node_id

    @property
    def is_voter(self) -> bool:
        return self._quorum.is_voter

    @property
    def role(self) -> str:
        """Unattached, Follower, Prospective, Candidate, Leader or Resigned."""
        return self._quorum.role.NAME

    @property
    def epoch(self) -> int:
        return self._quorum.epoch

    @property
    def leader_id(self) -> int | None:
        return self._quorum.leader_id

    @property
    def voters(self) -> VoterSet:
        """The voters in force: as the last record in the log has them, be it committed or not."""
        return self._quorum.voters

    @property
    def kraft_version(self) -> int:
        return self._quorum.history.kraft_version

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        """Where a voter, or the leader, listens."""
        return self._quorum.endpoint_of(node_id)

    @property
    def is_leader(self) -> bool:
        """Elected. It may append from the effect `BecameQuorumLeader` on."""
        return isinstance(self._quorum.role, Leader)

    @property
    def high_watermark(self) -> int:
        return self._quorum.high_watermark

    @property
    def log(self) -> RaftLog:
        return self._quorum.log

    @property
    def stored(self) -> ElectionState:
        """The election state that was last asked to be saved."""
        return self._quorum.stored

    @property
    def durable_end(self) -> int:
        """Records below this are known to survive a loss of power."""
        return self._quorum.durability.durable_end

    def read_committed(self, from_offset: int) -> Iterator[MetadataBatch]:
        """Everything committed from `from_offset` on, which must not be below the log's start."""
        return self._quorum.log.read_batches(from_offset, self._quorum.high_watermark)

    def describe(self, now_ms: int) -> QuorumInfo:
        return quorum_info(self._quorum, now_ms, self._leading.wall_offset_ms)

    # -- life

    def start(self, now_ms: int, wall_ms: int | None = None) -> list[Effect]:
        """Take the role that the stored state and the log give (rule 133)."""
        if self._started:
            raise ValueError("started twice")
        self._started = True
        if wall_ms is not None:
            self._leading.wall_offset_ms = wall_ms - now_ms
        quorum = self._quorum
        quorum.initialize(now_ms)
        if quorum.log.end_offset > 0 and quorum.syncs:
            # Recovery read the log from the page cache, which a loss of power would take.
            quorum.log_grew()
        if quorum.high_watermark > 0:
            quorum.emit(HighWatermark(quorum.high_watermark))
        only_voter = quorum.is_voter and len(quorum.voters) == 1
        if only_voter and quorum.role.NAME in ("Unattached", "Follower", "Resigned"):
            quorum.become_prospective(now_ms)
        return self._act_until_stable(now_ms)

    def tick(self, now_ms: int) -> list[Effect]:
        self._quorum.requests.expire(now_ms)
        return self._act_until_stable(now_ms)

    @property
    def next_deadline_ms(self) -> int | None:
        """When `tick` is due: a timeout of the role, of a request, or of a fetch that waits."""
        quorum = self._quorum
        times = (
            quorum.role.deadline_ms if self._heeds_deadline() else None,
            quorum.requests.next_deadline_ms(self._now_ms),
            self._leading.next_deadline_ms(quorum.role),
            self._changing.next_deadline_ms,
            self._joining.next_deadline_ms(self._now_ms),
        )
        return min((time for time in times if time is not None), default=None)

    def _heeds_deadline(self) -> bool:
        """An observer and a node that stops let their timeouts pass."""
        quorum = self._quorum
        deadline_ms = quorum.role.deadline_ms
        if deadline_ms is None or isinstance(quorum.role, Leader):
            return True
        if quorum.stopping:
            return False
        return quorum.stands or isinstance(quorum.role, Resigned) or deadline_ms > self._now_ms

    # -- messages

    def receive(self, source: object, request: Request, now_ms: int, *, api_version: int) -> list[Effect]:
        """A request of another node. It is answered by a `Reply` with `source`, at once or (a Fetch) later."""
        if isinstance(request, FetchRequest):
            self._leading.fetch(source, request, now_ms, api_version)
        elif isinstance(request, VoteRequest):
            self._elections.vote(source, request, now_ms)
        elif isinstance(request, BeginQuorumEpochRequest):
            self._elections.begin_quorum_epoch(source, request, now_ms)
        elif isinstance(request, EndQuorumEpochRequest):
            self._elections.end_quorum_epoch(source, request, now_ms)
        elif isinstance(request, FetchSnapshotRequest):
            self._leading.fetch_snapshot(source, request, now_ms)
        elif isinstance(request, AddRaftVoterRequest):
            self._changing.add(source, request, now_ms)
        elif isinstance(request, RemoveRaftVoterRequest):
            self._changing.remove(source, request, now_ms)
        elif isinstance(request, UpdateRaftVoterRequest):
            self._changing.update(source, request, now_ms)
        elif isinstance(request, DescribeQuorumRequest):
            answer = describe_quorum(self._quorum, request, now_ms, self._leading.wall_offset_ms)
            self._quorum.emit(Reply(source, answer))
        else:
            raise TypeError(f"{type(request).__name__} is not a request of the quorum")
        return self._act_until_stable(now_ms)

    def response(self, request_id: int, response: Response | None, now_ms: int) -> list[Effect]:
        """The answer to a `Send`; None: there will be none. Answers to forgotten requests are dropped."""
        pending = self._quorum.requests.complete(request_id)
        if pending is None:
            return self._act_until_stable(now_ms)
        if response is None:
            self._quorum.requests.failed(pending.to, now_ms)
        elif self._handle_response(pending, response, now_ms):
            self._quorum.requests.helped(pending.to)
        else:
            self._quorum.requests.did_not_help(pending.to, now_ms)
        return self._act_until_stable(now_ms)

    def _handle_response(self, pending: PendingRequest, response: Response, now_ms: int) -> bool:
        if isinstance(response, FetchResponse):
            return self._following.handle_fetch_response(pending, response, now_ms)
        if isinstance(response, VoteResponse):
            return self._elections.handle_vote_response(pending.to, response, now_ms)
        if isinstance(response, BeginQuorumEpochResponse):
            return self._elections.handle_begin_response(response, now_ms)
        if isinstance(response, EndQuorumEpochResponse):
            return self._elections.handle_end_response(pending.to, response, now_ms)
        if isinstance(response, FetchSnapshotResponse):
            return self._following.handle_snapshot_response(pending, response, now_ms)
        if isinstance(response, ApiVersionsResponse):
            return self._changing.handle_api_versions_response(pending, response, now_ms)
        if isinstance(response, UpdateRaftVoterResponse):
            self._joining.updated(response)
            return True
        if isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse):
            return True  # what came of it, the log says
        raise TypeError(f"{type(response).__name__} is not a response of the quorum")

    # -- the log

    def append(self, records: Sequence[bytes], now_ms: int, wall_ms: int, *, atomic: bool = False) -> AppendOutcome:
        """Append framed record values, in as many batches as their size asks for; `atomic`: in one.

        `NotLeader` before `BecameQuorumLeader`; `BatchTooLarge` for a record (or an atomic append) that does not
        fit.
        """
        first, last = self._leading.append(records, now_ms, wall_ms, atomic=atomic)
        return AppendOutcome(first, last, self._act_until_stable(now_ms))

    def log_synced(self, end_offset: int, now_ms: int) -> list[Effect]:
        """A `SyncLog` is done: the log below `end_offset`, as it was when the sync began, is durable."""
        quorum = self._quorum
        if quorum.durability.synced(end_offset, quorum.log.end_offset):
            quorum.emit(SyncLog())
        if isinstance(quorum.role, Leader):
            self._leading.own_log_durable(quorum.role)
        return self._act_until_stable(now_ms)

    def check_snapshot_id(self, snapshot_id: SnapshotId) -> None:
        """`ValueError` unless all records that a snapshot of this id would cover are committed here."""
        quorum = self._quorum
        if snapshot_id.end_offset > quorum.high_watermark:
            raise ValueError(f"{snapshot_id} goes beyond what is committed, {quorum.high_watermark}")
        if snapshot_id.end_offset < quorum.log.start_offset:
            raise ValueError(f"{snapshot_id} ends before the log's start, {quorum.log.start_offset}")
        end = quorum.log.end_of_epoch(snapshot_id.epoch)
        if end.epoch != snapshot_id.epoch or end.offset < snapshot_id.end_offset:
            raise ValueError(f"{snapshot_id} is not of this log, in which epoch {end.epoch} ends at {end.offset}")

    def snapshot_created(self, snapshot_id: SnapshotId, now_ms: int, wall_ms: int) -> list[Effect]:
        """The log has a new snapshot (`create_snapshot`): drop the files and records that are no longer needed."""
        if self._quorum.log.snapshot_size(snapshot_id) is None:
            raise ValueError(f"the log has no snapshot {snapshot_id}")
        self.check_snapshot_id(snapshot_id)
        return self.clean(now_ms, wall_ms)

    def clean(self, now_ms: int, wall_ms: int) -> list[Effect]:
        """Let the log drop what retention allows: after a snapshot, and now and then (Kafka: every minute)."""
        self._quorum.log.clean(now_ms, wall_ms)
        return self._act_until_stable(now_ms)

    # -- kraft.version

    def upgrade_kraft_version(
        self, level: int, now_ms: int, *, validate_only: bool = False
    ) -> tuple[str | None, list[Effect]]:
        """Why `kraft.version` cannot go to `level`, None if it can; then its record is in the log."""
        reason = self._changing.upgrade(level, now_ms, validate_only=validate_only)
        return reason, self._act_until_stable(now_ms)

    def snapshot_voters(self, end_offset: int) -> tuple[VoterMessage, ...]:
        """The records of voters that a snapshot of everything below `end_offset` has."""
        return self._quorum.history.as_of(end_offset)

    # -- leaving

    def resign(self, now_ms: int) -> list[Effect]:
        """Stop leading and tell the others, the best replicated first (rules 139, 140). `NotLeader`."""
        if not self.is_leader:
            raise NotLeader(f"a {self.role} of epoch {self.epoch} has nothing to resign from")
        self._quorum.become_resigned(now_ms, "CONTROLLER")
        return self._act_until_stable(now_ms)

    def shutdown(self, now_ms: int) -> list[Effect]:
        """The node is about to stop: hand leadership over, stand for no election, lead no more."""
        self._quorum.stopping = True
        if self.is_leader and self._quorum.has_others:
            self._quorum.become_resigned(now_ms, "SHUTDOWN")
        return self._act_until_stable(now_ms)

    @property
    def has_handed_over(self) -> bool:
        """After `shutdown`: another node leads or stands for election, or no other voter can take over."""
        quorum = self._quorum
        return not quorum.has_others or not isinstance(quorum.role, (Leader, Resigned))

    def peer_lost(self, node_id: int, now_ms: int) -> list[Effect]:
        """A connection to `node_id` was refused or reset: its process is gone, or was."""
        quorum = self._quorum
        role = quorum.role
        quorum.requests.lost(node_id, now_ms)
        if isinstance(role, Follower) and role.leader_id == node_id and not role.leader_lost:
            role.leader_lost = True
            if quorum.is_voter:
                others = [voter.node_id for voter in quorum.voters.others(node_id)]
                wait = quorum.rules.lost_leader_backoff_ms(
                    others.index(quorum.me.node_id), len(others), quorum.lost_in_a_row, quorum.config, quorum.random
                )
                quorum.lost_in_a_row += 1
                if role.deadline_ms is None or now_ms + wait < role.deadline_ms:
                    role.deadline_ms = now_ms + wait
        return self._act_until_stable(now_ms)

    # -- within

    def _act_until_stable(self, now_ms: int) -> list[Effect]:
        """Let the role act on its own until nothing changes; then return the effects."""
        self._now_ms = now_ms
        quorum = self._quorum
        while True:
            before = quorum.role
            self._elections.act(now_ms)
            self._leading.act(now_ms)
            self._changing.act(now_ms)
            self._joining.act(now_ms)
            self._following.act(now_ms)
            if quorum.role is before:
                return quorum.take_effects()

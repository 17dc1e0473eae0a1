"""The real quorum nodes, one event at a time: a node's tuple goes in, `RaftNode` decides, a tuple comes out.

Owns the conversion of `Member` to a `quorum.RaftNode` over a `MemoryLog` and back. A voter is a number from 0; its id
in the real objects is that number plus one. Must never decide anything that a node decides.

Only time is simplified: any timeout may pass between any two events. A request and its answer are one event, or the
answer is lost. Nothing can happen to the sender between them that would make the answer count and differ, because a
change of role forgets open requests. A vote request that arrives after its sender has changed its role is an event of
its own (`stale_ask`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias
from uuid import UUID

from tanist.lab.model.quorum.voter_state import (
    MetadataLog,
    Saved,
    SentVoteRequest,
    VoterResult,
    VoterState,
    payload_of_set,
    set_of_payload,
    voters_in,
)
from tanist.quorum import (
    BecameQuorumLeader,
    Effect,
    ElectionState,
    MemoryLog,
    MetadataLogTruncated,
    QuorumError,
    RaftConfig,
    RaftNode,
    ReplicaKey,
    Reply,
    SaveElectionState,
    Send,
    SyncLog,
    Voter,
    VoterSet,
)
from tanist.quorum import messages as quorum_messages
from tanist.quorum.state.progress import Progress
from tanist.quorum.state.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Tally, Unattached
from tanist.quorum.storage.batches import encode_leader_change, encode_values, encode_voters
from tanist.quorum.storage.voter_history import FROM_BOOTSTRAP, to_record
from tanist.quorum.voters import Listener, LogEnd
from tanist.wire.control import KRaftVersionRecord, VotersRecord
from tanist.wire.messages import add_raft_voter_request
from tanist.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from tanist.wire.messages.vote_request import VoteRequest
from tanist.wire.messages.vote_response import VoteResponse
from tanist.wire.schema import Request, Response

CLUSTER = "model"
NOW_MS = 1 << 40
NEVER_MS = 1 << 50
_VERSIONS: dict[type, int] = {FetchRequest: 17}

_Event: TypeAlias = Callable[[], Iterable[Effect]]


class FixedChoice:
    """The `Random` port without randomness: safety must not depend on it.

    `pick` is the voter that a voter without a leader asks for the leader. Otherwise the longest waits are drawn, so
    that no deadline passes before `timeout`: else the first voter would ask for pre-votes as it starts, and names would
    make a difference.
    """

    def __init__(self, pick: int | None = None) -> None:
        self._pick = pick

    def below(self, n: int) -> int:
        return n - 1 if self._pick is None else min(self._pick, n - 1)

    def bytes(self, n: int) -> bytes:
        return bytes(n)


class Node(RaftNode):
    """A `RaftNode` that can be created in the middle of its life."""

    def resume(self, role: Role, high_watermark: int, durable: int) -> None:
        """Continue in `role`, as if the node had come to it by itself."""
        quorum = self._quorum
        self._started = True
        quorum.role = role
        quorum.high_watermark = high_watermark
        quorum.durability.durable_end = durable
        quorum.durability.syncing = durable < quorum.log.end_offset
        quorum._reported_leader = (quorum.leader_id, role.epoch)

    @property
    def present(self) -> Role:
        return self._quorum.role


class Quorum:
    """The events of one configuration's voters. Logs are kept by their content."""

    def __init__(
        self, voters: int, *, syncs_at_once: bool, batch_a_fetch: bool = False, outside: int | None = None
    ) -> None:
        """`outside`: kraft.version 1, and so many more controllers, which are no voters at first."""
        self.voters = voters + (outside or 0)
        self._dynamic = outside is not None
        whole = RaftConfig(fetch_max_wait_ms=0)
        self._config = replace(whole, fetch_max_bytes=1) if batch_a_fetch else whole
        self._syncs_at_once = syncs_at_once
        listeners = (Listener(self._config.listener_name, "host", 9093),) if self._dynamic else ()
        self._all = tuple(
            Voter(number + 1, _directory(number), "host", 9093, listeners) for number in range(self.voters)
        )
        self._first = self._all[:voters]
        self._logs: dict[MetadataLog, MemoryLog] = {(): MemoryLog()}

    def born(self, voter: int) -> VoterState:
        """A voter that has never run."""
        return self._start(voter, Saved(0, -1, -1), MemoryLog(), 0, vote=(0, -1)).member

    # -- events

    def timeout(self, voter: int, member: VoterState) -> VoterResult:
        """The deadline of its role has passed."""
        node = self._node(voter, member)
        node.present.deadline_ms = NOW_MS
        return self._step(voter, member, node, lambda: node.tick(NOW_MS))

    def asks(self, voter: int, member: VoterState) -> tuple[SentVoteRequest, ...]:
        """The vote requests that a candidate or prospective voter still sends."""
        node = self._node(voter, member)
        return tuple(_ask_of(send.request) for send in _sends(node.tick(NOW_MS)) if _is_vote(send.request))

    def ask(
        self, candidate: VoterState, voter_state: VoterState, ask: SentVoteRequest
    ) -> tuple[VoterResult, VoterResult | None]:
        """The voter's turn and, when its answer arrives, the candidate's. None: the answer is not awaited."""
        asker = self._node(ask.candidate, candidate)
        sent = [send for send in _sends(asker.tick(NOW_MS)) if _is_vote(send.request) and _ask_of(send.request) == ask]
        request = sent[0].request if sent else self._vote_request(ask)
        heard, answer = self._hear(ask.voter, voter_state, request)
        if not sent or answer is None:
            return heard, None
        answered = self._step(
            ask.candidate, candidate, asker, lambda: asker.response(sent[0].request_id, answer, NOW_MS)
        )
        return heard, answered

    def fetches(self, voter: int, member: VoterState, peer: int) -> bool:
        """Whether it would fetch from this peer."""
        return bool(_fetches(self._node(voter, member, self._asking(voter, member, peer)), peer))

    def _asking(self, voter: int, member: VoterState, peer: int) -> FixedChoice:
        """A voter without a leader asks one of the other voters, which are in order: make it ask this one."""
        mask = voters_in(member.log, (1 << len(self._first)) - 1) & ~(1 << voter)
        return FixedChoice(pick=(mask & ((1 << peer) - 1)).bit_count())

    def fetch(
        self, voter: int, member: VoterState, peer: int, peer_state: VoterState
    ) -> tuple[VoterResult, VoterResult] | None:
        """The leader's turn, and the follower's if the answer arrives. None: it does not fetch from there."""
        node = self._node(voter, member, self._asking(voter, member, peer))
        sent = _fetches(node, peer)
        if not sent:
            return None
        heard, answer = self._hear(peer, peer_state, sent[0].request)
        if answer is None:
            return None
        answered = self._step(voter, member, node, lambda: node.response(sent[0].request_id, answer, NOW_MS))
        return heard, answered

    def claim(
        self, voter: int, member: VoterState, peer: int, peer_state: VoterState
    ) -> tuple[VoterResult, VoterResult] | None:
        """A leader announces its epoch to a voter, or a resigned leader ends it."""
        if member.role not in (Leader.NAME, Resigned.NAME):
            return None
        node = self._node(voter, member)
        role = node.present
        if isinstance(role, Leader):
            role.unbegun = {peer + 1}
        elif isinstance(role, Resigned):
            role.unreported = {peer + 1}
        else:
            return None
        sent = [send for send in _sends(node.tick(NOW_MS)) if send.to == peer + 1]
        if not sent:
            return None
        heard, answer = self._hear(peer, peer_state, sent[0].request)
        answered = self._step(voter, member, node, lambda: node.response(sent[0].request_id, answer, NOW_MS))
        return heard, answered

    def append(self, voter: int, member: VoterState, payload: int) -> VoterResult | None:
        """The active controller writes a record."""
        if not member.announced:
            return None
        node = self._node(voter, member)
        value = b"%d" % payload
        return self._step(voter, member, node, lambda: node.append([value], NOW_MS, NOW_MS).effects)

    def change(self, voter: int, member: VoterState, target: int) -> VoterResult | None:
        """The leader adds or removes a voter. None: it refuses, or the new voter has not caught up."""
        if member.role != Leader.NAME:
            return None
        node = self._node(voter, member)
        key = self._all[target]
        request: Request
        if target + 1 in node.voters:
            request = RemoveRaftVoterRequest(
                cluster_id=CLUSTER, voter_id=target + 1, voter_directory_id=key.directory_id
            )
        else:
            listener = add_raft_voter_request.Listener(name=self._config.listener_name, host=key.host, port=key.port)
            request = AddRaftVoterRequest(
                cluster_id=CLUSTER,
                timeout_ms=1000,
                voter_id=target + 1,
                voter_directory_id=key.directory_id,
                listeners=(listener,),
            )

        def changed() -> list[Effect]:
            effects = list(node.receive("administrator", request, NOW_MS, api_version=1))
            feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            for send in _sends(effects):
                if isinstance(send.request, ApiVersionsRequest):
                    answer = ApiVersionsResponse(supported_features=(feature,))
                    effects += node.response(send.request_id, answer, NOW_MS)
            return effects

        result = self._step(voter, member, node, changed)
        return None if result.member.log == member.log and not result.fatal else result

    def sync(self, voter: int, member: VoterState) -> VoterResult:
        """Its log has become durable."""
        node = self._node(voter, member)
        end = len(member.log)
        return self._step(voter, member, node, lambda: node.log_synced(end, NOW_MS))

    def restart(self, voter: int, member: VoterState, keep: int) -> VoterResult:
        """A new process finds the saved state, and the first `keep` records."""
        log = self._log(member.log).crashed(keep)
        return self._start(voter, member.saved, log, member.on_disk, vote=(member.epoch, member.cast))

    # -- between tuples and objects

    def _start(self, voter: int, saved: Saved, log: MemoryLog, on_disk: int, vote: tuple[int, int]) -> VoterResult:
        node = self._made(voter, log, _election_state(saved), FixedChoice())
        epoch, cast = vote
        before = VoterState(saved, "", epoch, -1, -1, 0, 0, False, False, 0, -1, False, (), (), 0, on_disk, 0, cast)
        return self._step(voter, before, node, lambda: node.start(NOW_MS, NOW_MS))

    def _node(self, voter: int, member: VoterState, rng: FixedChoice | None = None) -> Node:
        log = self._log(member.log).crashed(len(member.log))
        stored = ElectionState(member.epoch, _id(member.leader), _key(member.voted))
        node = self._made(voter, log, stored, rng or FixedChoice())
        node.resume(self._role(voter, member, node), member.high_watermark, member.durable)
        return node

    def _log(self, content: MetadataLog) -> MemoryLog:
        """The log of this content. One that differs from a known one in names only is made anew."""
        if content not in self._logs:
            log = self._logs[content] = MemoryLog()
            for offset, (epoch, payload) in enumerate(content):
                mask = set_of_payload(payload)
                if mask is not None:
                    voters = VoterSet(voter for at, voter in enumerate(self._all) if mask >> at & 1)
                    batch = encode_voters(
                        [to_record(voters, self._config.listener_name)],
                        base_offset=offset,
                        epoch=epoch,
                        timestamp=NOW_MS,
                    )
                elif payload < 0:
                    first = VoterSet(self._first)
                    batch = encode_leader_change(1, first, (), base_offset=offset, epoch=epoch, timestamp=NOW_MS)
                else:
                    batch = encode_values([b"%d" % payload], base_offset=offset, epoch=epoch, timestamp=NOW_MS)
                log.append(memoryview(batch), epoch)
        return self._logs[content]

    def _made(self, voter: int, log: MemoryLog, stored: ElectionState, rng: FixedChoice) -> Node:
        own = self._all[voter] if self._dynamic else None
        node = Node(voter + 1, _directory(voter), CLUSTER, self._first, log, stored, self._config, rng, own=own)
        if self._dynamic:
            node._quorum.history.add([(FROM_BOOTSTRAP, KRaftVersionRecord(k_raft_version=1))])
        return node

    def _role(self, voter: int, member: VoterState, node: Node) -> Role:
        epoch, leader, voted = member.epoch, _id(member.leader), _key(member.voted)
        match member.role:
            case Unattached.NAME:
                return Unattached(epoch=epoch, leader_id=leader, voted=voted, deadline_ms=NEVER_MS)
            case Follower.NAME:
                endpoint = self._all[member.leader].endpoint
                return Follower(
                    epoch=epoch,
                    leader_id=member.leader + 1,
                    voted=voted,
                    deadline_ms=NEVER_MS,
                    endpoint=endpoint,
                    has_fetched=member.has_fetched,
                    leader_lost=member.leader_lost,
                )
            case Prospective.NAME:
                return Prospective(
                    epoch=epoch,
                    leader_id=leader,
                    voted=voted,
                    deadline_ms=NEVER_MS,
                    tally=self._tally(voter, member, node),
                    endpoint=None if member.leader < 0 else self._all[member.leader].endpoint,
                )
            case Candidate.NAME:
                own = ReplicaKey(voter + 1, _directory(voter))
                tally = self._tally(voter, member, node)
                return Candidate(epoch=epoch, voted=own, deadline_ms=NEVER_MS, tally=tally)
            case Resigned.NAME:
                return Resigned(epoch=epoch, leader_id=voter + 1, voted=voted, deadline_ms=NEVER_MS)
        progress = Progress(voter + 1, node._quorum.voters, NOW_MS)
        for other, end in enumerate(member.ends):
            if end >= 0 and other != voter:
                progress.fetched(self._all[other].key, end, end, NOW_MS)
        progress.own_end(member.ends[voter])
        return Leader(
            epoch=epoch,
            leader_id=voter + 1,
            voted=voted,
            deadline_ms=NEVER_MS,
            epoch_start_offset=member.epoch_start,
            progress=progress,
            committed=None if member.committed < 0 else member.committed,
            announced=member.announced,
            begin_quorum_ms=NEVER_MS,
        )

    def _tally(self, voter: int, member: VoterState, node: Node) -> Tally:
        ids = node.voters.ids
        tally = Tally(ids, len(ids) // 2 + 1, voter + 1)
        for number in ids:
            other = number - 1
            if member.granted >> other & 1:
                tally.record(number, True)
            elif member.rejected >> other & 1:
                tally.record(number, False)
        return tally

    def _hear(self, voter: int, member: VoterState, request: Request) -> tuple[VoterResult, Response | None]:
        node = self._node(voter, member)
        said: list[Response] = []

        def receive() -> list[Effect]:
            version = _VERSIONS.get(type(request), 1)
            effects = node.receive("model", request, NOW_MS, api_version=version)
            said.extend(effect.response for effect in effects if isinstance(effect, Reply))
            return effects

        result = self._step(voter, member, node, receive)
        answer = said[0] if said else None
        if isinstance(request, VoteRequest) and isinstance(answer, VoteResponse) and _is_granted(answer):
            ask = _ask_of(request)
            if ask.pre_vote:
                result = result._replace(pre_vote_granted=True)
            else:
                result = result._replace(member=result.member._replace(cast=ask.candidate))
        return result, answer

    def _step(self, voter: int, before: VoterState, node: Node, event: _Event) -> VoterResult:
        try:
            effects = list(event())
            while self._syncs_at_once and any(isinstance(effect, SyncLog) for effect in effects):
                rest = [effect for effect in effects if not isinstance(effect, SyncLog)]
                effects = [*rest, *node.log_synced(node.log.end_offset, NOW_MS)]
        except QuorumError as error:
            return VoterResult(before, fatal=f"{voter + 1} stops: {error}")
        saved, elected_at, cut_at = before.saved, -1, -1
        for effect in effects:
            if isinstance(effect, SaveElectionState):
                saved = _saved(effect.state)
            elif isinstance(effect, BecameQuorumLeader):
                elected_at = effect.epoch_start_offset
            elif isinstance(effect, MetadataLogTruncated):
                cut_at = effect.offset
        on_disk = before.on_disk if cut_at < 0 else min(before.on_disk, cut_at)
        return VoterResult(self._member(node, saved, on_disk, before), elected_at, cut_at)

    def _member(self, node: Node, saved: Saved, on_disk: int, before: VoterState) -> VoterState:
        role = node.present
        voted = -1 if role.voted is None else role.voted.node_id - 1
        remembered = before.cast if role.epoch == before.epoch else -1
        tally = role.tally if isinstance(role, Prospective | Candidate) else None
        leader = role if isinstance(role, Leader) else None
        return VoterState(
            saved=saved,
            role=role.NAME,
            epoch=role.epoch,
            leader=_number(role.leader_id),
            voted=voted,
            granted=0 if tally is None else _mask(tally.granted),
            rejected=0 if tally is None else _mask(tally.rejected),
            has_fetched=isinstance(role, Follower) and role.has_fetched,
            leader_lost=isinstance(role, Follower) and role.leader_lost,
            epoch_start=0 if leader is None else leader.epoch_start_offset,
            committed=-1 if leader is None or leader.committed is None else leader.committed,
            announced=leader is not None and leader.announced,
            ends=() if leader is None else self._ends(leader.progress),
            log=self._kept(node),
            durable=node.durable_end,
            on_disk=max(on_disk, node.durable_end),
            high_watermark=node.high_watermark,
            cast=voted if voted >= 0 else remembered,
        )

    def _ends(self, progress: Progress) -> tuple[int, ...]:
        known = [progress.of(each.key) for each in self._all]
        ends = [-1 if each is None or each.end_offset is None else each.end_offset for each in known]
        ends[progress.own_id - 1] = progress.own_offset
        return tuple(ends)

    def _kept(self, node: Node) -> MetadataLog:
        log = node.log
        if not isinstance(log, MemoryLog):
            raise TypeError("a node of the model stands on a MemoryLog")
        sets = {
            offset: payload_of_set(_mask(voter.voter_id for voter in message.voters))
            for offset, message in (log.voter_records(0) if self._dynamic else ())
            if isinstance(message, VotersRecord)
        }
        content = tuple(
            (batch.epoch, int(batch.values[0]) if batch.values else sets.get(batch.offset, -1))
            for batch in log.read_batches(0, log.end_offset)
        )
        if content not in self._logs:
            self._logs[content] = log.crashed(log.end_offset)
        return content

    def _vote_request(self, ask: SentVoteRequest) -> VoteRequest:
        me = ReplicaKey(ask.candidate + 1, _directory(ask.candidate))
        end = LogEnd(ask.last_epoch, ask.end_offset)
        return quorum_messages.vote(CLUSTER, me, self._all[ask.voter], ask.epoch, end, pre_vote=ask.pre_vote)


def _directory(voter: int) -> UUID:
    return UUID(int=(1 << 70) + voter)


def _id(voter: int) -> int | None:
    return None if voter < 0 else voter + 1


def _key(voter: int) -> ReplicaKey | None:
    return None if voter < 0 else ReplicaKey(voter + 1, _directory(voter))


def _number(node_id: int | None) -> int:
    return -1 if node_id is None else node_id - 1


def _mask(node_ids: Iterable[int]) -> int:
    return sum(1 << (node_id - 1) for node_id in node_ids)


def _election_state(saved: Saved) -> ElectionState:
    return ElectionState(saved.epoch, _id(saved.leader), _key(saved.voted))


def _saved(state: ElectionState) -> Saved:
    return Saved(state.epoch, _number(state.leader_id), -1 if state.voted is None else state.voted.node_id - 1)


def _sends(effects: Iterable[Effect]) -> list[Send]:
    return [effect for effect in effects if isinstance(effect, Send)]


def _fetches(node: Node, peer: int) -> list[Send]:
    return [
        send for send in _sends(node.tick(NOW_MS)) if isinstance(send.request, FetchRequest) and send.to == peer + 1
    ]


def _is_vote(request: Request) -> bool:
    return isinstance(request, VoteRequest)


def _is_granted(response: VoteResponse) -> bool:
    return any(part.vote_granted for topic in response.topics for part in topic.partitions)


def _ask_of(request: Request) -> SentVoteRequest:
    if not isinstance(request, VoteRequest):
        raise TypeError(f"{type(request).__name__} asks for no vote")
    part = request.topics[0].partitions[0]
    return SentVoteRequest(
        candidate=part.replica_id - 1,
        voter=request.voter_id - 1,
        epoch=part.replica_epoch,
        last_epoch=part.last_offset_epoch,
        end_offset=part.last_offset,
        pre_vote=part.pre_vote,
    )

"""The real quorum nodes, one event at a time: a node's tuple goes in, `RaftNode` decides, a tuple comes out.

Must never decide anything that a node decides.

Only time is simplified: any timeout may pass between any two events. A request and its answer are one event, or the
answer is lost. Nothing can happen to the sender between them that would make the answer count and differ, because a
change of role forgets open requests. A vote request that arrives after its sender has changed its role is an event of
its own (`stale_ask`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from tanist.lab.model.quorum.conversion import CLUSTER, NOW_MS, Conversion, FixedChoice, Node, saved_of
from tanist.lab.model.quorum.voter_state import (
    Saved,
    SentVoteRequest,
    VoterResult,
    VoterState,
    voters_in,
)
from tanist.quorum import (
    BecameQuorumLeader,
    Effect,
    MemoryLog,
    MetadataLogTruncated,
    QuorumError,
    RaftConfig,
    Reply,
    SaveElectionState,
    Send,
    SyncLog,
)
from tanist.quorum import messages as quorum_messages
from tanist.quorum.state.roles import Leader, Resigned
from tanist.quorum.voters import LogEnd
from tanist.wire.messages import add_raft_voter_request
from tanist.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from tanist.wire.messages.vote_request import VoteRequest
from tanist.wire.messages.vote_response import VoteResponse
from tanist.wire.schema import Request, Response

_VERSIONS: dict[type, int] = {FetchRequest: 17}

_Event: TypeAlias = Callable[[], Iterable[Effect]]


class Quorum:
    """The events of one configuration's voters."""

    def __init__(
        self, voters: int, *, syncs_at_once: bool, batch_a_fetch: bool = False, outside: int | None = None
    ) -> None:
        """`outside`: kraft.version 1, and so many more controllers, which are no voters at first."""
        self.voters = voters + (outside or 0)
        whole = RaftConfig(fetch_max_wait_ms=0)
        config = replace(whole, fetch_max_bytes=1) if batch_a_fetch else whole
        self._syncs_at_once = syncs_at_once
        self._conversion = Conversion(voters, config, outside)
        self._node = self._conversion.node
        self._all = self._conversion.voters

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
        mask = voters_in(member.log, (1 << len(self._conversion.first)) - 1) & ~(1 << voter)
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
            listener = add_raft_voter_request.Listener(
                name=self._conversion.config.listener_name, host=key.host, port=key.port
            )
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
        log = self._conversion.log(member.log).crashed(keep)
        return self._start(voter, member.saved, log, member.on_disk, vote=(member.epoch, member.cast))

    # -- turns of nodes

    def _start(self, voter: int, saved: Saved, log: MemoryLog, on_disk: int, vote: tuple[int, int]) -> VoterResult:
        node = self._conversion.begun(voter, log, saved)
        epoch, cast = vote
        before = VoterState(saved, "", epoch, -1, -1, 0, 0, False, False, 0, -1, False, (), (), 0, on_disk, 0, cast)
        return self._step(voter, before, node, lambda: node.start(NOW_MS, NOW_MS))

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
                saved = saved_of(effect.state)
            elif isinstance(effect, BecameQuorumLeader):
                elected_at = effect.epoch_start_offset
            elif isinstance(effect, MetadataLogTruncated):
                cut_at = effect.offset
        on_disk = before.on_disk if cut_at < 0 else min(before.on_disk, cut_at)
        return VoterResult(self._conversion.state(node, saved, on_disk, before), elected_at, cut_at)

    def _vote_request(self, ask: SentVoteRequest) -> VoteRequest:
        end = LogEnd(ask.last_epoch, ask.end_offset)
        me, peer = self._all[ask.candidate].key, self._all[ask.voter]
        return quorum_messages.vote(CLUSTER, me, peer, ask.epoch, end, pre_vote=ask.pre_vote)


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

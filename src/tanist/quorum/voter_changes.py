"""A leader's changes of the voters: AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter, kraft.version (KIP-853).

Owns the one change that is under way and its answer. A change is a record with the whole new set. There is one at a
time, and none before the leader has committed a record of its own epoch: so any two sets that can be in force at once
differ by one voter, and their majorities share one. `rules` has each of these conditions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from tanist.events.quorum import VoterChangeEnded, VoterChangeRefused
from tanist.quorum.effects import Reply
from tanist.quorum.leader import QuorumLeader
from tanist.quorum.state.node_state import Quorum
from tanist.quorum.state.requests import PendingRequest
from tanist.quorum.state.roles import Leader
from tanist.quorum.storage.raft_log import VoterMessage
from tanist.quorum.storage.voter_history import address, to_record
from tanist.quorum.voters import Listener, ReplicaKey, Voter, VoterSet
from tanist.wire.control import KRaftVersionRecord
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import ZERO_UUID
from tanist.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from tanist.wire.messages.add_raft_voter_response import AddRaftVoterResponse
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tanist.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from tanist.wire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from tanist.wire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from tanist.wire.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse

KRAFT_VERSION = "kraft.version"
LATEST_KRAFT_VERSION = 1

_Answer: TypeAlias = type[AddRaftVoterResponse] | type[RemoveRaftVoterResponse]


class _Refusal(NamedTuple):
    error: ErrorCode
    text: str
    cause: str
    """As `VoterChangeRefused` and `VoterChangeEnded` have it."""


@dataclass(slots=True)
class _Change:
    """The change under way. Without an offset it is not in the log yet: the new voter is asked, or catches up."""

    source: object
    answer: _Answer
    expires_ms: int
    voter: Voter | None = None
    caught_up_by_ms: int | None = None
    """Until then a new voter is waited for. A controller that adds itself does not fetch before it has the answer, so
    that must come while the controller still waits for it: then it fetches, and asks again."""
    answered_versions: bool = False
    acknowledged: bool = False
    """The answer has been sent when the record was written."""
    offset: int | None = None


class _NamedEndpoint(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


class VoterChanges:
    def __init__(self, quorum: Quorum, leading: QuorumLeader) -> None:
        self._quorum = quorum
        self._leading = leading
        self._change: _Change | None = None

    # -- requests

    def add(self, source: object, request: AddRaftVoterRequest, now_ms: int) -> None:
        quorum = self._quorum
        key = ReplicaKey(request.voter_id, request.voter_directory_id)
        refusal = self._refusal(request.cluster_id) or self._bad_voter(key, request.listeners)
        if refusal is None and key.node_id in quorum.voters:
            text = f"controller {key.node_id} is a voter already"
            refusal = _Refusal(ErrorCode.DUPLICATE_VOTER, text, "ALREADY_VOTER")
        if refusal is not None:
            quorum.events.emit(VoterChangeRefused(key.node_id, refusal.cause))
            quorum.emit(Reply(source, _answer(AddRaftVoterResponse, refusal)))
            return
        voter = self._voter(key, request.listeners, (0, 0))
        wait_ms = min(max(0, request.timeout_ms), quorum.config.request_timeout_ms)
        by_ms = now_ms + min(wait_ms, quorum.config.request_timeout_ms // 2)
        self._change = _Change(source, AddRaftVoterResponse, now_ms + wait_ms, voter, by_ms)
        self._change.acknowledged = not request.ack_when_committed

    def remove(self, source: object, request: RemoveRaftVoterRequest, now_ms: int) -> None:
        quorum = self._quorum
        key = ReplicaKey(request.voter_id, request.voter_directory_id)
        refusal = self._refusal(request.cluster_id)
        voter = quorum.voters.get(key.node_id)
        if refusal is None and (voter is None or voter.key != key):
            text = f"controller {key.node_id} with this directory is no voter"
            refusal = _Refusal(ErrorCode.VOTER_NOT_FOUND, text, "NO_VOTER")
        if refusal is None and len(quorum.voters) == 1:
            refusal = _Refusal(ErrorCode.INVALID_REQUEST, f"controller {key.node_id} is the last voter", "LAST_VOTER")
        if refusal is not None:
            quorum.events.emit(VoterChangeRefused(key.node_id, refusal.cause))
        leader = quorum.role
        if refusal is not None or not isinstance(leader, Leader):
            quorum.emit(Reply(source, _answer(RemoveRaftVoterResponse, refusal)))
            return
        change = _Change(source, RemoveRaftVoterResponse, now_ms + quorum.config.request_timeout_ms)
        self._change = change
        self._write(leader, change, quorum.voters.without(key.node_id), now_ms)

    def update(self, source: object, request: UpdateRaftVoterRequest, now_ms: int) -> None:
        """A voter says where it listens, and which versions it has. Answered when it is written."""
        quorum = self._quorum
        key = ReplicaKey(request.voter_id, request.voter_directory_id)
        leader = quorum.role
        error = ErrorCode.NONE
        if request.cluster_id not in (None, quorum.cluster_id):
            error = ErrorCode.INCONSISTENT_CLUSTER_ID
        else:
            error = quorum.rules.leader_request_error(leader, request.current_leader_epoch, isinstance(leader, Leader))
        if error == ErrorCode.NONE and isinstance(leader, Leader):
            feature = request.k_raft_version_feature
            versions = (feature.min_supported_version, feature.max_supported_version)
            error = self._update(leader, key, request.listeners, versions, now_ms)
        quorum.emit(Reply(source, UpdateRaftVoterResponse(error_code=error, current_leader=self._current_leader())))

    def _update(
        self,
        leader: Leader,
        key: ReplicaKey,
        listeners: Iterable[_NamedEndpoint],
        versions: tuple[int, int],
        now_ms: int,
    ) -> ErrorCode:
        quorum = self._quorum
        updated = self._voter(key, listeners, versions)
        refusal = self._bad_voter(key, updated.listeners)
        if refusal is not None:
            return refusal.error
        known = quorum.voters.get(key.node_id)
        if quorum.history.kraft_version == 0:
            # The set is static; an upgrade of kraft.version writes what is reported here.
            if known is None:
                return ErrorCode.VOTER_NOT_FOUND
            leader.reported[key.node_id] = updated
            return ErrorCode.NONE
        refusal = self._refusal(None)
        if refusal is not None:
            return refusal.error
        if known is None or known.key != key:
            return ErrorCode.VOTER_NOT_FOUND
        if not versions[0] <= quorum.history.kraft_version <= versions[1]:
            return ErrorCode.INVALID_REQUEST
        if updated != known:
            self._leading.change_voters(
                leader, [to_record(quorum.voters.with_voter(updated), quorum.config.listener_name)], now_ms
            )
        return ErrorCode.NONE

    def upgrade(self, level: int, now_ms: int, *, validate_only: bool = False) -> str | None:
        """Take kraft.version to `level`: the reason why that cannot be, or None."""
        quorum = self._quorum
        leader = quorum.role
        current = quorum.history.kraft_version
        if not 0 <= level <= LATEST_KRAFT_VERSION:
            return f"The controller only supports versions 0-{LATEST_KRAFT_VERSION}."
        if not isinstance(leader, Leader) or not leader.announced:
            return "This controller is not the active one."
        if level < current:
            return f"Can't downgrade from {current} to {level}: {KRAFT_VERSION} cannot be downgraded."
        if level == current:
            return None
        voters: list[Voter] = []
        for voter in quorum.voters:
            known = self._known_voter(leader, voter)
            if known is None:
                return f"Controller {voter.node_id} has not said that it supports {KRAFT_VERSION} {level}."
            voters.append(known)
        if self._change is not None or not quorum.rules.is_fenced(leader.committed):
            return "A change of the voters is under way."
        if not validate_only:
            records: list[VoterMessage] = [
                KRaftVersionRecord(k_raft_version=level),
                to_record(VoterSet(voters), quorum.config.listener_name),
            ]
            self._leading.change_voters(leader, records, now_ms)
        return None

    def _known_voter(self, leader: Leader, voter: Voter) -> Voter | None:
        """A static voter, with the directory that it reports: by UpdateRaftVoter, or by fetching.

        Kafka's Fetch names a directory since it has kraft.version 1.
        """
        quorum = self._quorum
        if voter.node_id == quorum.me.node_id:
            return quorum.own or Voter(voter.node_id, quorum.me.directory_id, voter.host, voter.port)
        reported = leader.reported.get(voter.node_id)
        if reported is not None:
            return reported if reported.kraft_versions[1] >= LATEST_KRAFT_VERSION else None
        progress = leader.progress.voters.get(voter.node_id)
        if progress is None or progress.directory_id == ZERO_UUID:
            return None
        return Voter(voter.node_id, progress.directory_id, voter.host, voter.port)

    # -- the conditions

    def _refusal(self, cluster_id: str | None) -> _Refusal | None:
        """Why no voter can be added or removed now."""
        quorum = self._quorum
        leader = quorum.role
        if cluster_id not in (None, quorum.cluster_id):
            text = "the request is for another cluster"
            return _Refusal(ErrorCode.INCONSISTENT_CLUSTER_ID, text, "OTHER_CLUSTER")
        if not isinstance(leader, Leader) or quorum.stopping:
            return _Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this controller is not the active one", "NOT_LEADER")
        if quorum.history.kraft_version == 0:
            text = f"{KRAFT_VERSION} is 0; upgrade it to 1 to change the voters"
            return _Refusal(ErrorCode.UNSUPPORTED_VERSION, text, "KRAFT_VERSION")
        if self._change is not None:
            return _Refusal(ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is under way", "UNDER_WAY")
        if not quorum.rules.is_fenced(leader.committed):
            text = "the leader has not committed a record of its epoch yet"
            return _Refusal(ErrorCode.REQUEST_TIMED_OUT, text, "NOT_FENCED")
        offset = quorum.history.offset
        if offset is not None and not quorum.rules.is_change_done(offset, leader.committed):
            text = f"the last change of the voters, at {offset}, is not committed yet"
            return _Refusal(ErrorCode.REQUEST_TIMED_OUT, text, "UNDER_WAY")
        return None

    def _bad_voter(self, key: ReplicaKey, listeners: Iterable[_NamedEndpoint]) -> _Refusal | None:
        name = self._quorum.config.listener_name
        if key.node_id < 0 or key.directory_id == ZERO_UUID:
            text = "a voter needs an id and the id of its directory"
            return _Refusal(ErrorCode.INVALID_REQUEST, text, "BAD_VOTER")
        if not any(listener.name == name for listener in listeners):
            return _Refusal(ErrorCode.INVALID_REQUEST, f"the voter does not listen on {name}", "BAD_VOTER")
        return None

    def _voter(self, key: ReplicaKey, listeners: Iterable[_NamedEndpoint], versions: tuple[int, int]) -> Voter:
        named = tuple(Listener(each.name, each.host, each.port) for each in listeners)
        host, port = address(named, self._quorum.config.listener_name)
        return Voter(key.node_id, key.directory_id, host, port, named, versions)

    def _current_leader(self) -> CurrentLeader:
        quorum = self._quorum
        leader_id = quorum.role.leader_id
        leader = None if leader_id is None else quorum.get(leader_id)
        if leader is None:
            return CurrentLeader(leader_epoch=quorum.epoch)
        return CurrentLeader(leader_id=leader.node_id, leader_epoch=quorum.epoch, host=leader.host, port=leader.port)

    # -- the new voter's versions

    def handle_api_versions_response(self, pending: PendingRequest, response: ApiVersionsResponse, now_ms: int) -> bool:
        """The voter that is to be added says which versions of kraft.version it supports."""
        change = self._change
        if change is None or change.voter is None or change.voter.node_id != pending.to or change.offset is not None:
            return True
        if response.error_code != ErrorCode.NONE:
            return False
        found = next((each for each in response.supported_features if each.name == KRAFT_VERSION), None)
        low, high = (0, 0) if found is None else (found.min_version, found.max_version)
        level = self._quorum.history.kraft_version
        if not low <= level <= high:
            voter_id = change.voter.node_id
            text = f"controller {voter_id} supports {KRAFT_VERSION} {low}-{high}, and the cluster has {level}"
            self._end(change, _Refusal(ErrorCode.INVALID_REQUEST, text, "KRAFT_VERSION"))
            return True
        voter = change.voter
        change.voter = Voter(voter.node_id, voter.directory_id, voter.host, voter.port, voter.listeners, (low, high))
        change.answered_versions = True
        return True

    # -- time

    def act(self, now_ms: int) -> None:
        leader = self._quorum.role
        change = self._change
        if not isinstance(leader, Leader):
            if change is not None:
                text = "this controller is not the active one any more"
                self._end(change, _Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, text, "NOT_LEADER"))
            return
        if change is not None:
            self._go_on(leader, change, now_ms)
        self._correct_own_entry(leader, now_ms)
        self._leave(leader, now_ms)

    def _correct_own_entry(self, leader: Leader, now_ms: int) -> None:
        """A leader has nobody to send its UpdateRaftVoter to."""
        quorum = self._quorum
        own = quorum.own
        if own is None or not quorum.is_voter or self._refusal(None) is not None:
            return
        known = quorum.voters.get(own.node_id)
        if known is not None and (known.listeners, known.kraft_versions) != (own.listeners, own.kraft_versions):
            voters = quorum.voters.with_voter(own)
            self._leading.change_voters(leader, [to_record(voters, quorum.config.listener_name)], now_ms)

    def _go_on(self, leader: Leader, change: _Change, now_ms: int) -> None:
        quorum = self._quorum
        if change.offset is not None:
            if quorum.rules.is_change_done(change.offset, leader.committed):
                self._end(change, None)
                return
        elif change.voter is not None:
            if not change.answered_versions:
                if quorum.requests.is_free(change.voter.node_id, now_ms):
                    request = ApiVersionsRequest(client_software_name="tanist", client_software_version="1")
                    quorum.send(change.voter.node_id, request, now_ms, change.voter.endpoint)
            elif quorum.rules.is_caught_up(leader.progress.of(change.voter.key), quorum.config, now_ms):
                self._write(leader, change, quorum.voters.with_voter(change.voter), now_ms)
                self._go_on(leader, change, now_ms)
                return
        if now_ms >= self._deadline_ms(change):
            written = change.offset is not None
            text = "it is not committed yet" if written else "the new voter has not caught up"
            text = f"the change of the voters takes too long: {text}"
            cause = "NOT_COMMITTED" if written else "NOT_CAUGHT_UP"
            self._end(change, _Refusal(ErrorCode.REQUEST_TIMED_OUT, text, cause))

    def _write(self, leader: Leader, change: _Change, voters: VoterSet, now_ms: int) -> None:
        quorum = self._quorum
        change.offset = self._leading.change_voters(leader, [to_record(voters, quorum.config.listener_name)], now_ms)
        if change.acknowledged:
            quorum.emit(Reply(change.source, _answer(change.answer, None)))

    def _end(self, change: _Change, refusal: _Refusal | None) -> None:
        self._change = None
        self._quorum.events.emit(VoterChangeEnded("" if refusal is None else refusal.cause))
        if not (change.acknowledged and change.offset is not None):
            self._quorum.emit(Reply(change.source, _answer(change.answer, refusal)))

    def _leave(self, leader: Leader, now_ms: int) -> None:
        """A leader whose removal is committed has nothing left to do."""
        quorum = self._quorum
        offset = quorum.history.offset
        if quorum.is_voter or offset is None or not quorum.rules.is_change_done(offset, leader.committed):
            return
        quorum.become_resigned(now_ms, "REMOVED")

    def _deadline_ms(self, change: _Change) -> int:
        by_ms = change.caught_up_by_ms
        return change.expires_ms if by_ms is None or change.offset is not None else by_ms

    @property
    def next_deadline_ms(self) -> int | None:
        return None if self._change is None else self._deadline_ms(self._change)


def _answer(kind: _Answer, refusal: _Refusal | None) -> AddRaftVoterResponse | RemoveRaftVoterResponse:
    if refusal is None:
        return kind(error_code=ErrorCode.NONE, error_message=None)
    return kind(error_code=refusal.error, error_message=refusal.text)

"""A follower's own requests to change the voters (KIP-853): to join the set, and to correct its entry in it.

Owns when a controller sends AddRaftVoter, RemoveRaftVoter or UpdateRaftVoter to its leader: once in a fetch timeout, in
place of a fetch, and only between two fetches that were answered. A request that the leader answers late holds up this
node's fetches, and a leader that waits for them holds up all other changes: without a fetch in between the two would
wait for each other for ever. The leader decides.

With kraft.version 0 the log names no voters. Each voter says once in an epoch where it listens, in which directory, and
which versions it supports: its leader needs that to take kraft.version to 1.
"""

from __future__ import annotations

from tanist.quorum.state.node_state import Quorum
from tanist.quorum.state.roles import Follower
from tanist.quorum.voters import Voter
from tanist.wire.errors import ErrorCode
from tanist.wire.messages import add_raft_voter_request, update_raft_voter_request
from tanist.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from tanist.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from tanist.wire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from tanist.wire.messages.update_raft_voter_response import UpdateRaftVoterResponse
from tanist.wire.schema import Request

_REPORTS_MAX = 3
"""Attempts to report to one leader with kraft.version 0: it may be too old to know the request."""


class Joining:
    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        self._due_ms: int | None = None
        self._sent_ms = -1
        self._reported: Follower | None = None
        """The role in which the leader has taken this node's report, with kraft.version 0."""
        self._reporting: tuple[Follower | None, int] = (None, 0)
        """The role, and its attempts."""

    def act(self, now_ms: int) -> None:
        quorum = self._quorum
        role = quorum.role
        own = quorum.own
        if not isinstance(role, Follower) or own is None or not role.has_fetched or quorum.stopping:
            self._due_ms = None
            return
        request = self._request(role, own) if quorum.can_become_voter else None
        if request is None:
            self._due_ms = None
            return
        period_ms = quorum.config.fetch_timeout_ms
        if self._due_ms is None:
            self._due_ms = now_ms + period_ms
        if now_ms >= self._due_ms and self._is_between_fetches(role, now_ms):
            self._due_ms = now_ms + period_ms
            self._sent_ms = now_ms
            if quorum.history.kraft_version == 0:
                self._reporting = (role, self._attempts(role) + 1)
            quorum.send(role.leader_id, request, now_ms)

    def _is_between_fetches(self, role: Follower, now_ms: int) -> bool:
        if not self._quorum.requests.idle or role.download is not None:
            return False
        return self._sent_ms < role.fetched_ms and now_ms - role.fetched_ms <= self._quorum.config.fetch_timeout_ms

    def updated(self, response: UpdateRaftVoterResponse) -> None:
        """With kraft.version 1 the log says what came of it."""
        role = self._quorum.role
        taken = response.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
        if taken and isinstance(role, Follower) and role is self._reporting[0]:
            self._reported = role

    def _attempts(self, role: Follower) -> int:
        return self._reporting[1] if self._reporting[0] is role else 0

    def _request(self, role: Follower, own: Voter) -> Request | None:
        quorum = self._quorum
        known = quorum.voters.get(own.node_id)
        if quorum.history.kraft_version == 0:
            if known is None or self._reported is role or self._attempts(role) >= _REPORTS_MAX:
                return None
            return self._update(role, own)
        if known is not None and known.key == own.key:
            same = (known.listeners, known.kraft_versions) == (own.listeners, own.kraft_versions)
            return None if same else self._update(role, own)
        if not quorum.config.auto_join:
            return None
        if known is not None:
            # This id with another directory: a disk that is gone.
            return RemoveRaftVoterRequest(
                cluster_id=quorum.cluster_id, voter_id=known.node_id, voter_directory_id=known.directory_id
            )
        return AddRaftVoterRequest(
            cluster_id=quorum.cluster_id,
            # Less than this node waits for the answer: it has to fetch again before it asks again.
            timeout_ms=quorum.config.request_timeout_ms // 2,
            voter_id=own.node_id,
            voter_directory_id=own.directory_id,
            listeners=tuple(
                add_raft_voter_request.Listener(name=each.name, host=each.host, port=each.port)
                for each in own.listeners
            ),
            # The change is committed when this node fetches it, and it fetches when it has the answer.
            ack_when_committed=False,
        )

    def _update(self, role: Follower, own: Voter) -> UpdateRaftVoterRequest:
        return UpdateRaftVoterRequest(
            cluster_id=self._quorum.cluster_id,
            current_leader_epoch=role.epoch,
            voter_id=own.node_id,
            voter_directory_id=own.directory_id,
            listeners=tuple(
                update_raft_voter_request.Listener(name=each.name, host=each.host, port=each.port)
                for each in own.listeners
            ),
            k_raft_version_feature=update_raft_voter_request.KRaftVersionFeature(
                min_supported_version=own.kraft_versions[0], max_supported_version=own.kraft_versions[1]
            ),
        )

    def next_deadline_ms(self, now_ms: int) -> int | None:
        """An answer that is waited for comes first, and then this."""
        role = self._quorum.role
        if self._due_ms is None or not isinstance(role, Follower):
            return None
        return self._due_ms if now_ms < self._due_ms or self._is_between_fetches(role, now_ms) else None

"""A follower's own requests to change the voters (KIP-853): to join the set, and to correct its entry in it.

Owns when a controller sends AddRaftVoter, RemoveRaftVoter or UpdateRaftVoter to its leader: once in a fetch timeout, in
place of a fetch. The leader decides.
"""

from __future__ import annotations

from tanist.quorum.roles import Follower
from tanist.quorum.state import Quorum
from tanist.quorum.voters import Voter
from tanist.wire.messages import add_raft_voter_request, update_raft_voter_request
from tanist.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from tanist.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from tanist.wire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from tanist.wire.schema import Request


class Joining:
    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        self._due_ms: int | None = None

    def act(self, now_ms: int) -> None:
        quorum = self._quorum
        role = quorum.role
        own = quorum.own
        if not isinstance(role, Follower) or own is None or not role.has_fetched or quorum.stopping:
            self._due_ms = None
            return
        if quorum.history.kraft_version == 0 or not quorum.can_become_voter:
            return
        request = self._request(role, own)
        if request is None:
            self._due_ms = None
            return
        period_ms = quorum.config.fetch_timeout_ms
        if self._due_ms is None:
            self._due_ms = now_ms + period_ms
        if now_ms >= self._due_ms and quorum.requests.idle and role.download is None:
            self._due_ms = now_ms + period_ms
            quorum.send(role.leader_id, request, now_ms)

    def _request(self, role: Follower, own: Voter) -> Request | None:
        quorum = self._quorum
        known = quorum.voters.get(own.node_id)
        if known is not None and known.key == own.key:
            if (known.listeners, known.kraft_versions) == (own.listeners, own.kraft_versions):
                return None
            return UpdateRaftVoterRequest(
                cluster_id=quorum.cluster_id,
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
        if not quorum.config.auto_join:
            return None
        if known is not None:
            # This id with another directory: a disk that is gone.
            return RemoveRaftVoterRequest(
                cluster_id=quorum.cluster_id, voter_id=known.node_id, voter_directory_id=known.directory_id
            )
        return AddRaftVoterRequest(
            cluster_id=quorum.cluster_id,
            timeout_ms=quorum.config.request_timeout_ms,
            voter_id=own.node_id,
            voter_directory_id=own.directory_id,
            listeners=tuple(
                add_raft_voter_request.Listener(name=each.name, host=each.host, port=each.port)
                for each in own.listeners
            ),
            # The change is committed when this node fetches it, and it fetches when it has the answer.
            ack_when_committed=False,
        )

    @property
    def next_deadline_ms(self) -> int | None:
        """An answer that is waited for comes first, and then this."""
        return self._due_ms if self._quorum.requests.idle else None

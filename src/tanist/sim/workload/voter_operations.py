"""Operators of the quorum: they add and remove controllers as `kafka-metadata-quorum` does (KIP-853).

Owns the requests of a list of such operations, which may overlap. They go to the controllers directly, mostly to the
one that leads. Nothing is asked for that would leave a set without a majority that has its disks (`sim.voter_oracle`).
A missing answer is remembered: the request may still be carried out.
"""

from __future__ import annotations

from typing import Any

from tanist.quorum.voters import ReplicaKey
from tanist.sim.events import VoterRequested
from tanist.sim.voter_oracle import VoterOracle
from tanist.sim.workload.history import History
from tanist.sim.workload.operations import Operation, Operator
from tanist.sim.world.world import CLUSTER_ID, CONTROLLER_PORT, Host, World
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from tanist.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest

_TIMEOUT_MS = 4_000
_ADD_VERSION, _REMOVE_VERSION = 1, 0
_AGAIN_MS = 200
_AT_ONCE = 3
_TO_ANOTHER = 0.1
"""The share of requests that go to a controller that does not lead, as far as the operator knows."""


class VoterAdmin(Operator):
    """Sends the operations of a list."""

    def __init__(self, world: World, history: History, oracle: VoterOracle) -> None:
        super().__init__(world, "voters", history)
        self._oracle = oracle
        self._next_id = 0
        self._wanted: frozenset[int] = frozenset()

    def _act(self, operation: Operation) -> None:
        if self._oracle.is_dynamic and self._under_way < _AT_ONCE:
            getattr(self, f"_{operation.kind}")(operation)

    def _add_voter(self, operation: Operation) -> None:
        """A controller that is none, or the new directory of one whose disk was lost."""
        hosts = [each for each in self._controllers() if each.node_id not in self._oracle.voter_ids]
        if hosts:
            self._add(hosts[int(operation.first * len(hosts))], operation.second)

    def _remove_voter(self, operation: Operation) -> None:
        """One whose disk is lost, or the active controller, or any."""
        voters = [voter.key for voter in self._oracle.voters]
        lost = [key for key in voters if self._oracle.is_lost(key)]
        active = self._active()
        if lost:
            key = lost[0]
        elif active is not None and active.node_id in self._oracle.voter_ids and operation.first < 0.4:
            key = ReplicaKey(active.node_id, active.directory_id)
        else:
            key = voters[int(operation.second * len(voters))]
        if len(voters) > 1 and self._oracle.may_remove(key):
            self._remove(key, operation.second)

    # -- at the end

    def change_to(self, wanted: frozenset[int]) -> None:
        """Ask until these controllers, with the disks that they have, are the voters."""
        self._wanted = wanted
        self.run(self._change_next)

    @property
    def joins_by_itself(self) -> bool:
        return self._oracle.joins_by_itself

    def described(self) -> str:
        return ", ".join(
            f"{voter.node_id}{' (without its disk)' if self._oracle.is_lost(voter.key) else ''}"
            for voter in self._oracle.voters
        )

    def has_changed(self) -> bool:
        voters = self._oracle.voters
        return frozenset(voters.ids) == self._wanted and not any(self._oracle.is_lost(voter.key) for voter in voters)

    def _change_next(self) -> None:
        if self.has_changed():
            return
        if not self._under_way:
            voters = [voter.key for voter in self._oracle.voters]
            lost = [key for key in voters if self._oracle.is_lost(key)]
            missing = sorted(self._wanted - {key.node_id for key in voters})
            surplus = [key for key in voters if key.node_id not in self._wanted]
            if lost:
                self._remove(lost[0], 1.0)
            elif missing:
                self._add(self.world.hosts[missing[0]], 1.0)
            elif surplus:
                self._remove(surplus[0], 1.0)
        self.later(_AGAIN_MS, self._change_next)

    # -- requests

    def _add(self, host: Host, choice: float) -> None:
        self.world.emit(VoterRequested(host.node_id, adds=True))
        key = ReplicaKey(host.node_id, host.directory_id)
        listener = host.endpoint
        request = AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=_TIMEOUT_MS,
            voter_id=key.node_id,
            voter_directory_id=key.directory_id,
            listeners=(Listener(name=listener.name, host=listener.host, port=listener.port),),
            ack_when_committed=choice >= 0.3,
        )
        self._ask(request, _ADD_VERSION, key, adds=True, choice=choice)

    def _remove(self, key: ReplicaKey, choice: float) -> None:
        self.world.emit(VoterRequested(key.node_id, adds=False))
        request = RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter_id=key.node_id, voter_directory_id=key.directory_id
        )
        self._ask(request, _REMOVE_VERSION, key, adds=False, choice=choice)

    def _ask(self, request: Any, version: int, key: ReplicaKey, *, adds: bool, choice: float) -> None:
        to = self._active()
        if to is None or choice < _TO_ANOTHER:
            controllers = self._controllers()
            to = controllers[int(choice * 997) % len(controllers)]
        number = self._next_id
        self._next_id += 1
        self._oracle.unanswered[number] = (key, adds)
        self._under_way += 1
        kind = "added" if adds else "removed"

        def handle_response(response: Any) -> None:
            self._under_way -= 1
            if response is None:
                self.world.counts[f"voters: to be {kind}, no answer"] += 1
                return
            del self._oracle.unanswered[number]
            error = ErrorCode(response.error_code)
            self.world.counts[
                f"voters: {kind}" if error == ErrorCode.NONE else f"voters: not {kind}, {error.name}"
            ] += 1

        self.channel((to.name, CONTROLLER_PORT)).call(request, version, _TIMEOUT_MS + 1_000, handle_response)

    def _controllers(self) -> list[Host]:
        return [host for host in self.world.hosts.values() if host.votes]

    def _active(self) -> Host | None:
        """The controller that leads in the newest epoch."""
        leading = [
            (host.node.quorum.raft.epoch, host.node_id)
            for host in self._controllers()
            if host.up and host.node is not None and host.node.quorum.raft.is_leader
        ]
        return self.world.hosts[max(leading)[1]] if leading else None

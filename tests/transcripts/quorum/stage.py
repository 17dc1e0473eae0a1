"""The commands of the quorum transcripts, played on real `RaftNode`s (`tests/quorum/quorum_network.py`).

voters N... [observers N...]      the nodes, none of them running yet
start N..., crash N, power-loss N a process starts; dies; dies with what was not synced
timeout N                         what N is waiting for does not come: its present role times out
append N a b                      the controller of N writes two records in one batch
partition N N | N, heal           who reaches whom
time +MS                          time passes
resign N                          the leader leaves in good order
snapshot N                        N writes a snapshot of what it has applied, and drops the log before it
show                              all nodes

What is sent at one moment arrives, and is synced, at that moment: only timeouts take time. Of fetches, those are
shown that bring something.
"""

from __future__ import annotations

from typing import Any

from tanist.quorum import (
    BecameQuorumLeader,
    Effect,
    ElectionState,
    HighWatermark,
    MetadataLogTruncated,
    RaftConfig,
    Reply,
    SaveElectionState,
    Send,
    SnapshotDownloaded,
    SteppedDown,
)
from tanist.quorum.storage.batches import decode_values, read_headers
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from tanist.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.fetch_snapshot_response import FetchSnapshotResponse
from tanist.wire.messages.vote_request import VoteRequest
from tanist.wire.messages.vote_response import VoteResponse
from tests.quorum.quorum_checker import Checker
from tests.quorum.quorum_network import Faults, Machine, Network


class QuorumTranscript:
    """The stage of one transcript."""

    def __init__(self) -> None:
        self._network: Network | None = None
        self._checker: Checker | None = None
        self._printed: list[str] = []
        self._asked: dict[object, Any] = {}

    @property
    def network(self) -> Network:
        if self._network is None:
            raise ValueError("begin with `voters`")
        return self._network

    def run(self, command: str) -> str:
        name, *words = command.split()
        self._printed = []
        getattr(self, f"do_{name.replace('-', '_')}")(words)
        if self._network is not None:
            self.network.run_for(0)
        if name == "show":
            self._printed = [self._node(machine) for machine in self.network.machines.values()]
        return "\n".join(self._printed)

    # -- commands

    def do_voters(self, words: list[str]) -> None:
        voters, _, observers = " ".join(words).partition("observers")
        self._network = Network(
            5,
            [int(word) for word in voters.split()],
            [int(word) for word in observers.split()],
            config=RaftConfig(),
            faults=Faults(delay_ms=0, sync_ms=0),
        )
        self._network.unreachable_ms = 10
        self._checker = Checker(self._network)
        check = self._checker.effect

        def effect(node_id: int, effect: Effect) -> None:
            check(node_id, effect)
            self._tell(node_id, effect)

        self._network.on_effect = effect

    def do_start(self, words: list[str]) -> None:
        self.network.start(*(int(word) for word in words))

    def do_crash(self, words: list[str]) -> None:
        self.network.crash(int(words[0]), lose_unsynced=False)

    def do_power_loss(self, words: list[str]) -> None:
        self.network.crash(int(words[0]))

    def do_timeout(self, words: list[str]) -> None:
        node = self.network.node(int(words[0]))
        node._quorum.role.deadline_ms = self.network.now_ms
        self.network.do(node.node_id, node.tick(self.network.now_ms))

    def do_append(self, words: list[str]) -> None:
        at = self.network.append(int(words[0]), *(word.encode() for word in words[1:]))
        self._printed.insert(0, "refused: not an elected leader" if at is None else f"at {at[0]} to {at[1]}")

    def do_partition(self, words: list[str]) -> None:
        self.network.partition(*([int(word) for word in group.split()] for group in " ".join(words).split("|")))

    def do_heal(self, words: list[str]) -> None:
        self.network.heal()

    def do_time(self, words: list[str]) -> None:
        self.network.run_for(int(words[0]))

    def do_resign(self, words: list[str]) -> None:
        node = self.network.node(int(words[0]))
        self.network.do(node.node_id, node.resign(self.network.now_ms))

    def do_snapshot(self, words: list[str]) -> None:
        snapshot_id = self.network.snapshot(int(words[0]))
        if snapshot_id is None:
            raise ValueError("nothing to put into a snapshot")
        self._printed.append(f"{words[0]} has a snapshot of all before {snapshot_id.end_offset}")

    def do_show(self, words: list[str]) -> None:
        pass

    # -- telling

    def _node(self, machine: Machine) -> str:
        node = machine.node
        if node is None:
            return f"{machine.node_id} is down{'':29}{self._log(machine)}"
        state = f"{node.role}, epoch {node.epoch}"
        if node.role == "Follower":
            state += f" of {node.leader_id}"
        return f"{machine.node_id} {state:28} HW {node.high_watermark}  {self._log(machine)}".rstrip()

    def _log(self, machine: Machine) -> str:
        log = machine.log
        parts = [f"snapshot to {log.start_offset}"] if log.start_offset else []
        for batch in log.read_batches(log.start_offset, log.end_offset):
            parts.append(f"e{batch.epoch}:{','.join(value.decode() for value in batch.values) or 'leader'}")
        return " ".join(parts)

    def _tell(self, node_id: int, effect: Effect) -> None:
        line: str | None = None
        if isinstance(effect, Send):
            machine = self.network.machines[node_id]
            self._asked[(node_id, machine.life, effect.request_id)] = effect.request
            line = self._request(effect)
        elif isinstance(effect, Reply):
            line = self._answer(effect)
        elif isinstance(effect, SaveElectionState):
            line = f"saves {self._state(effect.state)}"
        elif isinstance(effect, HighWatermark):
            line = f"knows that all before {effect.offset} is committed"
        elif isinstance(effect, BecameQuorumLeader):
            line = f"leads epoch {effect.epoch}, whose records begin at {effect.epoch_start_offset}"
        elif isinstance(effect, SteppedDown):
            line = f"steps down from epoch {effect.epoch}"
        elif isinstance(effect, MetadataLogTruncated):
            line = f"cuts its log at {effect.offset}"
        elif isinstance(effect, SnapshotDownloaded):
            line = f"begins its log anew after the snapshot, at {effect.end_offset}"
        if line is not None:
            self._printed.append(f"{node_id} {line}")

    def _state(self, state: ElectionState) -> str:
        parts = [f"epoch {state.epoch}"]
        if state.voted is not None:
            parts.append(f"voted for {state.voted.node_id}")
        if state.leader_id is not None:
            parts.append(f"leader {state.leader_id}")
        return ", ".join(parts)

    def _request(self, send: Send) -> str | None:
        request = send.request
        if isinstance(request, VoteRequest):
            part = request.topics[0].partitions[0]
            kind = "pre-vote" if part.pre_vote else "vote"
            end = f"{part.last_offset} records, the last of epoch {part.last_offset_epoch}"
            return f"asks {send.to} for its {kind} in epoch {part.replica_epoch}: {end}"
        if isinstance(request, BeginQuorumEpochRequest):
            return f"tells {send.to} that it leads epoch {request.topics[0].partitions[0].leader_epoch}"
        if isinstance(request, EndQuorumEpochRequest):
            preferred = request.topics[0].partitions[0].preferred_successors
            heirs = f"; its heirs are {', '.join(map(str, preferred))}" if preferred else ""
            epoch = request.topics[0].partitions[0].leader_epoch
            return f"tells {send.to} that it does not lead epoch {epoch} any more{heirs}"
        return None

    def _answer(self, reply: Reply) -> str | None:
        response = reply.response
        source: Any = reply.source
        to = source[0]
        if isinstance(response, VoteResponse):
            vote = response.topics[0].partitions[0]
            if vote.error_code:
                return f"answers {to}: {ErrorCode(vote.error_code).name}, it is epoch {vote.leader_epoch}"
            known = f", {vote.leader_id} leads" if vote.leader_id >= 0 and not vote.vote_granted else ""
            return f"{'grants it to' if vote.vote_granted else 'refuses'} {to}{known}"
        if isinstance(response, FetchResponse):
            return self._fetched(to, self._asked[source], response)
        if isinstance(response, FetchSnapshotResponse):
            part = response.topics[0].partitions[0]
            if part.error_code:
                return f"answers {to}: {ErrorCode(part.error_code).name}"
            return f"sends {to} the snapshot of all before {part.snapshot_id.end_offset}"
        return None

    def _fetched(self, to: int, request: Any, response: FetchResponse) -> str | None:
        asked = request.topics[0].partitions[0]
        part = response.responses[0].partitions[0]
        if part.error_code:
            if asked.current_leader_epoch == part.current_leader.leader_epoch:
                return None
            known = f", {part.current_leader.leader_id} leads" if part.current_leader.leader_id >= 0 else ""
            epoch = part.current_leader.leader_epoch
            return f"answers {to}: {ErrorCode(part.error_code).name}, it is epoch {epoch}{known}"
        if part.diverging_epoch.epoch >= 0:
            ends = f"epoch {part.diverging_epoch.epoch} ends at {part.diverging_epoch.end_offset}"
            return f"answers {to}, whose log ends at {asked.fetch_offset} with epoch {asked.last_fetched_epoch}: {ends}"
        if part.snapshot_id.end_offset >= 0:
            return f"points {to}, at {asked.fetch_offset}, to the snapshot of all before {part.snapshot_id.end_offset}"
        view = memoryview(part.records or b"")
        found = [
            ",".join(v.decode() for v in decode_values(view[at : at + h.size_bytes], h).values) or "leader"
            for at, h in read_headers(view)
        ]
        return f"sends {to}, from {asked.fetch_offset} on: {' '.join(found)}" if found else None


def stage() -> QuorumTranscript:
    return QuorumTranscript()

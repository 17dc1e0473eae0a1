"""A virtual network of quorum nodes: time, loss, reordering, duplication, crashes that take what was not synced.

One seed decides everything. Messages are passed as objects. The checks of `Checker` run after every event.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tanist.events.stream import Events
from tanist.lab.scenarios.quorum_node import CLUSTER_ID, SeededRandom, directory, voters_of
from tanist.ports import FileRange
from tanist.quorum import (
    BecameQuorumLeader,
    Effect,
    ElectionState,
    HighWatermark,
    MemoryLog,
    MetadataLogTruncated,
    NotLeader,
    QuorumLeaderChanged,
    QuorumRules,
    RaftConfig,
    RaftNode,
    Reply,
    SaveElectionState,
    Send,
    SnapshotDownloaded,
    SnapshotId,
    SteppedDown,
    SyncLog,
    Voter,
    VoterSet,
)
from tanist.quorum.storage.voter_history import VoterHistory, to_record
from tanist.quorum.voters import Listener
from tanist.wire.control import KRaftVersionRecord
from tanist.wire.messages import add_raft_voter_request
from tanist.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.fetch_snapshot_response import FetchSnapshotResponse
from tanist.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from tanist.wire.schema import Request, Response

FETCH_VERSION = 18
OUTSIDE = object()
"""The source of requests that no node has sent."""


def materialize(response: object) -> None:
    """What a node does on sending: the ranges of files in a response become bytes."""
    parts: list[tuple[object, str]]
    if isinstance(response, FetchResponse):
        parts = [(part, "records") for topic in response.responses for part in topic.partitions]
    elif isinstance(response, FetchSnapshotResponse):
        parts = [(part, "unaligned_records") for topic in response.topics for part in topic.partitions]
    else:
        return
    for part, name in parts:
        records = getattr(part, name)
        if isinstance(records, FileRange):
            setattr(part, name, records.file.read(records.offset, records.length))


class Rng(SeededRandom):
    """`ports.Random` from a seed, which also draws by percent."""

    def rng(self, percent: float) -> bool:
        return self._random.random() * 100 < percent


def voter_of(node_id: int) -> Voter:
    """With its listener, as the log has it."""
    host, port = f"node{node_id}", 9000 + node_id
    return Voter(node_id, directory(node_id), host, port, (Listener("CONTROLLER", host, port),))


def add_voter(node_id: int) -> AddRaftVoterRequest:
    listener = add_raft_voter_request.Listener(name="CONTROLLER", host=f"node{node_id}", port=9000 + node_id)
    return AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        timeout_ms=1000,
        voter_id=node_id,
        voter_directory_id=directory(node_id),
        listeners=(listener,),
    )


def remove_voter(node_id: int) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter_id=node_id, voter_directory_id=directory(node_id))


@dataclass
class Faults:
    """Percentages, and how long things take."""

    loss: float = 0.0
    duplicate: float = 0.0
    straggle: float = 0.0
    """Messages that come again long after, when the sender has gone on to another epoch."""
    delay_ms: int = 5
    sync_ms: int = 3


@dataclass
class Machine:
    """One node's process and disk."""

    node_id: int
    node: RaftNode | None = None
    log: MemoryLog = field(default_factory=MemoryLog)
    saved: ElectionState = field(default_factory=ElectionState)
    life: int = 0
    announced_epoch: int | None = None
    applied: list[bytes] = field(default_factory=list)
    applied_offset: int = 0
    trace: list[str] = field(default_factory=list)
    timer_ms: int | None = None
    durable_end: int = 0
    """What a loss of power spares, by the disk's own account: the node is not asked."""
    cut_at: list[int] = field(default_factory=list)
    events: Events = field(default_factory=Events)

    @property
    def cuts(self) -> int:
        return len(self.cut_at)


class Network:
    def __init__(
        self,
        seed: int,
        voter_ids: Sequence[int] = (1, 2, 3),
        observer_ids: Sequence[int] = (),
        *,
        config: RaftConfig | None = None,
        faults: Faults | None = None,
        rules: QuorumRules | None = None,
        report_lost: bool = True,
        dynamic: bool = False,
    ) -> None:
        """`dynamic`: kraft.version 1; the voters are formatted with the first set, and all others can join it."""
        self.rng = Rng(seed)
        self.config = config or RaftConfig()
        self.faults = faults or Faults()
        self.rules = rules
        self.report_lost = report_lost
        self.unreachable_ms = self.config.request_timeout_ms // 2
        """How long it takes to notice that a message or its answer is lost."""
        self.now_ms = 0
        self.voters = voters_of(voter_ids)
        self.dynamic = dynamic
        self.answers: list[Response] = []
        """To the requests that came from outside (`ask`)."""
        self.machines = {node_id: Machine(node_id) for node_id in (*voter_ids, *observer_ids)}
        if dynamic:
            for voter in self.voters:
                self.format(self.machines[voter.node_id])
        self.cut: set[frozenset[int]] = set()
        self.events = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._wire = 0
        self.on_event: Callable[[Machine], None] | None = None
        self.on_effect: Callable[[int, Effect], None] | None = None

    # -- the world

    def at(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._sequence, action))

    def step(self) -> bool:
        if not self._queue:
            return False
        when_ms, _, action = heapq.heappop(self._queue)
        self.now_ms = max(self.now_ms, when_ms)
        self.events += 1
        action()
        return True

    def run_for(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while self._queue and self._queue[0][0] <= end_ms:
            self.step()
        self.now_ms = end_ms

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 60_000) -> None:
        end_ms = self.now_ms + limit_ms
        while not condition():
            if not self._queue or self._queue[0][0] > end_ms:
                raise AssertionError(f"not so after {limit_ms} ms: {self.describe()}")
            self.step()

    def describe(self) -> str:
        parts = []
        for machine in self.machines.values():
            node = machine.node
            state = "down" if node is None else f"{node.role}@{node.epoch} hw={node.high_watermark}"
            parts.append(f"{machine.node_id}:{state} end={machine.log.end_offset}")
        return f"t={self.now_ms} " + ", ".join(parts)

    # -- nodes

    def format(self, machine: Machine) -> None:
        """As `tanist format --initial-controllers` does."""
        first = (KRaftVersionRecord(k_raft_version=1), to_record(VoterSet(self.voters), self.config.listener_name))
        machine.log.create_snapshot(SnapshotId(0, 0), [], wall_ms=0, voters=first)

    def ask(self, node_id: int, request: Request) -> None:
        """A request of an administrator's; what is answered is in `answers`."""
        machine = self.machines[node_id]
        if machine.node is not None:
            version = request.VERSIONS[1]
            self._do(machine, machine.node.receive(OUTSIDE, request, self.now_ms, api_version=version))

    def voters_in_log(self, machine: Machine) -> VoterSet:
        """The set in force at a machine, by its log alone."""
        history = VoterHistory(VoterSet(() if self.dynamic else self.voters), self.config.listener_name)
        history.load(machine.log)
        return history.voters

    def start(self, *node_ids: int) -> None:
        for node_id in node_ids or tuple(self.machines):
            machine = self.machines[node_id]
            machine.life += 1
            machine.announced_epoch = None
            machine.applied = []
            machine.applied_offset = 0
            machine.node = RaftNode(
                node_id,
                directory(node_id),
                CLUSTER_ID,
                () if self.dynamic else self.voters,
                machine.log,
                machine.saved,
                self.config,
                self.rng,
                self.rules,
                own=voter_of(node_id) if self.dynamic else None,
                bootstrap=[voter_of(other).endpoint for other in self.machines] if self.dynamic else (),
                events=machine.events,
            )
            self._do(machine, machine.node.start(self.now_ms, self.now_ms + 1_000_000))

    def crash(self, node_id: int, *, lose_unsynced: bool = True) -> None:
        """Stop the process. With `lose_unsynced`, what was not synced is gone too: a loss of power."""
        machine = self.machines[node_id]
        if machine.node is None:
            return
        durable = machine.durable_end
        machine.node = None
        machine.life += 1
        machine.timer_ms = None
        if lose_unsynced:
            self.lose_power(machine, durable)
        machine.durable_end = min(machine.durable_end, machine.log.end_offset)
        if self.report_lost:
            for other in self.machines.values():
                if other.node is not None and self._linked(node_id, other.node_id):
                    self._later(other, 1, lambda node, now_ms: node.peer_lost(node_id, now_ms))

    def lose_power(self, machine: Machine, durable_end: int) -> None:
        keep = durable_end + self.rng.below(max(1, machine.log.end_offset - durable_end + 1))
        machine.log = machine.log.crashed(keep)

    def begin_sync(self, machine: Machine) -> Callable[[], None]:
        """Begin to make a log durable; what is to be called when the disk is done."""
        return lambda: None

    def save(self, machine: Machine, state: ElectionState) -> None:
        machine.saved = state

    def node(self, node_id: int) -> RaftNode:
        node = self.machines[node_id].node
        if node is None:
            raise AssertionError(f"node {node_id} is down")
        return node

    def leader(self) -> RaftNode | None:
        leaders = [m.node for m in self.machines.values() if m.node is not None and m.announced_epoch is not None]
        return max(leaders, key=lambda node: node.epoch, default=None)

    def append(self, node_id: int, *values: bytes) -> tuple[int, int] | None:
        machine = self.machines[node_id]
        if machine.node is None:
            return None
        try:
            outcome = machine.node.append(values, self.now_ms, self.now_ms + 1_000_000)
        except NotLeader:
            return None
        self._do(machine, outcome.effects)
        return outcome.first_offset, outcome.last_offset

    def snapshot(self, node_id: int) -> SnapshotId | None:
        """A snapshot of what is applied, and cleaning."""
        machine = self.machines[node_id]
        node = machine.node
        if node is None or machine.applied_offset <= machine.log.start_offset:
            return None
        past = machine.log.read_batches(machine.log.start_offset, machine.applied_offset)
        epoch = max((batch.epoch for batch in past), default=None)
        if epoch is None:
            return None
        snapshot_id = SnapshotId(machine.applied_offset, epoch)
        node.check_snapshot_id(snapshot_id)
        machine.log.create_snapshot(
            snapshot_id,
            list(machine.applied),
            wall_ms=self.now_ms + 1_000_000,
            voters=node.snapshot_voters(snapshot_id.end_offset),
        )
        self._do(machine, node.snapshot_created(snapshot_id, self.now_ms, self.now_ms + 1_000_000))
        return snapshot_id

    def partition(self, *groups: Sequence[int]) -> None:
        """Only those of one group reach each other."""
        self.cut = {
            frozenset((a, b))
            for a in self.machines
            for b in self.machines
            if a < b and not any(a in group and b in group for group in groups)
        }

    def heal(self) -> None:
        self.cut = set()
        self.faults = Faults(delay_ms=self.faults.delay_ms, sync_ms=self.faults.sync_ms)

    def do(self, node_id: int, effects: list[Effect]) -> None:
        self._do(self.machines[node_id], effects)

    # -- effects

    def _do(self, machine: Machine, effects: list[Effect]) -> None:
        for effect in effects:
            if self.on_effect is not None:
                self.on_effect(machine.node_id, effect)
            if isinstance(effect, SaveElectionState):
                self.save(machine, effect.state)
            elif isinstance(effect, Send):
                self._send(machine, effect)
            elif isinstance(effect, Reply):
                self._reply(machine, effect)
            elif isinstance(effect, SyncLog):
                self._sync(machine)
            elif isinstance(effect, HighWatermark):
                self._apply(machine, effect.offset)
            elif isinstance(effect, BecameQuorumLeader):
                machine.announced_epoch = effect.epoch
            elif isinstance(effect, SteppedDown):
                machine.announced_epoch = None
            elif isinstance(effect, MetadataLogTruncated):
                machine.cut_at.append(effect.offset)
                machine.durable_end = min(machine.durable_end, effect.offset)
            elif isinstance(effect, SnapshotDownloaded):
                machine.cut_at.append(effect.end_offset)
                machine.durable_end = effect.end_offset
                self._load_snapshot(machine, SnapshotId(effect.end_offset, effect.epoch))
            elif not isinstance(effect, QuorumLeaderChanged):
                raise AssertionError(f"unknown effect {effect}")
        if self.on_event is not None:
            self.on_event(machine)
        self._rearm(machine)

    def _rearm(self, machine: Machine) -> None:
        node = machine.node
        if node is None:
            return
        deadline_ms = node.next_deadline_ms
        if deadline_ms is None or (machine.timer_ms is not None and self.now_ms <= machine.timer_ms <= deadline_ms):
            return
        machine.timer_ms = max(deadline_ms, self.now_ms)
        life = machine.life
        when_ms = machine.timer_ms

        def fire() -> None:
            if machine.life == life and machine.timer_ms == when_ms and machine.node is not None:
                machine.timer_ms = None
                self._do(machine, machine.node.tick(self.now_ms))

        self.at(when_ms - self.now_ms, fire)

    def _later(self, machine: Machine, delay_ms: int, call: Callable[[RaftNode, int], list[Effect]]) -> None:
        life = machine.life

        def run() -> None:
            if machine.life == life and machine.node is not None:
                self._do(machine, call(machine.node, self.now_ms))

        self.at(delay_ms, run)

    def _sync(self, machine: Machine) -> None:
        end_offset = machine.log.end_offset
        life = machine.life
        cuts = machine.cuts
        finish = self.begin_sync(machine)

        def done() -> None:
            if machine.life == life and machine.node is not None:
                finish()
                # What the disk really has: the records of then, as far as they were not cut since.
                machine.durable_end = max(machine.durable_end, min([end_offset, *machine.cut_at[cuts:]]))
                self._do(machine, machine.node.log_synced(end_offset, self.now_ms))

        self.at(self.rng.below(self.faults.sync_ms + 1), done)

    def _apply(self, machine: Machine, offset: int) -> None:
        node = machine.node
        if node is None:
            return
        if machine.applied_offset < machine.log.start_offset:
            latest = machine.log.latest_snapshot_id
            if latest is None:
                raise AssertionError("the log begins after its start and there is no snapshot")
            self._load_snapshot(machine, latest)
        for batch in machine.log.read_batches(machine.applied_offset, offset):
            if batch.offset >= machine.applied_offset:
                machine.applied.extend(batch.values)
        machine.applied_offset = max(machine.applied_offset, offset)

    def _load_snapshot(self, machine: Machine, snapshot_id: SnapshotId) -> None:
        machine.applied = [value for batch in machine.log.read_snapshot(snapshot_id) for value in batch.values]
        machine.applied_offset = snapshot_id.end_offset

    # -- messages

    def _linked(self, a: int, b: int) -> bool:
        return frozenset((a, b)) not in self.cut

    def _delay(self) -> int:
        return self.rng.below(self.faults.delay_ms + 1)

    def _send(self, machine: Machine, send: Send) -> None:
        if send.to >= 0 and send.to not in self.machines:
            raise AssertionError(f"{machine.node_id} sends to {send.to}, which does not exist")
        if send.endpoint is None:
            raise AssertionError(f"{machine.node_id} does not know where {send.to} listens")
        target = self.machines[send.endpoint.port - 9000]
        life = machine.life

        def failed(delay_ms: int) -> None:
            if machine.life == life:
                self._later(machine, delay_ms, lambda node, now_ms: node.response(send.request_id, None, now_ms))

        def arrive() -> None:
            if target.node is None:
                failed(1)
                if self.report_lost:
                    self._later(machine, 1, lambda node, now_ms: node.peer_lost(send.to, now_ms))
                return
            source = (machine.node_id, life, send.request_id)
            if isinstance(send.request, ApiVersionsRequest):
                feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
                self._reply(target, Reply(source, ApiVersionsResponse(supported_features=(feature,))))
                return
            version = FETCH_VERSION if send.request.API_KEY == 1 else send.request.VERSIONS[1]
            self._do(target, target.node.receive(source, send.request, self.now_ms, api_version=version))

        if not self._linked(machine.node_id, target.node_id) or self.rng.rng(self.faults.loss):
            failed(self.unreachable_ms)
            return
        self._carry(arrive)

    def _carry(self, arrive: Callable[[], None]) -> None:
        wire = self._wire

        def deliver() -> None:
            if self._wire == wire:
                arrive()

        self.at(self._delay(), deliver)
        if self.rng.rng(self.faults.duplicate):
            self.at(self._delay() * 3, deliver)
        if self.rng.rng(self.faults.straggle):
            self.at(self.rng.below(self.config.fetch_timeout_ms * 2), deliver)

    def lose_in_flight(self) -> None:
        """What has been sent and has not arrived never will."""
        self._wire += 1

    def _reply(self, machine: Machine, reply: Reply) -> None:
        source: Any = reply.source
        if source is OUTSIDE:
            self.answers.append(reply.response)
            return
        node_id, life, request_id = source
        materialize(reply.response)
        target = self.machines[node_id]
        if not self._linked(machine.node_id, node_id) or self.rng.rng(self.faults.loss):
            if target.life == life:
                self._later(
                    target,
                    self.unreachable_ms,
                    lambda node, now_ms: node.response(request_id, None, now_ms),
                )
            return

        def arrive() -> None:
            if target.life == life and target.node is not None:
                self._do(target, target.node.response(request_id, reply.response, self.now_ms))

        self._carry(arrive)

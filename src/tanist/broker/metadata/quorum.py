"""The quorum on its node: carries out what `quorum.RaftNode` asks for.

A node with the controller role is a voter, any other an observer; both hold the metadata log. What is committed is
replayed (`metadata.replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tanist.broker.context import NodeContext
from tanist.broker.metadata.controller_service import ControllerService
from tanist.broker.metadata.replay import MetadataReplay
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call
from tanist.broker.network.channel import Channel
from tanist.broker.network.probe import Probe
from tanist.events.event import Event
from tanist.events.process import MetadataLogFailed
from tanist.events.quorum import (
    BecameQuorumLeader,
    MetadataLogNotClosed,
    QuorumLeaderChanged,
    QuorumLeaderGone,
    SnapshotDownloaded,
    SteppedDown,
)
from tanist.log.torn import TornLog
from tanist.ports import FileRange, Timer, is_descriptor_shortage
from tanist.quorum.effects import (
    BatchTooLarge,
    Effect,
    HighWatermark,
    NotLeader,
    Reply,
    SaveElectionState,
    Send,
    SyncLog,
)
from tanist.quorum.raft import RaftNode
from tanist.quorum.storage.metadata_log import MetadataLog
from tanist.quorum.storage.quorum_state_file import QuorumStateFile
from tanist.quorum.voters import Endpoint
from tanist.wire.apis import ApiKey
from tanist.wire.ids import KNOWS_NOTHING_MS
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.fetch_snapshot_response import FetchSnapshotResponse
from tanist.wire.schema import Response

_VERSIONS = {
    ApiKey.VOTE: 2,
    ApiKey.BEGIN_QUORUM_EPOCH: 1,
    ApiKey.END_QUORUM_EPOCH: 1,
    ApiKey.FETCH: 18,
    ApiKey.FETCH_SNAPSHOT: 1,
    ApiKey.API_VERSIONS: 4,
    ApiKey.ADD_RAFT_VOTER: 1,
    ApiKey.REMOVE_RAFT_VOTER: 0,
    ApiKey.UPDATE_RAFT_VOTER: 0,
}
_HAND_OVER_PATIENCE_MS = 500
_NEVER_COMMITTED = 1 << 62
"""Requests that wait for this offset are never answered."""


def _nothing() -> None:
    """Nobody listens."""


class MetadataQuorum:
    """Runs the `RaftNode` of a node."""

    def __init__(
        self,
        context: NodeContext,
        metadata: MetadataView,
        raft: RaftNode,
        log: MetadataLog,
        store: QuorumStateFile,
    ) -> None:
        self._context = context
        self.on_leader_changed: Callable[[], None] = _nothing
        """The quorum has another leader, or none."""
        self.raft = raft
        self._log = log
        self._store = store
        self._channels: dict[int, tuple[Endpoint, Channel]] = {}
        self._timer: Timer | None = None
        self._armed_at_ms = -1
        self._queue: list[Effect] = []
        self._running = False
        self.replay = MetadataReplay(context, metadata, raft, log, self._step, self._disk_failed)
        self.controller_service: ControllerService | None = None
        self._probe: Probe | None = None
        self._contact_ms: int | None = None
        """When the quorum's leader last answered a fetch, or this node was it, in this process."""
        self._handed_over: Callable[[], None] | None = None
        self.closed = False

    def lead_with(self, service: ControllerService) -> None:
        """The node has the controller role."""
        self.controller_service = self.replay.controller_service = service

    # -- life

    def start(self) -> None:
        """Load the latest snapshot, then take part."""
        self.replay.load_snapshot()
        self._do(self.raft.start(self._context.clock.now_ms(), self._context.clock.wall_ms()))

    def shut_down(self, done: Callable[[], None]) -> None:
        """Hand leadership over before going down; `done` when another has been heard of, or nobody answers."""
        self._handed_over = done
        self._context.clock.call_at(self._context.clock.now_ms() + _HAND_OVER_PATIENCE_MS, self._leave)
        self._step(lambda: self.raft.shutdown(self._context.clock.now_ms()))

    def _leave(self) -> None:
        done, self._handed_over = self._handed_over, None
        if done is not None:
            done()

    def close(self) -> None:
        self.closed = True
        if self.controller_service is not None:
            self.controller_service.close()
        if self._timer is not None:
            self._timer.cancel()
        for _, channel in self._channels.values():
            channel.close()
        if self._probe is not None:
            self._probe.end()
        self.replay.close()
        try:
            self._log.close()
        except OSError as failure:
            # No promise depends on it: all that was acknowledged had been synced before.
            self._context.events.emit(MetadataLogNotClosed(str(failure)))

    # -- what others ask

    @property
    def log_end_offset(self) -> int:
        return self._log.end_offset

    @property
    def silence_ms(self) -> int | None:
        """For how long no active controller has been heard from: so old is what this node knows. None while one is.

        `KNOWS_NOTHING_MS` of a node that has started without a quorum and has nothing that it knows to be committed.
        """
        if self.raft.is_leader:
            return None
        # A leader is kept in mind: by who has no vote, who asks for votes in advance, and who has just read of it.
        patience_ms = 2 * self._context.config.controller_quorum_fetch_timeout_ms
        # One that has just read of it has heard nothing: until it does, it cannot say that what it knows is current.
        if self._contact_ms is not None:
            silence_ms = self._context.clock.now_ms() - self._contact_ms
            return None if self.raft.leader_id is not None and silence_ms <= patience_ms else silence_ms
        if not self.replay.last_timestamp_ms:
            return KNOWS_NOTHING_MS
        return max(0, self._context.clock.wall_ms() - self.replay.last_timestamp_ms)

    @property
    def requests_under_way(self) -> int:
        """To the one node to which there are most."""
        return max((channel.requests_under_way for _, channel in self._channels.values()), default=0)

    @property
    def voter_count(self) -> int:
        return len(self.raft.voters)

    @property
    def leader_id(self) -> int | None:
        return self.raft.leader_id

    def voter_endpoints(self) -> list[tuple[int, tuple[str, int]]]:
        return [(voter.node_id, (voter.host, voter.port)) for voter in self.raft.voters]

    def endpoint(self, node_id: int) -> tuple[str, int] | None:
        return self.raft.endpoint_of(node_id)

    @property
    def kraft_version(self) -> int:
        return self.raft.kraft_version

    def upgrade_kraft_version(self, level: int, *, validate_only: bool) -> str | None:
        """Why kraft.version cannot go to `level`. None: it can, or its record is in the log."""
        reason: str | None = "the metadata log cannot be used"

        def upgrade() -> Sequence[Effect]:
            nonlocal reason
            now_ms = self._context.clock.now_ms()
            reason, effects = self.raft.upgrade_kraft_version(level, now_ms, validate_only=validate_only)
            return effects

        self._step(upgrade)
        return reason

    def append(self, values: Sequence[bytes], *, atomic: bool, appended: Callable[[], None]) -> int:
        """Append controller records; give the offset of the last. Only for the active controller.

        `appended` is called once they are in the log: whatever else comes of it, comes after. `NotLeader`,
        `BatchTooLarge`: they are not in the log.
        """
        clock = self._context.clock
        try:
            outcome = self.raft.append(values, clock.now_ms(), clock.wall_ms(), atomic=atomic)
        except OSError as failure:
            self._disk_failed(failure)
            return _NEVER_COMMITTED
        except (NotLeader, BatchTooLarge):
            raise  # a refusal: nothing has changed
        except Exception as error:
            self._crash(error)
            return _NEVER_COMMITTED
        self._queue.extend(outcome.effects)
        running, self._running = self._running, True
        try:
            appended()
        finally:
            self._running = running
        self._step(tuple)
        return outcome.last_offset

    def resign(self) -> None:
        """The active controller cannot go on: another node, or this one anew, is to take over."""
        if self.raft.is_leader:
            self._step(lambda: self.raft.resign(self._context.clock.now_ms()))

    def broker_connection_lost(self, broker_id: int, broker_epoch: int) -> None:
        """The connection by which a broker sent its heartbeats has ended."""
        if self.controller_service is not None:
            self.controller_service.connection_lost(broker_id, broker_epoch)

    def receive(self, call: Call, request: Any) -> None:
        """A quorum request from another node."""
        call.wait()
        self._step(lambda: self.raft.receive(call, request, self._context.clock.now_ms(), api_version=call.version))

    # -- effects

    def _step(self, step: Callable[[], Sequence[Effect]]) -> None:
        """Let the raft take something in, and do what it wants."""
        if self.closed:
            return
        try:
            self._do(step())
        except OSError as failure:
            self._disk_failed(failure)
        except Exception as error:
            self._crash(error)

    def _crash(self, error: Exception) -> None:
        """What was promised may be forgotten, or what is committed may not be known: it must not say another word."""
        self._end()
        self._context.unexpected.crash("the metadata quorum", error)

    def _disk_failed(self, failure: OSError) -> None:
        """The log or the vote could not be written: what the raft now knows is not what a restart would find.

        So it must not say another word. A second vote request of the same candidate, for one, would be granted without
        being written down, because in memory the vote was given. A log that an exception may have torn is no such
        failure, though it looks like one.
        """
        if isinstance(failure, TornLog):
            self._crash(failure.cause)
            return
        self._end()
        self._context.fatal(MetadataLogFailed(failure.strerror or str(failure), is_descriptor_shortage(failure)))

    def _end(self) -> None:
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.replay.close()

    def _do(self, effects: Sequence[Effect]) -> None:
        """Carry out effects in order; what they cause queues behind them, so nothing here is re-entered."""
        self._queue.extend(effects)
        if self._running:
            return
        self._running = True
        try:
            position = 0
            while position < len(self._queue):
                effect = self._queue[position]
                position += 1
                self._carry_out(effect)
        finally:
            self._queue.clear()
            self._running = False
        self._arm()
        if self._handed_over is not None and self.raft.has_handed_over:
            self._leave()

    def _carry_out(self, effect: Effect) -> None:
        if self.closed:
            return
        if isinstance(effect, Event):
            self._context.events.emit(effect)
        if isinstance(effect, Send):
            self._send(effect)
        elif isinstance(effect, Reply):
            call = effect.source
            if isinstance(call, Call):
                _read_ranges(effect.response)
                call.reply(effect.response)
        elif isinstance(effect, SaveElectionState):
            self._store.save(effect.state, effect.kraft_version)
        elif isinstance(effect, SyncLog):
            end_offset = self._log.end_offset
            self._context.disk.sync(self._log.unflushed_files(), lambda error: self._synced(end_offset, error))
        elif isinstance(effect, HighWatermark):
            self.replay.commit(effect.offset)
        elif isinstance(effect, QuorumLeaderChanged):
            if effect.leader_id is not None:
                self._context.metrics.new_active_controllers += 1
            self.on_leader_changed()
        elif isinstance(effect, BecameQuorumLeader):
            self.replay.elected(effect.epoch)
        elif isinstance(effect, SteppedDown):
            self._contact_ms = self._context.clock.now_ms()
            self.replay.stepped_down()
        elif isinstance(effect, SnapshotDownloaded):
            self.replay.load_snapshot()

    def _send(self, effect: Send) -> None:
        request_id = effect.request_id
        endpoint = effect.endpoint
        if endpoint is None:
            return  # no answer comes, and the request is given up
        known = self._channels.get(effect.to)
        if known is not None and known[0] == endpoint:
            channel = known[1]
        else:
            if known is not None:
                known[1].close()
            channel = Channel(
                self._context.clock,
                self._context.network,
                endpoint.host,
                endpoint.port,
                client_id=f"raft-{self._context.node_id}",
                max_frame_bytes=self._context.config.socket_request_max_bytes,
                on_lost=lambda reason, to=effect.to: self._channel_lost(to),  # type: ignore[misc]
                login=self._context.logins.to_controllers,
                tls=self._context.config.tls.to_controllers,
            )
            self._channels[effect.to] = (endpoint, channel)
        version = _VERSIONS[ApiKey(effect.request.API_KEY)]
        timeout_ms = self._context.config.controller_quorum_request_timeout_ms
        channel.call(effect.request, version, timeout_ms, lambda response: self._handle_response(request_id, response))

    def _handle_response(self, request_id: int, response: Any | None) -> None:
        if isinstance(response, FetchResponse) and not _refused(response):
            self._contact_ms = self._context.clock.now_ms()
        self._step(lambda: self.raft.response(request_id, response, self._context.clock.now_ms()))

    def _synced(self, end_offset: int, error: OSError | None) -> None:
        if self.closed:
            return
        if error is not None:
            self._disk_failed(error)
            return
        now_ms = self._context.clock.now_ms()

        def synced() -> Sequence[Effect]:
            self._log.mark_flushed(end_offset, now_ms)
            return self.raft.log_synced(end_offset, now_ms)

        self._step(synced)

    def _channel_lost(self, node_id: int) -> None:
        """A connection to a voter broke. If it is the leader, look at once whether its process is gone.

        A connection that never opened says nothing: a voter of Apache Kafka's votes before its listener is open.
        """
        known = self._channels.get(node_id)
        if self.closed or known is None or node_id != self.raft.leader_id or self._probe is not None:
            return
        endpoint, channel = known
        if channel.lost_open:
            self._probe = Probe(
                self._context.clock,
                self._context.network,
                endpoint.host,
                endpoint.port,
                lambda gone: self._probed(node_id, gone),
            )

    def _probed(self, node_id: int, gone: bool) -> None:
        self._probe = None
        if gone and not self.closed and node_id == self.raft.leader_id:
            self._context.events.emit(QuorumLeaderGone(node_id))
            self._step(lambda: self.raft.peer_lost(node_id, self._context.clock.now_ms()))

    def _arm(self) -> None:
        deadline_ms = self.raft.next_deadline_ms
        if deadline_ms == self._armed_at_ms and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline_ms is not None and not self.closed:
            self._armed_at_ms = deadline_ms
            self._timer = self._context.clock.call_at(deadline_ms, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._step(lambda: self.raft.tick(self._context.clock.now_ms()))


def _refused(fetched: FetchResponse) -> bool:
    return bool(fetched.error_code) or any(part.error_code for topic in fetched.responses for part in topic.partitions)


def _read_ranges(response: Response) -> None:
    """Metadata is small and its answers are rare: records go into the frame, not out of the page cache."""
    if isinstance(response, FetchResponse):
        for topic in response.responses:
            for partition in topic.partitions:
                partition.records = _bytes(partition.records)
    elif isinstance(response, FetchSnapshotResponse):
        for snapshot_topic in response.topics:
            for snapshot in snapshot_topic.partitions:
                snapshot.unaligned_records = _bytes(snapshot.unaligned_records)


def _bytes(records: Any) -> Any:
    return records.file.read(records.offset, records.length) if isinstance(records, FileRange) else records

"""Feeds what the quorum has committed, in order, into the node's image (`metadata.view`).

Owns how far the image is, and when a snapshot of it is due. A standby controller replays the same records, so that it
can take over at once; it becomes active when all that is committed is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tanist.broker.context import NodeContext
from tanist.broker.metadata.controller_service import ControllerService
from tanist.broker.metadata.snapshot_writer import SnapshotWriter
from tanist.broker.metadata.view import MetadataView
from tanist.controller.image.committed_events import committed_events
from tanist.controller.image.image import ImageError, MetadataImage
from tanist.controller.image.snapshot import from_records
from tanist.events.event import Event
from tanist.events.metadata import ControllerActivationAbandoned, ControllerActivationWaits
from tanist.events.quorum import SnapshotLoaded, SnapshotWritten
from tanist.ports import Timer
from tanist.quorum.effects import Effect, HighWatermark
from tanist.quorum.raft import RaftNode
from tanist.quorum.storage.metadata_log import MetadataLog
from tanist.quorum.voters import SnapshotId
from tanist.wire.metadata import MetadataRecord, decode_record


def _nothing() -> None:
    """Nobody listens."""


class MetadataReplay:
    """Replays the metadata log of a node, as far as it is committed."""

    def __init__(
        self,
        context: NodeContext,
        metadata: MetadataView,
        raft: RaftNode,
        log: MetadataLog,
        step: Callable[[Callable[[], Sequence[Effect]]], None],
        disk_failed: Callable[[OSError], None],
    ) -> None:
        """`step` carries out the effects of a call of the raft."""
        self._context = context
        self._metadata = metadata
        self._raft = raft
        self._log = log
        self._step = step
        self.on_applied: Callable[[], None] = _nothing
        """More metadata has been applied."""
        self.controller_service: ControllerService | None = None
        self._next_offset = 0
        """Offset of the first record that is not applied yet."""
        self._committed_offset = 0
        """Records below it are to be applied: at once, or between the turns of others if they are many."""
        self._timer: Timer | None = None
        self._elected_epoch: int | None = None
        """The controller is to be active in it when all that is committed is applied."""
        self._last_epoch = 0
        self.last_timestamp_ms = 0
        """When the last record that was applied was written, by the clock of the controller that wrote it."""
        self._bytes_since_snapshot = 0
        self._snapshot_at_ms = context.clock.now_ms()
        self._snapshots = SnapshotWriter(context, log, self._snapshot_written, disk_failed)
        self._history_end = log.end_offset
        """Records that the log held when the process started are no news: they are not counted again."""
        self._closed = False

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._snapshots.close()

    # -- the active controller

    def elected(self, epoch: int) -> None:
        """This node leads the quorum."""
        self._elected_epoch = epoch
        self._lead_when_applied()
        if self._elected_epoch is not None:
            self._context.events.emit(ControllerActivationWaits(epoch, self._next_offset, self._committed_offset))

    def _lead_when_applied(self) -> None:
        epoch = self._elected_epoch
        if epoch is not None and self._next_offset >= self._committed_offset:
            self._elected_epoch = None
            if self.controller_service is not None:
                self.controller_service.elected(epoch)

    def stepped_down(self) -> None:
        """This node does not lead the quorum any more."""
        if self._elected_epoch is not None:
            self._context.events.emit(ControllerActivationAbandoned(self._elected_epoch))
        self._elected_epoch = None
        if self.controller_service is not None:
            self.controller_service.stepped_down(self._metadata.image.copy())

    # -- records

    def commit(self, offset: int) -> None:
        """What is below the offset is committed."""
        self._committed_offset = max(self._committed_offset, offset)
        if self._timer is None:
            self._apply_committed()

    def _apply_committed(self) -> None:
        """Apply committed records. A node that starts may have a hundred thousand: so many at once as a turn may."""
        if self._committed_offset > self._next_offset:
            self._apply_some()
        if self._committed_offset > self._next_offset and not self._closed:
            clock = self._context.clock
            self._timer = clock.call_at(clock.now_ms(), self._replay_on)
        self._lead_when_applied()

    def _replay_on(self) -> None:
        self._timer = None
        self._step(lambda: (HighWatermark(self._committed_offset),))

    def _apply_some(self) -> None:
        records: list[MetadataRecord] = []
        host = self.controller_service
        standby = host is not None and not host.active
        metrics = self._context.metrics
        news = self._next_offset >= self._history_end
        most = self._context.config.metadata_turn_records_max  # and the rest of the last batch
        next_offset = self._next_offset
        for batch in self._log.read_batches(next_offset, self._committed_offset):
            self._bytes_since_snapshot += batch.size_bytes
            records += (decode_record(value) for value in batch.values)
            next_offset = batch.next_offset
            self._last_epoch = batch.epoch
            self.last_timestamp_ms = batch.timestamp
            if len(records) >= most:
                break
        elapsed_ms = self._context.clock.wall_ms() - self.last_timestamp_ms
        if news and self._raft.is_leader:
            metrics.commit_latency.record(max(0, elapsed_ms), self._context.clock.now_ms())
        if host is not None and standby:
            for record in records:
                host.controller.replay(record)
        leads = self._raft.is_leader
        changes: list[Event] = []

        def watch(record: MetadataRecord, before: MetadataImage) -> None:
            metrics.committed(record, before, elapsed_ms)
            if leads:
                changes.extend(committed_events(record, before))

        try:
            self._metadata.apply(records, next_offset - 1, watch if news else None)
        except ImageError:
            metrics.metadata_errors += 1
            raise
        self._next_offset = next_offset  # not before: it has not passed what it could not replay
        for change in changes:
            self._context.events.emit(change)
        if host is not None:
            host.committed()
        self.on_applied()
        if self._snapshot_is_due():
            self._write_snapshot()

    # -- snapshots

    def _snapshot_is_due(self) -> bool:
        """By bytes, batches with their heads, or by time: looked at when records are committed, as Kafka does."""
        if self._snapshots.busy:
            return False
        config = self._context.config
        if self._bytes_since_snapshot >= config.metadata_log_max_record_bytes_between_snapshots:
            return True
        interval_ms = config.metadata_log_max_snapshot_interval_ms
        return 0 < interval_ms <= self._context.clock.now_ms() - self._snapshot_at_ms

    def _snapshot_counted(self) -> None:
        self._bytes_since_snapshot = 0
        self._snapshot_at_ms = self._context.clock.now_ms()

    def load_snapshot(self) -> None:
        """Begin with the latest snapshot, if it is ahead of the image."""
        snapshot_id = self._log.latest_snapshot_id
        if snapshot_id is None or snapshot_id.end_offset <= self._next_offset:
            return
        records = (decode_record(value) for batch in self._log.read_snapshot(snapshot_id) for value in batch.values)
        image = from_records(records, self._context.config.static)
        self._next_offset = snapshot_id.end_offset
        self._last_epoch = snapshot_id.epoch
        self._snapshot_counted()
        host = self.controller_service
        if host is not None and not host.active:
            host.controller.deactivate(image.copy())
        self._metadata.replace(image, snapshot_id.end_offset - 1)
        loaded = SnapshotLoaded(snapshot_id.end_offset, snapshot_id.epoch, controller=host is not None)
        self._context.events.emit(loaded)
        self.on_applied()

    def _write_snapshot(self) -> None:
        """Snapshot what is applied, and let the log be cut below it (KIP-630)."""
        self._snapshot_counted()
        image: MetadataImage = self._metadata.image
        if not image.in_transaction:
            snapshot_id = SnapshotId(self._next_offset, self._last_epoch)
            voters = self._raft.snapshot_voters(snapshot_id.end_offset)
            self._snapshots.begin(image, self._twin(), snapshot_id, self.last_timestamp_ms, voters)

    def _twin(self) -> MetadataImage | None:
        """The controller's image, where that is to be equal: an active one's is ahead by what is not committed yet."""
        host = self.controller_service
        if host is None or (host.active and self._log.end_offset != self._next_offset):
            return None
        return host.controller.image

    def _snapshot_written(self, snapshot_id: SnapshotId) -> None:
        clock = self._context.clock
        self._context.events.emit(SnapshotWritten(snapshot_id.end_offset, snapshot_id.epoch))
        self._step(lambda: self._raft.snapshot_created(snapshot_id, clock.now_ms(), clock.wall_ms()))

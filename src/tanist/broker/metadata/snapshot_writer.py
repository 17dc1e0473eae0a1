"""Metadata snapshots are written slice by slice between the turns of others, and made durable off the loop (KIP-630).

Owns the one that is being written. It is of the image as it was when it began: a copy, whose records are made as they
are written. With 100,000 partitions that is a second's work, which no request has to wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tanist.broker.context import NodeContext
from tanist.controller.image.image import MetadataImage
from tanist.controller.image.snapshot import checked_values
from tanist.ports import Timer
from tanist.quorum.storage.metadata_log import MetadataLog
from tanist.quorum.storage.raft_log import VoterMessage
from tanist.quorum.storage.snapshots import SnapshotWriting
from tanist.quorum.voters import SnapshotId


class SnapshotWriter:
    """Writes one snapshot after the other."""

    def __init__(
        self,
        context: NodeContext,
        log: MetadataLog,
        written: Callable[[SnapshotId], None],
        failed: Callable[[OSError], None],
    ) -> None:
        """`written`: the snapshot is durable, and the log has it. `failed`: the disk of the metadata log has."""
        self._context = context
        self._log = log
        self._written = written
        self._failed = failed
        self._writing: SnapshotWriting | None = None
        self._timer: Timer | None = None
        self._closed = False

    @property
    def busy(self) -> bool:
        return self._writing is not None

    def begin(
        self,
        image: MetadataImage,
        twin: MetadataImage | None,
        snapshot_id: SnapshotId,
        last_timestamp_ms: int,
        voters: Sequence[VoterMessage],
    ) -> None:
        """Write a snapshot of the image as it is now. `OSError` if that cannot begin.

        `twin`: an image that has come to the same offset on its own.
        """
        self._writing = self._log.begin_snapshot(
            snapshot_id,
            checked_values(image.copy(indexed=False), None if twin is None else twin.copy(indexed=False)),
            wall_ms=self._context.clock.wall_ms(),
            last_contained_log_timestamp=last_timestamp_ms,
            voters=voters,
        )
        if self._writing is not None:
            self._go_on()

    def close(self) -> None:
        """What is not whole by now is left behind; the next start removes it."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_on(self) -> None:
        clock = self._context.clock
        self._timer = clock.call_at(clock.now_ms(), self._write_slice)

    def _write_slice(self) -> None:
        self._timer = None
        writing = self._writing
        if writing is None:
            return
        try:
            if writing.write_slice():
                self._go_on()
                return
        except OSError as failure:
            self._fail(failure)
            return
        self._context.disk.sync([writing.file], self._synced)

    def _synced(self, error: OSError | None) -> None:
        writing, self._writing = self._writing, None
        if writing is None:
            return
        if self._closed:
            writing.file.close()
            return
        if error is not None:
            self._fail(error)
            return
        try:
            if not self._log.finish_snapshot(writing):
                return
        except OSError as failure:
            self._fail(failure)
            return
        self._written(writing.snapshot_id)

    def _fail(self, failure: OSError) -> None:
        self._writing = None
        self._failed(failure)

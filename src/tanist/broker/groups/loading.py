"""The logs of `__consumer_offsets` that have come to this broker, replayed into their shards.

One partition at a time, slice by slice between the turns of others. Records that the log held when its leadership came
are replayed; those written since are the coordinator's own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from tanist.broker.context import NodeContext
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.coordinator.consumer.topics import Topics
from tanist.coordinator.effects import Append
from tanist.coordinator.rebalance import GroupSettings
from tanist.coordinator.shard import Shard
from tanist.log.log import OffsetOutOfRange
from tanist.log.scan import DamagedBatch
from tanist.ports import Timer
from tanist.wire.batch import decode_batch, iterate_headers
from tanist.wire.errors import WireError
from tanist.wire.group_records import decode_group_record
from tanist.wire.internal_topics import OFFSETS_TOPIC

_SLICE_BYTES: Final = 32 * 1024
"""How much of a log is replayed in one go: a few milliseconds' worth."""


class GroupPartition:
    """A partition of `__consumer_offsets` that is led here."""

    def __init__(self, hosted: HostedPartition, settings: GroupSettings, topics: Topics) -> None:
        self.hosted = hosted
        self.shard = Shard(settings, topics)
        self.ready = False
        self.next_offset = hosted.log.log_start_offset
        self.load_end = hosted.log.log_end_offset
        """Records below were written under other leaders."""
        self.written_end = hosted.log.log_end_offset
        """The end of the records that this coordinator has appended."""
        self.gathered: list[Append] = []
        """Decisions of groups in this turn."""
        self.began_ms = 0
        self.records = 0


class Loader:
    """Replays the partitions that are added, in their order."""

    def __init__(
        self,
        context: NodeContext,
        is_served: Callable[[GroupPartition], bool],
        loaded: Callable[[GroupPartition], None],
    ) -> None:
        """`is_served`: it is still led here; `loaded` is called once with each that has been replayed."""
        self._context = context
        self._is_served = is_served
        self._loaded = loaded
        self._waiting: deque[GroupPartition] = deque()
        self._timer: Timer | None = None

    def add(self, partition: GroupPartition) -> None:
        """Replay it, after those that were added before."""
        self._waiting.append(partition)
        if self._timer is None:
            self._go_on()

    def close(self) -> None:
        """Replay no more."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_on(self) -> None:
        self._timer = self._context.clock.call_at(self._context.clock.now_ms(), self._load)

    def _load(self) -> None:
        """Replay one slice of one log, then let others have their turn."""
        self._timer = None
        partition = self._waiting[0]
        if not self._is_served(partition) or self._load_slice(partition):
            self._waiting.popleft()
        if self._waiting:
            self._go_on()

    def _load_slice(self, partition: GroupPartition) -> bool:
        """True once there is no more to do."""
        hosted = partition.hosted
        name = f"{hosted.topic}-{hosted.index}"
        try:
            partition.next_offset = max(partition.next_offset, hosted.log.log_start_offset)
            piece = hosted.log.read(partition.next_offset, _SLICE_BYTES, partition.load_end)
            if piece is None:
                self._loaded(partition)
                return True
            chunk, begin_offset = piece.chunk, partition.next_offset
            view = memoryview(chunk.file.read(chunk.offset, chunk.length))
            for position, header in iterate_headers(view):
                if not header.is_control and not header.is_transactional:
                    self._replay(partition, view[position : position + header.size_bytes])
                partition.next_offset = header.next_offset
            if partition.next_offset == begin_offset:
                raise WireError(f"no batch at offset {begin_offset}")
        except OSError as failure:
            hosted.disk_failed(failure)
            return True
        except (DamagedBatch, OffsetOutOfRange, WireError) as damage:
            self._context.report("ERROR", f"{name}: its groups can't be served, the log can't be read: {damage}")
            return True
        return False

    def _replay(self, partition: GroupPartition, batch: memoryview) -> None:
        for record in decode_batch(batch):
            if record.offset < partition.next_offset or record.key is None:
                continue
            partition.records += 1
            try:
                decoded = decode_group_record(record.key, record.value)
            except WireError as error:
                self._context.report("WARN", f"{OFFSETS_TOPIC}-{partition.hosted.index} at {record.offset}: {error}")
                continue
            if decoded is not None:
                partition.shard.replay(*decoded)

"""The logs of a coordinator that have come to this broker, replayed into their shards.

One partition at a time, slice by slice between the turns of others. Records that the log held when its leadership came
are replayed; those written since are the coordinator's own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic

from tanist.broker.context import NodeContext
from tanist.broker.coordinator_runtime.partition import CoordinatorPartition, ShardT
from tanist.events.coordination import CoordinatorRecordUnreadable, CoordinatorUnreadable
from tanist.log.log import OffsetOutOfRange
from tanist.log.markers import parse_marker
from tanist.log.scan import DamagedBatch
from tanist.ports import Timer
from tanist.wire.batch import decode_batch, iterate_batches
from tanist.wire.errors import WireError
from tanist.wire.primitives import Buffer

_SLICE_BYTES: Final = 32 * 1024
"""How much of a log is replayed in one go: a few milliseconds' worth."""


Decode = Callable[[Buffer, Buffer | None], tuple[Any, Any] | None]
"""A record's key and value, decoded; None if it is of an unknown kind. `WireError` if malformed."""


class Loader(Generic[ShardT]):
    """Replays the partitions that are added, in their order."""

    def __init__(
        self,
        context: NodeContext,
        decode: Decode,
        is_served: Callable[[CoordinatorPartition[ShardT]], bool],
        loaded: Callable[[CoordinatorPartition[ShardT]], None],
        failed: Callable[[CoordinatorPartition[ShardT], Exception], None],
    ) -> None:
        """`is_served`: it is still led here; `loaded` is called once with each that has been replayed, `failed` with
        one whose shard has met an exception.
        """
        self._failed = failed
        self._context = context
        self._decode = decode
        self._is_served = is_served
        self._loaded = loaded
        self._waiting: deque[CoordinatorPartition[ShardT]] = deque()
        self._timer: Timer | None = None

    def add(self, partition: CoordinatorPartition[ShardT]) -> None:
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

    def _load_slice(self, partition: CoordinatorPartition[ShardT]) -> bool:
        """True once there is no more to do."""
        hosted = partition.hosted
        try:
            partition.next_offset = max(partition.next_offset, hosted.log.log_start_offset)
            piece = hosted.log.read(partition.next_offset, _SLICE_BYTES, partition.load_end)
            if piece is None:
                self._loaded(partition)
                return True
            chunk, begin_offset = piece.chunk, partition.next_offset
            for header, batch in iterate_batches(chunk.file.read(chunk.offset, chunk.length)):
                if not header.is_control:
                    self._replay(partition, batch, header.producer_id if header.is_transactional else None)
                elif header.next_offset > begin_offset and (marker := parse_marker(batch)) is not None:
                    partition.shard.replay_marker(header.producer_id, committed=not marker.aborted)
                partition.next_offset = header.next_offset
            if partition.next_offset == begin_offset:
                raise WireError(f"no batch at offset {begin_offset}")
        except OSError as failure:
            hosted.disk_failed(failure)
            return True
        except (DamagedBatch, OffsetOutOfRange, WireError) as damage:
            self._context.events.emit(CoordinatorUnreadable(partition.name, str(damage)))
            return True
        except Exception as error:
            self._failed(partition, error)
            return True
        return False

    def _replay(self, partition: CoordinatorPartition[ShardT], batch: memoryview, transaction_of: int | None) -> None:
        """The records of a batch; `transaction_of` is the producer of a transactional one."""
        shard = partition.shard
        for record in decode_batch(batch):
            if record.offset < partition.next_offset or record.key is None:
                continue
            partition.records += 1
            try:
                decoded = self._decode(record.key, record.value)
            except WireError as error:
                self._context.events.emit(CoordinatorRecordUnreadable(partition.name, record.offset, str(error)))
                continue
            if decoded is None:
                continue
            if transaction_of is None:
                shard.replay(*decoded)
            else:
                shard.replay_pending(transaction_of, *decoded)

"""The broker's log cleaner: which log is cleaned next, when, and how fast.

Owns Kafka's choice (of the logs that are due the one with the largest dirty share), the pause `log.cleaner.backoff.ms`
when none is, and the throttle `log.cleaner.io.max.bytes.per.second`. One log at a time, which is Kafka's default of one
thread. The heavy steps of a cleaning run off the loop, a slice after the other, and between two of them anything may
happen to the log: a partition that is gone, that is about to truncate, or is not compacted any more is let go.

A log that cannot be cleaned is reported, and left alone until the broker starts again, as in Kafka: damage is not the
cleaner's to repair. It knows nothing of requests; leaders and followers clean what they have, each for itself.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.metadata.configs import ResolvedConfigs
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.replicas import Replicas
from tanist.broker.storage.deletions import Deletions
from tanist.events.storage import CleanerCheckpointDamaged, LogCompacted, LogUncleanable
from tanist.log.cleaner.cleaning import CannotClean, Cleaned, Job, LogCleaning, Overtaken, Steps
from tanist.log.cleaner.key_map import KeyMap
from tanist.log.cleaner.offset_checkpoint import CleanerOffsets
from tanist.log.compaction import Cleanable
from tanist.log.directory import LogDirectory
from tanist.log.indexes import CorruptIndexError
from tanist.log.log import Log
from tanist.log.scan import DamagedBatch
from tanist.ports import Timer
from tanist.replica.follower import Phase
from tanist.wire.errors import WireError

BACKOFF: Final = "log.cleaner.backoff.ms"
BUFFER: Final = "log.cleaner.dedupe.buffer.size"
RATE: Final = "log.cleaner.io.max.bytes.per.second"


class LogCleaner:
    """The cleaner of a broker. Nothing happens before `start`."""

    def __init__(
        self, context: NodeContext, configs: ResolvedConfigs, replicas: Replicas, deletions: Deletions
    ) -> None:
        self._context = context
        self._configs = configs
        self._replicas = replicas
        self._deletions = deletions
        self._offsets: dict[LogDirectory, CleanerOffsets] = {}
        self._uncleanable: set[tuple[LogDirectory, UUID, int]] = set()
        """Only asked whether one is in it."""
        self._timer: Timer | None = None
        self._current: tuple[HostedPartition, Log, Steps] | None = None
        self._rested_ms = 0
        """Before this time the throttle lets nothing more be read or written."""
        self._stopped = False
        self.looked_ms = context.clock.now_ms()
        """When it last looked for a log to clean."""
        self.max_dirty_ratio = 0.0
        """Of the dirtiest log that it then saw, due or not."""
        self.cleaned = 0
        self.dropped_records = 0
        self.failures = 0

    @property
    def uncleanable_count(self) -> int:
        return len(self._uncleanable)

    def start(self) -> None:
        if self._context.config.log_cleaner_enable:
            self._schedule(self._context.config.log_cleaner_backoff_ms)

    def stop(self) -> None:
        """A cleaning that runs is given up; its files go at the next start."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    # -- which log

    def _schedule(self, pause_ms: int) -> None:
        clock = self._context.clock
        self._timer = clock.call_at(clock.now_ms() + pause_ms, self._clean_dirtiest)

    def _clean_dirtiest(self) -> None:
        if self._stopped:
            return
        found = self._dirtiest()
        if found is None:
            self._schedule(self._configs.broker_setting(BACKOFF))
            return
        hosted, cleanable = found
        clock = self._context.clock
        keys = KeyMap.of_buffer(self._configs.broker_setting(BUFFER))
        steps = LogCleaning(self._context.disk, hosted.log, cleanable, keys, clock.now_ms(), clock.wall_ms()).steps()
        self._current = hosted, hosted.log, steps
        self._go_on(None)

    def _dirtiest(self) -> tuple[HostedPartition, Cleanable] | None:
        wall_ms = self._context.clock.wall_ms()
        self.looked_ms, self.max_dirty_ratio = self._context.clock.now_ms(), 0.0
        best: tuple[HostedPartition, Cleanable] | None = None
        for hosted in list(self._replicas):
            if not self._may_clean(hosted) or (hosted.directory, hosted.topic_id, hosted.index) in self._uncleanable:
                continue
            log = hosted.log
            try:
                offsets, key = self._offsets_of(hosted.directory), (hosted.topic, hosted.index)
                checkpoint = offsets.get(key)
                found = log.cleanable(checkpoint, hosted.replica.high_watermark, wall_ms)
                if checkpoint is not None and found.first_dirty_offset < checkpoint:
                    # Cut off since, or the log of an earlier topic of this name: not to be believed later either.
                    offsets.set(key, found.first_dirty_offset, hosted.directory.logs.keys())
            except OSError as failure:
                hosted.disk_failed(failure)
                continue
            except (CorruptIndexError, DamagedBatch) as damage:
                self._leave_alone(hosted, damage)
                continue
            self.max_dirty_ratio = max(self.max_dirty_ratio, found.ratio)
            if found.is_due(log.config.min_cleanable_dirty_ratio) and (best is None or found.ratio > best[1].ratio):
                best = hosted, found
        return best

    def _may_clean(self, hosted: HostedPartition) -> bool:
        """Whether the log is in service, to be compacted, and nobody is copying what it is about to cut off."""
        follower = hosted.follower
        return (
            not hosted.stale
            and hosted.directory.failed is None
            and hosted.log.failed is None
            and hosted.log.config.compacts
            and hosted not in self._replicas.moves  # or its copy might keep a value, and not the tombstone behind it
            and not (follower is not None and follower.phase is Phase.SALVAGING)
        )

    def moved(self, hosted: HostedPartition, source: LogDirectory) -> None:
        """The replica has come here from a directory: what is clean of its log was so there."""
        key, offset = (hosted.topic, hosted.index), None
        with suppress(OSError):  # then all of it is dirty
            offset = self._offsets_of(source).get(key)
        try:
            own = self._offsets_of(hosted.directory)
            if offset is not None or own.get(key) is not None:
                own.set(key, 0 if offset is None else offset, hosted.directory.logs.keys())
        except OSError as failure:
            hosted.disk_failed(failure)

    def _offsets_of(self, directory: LogDirectory) -> CleanerOffsets:
        offsets = self._offsets.get(directory)
        if offsets is None:
            offsets = self._offsets[directory] = CleanerOffsets(self._context.disk, directory.path)
            if offsets.complaint is not None:
                self._context.events.emit(CleanerCheckpointDamaged(offsets.complaint))
        return offsets

    # -- a cleaning, step by step

    def _go_on(self, result: object) -> None:
        """The last step has given `result`, or raised it: take the next."""
        if self._current is None:
            return
        hosted, log, steps = self._current
        try:
            if self._stopped or hosted.log is not log or not self._may_clean(hosted):
                result = Overtaken("it is not to be cleaned any more")
            step = steps.throw(result) if isinstance(result, BaseException) else steps.send(None)
        except StopIteration as end:
            self._ended(hosted, end.value)
        except Exception as failure:  # whatever it is, the cleaner goes on with other logs
            self._ended(hosted, failure)
        else:
            if isinstance(step, Job):
                self._run(step)
            else:
                self._context.disk.sync(step.files, self._go_on)

    def _run(self, job: Job) -> None:
        """Run it off the loop, when the throttle allows it."""
        clock = self._context.clock
        if clock.now_ms() >= self._rested_ms:
            self._context.disk.run(job.run, self._ran)
        else:
            self._timer = clock.call_at(self._rested_ms, partial(self._context.disk.run, job.run, self._ran))

    def _ran(self, result: int | BaseException) -> None:
        if isinstance(result, int):
            rest_ms = int(result * 1000 / self._configs.broker_setting(RATE))
            self._rested_ms = max(self._rested_ms, self._context.clock.now_ms()) + rest_ms if rest_ms else 0
        self._go_on(result)

    def _ended(self, hosted: HostedPartition, result: Cleaned | Exception) -> None:
        self._current = None
        if self._stopped:
            return
        pause_ms = 0
        if isinstance(result, Cleaned):
            self._checkpoint(hosted, result)
        else:
            pause_ms = self._configs.broker_setting(BACKOFF)
            if not isinstance(result, Overtaken) and not hosted.stale:
                if isinstance(result, OSError):
                    hosted.disk_failed(result)
                else:
                    self._leave_alone(hosted, result)
        if not hosted.stale:
            self._deletions.schedule(hosted.log.drain_deleted())
        self._schedule(pause_ms)

    def _checkpoint(self, hosted: HostedPartition, cleaned: Cleaned) -> None:
        self.cleaned += 1
        self.dropped_records += cleaned.records_dropped
        self._context.events.emit(
            LogCompacted(
                hosted.name,
                cleaned.end_offset,
                cleaned.records_dropped,
                cleaned.size_before_bytes,
                cleaned.size_after_bytes,
            )
        )
        directory = hosted.directory
        try:
            self._offsets_of(directory).set((hosted.topic, hosted.index), cleaned.end_offset, directory.logs.keys())
        except OSError as failure:
            hosted.disk_failed(failure)

    def _leave_alone(self, hosted: HostedPartition, failure: Exception) -> None:
        self.failures += 1
        self._uncleanable.add((hosted.directory, hosted.topic_id, hosted.index))
        words = str(failure)
        if not isinstance(failure, (CannotClean, CorruptIndexError, DamagedBatch, WireError)):
            words = repr(failure)
            self._context.unexpected.met("the cleaner", failure)
        self._context.events.emit(LogUncleanable(hosted.name, words))

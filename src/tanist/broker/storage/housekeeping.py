"""Periodic tasks of a broker: checkpoints, retention, flushes, lagging followers.

Compaction is `cleaning`'s; it begins and ends with these.

Each task has its own interval (Kafka's property) and runs on the node's clock. None of them may hold the loop for long:
deletions and syncs go through the Disk port's background.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tanist.broker.context import NodeContext
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.replica_effects import ReplicaEffects
from tanist.broker.replication.replicas import Replicas
from tanist.broker.storage.cleaning import LogCleaner
from tanist.broker.storage.deletions import Deletions
from tanist.broker.storage.salvage import Salvage
from tanist.events.storage import RetentionHeldUp
from tanist.ports import Timer, is_descriptor_shortage

_UPKEEP_MS = 1000
_NAMES_MAX = 256
"""Topic ids of new logs that are made durable at once."""
_SYNCING_MAX = 64
"""Logs that are synced at once while too many files are open: a sync of a rolled segment opens its indexes."""


class Housekeeping:
    """The periodic tasks of a broker."""

    def __init__(
        self,
        context: NodeContext,
        replicas: Replicas,
        effects: ReplicaEffects,
        salvage: Salvage,
        deletions: Deletions,
        cleaner: LogCleaner,
    ) -> None:
        self._context = context
        self._replicas = replicas
        self._effects = effects
        self._salvage = salvage
        self._deletions = deletions
        self._timers: dict[str, Timer] = {}
        self._syncing: set[HostedPartition] = set()
        self._stopped = False
        self.cleaner = cleaner

    def start(self) -> None:
        config = self._context.config
        self._every("checkpoint", config.replica_high_watermark_checkpoint_interval_ms, self._replicas.checkpoint)
        self._every("lag", max(1, config.replica_lag_time_max_ms // 2), self.check_lag)  # rule 10
        self._every("retention", config.log_retention_check_interval_ms, self.apply_retention)
        self._every("late transactions", config.log_retention_check_interval_ms, self.check_late_transactions)
        self._every("salvage", config.log_retention_check_interval_ms, self._salvage.check_bounds)
        self._every("upkeep", _UPKEEP_MS, self._upkeep)
        self.cleaner.start()

    def stop(self) -> None:
        self._stopped = True
        self.cleaner.stop()
        for timer in self._timers.values():
            timer.cancel()

    def _every(self, name: str, interval_ms: int, task: Callable[[], None]) -> None:
        def run() -> None:
            if self._stopped:
                return
            task()
            arm()

        def arm() -> None:
            self._timers[name] = self._context.clock.call_at(self._context.clock.now_ms() + interval_ms, run)

        arm()

    def check_lag(self) -> None:
        """Propose to drop followers that have not caught up for `replica.lag.time.max.ms` (rules 10, 12)."""
        now_ms = self._context.clock.now_ms()
        for hosted in list(self._replicas):
            if hosted.leader is not None:
                self._effects.carry_out(hosted, partial(hosted.leader.check_lag, now_ms))

    def apply_retention(self) -> None:
        """Delete segments that `retention.ms`, `retention.bytes` or the log start offset have given up."""
        clock = self._context.clock
        for hosted in list(self._replicas):
            try:
                expired = hosted.log.delete_old_segments(clock.now_ms(), clock.wall_ms(), hosted.replica.high_watermark)
                held_up = hosted.log.newly_held_up(clock.wall_ms(), hosted.replica.high_watermark)
            except OSError as failure:
                hosted.disk_failed(failure)
                continue
            if held_up is not None:
                self._context.events.emit(RetentionHeldUp(hosted.name, *held_up))
            if expired:
                self._deletions.schedule(expired)
                hosted.upkeep_ms = 0
                self._replicas.log_start_moved(hosted)

    def check_late_transactions(self) -> None:
        """Look up transactions that are open for longer than any coordinator allows (KAFKA-20716)."""
        wall_ms, limit_ms = self._context.clock.wall_ms(), self._context.config.late_transaction_ms
        for hosted in list(self._replicas):
            if hosted.leader is not None and hosted.log.producers.has_late_transaction(wall_ms, limit_ms):
                self._effects.has_open_transactions(hosted)

    def _upkeep(self) -> None:
        """Roll and flush logs: those that were appended to since the last time, and the others when it is due.

        Idle producers are forgotten by leaders and followers alike: a follower may be one for years.
        """
        self._write_topic_ids()
        now_ms = self._context.clock.now_ms()
        due = [hosted for hosted in self._replicas if hosted.upkeep_ms <= now_ms]
        wall_ms = self._context.clock.wall_ms()
        for hosted in due:
            if hosted.leader is None:
                hosted.log.expire_producers(wall_ms, now_ms)
                continue
            try:
                hosted.log.roll_if_due(now_ms, wall_ms)
            except OSError as failure:
                hosted.disk_failed(failure)
        for hosted in due:
            if not hosted.stale:
                self._flush(hosted, now_ms)

    def _flush(self, hosted: HostedPartition, now_ms: int) -> None:
        """Sync what `flush.ms` asks for, and segments that were rolled (so that recovery need not scan them)."""
        if hosted in self._syncing or (len(self._syncing) >= _SYNCING_MAX and self._context.disk.crowded()):
            return
        end_offset = hosted.log.flush_due(now_ms)
        if end_offset is not None:
            self._sync(hosted, end_offset)
        else:
            hosted.upkeep_ms = hosted.log.next_upkeep_ms(now_ms)

    def _write_topic_ids(self) -> None:
        """Make the topic ids of new logs durable, off the loop and some at a time.

        Not while logs are made: a sync commits the journal of the file system, and who makes files waits for that.
        """
        if self._replicas.naming or self._replicas.new_logs.queued or not self._replicas.nameless:
            return
        nameless = self._replicas.nameless
        some = [each for each in nameless[:_NAMES_MAX] if not (each.stale or each.log.topic_id_durable)]
        del nameless[:_NAMES_MAX]

        failed: dict[HostedPartition, Exception] = {}

        def write() -> None:
            for hosted in some:
                if hosted.log.topic_id_durable:
                    continue  # a flush has done it meanwhile
                try:
                    hosted.log.write_topic_id()
                except FileNotFoundError:
                    pass  # its topic was deleted meanwhile
                except Exception as error:
                    failed[hosted] = error  # the others may lie in directories that are sound

        def written(result: object) -> None:
            self._replicas.naming = frozenset()
            for hosted in some:
                error = result if isinstance(result, Exception) else failed.get(hosted)
                if error is None:
                    hosted.log.topic_id_durable = True
                elif isinstance(error, OSError) and is_descriptor_shortage(error):
                    nameless.append(hosted)
                elif not hosted.stale:
                    hosted.failed_by(error)
            if not self._stopped and not failed:
                self._write_topic_ids()

        self._replicas.naming = frozenset((each.topic, each.index) for each in some)
        self._context.disk.run(write, written)

    def _sync(self, hosted: HostedPartition, end_offset: int) -> None:
        log = hosted.log
        try:
            files = log.unflushed_files(end_offset)
        except OSError as failure:
            hosted.disk_failed(failure)
            return
        self._syncing.add(hosted)

        def done(error: OSError | None) -> None:
            self._syncing.discard(hosted)
            if hosted.stale or hosted.log is not log:
                return
            if error is not None:
                hosted.disk_failed(error)
            else:
                log.mark_flushed(end_offset)

        self._context.disk.sync(files, done)

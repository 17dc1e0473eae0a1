"""Periodic tasks of a broker: checkpoints, retention, flushes, lagging followers, idle connections.

Compaction is `cleaning`'s; it begins and ends with these.

Each task has its own interval (Kafka's property) and runs on the node's clock. None of them may hold the loop for long:
deletions and syncs go through the Disk port's background.
"""

from __future__ import annotations

from collections.abc import Callable

from tanist.broker.context import NodeContext
from tanist.broker.network.connections import Connections
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.replica_effects import ReplicaEffects
from tanist.broker.replication.replicas import Replicas
from tanist.broker.storage.cleaning import LogCleaner
from tanist.broker.storage.deletions import Deletions
from tanist.broker.storage.salvage import Salvage
from tanist.ports import Timer

_FLUSH_CHECK_MS = 1000
_ROLL_CHECK_MS = 1000
_IDLE_CHECK_MS = 30_000
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
        connections: Connections,
        cleaner: LogCleaner,
    ) -> None:
        self._context = context
        self._replicas = replicas
        self._effects = effects
        self._salvage = salvage
        self._deletions = deletions
        self._connections = connections
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
        self._every("roll", _ROLL_CHECK_MS, self._roll)
        self._every("flush", _FLUSH_CHECK_MS, self._flush)
        self._every("idle", min(_IDLE_CHECK_MS, config.connections_max_idle_ms), self._connections.close_idle)
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
                self._effects.apply(hosted, hosted.leader.check_lag(now_ms))

    def apply_retention(self) -> None:
        """Delete segments that `retention.ms`, `retention.bytes` or the log start offset have given up."""
        clock = self._context.clock
        for hosted in list(self._replicas):
            try:
                expired = hosted.log.delete_old_segments(clock.now_ms(), clock.wall_ms(), hosted.replica.high_watermark)
            except OSError as failure:
                hosted.disk_failed(failure)
                continue
            self._deletions.schedule(expired)

    def check_late_transactions(self) -> None:
        """Look up transactions that are open for longer than any coordinator allows (KAFKA-20716)."""
        wall_ms, limit_ms = self._context.clock.wall_ms(), self._context.config.late_transaction_ms
        for hosted in list(self._replicas):
            if hosted.leader is not None and hosted.log.producers.has_late_transaction(wall_ms, limit_ms):
                self._effects.has_open_transactions(hosted)

    def _roll(self) -> None:
        clock = self._context.clock
        for hosted in list(self._replicas):
            if hosted.leader is not None:
                try:
                    hosted.log.roll_if_due(clock.now_ms(), clock.wall_ms())
                except OSError as failure:
                    hosted.disk_failed(failure)

    def _flush(self) -> None:
        """Sync what `flush.ms` asks for, and segments that were rolled (so that recovery need not scan them)."""
        now_ms = self._context.clock.now_ms()
        for hosted in list(self._replicas):
            if hosted in self._syncing:
                continue
            if len(self._syncing) >= _SYNCING_MAX and self._context.disk.crowded():
                return
            log = hosted.log
            if log.flush_due(now_ms):
                self._sync(hosted)

    def _sync(self, hosted: HostedPartition) -> None:
        log = hosted.log
        end_offset = log.log_end_offset
        try:
            files = log.unflushed_files()
        except OSError as failure:
            hosted.disk_failed(failure)
            return
        self._syncing.add(hosted)

        def done(error: OSError | None) -> None:
            self._syncing.discard(hosted)
            if hosted.stale:
                return
            if error is not None:
                hosted.disk_failed(error)
            else:
                log.mark_flushed(end_offset)

        self._context.disk.sync(files, done)

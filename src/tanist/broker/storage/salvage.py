"""Saving what replicas drop: the node's side of the quarantine (docs/salvage.md).

Owns when records are saved, and what happens if they cannot be. A follower that is about to cut (`SalvageFirst`) waits
here, alone of its partition; the copy is made off the loop, and then it goes on. Records that recovery cuts at a start
are saved on the spot, off the loop, for one log at a time (`log_loading`). It never touches the path of a produce or
fetch: without a truncation nothing of it runs but the check of the quarantine's bounds.

If saving fails, the truncation goes on by default, for a replica that cannot follow is one less to have the records
that are not lost; with `tanist.salvage.on.failure=wait` it does not, nor while descriptors are short, which will pass.
Either way it is said, loudly.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Final
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.metadata.configs import ResolvedConfigs
from tanist.broker.replication.fetchers import Fetchers
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.replica_effects import ReplicaEffects
from tanist.broker.storage.deletions import Deletions
from tanist.controller.configs.catalogue import BROKER_SETTINGS
from tanist.events.storage import (
    QuarantineUnreadable,
    RecordsSalvaged,
    SalvageFailed,
    SalvageIncomplete,
    SalvageNotRemoved,
    SalvageOvertaken,
    SalvageRemoved,
    SalvageTidied,
    SalvageUnbounded,
)
from tanist.log.directory import LogDirectory
from tanist.log.log import Log, TruncatedTail
from tanist.log.recovery import Rescue
from tanist.log.salvage.manifest import Manifest, SalvageReason
from tanist.log.salvage.quarantine import (
    RETENTION_BYTES,
    RETENTION_MS,
    Quarantine,
    QuarantineTooSmall,
    RecordsToSave,
    Removed,
    slices_of,
)
from tanist.log.salvage.reading import holds_a_batch
from tanist.log.scan import DamagedBatch
from tanist.ports import FileRange, is_descriptor_shortage
from tanist.replica.effects import SalvageFirst
from tanist.replica.follower import FollowerState
from tanist.wire.ids import TopicPartition

ENABLE: Final = "tanist.salvage.enable"
ON_FAILURE: Final = "tanist.salvage.on.failure"

_AT_ONCE: Final = 8
"""Partitions whose records are being saved at the same time; the others wait, each its own followers only."""
_RETRY_MS: Final = 5_000
"""How often a saving that failed is tried again, if it must not be done without."""
_MOVED_MAX: Final = 3
"""How often a saving begins anew because a segment was dropped by retention meanwhile."""


class _Request:
    """One follower that waits."""

    __slots__ = ("follower", "hosted", "moved", "saving")

    def __init__(self, hosted: HostedPartition, follower: FollowerState, saving: SalvageFirst) -> None:
        self.hosted = hosted
        self.follower = follower
        self.saving = saving
        self.moved = 0

    @property
    def current(self) -> bool:
        """Whether the follower is still there; if not, its records have not been cut off, or not by us."""
        return self.hosted.follower is self.follower and not self.hosted.stale

    def __str__(self) -> str:
        return f"{self.hosted.topic}-{self.hosted.index}"


class Salvage:
    """The quarantines of a broker's log directories, and who waits for them."""

    def __init__(
        self,
        context: NodeContext,
        configs: ResolvedConfigs,
        effects: ReplicaEffects,
        fetchers: Fetchers,
        deletions: Deletions,
        directories: Sequence[LogDirectory],
    ) -> None:
        self._context = context
        self._emit = context.events.emit
        self._configs = configs
        self._effects = effects
        self._fetchers = fetchers
        self._deletions = deletions
        numbers = itertools.count(1)
        self._quarantines = {
            directory: Quarantine(context.disk, directory.path, context.node_id, numbers) for directory in directories
        }
        for directory in directories:
            directory.rescue = partial(self._rescue, directory)
        self._waiting: deque[_Request] = deque()
        self._busy = 0
        self._checking: set[LogDirectory] = set()
        self._stopped = False
        self.saved = 0
        self.saved_bytes = 0
        self.failures = 0
        self.removed = 0

    def __len__(self) -> int:
        """Followers that wait for their turn to have records saved."""
        return len(self._waiting)

    # -- life

    def start(self) -> None:
        """Finish or undo what a crash has interrupted. Before the logs are loaded."""
        for directory, quarantine in self._quarantines.items():
            try:
                done = quarantine.tidy()
            except OSError as failure:
                self._emit(QuarantineUnreadable(quarantine.path, str(failure)))
                continue
            for each in done:
                self._emit(SalvageTidied(directory.path, each.entry_id, each.complete))

    def stop(self) -> None:
        """No follower goes on any more. A half-saved entry goes at the next start; the logs still have it all."""
        self._stopped = True
        self._waiting.clear()
        for quarantine in self._quarantines.values():
            quarantine.abandon()

    # -- settings

    def enabled(self, topic: str) -> bool:
        """`tanist.salvage.enable`, of the topic or of the broker. At a start only the properties file is known."""
        value = self._configs.topic_value(ENABLE, topic)
        return value is not None and BROKER_SETTINGS[ENABLE].parse(value) is True

    def _number(self, name: str) -> int:
        return int(self._configs.broker_value(name) or -1)

    def _waits_after(self, failure: Exception) -> bool:
        """Whether the replica keeps records that could not be saved. A shortage of descriptors will pass."""
        return is_descriptor_shortage(failure) or self._configs.broker_value(ON_FAILURE) == "wait"

    # -- a follower is about to cut

    def begin(self, hosted: HostedPartition, saving: SalvageFirst) -> None:
        """Save what the follower has announced; then it may go on, whatever has come of it."""
        if hosted.follower is not None:
            self._waiting.append(_Request(hosted, hosted.follower, saving))
            self._take_next()

    def _take_next(self) -> None:
        while self._waiting and self._busy < _AT_ONCE:
            request = self._waiting.popleft()
            if request.current:
                self._busy += 1
                self._save(request)

    def _next(self) -> None:
        self._busy -= 1
        self._take_next()

    def _save(self, request: _Request) -> None:
        hosted, cut = request.hosted, request.saving.cut
        log = hosted.log
        try:
            if cut.fully:
                # Segments that retention would have taken anyway are not lost.
                clock = self._context.clock
                expired = log.delete_old_segments(clock.now_ms(), clock.wall_ms(), request.saving.high_watermark)
                self._deletions.schedule(expired)
            tail = log.tail(log.log_start_offset if cut.fully else cut.offset)
        except Exception as error:
            # Met on the log itself, not on the quarantine: it cannot be cut either.
            hosted.failed_by(error)
            self._next()
            return
        if tail is None or not self.enabled(hosted.topic):
            self._go_on(request)
            return
        dropped = RecordsToSave(
            hosted.topic,
            hosted.topic_id,
            hosted.index,
            cut.why,
            request.saving.leader_epoch,
            request.saving.high_watermark,
            tail.from_offset,
            tail.to_offset,
            _epochs_of(log, tail),
            slices_of(tail.ranges, tail.from_offset),
        )
        self._quarantines[hosted.directory].save(
            dropped,
            self._context.clock.wall_ms(),
            self._number(RETENTION_BYTES),
            partial(self._saved, request, dropped),
        )

    def _saved(self, request: _Request, dropped: RecordsToSave, result: Manifest | Exception) -> None:
        if self._stopped:
            return
        directory = request.hosted.directory
        if not request.current:
            self._emit(SalvageOvertaken(request.hosted.name))
            if isinstance(result, Manifest):
                self._discard(directory, result)
            self._next()
            return
        if isinstance(result, Manifest):
            self._report_saved(result)
            self._go_on(request)
            self.check_bounds()
            return
        if isinstance(result, FileNotFoundError) and request.moved < _MOVED_MAX:
            request.moved += 1
            self._save(request)
            return
        if not isinstance(result, (OSError, QuarantineTooSmall, DamagedBatch)):
            self._context.unexpected.met("a salvage", result)  # the log has it all still
        waits = self._waits_after(result)
        self._report_failed(dropped, result, waits)
        if not waits:
            self._go_on(request)
            return
        clock = self._context.clock
        clock.call_at(clock.now_ms() + _RETRY_MS, partial(self._try_again, request))
        self._next()

    def _try_again(self, request: _Request) -> None:
        if not self._stopped:
            self._waiting.append(request)
            self._take_next()

    def _go_on(self, request: _Request) -> None:
        """The follower may cut now."""
        if self._effects.carry_out(request.hosted, partial(request.follower.salvaged, request.saving)):
            self._fetchers.resume(request.hosted)
        self._next()

    # -- a start has found damage

    def _rescue(self, directory: LogDirectory, of: TopicPartition, topic_id: UUID) -> Rescue:
        def save(from_offset: int, ranges: tuple[FileRange, ...]) -> None:
            if not self.enabled(of.topic) or not holds_a_batch(ranges):
                return
            dropped = RecordsToSave(
                of.topic,
                topic_id,
                of.partition,
                SalvageReason.RECOVERY_CUT,
                leader_epoch=-1,
                high_watermark=directory.checkpoints.high_watermark(*of),
                from_offset=from_offset,
                to_offset=-1,
                epochs=(),
                slices=slices_of(ranges, 0),
            )
            wall_ms = self._context.clock.wall_ms()
            try:
                saved = self._quarantines[directory].save_now(dropped, wall_ms, self._number(RETENTION_BYTES))
            except (OSError, QuarantineTooSmall) as failure:
                waits = self._waits_after(failure)
                self._report_failed(dropped, failure, waits)
                if is_descriptor_shortage(failure):
                    raise
                if waits:
                    raise OSError(
                        f"{of} is not opened, for what is behind its damage cannot be saved ({failure}), and "
                        f"{ON_FAILURE} is wait"
                    ) from failure
                return
            self._report_saved(saved)

        return save

    # -- bounds

    def check_bounds(self) -> None:
        """Let the oldest entries go that are beyond the bounds, off the loop."""
        bytes_max, age_ms_max = self._number(RETENTION_BYTES), self._number(RETENTION_MS)
        wall_ms = self._context.clock.wall_ms()
        for directory, quarantine in self._quarantines.items():
            if directory.failed is None and directory not in self._checking and not self._stopped:
                self._checking.add(directory)
                job = partial(quarantine.enforce, bytes_max, age_ms_max, wall_ms)
                self._context.disk.run(job, partial(self._checked, directory))

    def _checked(self, directory: LogDirectory, result: list[Removed] | BaseException) -> None:
        self._checking.discard(directory)
        self._context.unexpected.met_by_job("the salvage's bounds", result)
        if isinstance(result, BaseException):
            self._emit(SalvageUnbounded(directory.path, str(result)))
            return
        for each in result:
            self.removed += 1
            self._emit(SalvageRemoved(*_entry(each.manifest), each.setting))

    def _discard(self, directory: LogDirectory, manifest: Manifest) -> None:
        """The replica has another leader by now, or leads: what was saved is not cut off, or not as it was said."""

        def discarded(result: object) -> None:
            self._context.unexpected.met_by_job("a salvage", result)
            if isinstance(result, BaseException):
                self._emit(SalvageNotRemoved(manifest.entry_id, str(result)))

        self._context.disk.run(partial(self._quarantines[directory].remove, manifest.entry_id), discarded)

    # -- reports

    def _report_saved(self, manifest: Manifest) -> None:
        self.saved += 1
        self.saved_bytes += manifest.size_bytes
        entry = _entry(manifest)
        self._emit(RecordsSalvaged(*entry, manifest.why.value))
        unsaved = manifest.unsaved
        if unsaved is not None:
            self._emit(SalvageIncomplete(entry[0], unsaved.from_offset, unsaved.to_offset, unsaved.size_bytes))

    def _report_failed(self, dropped: RecordsToSave, failure: Exception, waits: bool) -> None:
        self.failures += 1
        name = f"{dropped.topic}-{dropped.partition}"
        why = dropped.why.value
        self._emit(SalvageFailed(name, dropped.from_offset, dropped.size_bytes, why, waits, str(failure)))


def _entry(manifest: Manifest) -> tuple[str, str, int, int, int]:
    """As `RecordsSalvaged` and `SalvageRemoved` begin."""
    name = f"{manifest.topic}-{manifest.partition}"
    return name, manifest.entry_id, manifest.from_offset, manifest.to_offset, manifest.size_bytes


def _epochs_of(log: Log, tail: TruncatedTail) -> tuple[tuple[int, int], ...]:
    """The leader epochs that the tail has records of."""
    entries = log.epochs.entries
    ends = [entry.start_offset for entry in entries[1:]] + [tail.to_offset]
    return tuple(
        (entry.epoch, max(entry.start_offset, tail.from_offset))
        for entry, end in zip(entries, ends, strict=True)
        if end > tail.from_offset and entry.start_offset < tail.to_offset
    )

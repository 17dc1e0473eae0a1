"""One entry of `log.dirs`: its logs, and the files about all of them.

Owns the mark of a clean stop (rules 86-89), and the creation and removal of logs. A crash at any moment must leave a
folder that never claims too much: the mark is invalidated, durably, before anything else changes (A4). A log that the
checkpoints name and that is not there is not a new one: it is `lost`.

An `OSError` of any method means that the disk has failed: it is kept in `failed`, and everything here is offline. Only
a shortage of descriptors (`is_descriptor_shortage`) is not the disk's: the caller ends the node, or tries again later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import NamedTuple
from uuid import UUID

from tanist.events.storage import CheckpointDamaged, NamelessLogDropped
from tanist.events.stream import NOBODY, Events
from tanist.log.checkpoints import (
    CLEAN_SHUTDOWN,
    CheckpointError,
    decode_clean_shutdown,
    encode_clean_shutdown,
)
from tanist.log.config import LogConfig
from tanist.log.directory_checkpoints import DirectoryCheckpoints, Offsets
from tanist.log.log import Log
from tanist.log.names import (
    DELETE_SUFFIX,
    LogFolder,
    delete_folder_name,
    folder_mark,
    folder_name,
    future_folder_name,
    is_marked,
    parse_folder,
    parse_future_folder,
)
from tanist.log.recovery import RecoveryProgress, Rescue
from tanist.ports import Disk, is_descriptor_shortage
from tanist.wire.ids import METADATA_TOPIC, ZERO_UUID, TopicPartition


class FoundLog(NamedTuple):
    """The folder of a log that a start has found, with what the checkpoints say of it."""

    path: str
    folder: LogFolder
    recovery_point: int
    log_start_offset: int
    is_future: bool = False
    """It is on its way from another directory of the broker (KIP-113)."""


class LogDirectory:
    """A folder of partition folders. Call `load` first."""

    def __init__(self, disk: Disk, path: str, directory_id: UUID = ZERO_UUID, events: Events = NOBODY) -> None:
        self._disk = disk
        self._events = events
        self.path = path
        self.directory_id = directory_id
        self.failed: OSError | None = None
        self.logs: dict[tuple[str, int], Log] = {}
        self.futures: dict[tuple[str, int], Log] = {}
        """Logs that are being copied from another directory of the broker, of which they are to take the place."""
        self.paths_to_delete: list[str] = []
        """Folders that an earlier run has marked for deletion: to be removed at leisure."""
        self.complaints: list[CheckpointDamaged | NamelessLogDropped] = []
        """Faults of the directory's own files at the start. They are emitted once it is loaded."""
        self.was_clean = False
        """Whether the last run has stopped in good order."""
        self.lost: dict[TopicPartition, str] = {}
        """Logs of which the last run has left more than there is, and what is gone, in words."""
        self.is_listed = True
        """Whether the last run has left a list of its logs. A clean stop does: the recovery points."""
        self.rescue: Callable[[TopicPartition, UUID], Rescue] | None = None
        """For `load`: called with the bytes that recovery cuts off a log."""
        self.checkpoints = DirectoryCheckpoints(disk, path, self.logs, self.futures, self._disk_failed)

    def __repr__(self) -> str:
        return f"LogDirectory({self.path}, {len(self.logs)} logs{', failed' if self.failed else ''})"

    def _file(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _disk_failed(self, error: OSError) -> None:
        if not is_descriptor_shortage(error):
            self.failed = error

    # -- start and stop

    def read_broker_epoch(self) -> int | None:
        """The broker epoch that the last clean stop has left; None without one. To be read before `load`."""
        try:
            return decode_clean_shutdown(self._disk.read_file(self._file(CLEAN_SHUTDOWN)))
        except FileNotFoundError:
            return None

    def load(self, now_ms: int, configs_for: Callable[[str], LogConfig]) -> list[Log]:
        """Open every log of the directory, recovering them if the last stop was not clean."""
        for found in self.begin_load():
            try:
                log = self.open_log(found, configs_for(found.folder.topic), now_ms, self.rescue)
            except OSError as error:
                self.load_failed(error)
                raise
            self.loaded(found, log)
        self.end_load()
        return list(self.logs.values())

    def begin_load(self) -> list[FoundLog]:
        """The logs that are to be opened by `open_log`, in any order, and given to `loaded`; at last, `end_load`."""
        try:
            return self._begin_load()
        except OSError as error:
            self._disk_failed(error)
            raise

    def _begin_load(self) -> list[FoundLog]:
        self._disk.make_directory(self.path)
        self.was_clean = self.read_broker_epoch() is not None
        self._forget_clean_shutdown()
        self.is_listed, damaged = self.checkpoints.read()
        self.complaints += damaged
        recovery_points, log_starts = self.checkpoints.recovery_points, self.checkpoints.log_starts
        found: list[FoundLog] = []
        marked: list[str] = []
        for name in self._disk.list(self.path):
            path = self._file(name)
            mark = folder_mark(name)
            future = parse_future_folder(name)
            if mark is not None and future is None:
                marked.append(name)
                if mark == DELETE_SUFFIX:
                    self.paths_to_delete.append(path)
                continue
            folder = future or parse_folder(name)
            if folder is None or folder.topic == METADATA_TOPIC or not self._disk.is_directory(path):
                continue
            offsets = recovery_points.get(folder, 0), log_starts.get(folder, 0)
            found.append(FoundLog(path, folder, *offsets, future is not None))
        self._note_missing({each.folder for each in found}, marked)
        return found

    def _note_missing(self, here: Collection[tuple[str, int]], marked: Iterable[str]) -> None:
        """Logs that the checkpoints name and that have no folder.

        One without records may go. After an unclean stop a checkpoint may name one that the last run has deleted: its
        folder may still be there, marked; else whether it is missed, the metadata knows. A clean stop writes the
        checkpoints of the logs that are there, so a marked folder is of an earlier log of that name.
        """
        for key, offset in self.checkpoints.reached().items():
            if not offset or key in here or key[0] == METADATA_TOPIC:
                continue
            if not self.was_clean and any(is_marked(name, *key) for name in marked):
                continue
            self.lost[TopicPartition(*key)] = f"it had reached offset {offset}, and is gone"

    def open_log(
        self,
        found: FoundLog,
        config: LogConfig,
        now_ms: int,
        rescue: Callable[[TopicPartition, UUID], Rescue] | None,
        progress: RecoveryProgress | None = None,
    ) -> Log:
        """Open one of the logs that `begin_load` has found. Changes nothing here: it may be called off the loop.

        Of a future log nothing is to be rescued or reported: it is a copy.
        """
        if found.is_future:
            rescue = None
        try:
            return Log.open(
                self._disk,
                found.path,
                found.folder.topic,
                found.folder.partition,
                ZERO_UUID,
                config,
                now_ms,
                recovery_point=found.recovery_point,
                clean=self.was_clean,
                log_start_offset=found.log_start_offset,
                rescue=None if rescue is None else partial(rescue, TopicPartition(*found.folder)),
                progress=progress,
                events=NOBODY if found.is_future else self._events,
            )
        except CheckpointError as error:
            # The log's topic is not known. To take it for another topic's would delete it.
            raise OSError(
                f"{error}. Restore the file, or move {found.path} away to have it replicated anew."
            ) from error

    def loaded(self, found: FoundLog, log: Log) -> None:
        """The log has been opened."""
        if found.is_future:
            self._adopt_future(log)
            return
        self._adopt(log)
        if log.log_end_offset < found.recovery_point:
            self.lost[log.topic_partition] = (
                f"it had reached offset {found.recovery_point}, and ends at {log.log_end_offset}"
            )
        elif log.recovery.began_at is not None:
            self.lost[log.topic_partition] = (
                f"it had begun at offset {log.recovery.began_at}, and begins at {log.log_start_offset}"
            )
        if log.topic_id == ZERO_UUID and not self.was_clean and not found.recovery_point and log.log_end_offset:
            self._drop_nameless(log)

    def load_failed(self, error: OSError) -> None:
        """A log could not be opened: the directory is offline, unless only descriptors are short."""
        self._disk_failed(error)

    def end_load(self) -> None:
        """All logs are open. Before one of them is appended to."""
        try:
            self.checkpoints.lower_to_logs()
        except OSError as error:
            self._disk_failed(error)
            raise

    def abandon(self) -> None:
        """Close the files of all logs as they are. Nothing is written: the next start recovers them."""
        for log in self._all.values():
            log.abandon()

    def _drop_nameless(self, log: Log) -> None:
        """Records of which nothing was durable, and whose topic is not known: the topic that has their name now may be
        another one, made after theirs was deleted (A50). What a loss of power has left of them may go.
        """
        self.complaints.append(NamelessLogDropped(log.directory))
        self.paths_to_delete += self.delete_log(log.topic, log.partition)

    def _forget_clean_shutdown(self) -> None:
        """Emptied first, durably: a loss of power may undo a removal, and the mark would then vouch for this run."""
        path = self._file(CLEAN_SHUTDOWN)
        if self._disk.exists(path):
            self._disk.write_file(path, b"", sync=True)
            self._disk.remove(path)

    @property
    def _all(self) -> dict[tuple[str, int], Log]:
        return {**self.futures, **self.logs}

    def _adopt(self, log: Log) -> None:
        self.logs[log.topic_partition] = log
        log.before_cut = self.checkpoints.before_cut

    def _adopt_future(self, log: Log) -> None:
        self.futures[log.topic_partition] = log
        log.before_cut = self.checkpoints.before_cut

    def shutdown_cleanly(self, broker_epoch: int, high_watermarks: Offsets) -> None:
        """Make everything durable and close it; then, and only then, leave the mark.

        `high_watermarks`: as `DirectoryCheckpoints.write_high_watermarks` takes them.
        """
        try:
            self._disk.run_now([log.close for log in self._all.values()])
            for log in self._all.values():
                if log.failed is not None:
                    raise log.failed
            self.checkpoints.write_recovery_points(sync=True)
            self.checkpoints.write_high_watermarks(high_watermarks)
            self.checkpoints.write_log_starts()
            self._disk.write_file(self._file(CLEAN_SHUTDOWN), encode_clean_shutdown(broker_epoch), sync=True)
        except OSError as error:
            self._disk_failed(error)
            raise

    # -- logs

    def create_log(self, topic: str, partition: int, topic_id: UUID, config: LogConfig, now_ms: int) -> Log:
        """Make the log of a replica that was placed here. A shortage of descriptors leaves nothing of it."""
        if (topic, partition) in self.logs:
            raise ValueError(f"{self.path} has a log of {topic}-{partition}")
        log = self._make_log(folder_name(topic, partition), topic, partition, topic_id, config, now_ms, self._events)
        self._adopt(log)
        return log

    def create_future(
        self, topic: str, partition: int, topic_id: UUID, unique: str, config: LogConfig, now_ms: int
    ) -> Log:
        """Make the log to which one of another directory is to be copied. `ValueError`: its folder can have no name."""
        name = future_folder_name(topic, partition, unique)
        log = self._make_log(name, topic, partition, topic_id, config, now_ms, NOBODY)
        self._adopt_future(log)
        return log

    def _make_log(
        self, name: str, topic: str, partition: int, topic_id: UUID, config: LogConfig, now_ms: int, events: Events
    ) -> Log:
        key = TopicPartition(topic, partition)
        self.checkpoints.forget(key)
        self.checkpoints.lower(key, 0, 0)
        path = self._file(name)
        new = False
        try:
            new = self._disk.make_directory(path)
            return Log.open(
                self._disk,
                path,
                topic,
                partition,
                topic_id,
                config,
                now_ms,
                recovery_point=0,
                clean=False,
                new=new,
                events=events,
            )
        except OSError as error:
            self._disk_failed(error)
            if new and is_descriptor_shortage(error):
                with suppress(OSError):
                    self._disk.remove(path)  # the caller tries again, perhaps in another directory
            raise

    def promote(self, topic: str, partition: int, now_ms: int, *, of: Log | None, high_watermark: int) -> Log:
        """Let a future log take the place of `of`, or of a log that is not there any more; durably, on return.

        After a loss of power it must not be a future log again: what is acknowledged from now on is in no other.
        """
        key = TopicPartition(topic, partition)
        future = self.futures.pop(key)
        try:
            future.close()
            if future.failed is not None:
                raise future.failed
            path = self._file(folder_name(topic, partition))
            self._disk.rename(future.directory, path)
            log = Log.open(
                self._disk,
                path,
                topic,
                partition,
                ZERO_UUID,
                future.config,
                now_ms,
                recovery_point=future.recovery_point,
                clean=True,
                log_start_offset=future.log_start_offset,
                events=self._events,
            )
            if of is not None:
                log.succeed(of)
            self._adopt(log)
            self.checkpoints.replace(key, high_watermark)
        except OSError as error:
            self._disk_failed(error)
            raise
        return log

    def delete_log(self, topic: str, partition: int, *, close: bool = True) -> list[str]:
        """Take a log out of service and mark its folder; the path is to be removed after `file.delete.delay.ms`.

        Without `close` its files stay open: the answers of this turn may be made of them.
        """
        log = self.logs.pop((topic, partition), None)
        self.checkpoints.forget((topic, partition))
        return self._mark_deleted(log if close else None, self._file(folder_name(topic, partition)), topic, partition)

    def delete_future(self, topic: str, partition: int) -> list[str]:
        """As `delete_log`, of a log that will take no other's place."""
        log = self.futures.pop((topic, partition), None)
        return [] if log is None else self._mark_deleted(log, log.directory, topic, partition)

    def _mark_deleted(self, log: Log | None, source: str, topic: str, partition: int) -> list[str]:
        try:
            if log is not None:
                log.abandon()
            if not self._disk.exists(source):
                return []
            unique = (log.topic_id if log is not None else ZERO_UUID).int
            target = self._file(delete_folder_name(topic, partition, f"{unique:032x}"))
            while self._disk.exists(target):
                unique = (unique + 1) % 2**128
                target = self._file(delete_folder_name(topic, partition, f"{unique:032x}"))
            self._disk.rename(source, target)
        except OSError as error:
            self._disk_failed(error)
            raise
        return [target]

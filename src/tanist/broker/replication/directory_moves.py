"""Replicas on their way to another log directory of this broker (KIP-113, KIP-858).

A log is copied to a *future* log in the other directory, which takes its place when it has all of it:

    copying     batch by batch, from what the log has written; where the log was cut meanwhile, so is its copy
    syncing     once it has all, off the loop: the copy must not be less durable than the log
    asking      AssignReplicasToDirs: the controller is to know the new directory first, or it would not miss the
                replica if that failed
    promotion   in one step: the last batches, the folder's name, then the old folder goes

Until the promotion the old log is the replica's, and after it the new one. A crash leaves both logs or the new one, and
a start goes on with the copy. It must never let a log take the place of one that has a record more. DEVIATION: Apache
Kafka does so at a start, if the controller had agreed before the copy was complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.log_directories import LogDirectories
from tanist.broker.metadata.directory_assignments import DirectoryAssignments
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.quotas import PAUSE_MS, Quota
from tanist.controller.image.image import MetadataImage
from tanist.events.replication import ReplicaMoved, ReplicaMoveEnded, ReplicaMoves
from tanist.log.directory import LogDirectory
from tanist.log.log import Log
from tanist.log.torn import as_failure
from tanist.replica.follower import Phase

_LAST_CHUNKS_MAX: Final = 8
"""Of `replica.fetch.max.bytes`, in the last step. While more than these come between two steps, it has to wait."""
_UNSYNCED_MAX: Final = 4 << 20
"""So much may be synced in the last step, which holds the loop up."""
_POLL_MS: Final = 50
"""How often a copy that has all looks for more, while the controller has not agreed."""
_CHOSEN_MAX: Final = 10_000


class _Move:
    __slots__ = ("asked", "directory", "hosted", "log", "over", "synced_bytes", "syncing")

    def __init__(self, hosted: HostedPartition, directory: LogDirectory, log: Log) -> None:
        self.hosted = hosted
        self.directory = directory
        """Where it goes."""
        self.log = log
        """The future log."""
        self.synced_bytes = -1
        """The size of the future log at the last sync; -1 before the first."""
        self.syncing = False
        self.asked = False
        """The controller is to know the new directory."""
        self.over = False


class DirectoryMoves:
    """Those of a broker. Its public attributes are set while the node is assembled."""

    directory_failed: Callable[[LogDirectory, OSError], None]
    moved: Callable[[HostedPartition, LogDirectory], None]
    """Hears of each replica that has come from a directory."""

    def __init__(
        self,
        context: NodeContext,
        directories: LogDirectories,
        assignments: DirectoryAssignments,
        quota: Quota,
        delete_later: Callable[[Iterable[str]], None],
    ) -> None:
        self._context = context
        self._directories = directories
        self._assignments = assignments
        self._quota = quota
        self._delete_later = delete_later
        self._moves: dict[HostedPartition, _Move] = {}
        self._chosen: dict[tuple[str, int], LogDirectory] = {}
        """For replicas that are not here yet."""

    def __len__(self) -> int:
        return len(self._moves)

    def __contains__(self, hosted: HostedPartition) -> bool:
        return hosted in self._moves

    def directory_id(self, hosted: HostedPartition) -> UUID:
        """Where the controller is to take the replica to be."""
        move = self._moves.get(hosted)
        return (move.directory if move is not None and move.asked else hosted.directory).directory_id

    # -- begin and end

    def begin(self, hosted: HostedPartition, directory: LogDirectory) -> None:
        """Move the replica there; a move to elsewhere ends. `OSError`: its log cannot be made."""
        move = self._moves.get(hosted)
        if move is not None and move.directory is not directory:
            self.cancel(hosted, "another directory is asked for")
        if hosted.directory is directory or hosted in self._moves:
            return
        unique = self._context.random.bytes(16).hex()
        now_ms = self._context.clock.now_ms()
        try:
            log = directory.create_future(
                hosted.topic, hosted.index, hosted.topic_id, unique, hosted.log.config, now_ms
            )
        except OSError as failure:
            self.directory_failed(directory, failure)
            raise
        self._start(hosted, directory, log)

    def resume(self, hosted: HostedPartition) -> None:
        """The replica is hosted from now on: go on with the move that the last run has begun."""
        self._chosen.pop((hosted.topic, hosted.index), None)
        for directory in self._directories:
            log = directory.futures.get((hosted.topic, hosted.index))
            if log is None or directory.failed is not None:
                continue
            if directory is hosted.directory or log.topic_id != hosted.topic_id or hosted in self._moves:
                self._delete(directory, hosted.topic, hosted.index)
            else:
                self._start(hosted, directory, log)

    def _start(self, hosted: HostedPartition, directory: LogDirectory, log: Log) -> None:
        move = self._moves[hosted] = _Move(hosted, directory, log)
        self._context.events.emit(ReplicaMoves(hosted.name, hosted.directory.path, directory.path))
        self._step_in(move, 0)

    def cancel(self, hosted: HostedPartition, reason: str) -> None:
        """The replica stays where it is, and its copy goes."""
        move = self._end(hosted, reason)
        if move is not None:
            self._delete(move.directory, hosted.topic, hosted.index)

    def unhosted(self, hosted: HostedPartition) -> None:
        """The replica is not served any more. If its directory has failed, the copy stays for the next start."""
        if hosted.directory.failed is None:
            self.cancel(hosted, "the replica is not here any more")
            self._assignments.agreed(hosted.topic_id, hosted.index)
        else:
            self._end(hosted, f"{hosted.directory.path} is offline")

    def target_failed(self, directory: LogDirectory) -> None:
        """Replicas that were on their way to this directory stay where they are."""
        for hosted in [each for each, move in self._moves.items() if move.directory is directory]:
            self._end(hosted, f"{directory.path} is offline")

    def _end(self, hosted: HostedPartition, reason: str) -> _Move | None:
        move = self._moves.pop(hosted, None)
        if move is not None:
            move.over = True
            if move.asked:
                self._assignments.report(hosted.topic_id, hosted.index, hosted.directory.directory_id)
            self._context.events.emit(ReplicaMoveEnded(hosted.name, move.directory.path, reason))
        return move

    def close(self) -> None:
        """The logs are about to be closed. The next start goes on."""
        for move in self._moves.values():
            move.over = True
        self._moves.clear()

    def _delete(self, directory: LogDirectory, topic: str, index: int) -> None:
        try:
            self._delete_later(directory.delete_future(topic, index))
        except OSError as failure:
            self.directory_failed(directory, failure)

    # -- replicas that are not here

    def choose(self, topic: str, index: int, directory: LogDirectory) -> None:
        """If the replica comes to this broker, its log is to be made there."""
        self._chosen.pop((topic, index), None)
        while len(self._chosen) >= _CHOSEN_MAX:
            del self._chosen[next(iter(self._chosen))]
        self._chosen[topic, index] = directory

    def chosen(self, topic: str, index: int) -> LogDirectory | None:
        directory = self._chosen.get((topic, index))
        return None if directory is None or directory.failed is not None else directory

    def abandoned(self, topic: str, index: int, topic_id: UUID) -> LogDirectory | None:
        """A directory with a future log of the replica: better than an empty one, where its log is gone."""
        for directory in self._directories:
            log = directory.futures.get((topic, index))
            if log is not None and log.topic_id == topic_id and directory.failed is None:
                return directory
        return None

    def drop_strays(self, image: MetadataImage) -> None:
        """Future logs of replicas that the metadata does not place here any more."""
        for directory in self._directories:
            for (topic, index), log in list(directory.futures.items()):
                state = image.partition(log.topic_id, index)
                if directory.failed is None and (state is None or self._context.node_id not in state.replicas):
                    self._delete(directory, topic, index)

    # -- step by step

    def _step_in(self, move: _Move, delay_ms: int) -> None:
        clock = self._context.clock
        clock.call_at(clock.now_ms() + delay_ms, partial(self._step, move))

    def _step(self, move: _Move) -> None:
        if move.over or move.syncing or self._context.stopping:
            return
        follower = move.hosted.follower
        if move.hosted.log.writes_late or (follower is not None and follower.phase is Phase.SALVAGING):
            self._step_in(move, _POLL_MS)
            return
        if self._quota.active and self._quota.exceeded:
            self._step_in(move, PAUSE_MS)
            return
        complete = self._copy(move)
        chunks = 1
        while not complete and not move.over and self._is_agreed(move) and chunks < _LAST_CHUNKS_MAX:
            complete = self._copy(move)
            chunks += 1
        if move.over:
            return
        if not complete:
            self._step_in(move, 0)
        elif move.synced_bytes < 0 or move.log.size_bytes - move.synced_bytes > _UNSYNCED_MAX:
            self._sync(move)
        elif self._is_agreed(move):
            self._promote(move)
        else:
            self._ask(move)
            self._step_in(move, _POLL_MS)

    def _copy(self, move: _Move) -> bool:
        """Copy the next batches; whether the future log has all that there is."""
        hosted, future = move.hosted, move.log
        source = hosted.log
        try:
            source.write_pending()
        except Exception as error:
            hosted.failed_by(error)
            return False
        try:
            _align(future, source)
        except Exception as error:
            self._failed_by(move, error)
            return False
        batches = _read(hosted, future.log_end_offset, self._context.config.replica_fetch_max_bytes)
        if batches is None:
            return not move.over and future.log_end_offset == source.log_end_offset
        try:
            appended = future.append_as_follower(memoryview(batches), source.latest_epoch, self._context.clock.now_ms())
            future.producers.replicated(hosted.replica.high_watermark)
            if future.config is not source.config:
                future.set_config(source.config)
            if not appended.error:
                _align(future, source)
        except Exception as error:
            self._failed_by(move, error)
            return False
        if appended.error:
            self.cancel(hosted, f"its records cannot be copied: {appended.message}")
            return False
        if self._quota.active:
            self._quota.record(len(batches))
        return future.log_end_offset == source.log_end_offset

    def _sync(self, move: _Move) -> None:
        size_bytes, end_offset = move.log.size_bytes, move.log.log_end_offset
        try:
            files = move.log.unflushed_files()
        except Exception as error:
            self._failed_by(move, error)
            return

        def done(error: OSError | None) -> None:
            move.syncing = False
            if move.over:
                return
            try:
                if error is not None:
                    raise error
                move.log.mark_flushed(min(end_offset, move.log.log_end_offset))
            except Exception as failure:
                self._failed_by(move, failure)
                return
            move.synced_bytes = size_bytes
            self._step(move)

        move.syncing = True
        self._context.disk.sync(files, done)

    def _ask(self, move: _Move) -> None:
        if not move.asked:
            move.asked = True
            hosted = move.hosted
            self._assignments.report(hosted.topic_id, hosted.index, move.directory.directory_id)

    def _is_agreed(self, move: _Move) -> bool:
        """Whether the metadata says so, or does not know directories at all."""
        metadata = move.hosted.replica.metadata
        assigned = None if metadata is None else metadata.directory_of(self._context.node_id)
        return assigned is None or (move.asked and assigned == move.directory.directory_id)

    def _promote(self, move: _Move) -> None:
        hosted, directory = move.hosted, move.directory
        old, source, now_ms = hosted.log, hosted.directory, self._context.clock.now_ms()
        try:
            log = directory.promote(
                hosted.topic, hosted.index, now_ms, of=old, high_watermark=hosted.replica.high_watermark
            )
        except Exception as error:
            self._failed_by(move, error)
            return
        log.queue_large(self._context.disk.large_write_bytes)
        hosted.move_to(directory, log)
        del self._moves[hosted]
        move.over = True
        self._assignments.agreed(hosted.topic_id, hosted.index)
        self.moved(hosted, source)
        self._context.events.emit(ReplicaMoved(hosted.name, source.path, directory.path))
        self._context.clock.call_at(now_ms + self._context.config.log_segment_delete_delay_ms, old.abandon)
        try:
            self._delete_later(source.delete_log(hosted.topic, hosted.index, close=False))
            source.checkpoints.write_recovery_points(sync=True)
        except OSError as failure:
            self.directory_failed(source, failure)

    def _failed_by(self, move: _Move, error: Exception) -> None:
        self.directory_failed(move.directory, as_failure(error))


def _read(hosted: HostedPartition, offset: int, bytes_max: int) -> bytes | None:
    """Some batches of the replica's log from there on, at least one; None if there are none, or they cannot be read."""
    log = hosted.log
    try:
        piece = log.read(offset, bytes_max, log.log_end_offset)
        if piece is None:
            return None
        return piece.chunk.file.read(piece.chunk.offset, piece.chunk.length)
    except Exception as error:
        hosted.failed_by(error)
        return None


def _align(future: Log, source: Log) -> None:
    """Cut what the source does not have, any more. What is left has to be copied from the end of the future log on."""
    start, end = future.log_start_offset, future.log_end_offset
    same = source.epochs.common_end(source.log_end_offset, future.epochs, end)
    is_empty = start == end
    if start > source.log_start_offset or end < source.log_start_offset or (not is_empty and same <= start):
        future.truncate_fully_and_start_at(source.log_start_offset)
    elif end > same and not is_empty:
        future.truncate_to(same)
    if future.log_start_offset < source.log_start_offset <= future.log_end_offset:
        future.advance_log_start_offset(source.log_start_offset)

"""The replicas that this broker hosts: their logs on its disks, their roles from the metadata.

Owns the log directories and the table of hosted partitions. A change of the metadata creates logs, deletes them, and
makes leaders and followers; nothing else does. No role is taken before the metadata holds this incarnation's
registration (`lifecycle`): an older record may call us the leader of records that a crash took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.log_directories import LogDirectories
from tanist.broker.metadata.configs import ResolvedConfigs
from tanist.broker.metadata.directory_assignments import DirectoryAssignments
from tanist.broker.metadata.lifecycle import Lifecycle
from tanist.broker.metadata.view import MetadataView
from tanist.broker.replication.directory_moves import DirectoryMoves
from tanist.broker.replication.fetchers import Fetchers
from tanist.broker.replication.follower_sessions import FollowerSessions
from tanist.broker.replication.found_logs import FoundLogs
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.new_logs import NewLogs
from tanist.broker.replication.replica_effects import ReplicaEffects
from tanist.controller.image.delta import ImageDelta
from tanist.controller.image.differences import local_changes
from tanist.controller.image.partition_state import PartitionState
from tanist.events.process import LogDirectoriesFailed, NodeFailed
from tanist.events.replication import (
    ReplicaDeleted,
)
from tanist.events.storage import LogDirectoryFailed, ShutdownUnclean
from tanist.log.config import LogConfig
from tanist.log.directory import LogDirectory
from tanist.log.torn import TornLog
from tanist.ports import is_descriptor_shortage
from tanist.replica.metadata import PartitionMetadata, ReplicaConfig
from tanist.replica.partition import Partition
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import (
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
)

_SAYS_NO_DIRECTORY = (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY)
"""Of a broker with one directory, in which the replica must be."""


class Replicas:
    """Hosted partitions by topic name and by topic id."""

    def __init__(
        self,
        context: NodeContext,
        directories: LogDirectories,
        metadata: MetadataView,
        configs: ResolvedConfigs,
        lifecycle: Lifecycle,
        directory_assignments: DirectoryAssignments,
        effects: ReplicaEffects,
        fetchers: Fetchers,
        follower_sessions: FollowerSessions,
        moves: DirectoryMoves,
        *,
        salvages: Callable[[str], bool],
        delete_later: Callable[[Iterable[str]], None],
    ) -> None:
        """`salvages`: whether followers of a topic save what they drop. `delete_later` removes renamed files."""
        self._context = context
        self._emit = context.events.emit
        self.directories = directories
        for directory in directories:
            directory.checkpoints.late_failure = partial(self.directory_failed, directory)
        self._metadata = metadata
        self._configs = configs
        self._lifecycle = lifecycle
        self._directory_assignments = directory_assignments
        self._effects = effects
        self._fetchers = fetchers
        self._follower_sessions = follower_sessions
        self.moves = moves
        moves.directory_failed = self.directory_failed
        self._salvages = salvages
        self._delete_later = delete_later
        self.by_topic: dict[str | UUID, dict[int, HostedPartition]] = {}
        """Under its name and under its id, the same inner table: index -> partition."""
        self.found = FoundLogs(context, directories, self._delete_log)
        self._offline: dict[tuple[UUID, int], LogDirectory] = {}
        self._reported: set[LogDirectory] = set()
        self.new_logs = NewLogs(context, self._apply_present)
        self._topic_configs: dict[str, tuple[LogConfig, ReplicaConfig]] = {}
        """Of this turn: to resolve one costs as much as to make a log."""
        self.nameless: list[HostedPartition] = []
        """New replicas whose topic ids are not durable yet (`housekeeping`)."""
        self.naming: frozenset[tuple[str, int]] = frozenset()
        """Those whose `partition.metadata` is being written, off the loop: another topic of the name has to wait."""
        self._active = False
        self._closed = False

    # -- what there is

    def __iter__(self) -> Iterator[HostedPartition]:
        for topic, partitions in self.by_topic.items():
            if isinstance(topic, str):
                yield from partitions.values()

    def get(self, topic: str | UUID, index: int) -> HostedPartition | None:
        partitions = self.by_topic.get(topic)
        return None if partitions is None else partitions.get(index)

    @property
    def offline_count(self) -> int:
        """Replicas that were hosted in directories which have failed since."""
        return len(self._offline)

    def is_offline(self, topic_id: UUID, index: int) -> bool:
        """Whether the replica was hosted in a directory that has failed since (Kafka's `HostedPartition.Offline`)."""
        return (topic_id, index) in self._offline

    def is_to_come(self, topic: str | UUID, index: int) -> bool:
        """Whether the metadata places the replica here, and its log is made in one of the next turns."""
        return (self._id_of(topic), index) in self.new_logs.queued

    def _id_of(self, topic: str | UUID) -> UUID | None:
        return topic if isinstance(topic, UUID) else self._metadata.topic_id(topic)

    def absent_error(self, topic: str | UUID, partition: int) -> int:
        """Why a partition that a client asks for is not hosted here."""
        topic_id = self._id_of(topic)
        if topic_id is not None and self.is_offline(topic_id, partition):
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self._metadata.current_leader(topic, partition) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if isinstance(topic, UUID) and topic not in self._metadata.image.topics:
            return ErrorCode.UNKNOWN_TOPIC_ID
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # -- start and stop

    def activate(self) -> None:
        """The metadata holds our registration: take roles from the whole image, and from now on from its changes."""
        if self._active or self._closed:
            return
        self._active = True
        self.found.note_losses()
        self._begin_burst()
        image = self._metadata.image
        for topic_id, topic in image.topics.items():
            for index, state in topic.partitions.items():
                if self._context.node_id in state.replicas:
                    self._apply(topic.name, topic_id, index, state)
        self.found.drop_strays(image)
        self.moves.drop_strays(image)

    def close(self, broker_epoch: int) -> None:
        """Flush, checkpoint and close all logs, and leave the mark of a clean shutdown (rules 86, 87).

        Metadata that comes later changes nothing here: a combined node goes on as a controller for a while.
        """
        self._closed = True
        self.new_logs.close()
        self.moves.close()
        high_watermarks = self._high_watermarks()
        for hosted in self:
            hosted.stale = True
        for directory, of_directory in high_watermarks.items():
            try:
                directory.shutdown_cleanly(broker_epoch, of_directory)
            except OSError as failure:
                self._emit(ShutdownUnclean(directory.path, str(failure)))

    # -- metadata

    def metadata_changed(self, delta: ImageDelta) -> None:
        if not self._active or self._closed:
            return
        self._begin_burst()
        image = self._metadata.image
        # First: a burst may both raise min.insync.replicas and shrink an ISR into the ELR, and by the old minimum the
        # high watermark would leave the ELR behind.
        if delta.configs:
            self._configs_changed(delta.configs)
        for change in local_changes(delta, image, self._context.node_id):
            hosted = self.get(change.topic_id, change.partition)
            if change.after is not None and self._context.node_id in change.after.replicas:
                self._apply(change.topic, change.topic_id, change.partition, change.after)
                continue
            self._directory_assignments.agreed(change.topic_id, change.partition)
            if hosted is not None:
                self._remove(hosted)
        if delta.brokers:
            self._brokers_changed()

    def _brokers_changed(self) -> None:
        """Who is fenced does not hold the low watermark back any more."""
        for hosted in [each for each in self if each.low_watermark_waiters]:
            hosted.complete_low_watermark_waits()

    def _apply(self, name: str, topic_id: UUID, index: int, state: PartitionState) -> None:
        hosted = self.get(topic_id, index)
        if hosted is None:
            if (topic_id, index) in self._offline:
                return
            hosted = self._host(name, topic_id, index, state.directory_of(self._context.node_id))
            if hosted is None:
                return
        assigned = state.directory_of(self._context.node_id)
        directory_id = self.moves.directory_id(hosted)
        if assigned == directory_id:
            self._directory_assignments.agreed(topic_id, index)
        elif len(self.directories) > 1 or assigned not in _SAYS_NO_DIRECTORY:
            self._directory_assignments.report(topic_id, index, directory_id)
        now_ms = self._context.clock.now_ms()
        metadata = PartitionMetadata(
            topic=name,
            topic_id=topic_id,
            partition=index,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            replicas=state.replicas,
            isr=state.isr,
            adding=state.adding,
            removing=state.removing,
            recovering=state.recovering,
            last_unclean_epoch=state.last_unclean_epoch,
            directories=state.directories,
        )
        before = hosted.leader
        epoch_before = hosted.leader_epoch
        try:
            if state.leader_epoch != epoch_before:
                hosted.log.write_pending()  # a follower's fetch offset acknowledges all of its log
            effects = hosted.replica.apply_metadata(metadata, now_ms)
        except Exception as error:
            hosted.failed_by(error)
            return
        hosted.take_role()
        if hosted.leader_epoch != epoch_before:
            self._effects.role_changed(hosted, before)
        self._effects.apply(hosted, effects)
        if epoch_before < 0:  # after `role_changed`, which would answer the requests that wait
            self._follower_sessions.made(hosted)
        for watch in hosted.followers:
            watch.activate()
        if hosted.low_watermark_waiters:
            hosted.complete_low_watermark_waits()
        if hosted.follower is not None and state.leader >= 0:
            if hosted.leader_epoch != epoch_before or before is not None:
                self._fetchers.follow(hosted, state.leader)
        else:
            self._fetchers.stop(hosted)

    def _host(self, name: str, topic_id: UUID, index: int, assigned: UUID) -> HostedPartition | None:
        log_config, replica_config = self._topic_config(name)
        found = self.found.take(name, topic_id, index)
        if found is None:
            unusable = self._failed_directory(assigned)
            if unusable is not None:
                # The log may be there and cannot be used. No empty one may take its place elsewhere, for we may be
                # eligible (as in Apache Kafka).
                self._offline[(topic_id, index)] = unusable
                return None
            if self._context.disk.crowded():
                self.new_logs.wait_for_descriptors(name, topic_id, index)
                return None
            if self.new_logs.turn_is_full or (name, index) in self.naming:
                self.new_logs.make_later(topic_id, index)
                return None
            self.new_logs.made += 1
            copied_to = self.moves.abandoned(name, index, topic_id)
            directory = copied_to or self.moves.chosen(name, index) or self._emptiest_directory()
            if directory is None:
                return None
            now_ms = self._context.clock.now_ms()
            try:
                if copied_to is None:
                    log = directory.create_log(name, index, topic_id, log_config, now_ms)
                else:
                    log = directory.promote(name, index, now_ms, of=None, high_watermark=0)
                    log.set_config(log_config)
            except OSError as failure:
                if is_descriptor_shortage(failure):
                    self.new_logs.wait_for_descriptors(name, topic_id, index)
                    return None
                # The beginning of a log may be there, so none may be made elsewhere. And we may be the leader: the
                # controller must hear that this replica is lost, which it never knew to be in that directory.
                self._offline[(topic_id, index)] = directory
                self._directory_assignments.report(topic_id, index, directory.directory_id)
                self.directory_failed(directory, failure)
                return None
        else:
            log, directory = found
            failed = directory.failed
            if failed is None:
                try:
                    log.set_config(log_config)
                    log.assign_topic_id(topic_id)
                except OSError as failure:
                    failed = failure
            if failed is not None:
                # The log is there and cannot be used. No empty one may take its place elsewhere: we may be eligible.
                self._offline[(topic_id, index)] = directory
                self.directory_failed(directory, failed)
                return None
        self.found.report_loss(name, index, assigned if found is None else directory.directory_id)
        log.queue_large(self._context.disk.large_write_bytes)
        replica = Partition(self._context.node_id, log, replica_config, self._metadata, self._context.events)
        replica.restore_high_watermark(directory.checkpoints.high_watermark(name, index))
        hosted = HostedPartition(name, topic_id, index, replica, log, directory, self.directory_failed)
        self.by_topic.setdefault(topic_id, {})[index] = hosted
        self.by_topic[name] = self.by_topic[topic_id]
        if not log.topic_id_durable:
            self.nameless.append(hosted)
        self.moves.resume(hosted)
        return hosted

    def _apply_present(self, late: Iterable[tuple[UUID, int]]) -> None:
        """Apply the metadata as it is now to replicas that had to wait."""
        if self._closed:
            return
        self._begin_burst()
        image = self._metadata.image
        for topic_id, index in late:
            topic, state = image.topics.get(topic_id), image.partition(topic_id, index)
            if topic is not None and state is not None and self._context.node_id in state.replicas:
                self._apply(topic.name, topic_id, index, state)

    def _failed_directory(self, assigned: UUID) -> LogDirectory | None:
        """A failed directory in which a replica may lie that the metadata assigns to this one."""
        failed = [directory for directory in self.directories if directory.failed is not None]
        if not failed or assigned == UNASSIGNED_DIRECTORY or assigned in self.directories.online_ids():
            return None
        return next((directory for directory in failed if directory.directory_id == assigned), failed[0])

    def _emptiest_directory(self) -> LogDirectory | None:
        online = [d for d in self.directories if d.failed is None]
        return min(online, key=lambda d: (len(d.logs), d.path)) if online else None

    def _begin_burst(self) -> None:
        """The metadata may be another one than in the last turn."""
        self.new_logs.made = 0
        self._topic_configs.clear()

    def _topic_config(self, topic: str) -> tuple[LogConfig, ReplicaConfig]:
        config = self._topic_configs.get(topic)
        if config is None:
            replica_config = ReplicaConfig(
                min_insync_replicas=self._configs.min_insync_replicas(topic),
                replica_lag_time_max_ms=self._context.config.replica_lag_time_max_ms,
                replica_fetch_backoff_ms=self._context.config.replica_fetch_backoff_ms,
                salvage=self._salvages(topic),
            )
            config = self._topic_configs[topic] = self._configs.log_config(topic), replica_config
        return config

    def _configs_changed(self, changed: Iterable[tuple[int, str]]) -> None:
        names = {name for kind, name in changed if kind == 2}
        everything = any(kind == 4 for kind, _ in changed)
        for hosted in self:
            if everything or hosted.topic in names:
                log_config, replica_config = self._topic_config(hosted.topic)
                hosted.log.set_config(log_config)
                hosted.upkeep_ms = 0
                self._effects.carry_out(hosted, partial(hosted.replica.set_config, replica_config))

    def log_start_moved(self, hosted: HostedPartition) -> None:
        """Retention has given records up: the leader tells its followers, and a follower its leader."""
        if hosted.follower is not None:
            self._fetchers.moved(hosted)
        for watch in hosted.followers:
            watch.activate()

    def _remove(self, hosted: HostedPartition) -> None:
        """The partition is not ours any more: its topic was deleted, or it was reassigned."""
        self._emit(ReplicaDeleted(hosted.name, at_start=False))
        self._unhost(hosted)
        self._delete_log(hosted.directory, hosted.topic, hosted.index)

    def _unhost(self, hosted: HostedPartition) -> None:
        hosted.stale = True
        self.moves.unhosted(hosted)
        before, hosted.leader, hosted.follower = hosted.leader, None, None
        self._fetchers.stop(hosted)
        partitions = self.by_topic.get(hosted.topic_id)
        if partitions is not None:
            partitions.pop(hosted.index, None)
            if not partitions:
                del self.by_topic[hosted.topic_id]
                if self.by_topic.get(hosted.topic) is partitions:
                    del self.by_topic[hosted.topic]
        self._effects.role_changed(hosted, before)

    def _delete_log(self, directory: LogDirectory, topic: str, index: int) -> None:
        try:
            renamed = directory.delete_log(topic, index)
        except OSError as failure:
            self.directory_failed(directory, failure)
            return
        self._delete_later(renamed)

    # -- disks

    def directory_failed(self, directory: LogDirectory, failure: OSError) -> None:
        """I/O failed: the directory goes offline with all its partitions (rule 48); without any, the node goes down.

        So it does for a log that an exception may have torn. Checkpoints tell of all logs of a directory in one file,
        and the controller knows of failed directories, not of failed logs: it is the way that is there, and tried.
        If descriptors are short, the disk is sound, and other replicas must not take over for it: the node goes down,
        and its next start finds all that is there.
        """
        if is_descriptor_shortage(failure):
            self._context.fatal(NodeFailed(f"files in {directory.path} could not be opened: {failure.strerror}"))
            return
        torn = failure.cause if isinstance(failure, TornLog) else None
        if torn is not None:
            is_last = all(each is directory or each.failed is not None for each in self.directories)
            unexpected = self._context.unexpected
            (unexpected.crash if is_last else unexpected.met)("a log", torn)
        if directory in self._reported:
            return
        self._reported.add(directory)
        directory.failed = directory.failed or failure
        self._emit(LogDirectoryFailed(directory.path, str(failure)))
        for hosted in [h for h in self if h.directory is directory]:
            # Its directory is still reported, if it was not yet: or the controller would not know what is lost.
            self._offline[(hosted.topic_id, hosted.index)] = directory
            self._unhost(hosted)
        self.moves.target_failed(directory)
        if self.directories.all_failed:
            self._context.fatal(LogDirectoriesFailed(self.directories.failure_causes))
            return
        self._lifecycle.directories_changed()

    def checkpoint(self) -> None:
        """Write the recovery-point, high-watermark and log-start checkpoints (rule 117)."""
        for directory, high_watermarks in self._high_watermarks().items():
            try:
                directory.checkpoints.write(high_watermarks)
            except OSError as failure:
                self.directory_failed(directory, failure)

    def _high_watermarks(self) -> dict[LogDirectory, dict[tuple[str, int], int]]:
        """Of all replicas, by the directories that are online."""
        found: dict[LogDirectory, dict[tuple[str, int], int]] = {d: {} for d in self.directories if d.failed is None}
        for hosted in self:
            if hosted.directory in found:
                found[hosted.directory][(hosted.topic, hosted.index)] = hosted.replica.high_watermark
        return found

"""What a start has found on the disks of its broker: logs that no replica has taken yet, and losses.

A replica takes its log when it is hosted. Logs that the metadata does not place here are deleted, but never one whose
topic is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.log_directories import LogDirectories
from tanist.controller.image.image import MetadataImage
from tanist.events.replication import ReplicaDeleted, ReplicaFoundTwice, ReplicaOfDeletedTopic, ReplicaUnknown
from tanist.events.storage import LogDirectoryGone, LogLost
from tanist.log.directory import LogDirectory
from tanist.log.log import Log
from tanist.wire.ids import RESERVED_DIRECTORIES, ZERO_UUID, TopicPartition, id_text


class FoundLogs:
    """The logs that are not hosted (yet), by topic and partition."""

    def __init__(
        self,
        context: NodeContext,
        directories: LogDirectories,
        delete_log: Callable[[LogDirectory, str, int], None],
    ) -> None:
        self._context = context
        self._directories = directories
        self._delete_log = delete_log
        self._logs: dict[tuple[str, int], list[tuple[Log, LogDirectory]]] = {}
        """In two directories at once, if one had failed while the replica was taken away from here and given back."""
        self._lost: dict[TopicPartition, str] = {}
        """Of replicas that are not hosted yet: what the last run has left, and is gone."""
        self._directory_ids = {directory.directory_id for directory in directories}
        """Those that are here, and those that are known to be gone."""

    def add(self, directory: LogDirectory) -> None:
        """The logs of this directory are open (`log_loading`)."""
        for log in directory.logs.values():
            self._logs.setdefault((log.topic, log.partition), []).append((log, directory))

    def take(self, name: str, topic_id: UUID, index: int) -> tuple[Log, LogDirectory] | None:
        """The log of this partition that lies on the disk; of two, the one that was written last (Apache stops there).

        A broker whose directory had failed has not ended in good order, so no log of it makes it eligible.
        """
        found: tuple[Log, LogDirectory] | None = None
        for each in self._logs.pop((name, index), []):
            log, directory = each
            if log.topic_id not in (ZERO_UUID, topic_id):
                # Deleted and created anew while we were away: the old log is another topic's (A50).
                self._context.events.emit(ReplicaOfDeletedTopic(f"{name}-{index}"))
                self._delete_log(directory, name, index)
            elif found is None:
                found = each
            else:
                older, found = (found, each) if _position(log) > _position(found[0]) else (each, found)
                self._context.events.emit(ReplicaFoundTwice(f"{name}-{index}", older[1].path))
                self._delete_log(older[1], name, index)
        return found

    def drop_strays(self, image: MetadataImage) -> None:
        """Logs that the metadata does not place here any more."""
        for (topic, index), logs in list(self._logs.items()):
            kept = [each for each in logs if not self._drop_stray(image, topic, index, *each)]
            if kept:
                self._logs[topic, index] = kept
            else:
                del self._logs[topic, index]

    def _drop_stray(self, image: MetadataImage, topic: str, index: int, log: Log, directory: LogDirectory) -> bool:
        """Delete the log if it is known to be nobody's; whether it was."""
        topic_id = image.topic_ids.get(topic)
        state = None if topic_id is None else image.partition(topic_id, index)
        if log.topic_id == ZERO_UUID:
            # The topic of the log is unknown (its `partition.metadata` is gone): not ours to delete.
            self._context.events.emit(ReplicaUnknown(f"{topic}-{index}"))
            return False
        if state is not None and self._context.node_id in state.replicas and topic_id == log.topic_id:
            return False
        self._context.events.emit(ReplicaDeleted(f"{topic}-{index}", at_start=True))
        self._delete_log(directory, topic, index)
        return True

    def note_losses(self) -> None:
        """All directories are loaded."""
        self._lost = self._directories.lost_logs()

    def report_loss(self, name: str, index: int, assigned: UUID) -> None:
        """Nobody may take this replica for what it was, in silence. `assigned`: the directory where it is, or was."""
        what = self._lost.pop(TopicPartition(name, index), None)
        if what is not None:
            self._context.events.emit(LogLost(f"{name}-{index}", what))
        elif assigned.int >= RESERVED_DIRECTORIES and assigned not in self._directory_ids:
            self._directory_ids.add(assigned)
            self._context.events.emit(LogDirectoryGone(id_text(assigned), f"{name}-{index}"))


def _position(log: Log) -> tuple[int, int]:
    """By this the logs of one partition are compared (KIP-966, "Unclean recovery")."""
    return (log.latest_epoch, log.log_end_offset)

"""The log directories of a broker, as it registers them: those that are online, and those that have failed."""

from __future__ import annotations

from uuid import UUID

from tanist.log.checkpoints import previous_broker_epoch
from tanist.log.directory import LogDirectory
from tanist.wire.ids import TopicPartition


class LogDirectories(tuple[LogDirectory, ...]):
    """In the order of `log.dirs`."""

    __slots__ = ()

    def online_ids(self) -> tuple[UUID, ...]:
        return tuple(sorted(directory.directory_id for directory in self if directory.failed is None))

    def offline_ids(self) -> tuple[UUID, ...]:
        return tuple(sorted(directory.directory_id for directory in self if directory.failed is not None))

    @property
    def all_failed(self) -> bool:
        """Whether none is left. True of a node that has none: it is no broker."""
        return all(directory.failed is not None for directory in self)

    @property
    def failure_causes(self) -> tuple[tuple[str, str], ...]:
        """(directory, reason) of those that have failed."""
        return tuple((each.path, each.failed.strerror or str(each.failed)) for each in self if each.failed)

    def lost_logs(self) -> dict[TopicPartition, str]:
        """Logs of which the last run has left more than there is, and what is gone."""
        return {
            log: what
            for directory in self
            for log, what in directory.lost.items()
            # A folder may have been moved from one directory to another.
            if not any(log in other.logs for other in self if other is not directory)
        }

    @property
    def are_listed(self) -> bool:
        """Whether the last run has left lists of its logs, so that `lost_logs` names all."""
        return all(directory.is_listed for directory in self)

    def previous_broker_epoch(self) -> int:
        """The broker epoch that the last clean shutdown left in every directory, or -1 (rule 87). Before logs load."""
        try:
            epochs = [directory.read_broker_epoch() for directory in self]
        except OSError:
            return -1
        return previous_broker_epoch(epochs)

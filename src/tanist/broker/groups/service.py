"""The group coordinator of a broker, made when there is a first group to serve.

Nothing of the coordinator is imported before: a broker without groups starts faster by what it does not load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.controller.image.delta import ImageDelta

if TYPE_CHECKING:
    from tanist.broker.groups.group_coordinator import GroupCoordinator


class Groups:
    """The coordinator, if there is one yet; it hears of roles and topics."""

    __slots__ = ("_make", "loaded")

    def __init__(self, make: Callable[[], GroupCoordinator]) -> None:
        self._make = make
        self.loaded: GroupCoordinator | None = None
        """The coordinator, if there was a group to serve."""

    def coordinator(self) -> GroupCoordinator:
        """The coordinator. A new one finds all groups of the partitions that are led here."""
        if self.loaded is None:
            self.loaded = self._make()
        return self.loaded

    def role_changed(self, hosted: HostedPartition) -> None:
        """A partition of `__consumer_offsets` has another role here."""
        if self.loaded is not None:
            self.loaded.role_changed(hosted)
        elif hosted.leader is not None and hosted.log.log_end_offset > hosted.log.log_start_offset:
            self.coordinator()

    def metadata_changed(self, delta: ImageDelta) -> None:
        """Topics may have come, gone or grown, or be others' to see now."""
        if self.loaded is not None:
            if delta.deleted_topics:
                self.loaded.topics_deleted({each: topic.name for each, topic in delta.deleted_topics.items()})
            if delta.created_topics or delta.deleted_topics or delta.grows_topics or delta.acls:
                self.loaded.topics_changed()

    def close(self) -> None:
        """The broker is going down."""
        if self.loaded is not None:
            self.loaded.close()

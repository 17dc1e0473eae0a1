"""The share groups of a broker: each part is made when there is a first need of it.

Nothing of them is imported before: a broker without share groups starts faster by what it does not load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tanist.broker.coordinator_runtime.components import CoordinatorComponents
from tanist.broker.metadata.internal_topics import InternalTopics
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.controller.image.delta import ImageDelta

if TYPE_CHECKING:
    from tanist.broker.share.dead_letters import DeadLetters
    from tanist.broker.share.delivery import Deliveries
    from tanist.broker.share.end_offsets import EndOffsets
    from tanist.broker.share.persister import Persister
    from tanist.broker.share.state_coordinator import ShareStateCoordinator


class Shares:
    """The coordinator of states, the asker of such coordinators, and the deliveries, as far as there are any."""

    def __init__(self, components: CoordinatorComponents, internal_topics: InternalTopics) -> None:
        self._components = components
        self._internal_topics = internal_topics
        self.loaded: ShareStateCoordinator | None = None
        """The coordinator, if there was a state to serve."""
        self._persister: Persister | None = None
        self._end_offsets: EndOffsets | None = None
        self.delivering: Deliveries | None = None
        """The deliveries, if a member has asked for any."""
        self._dead_letters: DeadLetters | None = None

    def coordinator(self) -> ShareStateCoordinator:
        """The coordinator. A new one finds all states of the partitions that are led here."""
        if self.loaded is None:
            from tanist.broker.share.state_coordinator import ShareStateCoordinator

            self.loaded = ShareStateCoordinator(self._components)
        return self.loaded

    def persister(self) -> Persister:
        """The asker of coordinators, this broker's too."""
        if self._persister is None:
            from tanist.broker.share.persister import Persister

            parts = self._components
            self._persister = Persister(parts.context, parts.metadata, self._internal_topics, self.coordinator)
        return self._persister

    def end_offsets(self) -> EndOffsets:
        """The asker of leaders where their partitions end."""
        if self._end_offsets is None:
            from tanist.broker.share.end_offsets import EndOffsets

            parts = self._components
            self._end_offsets = EndOffsets(parts.context, parts.metadata, parts.replicas)
        return self._end_offsets

    def deliveries(self) -> Deliveries:
        """What members have got of the partitions that are led here."""
        if self.delivering is None:
            from tanist.broker.share.dead_letters import DeadLetters
            from tanist.broker.share.delivery import Deliveries

            self._dead_letters = DeadLetters(self._components, self._internal_topics)
            self.delivering = Deliveries(self._components, self.persister(), self._dead_letters)
        return self.delivering

    def role_changed(self, hosted: HostedPartition) -> None:
        """A partition of `__share_group_state` has another role here."""
        if self.loaded is not None:
            self.loaded.role_changed(hosted)
        elif hosted.leader is not None and hosted.log.log_end_offset > hosted.log.log_start_offset:
            self.coordinator()

    def metadata_changed(self, delta: ImageDelta) -> None:
        """Topics may have gone."""
        if self.loaded is not None and delta.deleted_topics:
            self.loaded.topics_deleted()

    def close(self) -> None:
        """The broker is going down."""
        for part in (self.loaded, self._persister, self._end_offsets, self.delivering, self._dead_letters):
            if part is not None:
                part.close()

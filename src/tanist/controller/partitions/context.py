"""The inputs of a partition change, read from the image.

Owns the step from a `MetadataImage` to the `Context` of `partition_change`: the acceptable leaders (rule 30), the min
ISR, whether ELR is on, whether the topic allows unclean elections (rules 29, 101). Must never decide anything.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from tanist.controller.decision import ControllerSettings
from tanist.controller.image.image import MetadataImage, PartitionState
from tanist.controller.image.partition_state import DIRECTORIES_RECORD_VERSION
from tanist.controller.partitions.change import Context, Election
from tanist.controller.partitions.recovery_strategy import elr_in_force, recovers_uncleanly
from tanist.wire.ids import UNASSIGNED_DIRECTORY
from tanist.wire.metadata import PartitionChangeRecord, record_version


class PartitionContexts:
    """The contexts of partitions in one image, for the length of one decision, because it caches values.

    `arriving` is a broker that this decision unfences, so that the image does not show it as active yet (rule 78). A
    leaving broker is the intent's `removed_broker`.
    """

    __slots__ = ("_arriving", "_elr_enabled", "_image", "_metadata_version", "_recovers", "_settings", "_topics")

    def __init__(
        self,
        image: MetadataImage,
        settings: ControllerSettings,
        *,
        arriving: int | None = None,
    ) -> None:
        self._image = image
        self._settings = settings
        self._arriving = arriving
        self._metadata_version = image.metadata_version
        self._elr_enabled = elr_in_force(image)
        self._recovers = recovers_uncleanly(image, settings)
        self._topics: dict[UUID, tuple[int, Election]] = {}

    def of(self, topic_id: UUID, state: PartitionState) -> Context:
        return Context(
            min_isr=self._topic(topic_id)[0],
            elr_enabled=self._elr_enabled,
            metadata_version=self._metadata_version,
            acceptable=self.acceptable(state),
            last_known_leader=not self._recovers,
            default_directory=self.default_directory,
        )

    def election(self, topic_id: UUID) -> Election:
        """ONLINE, or UNCLEAN where the topic's configuration says that an election may be (rules 29, 101).

        Never UNCLEAN where the recovery manager decides: it compares the logs first.
        """
        return self._topic(topic_id)[1]

    def acceptable(self, state: PartitionState) -> Callable[[int], bool]:
        """Rule 30: registered, unfenced, not shutting down, and its directory for the partition online."""

        def test(broker_id: int) -> bool:
            registration = self._image.brokers.get(broker_id)
            if registration is None:
                return False
            if not registration.active and broker_id != self._arriving:
                return False
            if broker_id not in state.replicas:
                return True  # to be added: it will choose a directory that works
            return registration.has_online_directory(state.directory_of(broker_id))

        return test

    def default_directory(self, broker_id: int) -> UUID:
        registration = self._image.brokers.get(broker_id)
        return UNASSIGNED_DIRECTORY if registration is None else registration.default_directory()

    def _topic(self, topic_id: UUID) -> tuple[int, Election]:
        known = self._topics.get(topic_id)
        if known is None:
            name = self._image.topics[topic_id].name
            unclean = not self._recovers and self._image.unclean_election_enabled(name, self._settings.node_id)
            known = (self._image.min_insync_replicas(name), Election.UNCLEAN if unclean else Election.ONLINE)
            self._topics[topic_id] = known
        return known


def supports_directories(metadata_version: int) -> bool:
    return record_version(PartitionChangeRecord, metadata_version) >= DIRECTORIES_RECORD_VERSION

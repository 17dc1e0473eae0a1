"""What this node knows of the cluster: the image of the committed metadata, and who listens to its changes.

The image is fed by the quorum (`broker/metadata_quorum.py`) with committed records only, in order; nothing else changes
it. Listeners get the delta of each burst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from tanist.controller.delta import ImageDelta, delta_between
from tanist.controller.image import MetadataImage
from tanist.replica.metadata import BrokerStatus
from tanist.wire.metadata import MetadataRecord


class MetadataView:
    """The committed image, and the offset up to which it was applied."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.applied_offset = -1
        """Offset of the last record that was applied (Kafka's `CurrentMetadataOffset` in heartbeats)."""
        self.version = 0
        """Grows with every change; what caches of encoded answers hang on."""
        self._listeners: list[Callable[[ImageDelta], None]] = []
        self._statuses: dict[int, tuple[int, BrokerStatus]] = {}

    def on_change(self, listener: Callable[[ImageDelta], None]) -> None:
        self._listeners.append(listener)

    def apply(
        self,
        records: Iterable[MetadataRecord],
        last_offset: int,
        watch: Callable[[MetadataRecord, MetadataImage], None] | None = None,
    ) -> None:
        """Replay committed records up to and including `last_offset`, then tell the listeners.

        `watch` sees each record with the image that it is about to change.
        """
        delta = ImageDelta()
        for record in records:
            if watch is not None:
                watch(record, self.image)
            self.image.replay(record, delta)
        self.applied_offset = last_offset
        self._publish(delta)

    def replace(self, image: MetadataImage, last_offset: int) -> None:
        """A snapshot took the place of the log's beginning: everything may have changed."""
        delta = delta_between(self.image, image)
        self.image = image
        self.applied_offset = last_offset
        self._publish(delta)

    def _publish(self, delta: ImageDelta) -> None:
        self.version += 1
        for listener in self._listeners:
            listener(delta)

    # replica.metadata.BrokerView

    def registration(self, broker_id: int) -> BrokerStatus | None:
        """The leader's view of a broker (facts 15, 16)."""
        cached = self._statuses.get(broker_id)
        if cached is not None and cached[0] == self.version:
            return cached[1]
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            return None
        status = BrokerStatus(
            epoch=broker.epoch,
            fenced=broker.fenced,
            shutting_down=broker.in_controlled_shutdown,
            rack=broker.rack,
        )
        self._statuses[broker_id] = (self.version, status)
        return status

    def topic_id(self, name: str) -> UUID | None:
        return self.image.topic_ids.get(name)

    def topic_name(self, topic_id: UUID) -> str | None:
        topic = self.image.topics.get(topic_id)
        return None if topic is None else topic.name

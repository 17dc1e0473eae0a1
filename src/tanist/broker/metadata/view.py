"""The cluster, as this node knows it: the image of the committed metadata, and the listeners to its changes.

The image is fed by the quorum (`broker/metadata/quorum.py`) with committed records only, in order; nothing else changes
it. Listeners get the delta of each burst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from tanist.controller.image.delta import ImageDelta
from tanist.controller.image.differences import delta_between
from tanist.controller.image.image import MetadataImage
from tanist.controller.image.registration import Endpoint
from tanist.replica.metadata import BrokerStatus
from tanist.wire.metadata import MetadataRecord
from tanist.wire.produce import NodeEndpoint


class MetadataView:
    """The committed image, and the offset up to which it was applied."""

    def __init__(self, image: MetadataImage, inter_broker_listener: str) -> None:
        self.image = image
        self._inter_broker_listener = inter_broker_listener
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
        """Replay committed records up to and including `last_offset`, then call the listeners.

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
        """The leader's view of a broker (rules 15, 16)."""
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
            directories=tuple(broker.directories),
        )
        self._statuses[broker_id] = (self.version, status)
        return status

    def topic_id(self, name: str) -> UUID | None:
        return self.image.topic_ids.get(name)

    def topic_name(self, topic_id: UUID) -> str | None:
        topic = self.image.topics.get(topic_id)
        return None if topic is None else topic.name

    # -- who leads, and where brokers are

    def current_leader(self, topic: str | UUID, partition: int) -> tuple[int, int] | None:
        """(leader, leader epoch), for hints to clients (KIP-951); None of a partition that is not known."""
        topic_id = topic if isinstance(topic, UUID) else self.topic_id(topic)
        state = None if topic_id is None else self.image.partition(topic_id, partition)
        return None if state is None else (state.leader, state.leader_epoch)

    def inter_broker_endpoint(self, broker_id: int) -> tuple[str, int] | None:
        """Where a broker listens for its peers: (host, port)."""
        return endpoint_in(self.image, broker_id, self._inter_broker_listener)

    def endpoints_of(self, broker_ids: Iterable[int], listener: str) -> tuple[NodeEndpoint, ...]:
        """Brokers as clients of `listener` reach them."""
        found: list[NodeEndpoint] = []
        for broker_id in sorted(broker_ids):
            broker = self.image.brokers.get(broker_id)
            for endpoint in broker.endpoints if broker is not None else ():
                if endpoint.name == listener:
                    found.append(NodeEndpoint(broker_id, endpoint.host, endpoint.port, broker.rack if broker else None))
        return tuple(found)


def endpoint_in(image: MetadataImage, broker_id: int, listener: str) -> tuple[str, int] | None:
    """Where a broker listens, by `image`: (host, port) of the listener of that name, or of the first one.

    A broker registers its inter-broker listener first, so a controller without brokers' listeners finds it there.
    """
    endpoint = _registered(image, broker_id, listener)
    return None if endpoint is None else (endpoint.host, endpoint.port)


def has_tls_in(image: MetadataImage, broker_id: int, listener: str) -> bool:
    """Whether that endpoint is one of TLS."""
    endpoint = _registered(image, broker_id, listener)
    return endpoint is not None and endpoint.security_protocol in _WITH_TLS


def has_sasl_in(image: MetadataImage, broker_id: int, listener: str) -> bool:
    """Whether clients authenticate at that endpoint by SASL."""
    endpoint = _registered(image, broker_id, listener)
    return endpoint is not None and endpoint.security_protocol in _WITH_SASL


_WITH_TLS = (1, 3)
"""The numbers of SSL and SASL_SSL."""
_WITH_SASL = (2, 3)
"""Those of SASL_PLAINTEXT and SASL_SSL."""


def _registered(image: MetadataImage, broker_id: int, listener: str) -> Endpoint | None:
    broker = image.brokers.get(broker_id)
    for endpoint in broker.endpoints if broker is not None else ():
        if endpoint.name == listener:
            return endpoint
    return broker.endpoints[0] if broker is not None and broker.endpoints else None

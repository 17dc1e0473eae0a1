"""A controller's registration: every controller names itself and its listeners to the active one (KIP-919).

It has no session and grants nothing; what it is for is that tools and upgrades can see all controllers and what they
support. Sent once a life, as soon as the metadata version has a record for it, and again until it is seen committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.endpoints import SECURITY_PROTOCOLS
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.features import NODE_FEATURES
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.metadata.view import MetadataView
from tanist.controller.image.snapshot import FIRST_WITH_CONTROLLERS
from tanist.ports import Timer
from tanist.wire.messages.controller_registration_request import ControllerRegistrationRequest, Feature, Listener

_VERSION = 0
_TIMEOUT_MS = 5_000
_RETRY_MS = 100
_RETRY_MAX_MS = 60_000


class ControllerRegistration:
    """Keeps this controller registered."""

    def __init__(
        self,
        context: NodeContext,
        metadata: MetadataView,
        quorum: MetadataQuorum,
        controller_channel: ControllerChannel,
        port_of: Callable[[str], int | None],
    ) -> None:
        """`port_of` a listener: the port that it is bound to."""
        self._context = context
        self._metadata = metadata
        self._quorum = quorum
        self._controller_channel = controller_channel
        self._port_of = port_of
        self._incarnation_id = UUID(bytes=context.random.bytes(16), version=4)
        self._in_flight = False
        self._retry_ms = _RETRY_MS
        self._timer: Timer | None = None

    @property
    def registered(self) -> bool:
        """Whether the metadata has the registration of this process."""
        found = self._metadata.image.controllers.get(self._context.node_id)
        return found is not None and found.incarnation_id == self._incarnation_id

    def register_if_due(self) -> None:
        """Metadata or the leader has changed: register if that is due and there is an active controller."""
        image = self._metadata.image
        if (
            self._in_flight
            or self._timer is not None
            or self._context.stopping
            or self._quorum.leader_id is None
            or image.metadata_version < FIRST_WITH_CONTROLLERS
            or self.registered
        ):
            return
        self._in_flight = True
        request = ControllerRegistrationRequest(
            controller_id=self._context.node_id,
            incarnation_id=self._incarnation_id,
            listeners=tuple(
                Listener(
                    name=endpoint.name,
                    host=endpoint.host or "localhost",
                    port=endpoint.port or self._port_of(endpoint.name) or 0,
                    security_protocol=SECURITY_PROTOCOLS.index(endpoint.security_protocol),
                )
                for endpoint in self._context.config.listeners
                if endpoint.name in self._context.config.controller_listener_names
            ),
            features=tuple(
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(NODE_FEATURES.items())
            ),
        )
        self._controller_channel.call(request, _VERSION, _TIMEOUT_MS, self._handle_response)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _handle_response(self, response: Any) -> None:
        self._in_flight = False
        if response is not None and response.error_code == 0:
            self._retry_ms = _RETRY_MS
            return
        # An old controller may not know the request, or there may be none: a controller works unregistered as well.
        self._timer = self._context.clock.call_at(self._context.clock.now_ms() + self._retry_ms, self._again)
        self._retry_ms = min(self._retry_ms * 2, _RETRY_MAX_MS)

    def _again(self) -> None:
        self._timer = None
        self.register_if_due()

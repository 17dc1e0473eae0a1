"""A controller's registration: every controller tells the active one who and where it is (KIP-919).

It has no session and grants nothing; what it is for is that tools and upgrades can see all controllers and what they
support. Sent once a life, as soon as the metadata version has a record for it, and again until it is seen committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from tanist.broker.endpoints import SECURITY_PROTOCOLS
from tanist.controller.snapshot import FIRST_WITH_CONTROLLERS
from tanist.ports import Timer
from tanist.wire.messages.controller_registration_request import ControllerRegistrationRequest, Feature, Listener

if TYPE_CHECKING:
    from tanist.broker.node import Node

_VERSION = 0
_TIMEOUT_MS = 5_000
_RETRY_MS = 100
_RETRY_MAX_MS = 60_000


class ControllerRegistration:
    """Keeps this controller registered."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._incarnation_id = UUID(bytes=node.random.bytes(16), version=4)
        self._in_flight = False
        self._retry_ms = _RETRY_MS
        self._timer: Timer | None = None

    def look(self) -> None:
        """Metadata or the leader has changed: is there something to be told, and somebody to tell it to?"""
        node = self._node
        image = node.metadata.image
        registered = image.controllers.get(node.node_id)
        if (
            self._in_flight
            or self._timer is not None
            or node.stopping_finally
            or node.quorum.leader_id is None
            or image.metadata_version < FIRST_WITH_CONTROLLERS
            or (registered is not None and registered.incarnation_id == self._incarnation_id)
        ):
            return
        self._in_flight = True
        request = ControllerRegistrationRequest(
            controller_id=node.node_id,
            incarnation_id=self._incarnation_id,
            listeners=tuple(
                Listener(
                    name=endpoint.name,
                    host=endpoint.host or "localhost",
                    port=endpoint.port or node.port_of(endpoint.name) or 0,
                    security_protocol=SECURITY_PROTOCOLS.index(endpoint.security_protocol),
                )
                for endpoint in node.config.listeners
                if endpoint.name in node.config.controller_listener_names
            ),
            features=tuple(
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(node.registered_features().items())
            ),
        )
        node.controller_channel.call(request, _VERSION, _TIMEOUT_MS, self._answered)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _answered(self, response: Any) -> None:
        self._in_flight = False
        if response is not None and response.error_code == 0:
            self._retry_ms = _RETRY_MS
            return
        # An old controller may not know the request, or there may be none: a controller works unregistered as well.
        self._timer = self._node.clock.call_at(self._node.clock.now_ms() + self._retry_ms, self._again)
        self._retry_ms = min(self._retry_ms * 2, _RETRY_MAX_MS)

    def _again(self) -> None:
        self._timer = None
        self.look()

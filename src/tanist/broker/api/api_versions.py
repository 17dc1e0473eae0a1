"""ApiVersions (key 18), versions 0-5: what this listener serves, and the cluster's features.

A client that is newer than us asks in a version we do not know; it hears v0 with UNSUPPORTED_VERSION and our list, and
asks again in a version both know (KIP-511). It says which software it is; a name or version that Prometheus, logs or a
subscription to client metrics could stumble over is refused, as by Apache Kafka.

Java clients before 3.9 end their connection over a supported feature whose lowest level is 0. They ask in version 3
at most, and such features are left out there, as Apache Kafka does (KAFKA-17492).

Since version 5 a client may say which broker of which cluster it means (KIP-1242). Another one answers
REBOOTSTRAP_REQUIRED: an address has changed hands, and nothing that the client knows holds any more. A controller does
not compare, as with Apache Kafka.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from tanist.broker.components import NodeComponents
from tanist.broker.context import NodeContext
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler, Handlers
from tanist.controller.features import SUPPORTED_FEATURES
from tanist.quorum.voter_changes import KRAFT_VERSION, LATEST_KRAFT_VERSION
from tanist.wire.apis import NODE_SOFTWARE, PRIVATE_FROM
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE_FROM = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_LEVEL_ZERO_FROM = 4
"""From this version on clients can read a supported feature whose lowest level is 0."""


@dataclass(frozen=True, slots=True)
class ApiVersions:
    """The handler of ApiVersions."""

    context: NodeContext
    metadata: MetadataView
    quorum: MetadataQuorum
    _apis: dict[tuple[str, bool], tuple[ApiVersion, ...]] = field(default_factory=dict)
    """The APIs of each listener, without the private ones and with them: each new connection asks."""

    def handle(self, request: ApiVersionsRequest, call: Call) -> None:
        """Answer with the list of the listener's APIs."""
        software = request.client_software_name, request.client_software_version
        error = ErrorCode.NONE
        if call.version >= _SOFTWARE_FROM:
            if all(map(_SOFTWARE.fullmatch, software)):
                call.connection.software = software
            else:
                error = ErrorCode.INVALID_REQUEST
        error = error or self._not_meant(request, call)
        if error:
            call.reply(ApiVersionsResponse(error_code=error))
            return
        private = request.client_software_name == NODE_SOFTWARE
        call.reply(self._response(call, ErrorCode.NONE, call.version, private=private))

    def _not_meant(self, request: ApiVersionsRequest, call: Call) -> ErrorCode:
        """Why this is not the node that the client means."""
        cluster_id, node_id = request.cluster_id, request.node_id
        if (cluster_id is None) != (node_id == -1):
            return ErrorCode.INVALID_REQUEST  # both are known, or neither
        if cluster_id is None or call.listener in self.context.config.controller_listener_names:
            return ErrorCode.NONE
        is_meant = (cluster_id, node_id) == (self.context.cluster_id, self.context.node_id)
        return ErrorCode.NONE if is_meant else ErrorCode.REBOOTSTRAP_REQUIRED

    def unsupported(self, call: Call) -> None:
        """Answer a request of a version we do not know, without having read it."""
        call.reply(self._response(call, ErrorCode.UNSUPPORTED_VERSION, 0), version=0)

    def _response(self, call: Call, error: int, version: int, *, private: bool = False) -> ApiVersionsResponse:
        image = self.metadata.image
        return ApiVersionsResponse(
            error_code=error,
            api_keys=self._apis_of(call, private=private),
            supported_features=_supported_features(0 if version >= _LEVEL_ZERO_FROM else 1),
            finalized_features_epoch=max(-1, self.metadata.applied_offset),
            finalized_features=tuple(
                FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                for name, level in sorted({**image.features, KRAFT_VERSION: self.quorum.raft.kraft_version}.items())
                if level > 0
            ),
        )

    def _apis_of(self, call: Call, *, private: bool) -> tuple[ApiVersion, ...]:
        known = self._apis.get((call.listener, private))
        if known is None:
            advertised = advertised_versions(call.connection.advertised, private=private)
            known = self._apis[call.listener, private] = tuple(
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in sorted(advertised.items())
            )
        return known


@cache
def _supported_features(lowest: int) -> tuple[SupportedFeatureKey, ...]:
    """Those whose lowest level is this at least."""
    levels = {**SUPPORTED_FEATURES, KRAFT_VERSION: (0, LATEST_KRAFT_VERSION)}
    return tuple(
        SupportedFeatureKey(name=name, min_version=low, max_version=high)
        for name, (low, high) in sorted(levels.items())
        if low >= lowest
    )


def build(components: NodeComponents) -> Handler:
    return ApiVersions(components.context, components.metadata, components.quorum).handle


def advertised_versions(handlers: Handlers, *, private: bool = False) -> dict[int, tuple[int, int]]:
    """Versions to advertise; private requests only to another node, which asks for the list by its software's name.

    Produce says 0 though 3 is the first served: old librdkafka looks for it (KAFKA-18659).
    """
    advertised = {key: (low, high) for key, (low, high, _) in handlers.items() if private or key < PRIVATE_FROM}
    if 0 in advertised:
        advertised[0] = (0, advertised[0][1])
    return advertised

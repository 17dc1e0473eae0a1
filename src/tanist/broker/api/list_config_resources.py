"""ListConfigResources (key 74), versions 0-1: what has a configuration that DescribeConfigs would describe.

Version 0 asks for client metrics subscriptions (KIP-714). Version 1 names the types it wants, or none for all of them
(KIP-1142). A group or subscription is listed once it has a configuration of its own; there are no loggers.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.controller.configs.settings import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.list_config_resources_request import ListConfigResourcesRequest
from tanist.wire.messages.list_config_resources_response import ConfigResource, ListConfigResourcesResponse

_KNOWN = frozenset((TOPIC_RESOURCE, BROKER_RESOURCE, BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE))


@dataclass(frozen=True, slots=True)
class ListConfigResources:
    """The handler of ListConfigResources."""

    metadata: MetadataView

    def handle(self, request: ListConfigResourcesRequest, call: Call) -> None:
        """List topics by name, then the brokers that are alive by id, then groups and subscriptions."""
        wanted = frozenset(request.resource_types) if call.version >= 1 else frozenset((CLIENT_METRICS_RESOURCE,))
        if not wanted <= _KNOWN:
            call.reply(ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
            return
        wanted = wanted or _KNOWN
        image = self.metadata.image
        found: list[ConfigResource] = []
        if TOPIC_RESOURCE in wanted:
            found += (
                ConfigResource(resource_name=name, resource_type=TOPIC_RESOURCE) for name in sorted(image.topic_ids)
            )
        if BROKER_RESOURCE in wanted:
            alive = sorted(broker.id for broker in image.brokers.values() if not broker.fenced)
            found += (ConfigResource(resource_name=str(each), resource_type=BROKER_RESOURCE) for each in alive)
        for kind in (GROUP_RESOURCE, CLIENT_METRICS_RESOURCE):
            if kind in wanted:
                names = sorted(name for each, name in image.configs if each == kind and image.configs[each, name])
                found += (ConfigResource(resource_name=name, resource_type=kind) for name in names)
        call.reply(ListConfigResourcesResponse(config_resources=tuple(found)))


def build(components: NodeComponents) -> Handler:
    return ListConfigResources(components.metadata).handle

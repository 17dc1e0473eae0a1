"""DescribeConfigs (key 32), versions 1-4: topics, brokers, groups, client metrics subscriptions, with the sources.

A broker resource with an id is answered by that broker (clients send it there), because its static file is known to no
other; on a controller's listener the controller answers for itself. There are no loggers whose level could be set.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.context import NodeContext
from tanist.broker.guard import MESSAGES
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.controller.configs.description import (
    ConfigEntry,
    describe_broker,
    describe_client_metrics,
    describe_cluster,
    describe_group,
    describe_topic,
)
from tanist.controller.configs.settings import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    CLUSTER,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    Levels,
)
from tanist.controller.topic_names import name_error
from tanist.security import requirements as rows
from tanist.wire.error_responses import error_response
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from tanist.wire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_UNNAMED = {
    BROKER_LOGGER_RESOURCE: "Broker id must not be empty",
    CLIENT_METRICS_RESOURCE: "Client metrics subscription name must not be empty",
    GROUP_RESOURCE: "Group name must not be empty",
}
_TYPES = (TOPIC_RESOURCE, BROKER_RESOURCE, BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE)


class _Refused(Exception):
    """A resource that is not described: `args` are the error and its message."""


_ROWS = {TOPIC_RESOURCE: rows.DESCRIBE_CONFIGS_TOPIC, GROUP_RESOURCE: rows.DESCRIBE_CONFIGS_GROUP}


@dataclass(frozen=True, slots=True)
class DescribeConfigs:
    """The handler of DescribeConfigs."""

    context: NodeContext
    metadata: MetadataView

    def handle(self, request: DescribeConfigsRequest, call: Call) -> None:
        """Describe each resource; none of them if one is of a type that there is not, as Apache Kafka."""
        if any(each.resource_type not in _TYPES for each in request.resources):
            reason = "Unexpected resource type"
            call.reply(error_response(request, call.version, ErrorCode.INVALID_REQUEST, reason))
            return
        call.reply(
            DescribeConfigsResponse(
                results=tuple(self._describe(wanted, request, call) for wanted in request.resources)
            )
        )

    def _describe(
        self, wanted: DescribeConfigsResource, request: DescribeConfigsRequest, call: Call
    ) -> DescribeConfigsResult:
        kind, name = wanted.resource_type, wanted.resource_name
        row = _ROWS.get(kind, rows.DESCRIBE_CONFIGS_CLUSTER)
        if not call.may(row, name):
            return DescribeConfigsResult(
                error_code=row.code, error_message=MESSAGES[row.code], resource_type=kind, resource_name=name
            )
        try:
            entries = self._entries(wanted)
        except _Refused as refused:
            error, message = refused.args
            return DescribeConfigsResult(
                error_code=error, error_message=message, resource_type=kind, resource_name=name
            )
        return DescribeConfigsResult(
            error_message="",
            resource_type=kind,
            resource_name=name,
            configs=tuple(
                DescribeConfigsResourceResult(
                    name=entry.name,
                    value=entry.value,
                    read_only=entry.read_only,
                    config_source=entry.source,
                    is_sensitive=entry.sensitive,
                    synonyms=(
                        tuple(
                            DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in entry.synonyms
                        )
                        if request.include_synonyms
                        else ()
                    ),
                    config_type=entry.type,
                    documentation=entry.documentation if request.include_documentation else None,
                )
                for entry in entries
            ),
        )

    def _entries(self, wanted: DescribeConfigsResource) -> list[ConfigEntry]:
        image = self.metadata.image
        # A node has both names, whichever its file has.
        identity = {"broker.id": str(self.context.node_id), "node.id": str(self.context.node_id)}
        levels = Levels.of(image.configs, self.context.node_id, {**identity, **self.context.config.static})
        kind, name = wanted.resource_type, wanted.resource_name
        # Kafka's clients send null for "all"; v0-v1 librdkafka sends an empty list for the same.
        keys = wanted.configuration_keys or None
        own = image.configs.get((kind, name), {})
        if not name and kind in _UNNAMED:
            raise _Refused(ErrorCode.INVALID_REQUEST, _UNNAMED[kind])
        if kind == TOPIC_RESOURCE:
            if name not in image.topic_ids:
                invalid = name_error(name)
                if invalid is not None:
                    raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, invalid)
                raise _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
            return describe_topic(own, levels, keys)
        if kind == BROKER_RESOURCE and name == CLUSTER:
            return describe_cluster(own, keys)
        if kind in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
            self._check_id(kind, name)
            return describe_broker(levels, keys) if kind == BROKER_RESOURCE else []
        if kind == GROUP_RESOURCE:
            return describe_group(own, levels, keys)
        return describe_client_metrics(own, keys)

    def _check_id(self, kind: int, name: str) -> None:
        try:
            asked = int(name)
        except ValueError:
            raise _Refused(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}") from None
        if asked != self.context.node_id:
            # The comma is Apache Kafka's.
            expected = (
                f"{self.context.node_id} or empty string," if kind == BROKER_RESOURCE else str(self.context.node_id)
            )
            raise _Refused(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {expected} but received {name}")


def build(components: NodeComponents) -> Handler:
    return DescribeConfigs(components.context, components.metadata).handle

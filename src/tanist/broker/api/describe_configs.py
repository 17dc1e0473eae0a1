"""DescribeConfigs (key 32): topics, brokers and the cluster-wide default, each value with its source.

A broker resource with an id is answered by that broker (clients send it there), because its static file is known to no
other; on a controller's listener the controller answers for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tanist.broker.connection import Call
from tanist.controller.settings import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ConfigEntry,
    Levels,
    describe_broker,
    describe_cluster,
    describe_topic,
)
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from tanist.wire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from tanist.broker.node import Node


def handle(node: Node, request: DescribeConfigsRequest, call: Call) -> None:
    """Describe each resource."""
    call.reply(DescribeConfigsResponse(results=tuple(_describe(node, wanted, request) for wanted in request.resources)))


def _describe(node: Node, wanted: DescribeConfigsResource, request: DescribeConfigsRequest) -> DescribeConfigsResult:
    image = node.metadata.image
    levels = Levels.of(image.configs, node.node_id, node.config.static)
    kind, name = wanted.resource_type, wanted.resource_name
    # Kafka's clients send null for "all"; v0-v1 librdkafka sends an empty list for the same.
    keys = wanted.configuration_keys or None
    entries: list[ConfigEntry]
    if kind == TOPIC_RESOURCE:
        if name not in image.topic_ids:
            return _refusal(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{name}' does not exist")
        entries = describe_topic(image.configs.get((TOPIC_RESOURCE, name), {}), levels, keys)
    elif kind == BROKER_RESOURCE and name == "":
        entries = describe_cluster(image.configs.get((BROKER_RESOURCE, ""), {}), keys)
    elif kind == BROKER_RESOURCE:
        if name != str(node.node_id):
            message = f"this is node {node.node_id}: ask node {name} for its configuration"
            return _refusal(wanted, ErrorCode.INVALID_REQUEST, message)
        entries = describe_broker(levels, keys)
    else:
        return _refusal(wanted, ErrorCode.INVALID_REQUEST, f"resources of type {kind} have no configuration here")
    return DescribeConfigsResult(
        error_message=None,
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
                    tuple(DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in entry.synonyms)
                    if request.include_synonyms
                    else ()
                ),
                config_type=entry.type,
                documentation=entry.documentation if request.include_documentation else None,
            )
            for entry in entries
        ),
    )


def _refusal(wanted: DescribeConfigsResource, error: int, message: str) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error,
        error_message=message,
        resource_type=wanted.resource_type,
        resource_name=wanted.resource_name,
    )

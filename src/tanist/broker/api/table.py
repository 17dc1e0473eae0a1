"""Which listener serves which API, in which versions, by which handler.

What is advertised (ApiVersions) is what stands here: an API without a handler is not offered. Version ranges are
those of `wire.apis`, narrowed where this broker serves less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tanist.broker.api import (
    api_versions,
    controller_apis,
    delete_records,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    envelope,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
)
from tanist.broker.connection import Call, ColdHandler
from tanist.wire.apis import BROKER_APIS, CONTROLLER_APIS, ApiKey

if TYPE_CHECKING:
    from tanist.broker.node import Node


def _hot(node: Node, request: Any, call: Call) -> None:
    """Produce and Fetch go another way (`connection.ClientConnection.on_frame`); their rows only carry versions."""
    raise AssertionError("a hot request took the cold path")


_BROKER: dict[ApiKey, ColdHandler] = {
    ApiKey.PRODUCE: _hot,
    ApiKey.FETCH: _hot,
    ApiKey.LIST_OFFSETS: list_offsets.handle,
    ApiKey.METADATA: metadata.handle,
    ApiKey.FIND_COORDINATOR: find_coordinator.handle,
    ApiKey.API_VERSIONS: api_versions.handle,
    ApiKey.CREATE_TOPICS: controller_apis.forward,
    ApiKey.DELETE_TOPICS: controller_apis.forward,
    ApiKey.DELETE_RECORDS: delete_records.handle,
    ApiKey.INIT_PRODUCER_ID: init_producer_id.handle,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch.handle,
    ApiKey.DESCRIBE_CONFIGS: describe_configs.handle,
    ApiKey.ALTER_CONFIGS: controller_apis.forward,
    ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs.handle,
    ApiKey.CREATE_PARTITIONS: controller_apis.forward,
    ApiKey.ELECT_LEADERS: controller_apis.forward,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: controller_apis.forward,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: controller_apis.forward,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: controller_apis.forward,
    ApiKey.DESCRIBE_QUORUM: controller_apis.forward,
    ApiKey.UPDATE_FEATURES: controller_apis.forward,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster.handle,
    ApiKey.DESCRIBE_PRODUCERS: describe_producers.handle,
    ApiKey.UNREGISTER_BROKER: controller_apis.forward,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions.handle,
}

_CONTROLLER: dict[ApiKey, ColdHandler] = {
    ApiKey.FETCH: controller_apis.quorum_request,
    ApiKey.API_VERSIONS: api_versions.handle,
    ApiKey.CREATE_TOPICS: controller_apis.decide,
    ApiKey.DELETE_TOPICS: controller_apis.decide,
    ApiKey.CREATE_PARTITIONS: controller_apis.decide,
    ApiKey.ALTER_CONFIGS: controller_apis.decide,
    ApiKey.DESCRIBE_CONFIGS: describe_configs.handle,
    ApiKey.ELECT_LEADERS: controller_apis.decide,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: controller_apis.decide,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: controller_apis.decide,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: controller_apis.decide,
    ApiKey.VOTE: controller_apis.quorum_request,
    ApiKey.BEGIN_QUORUM_EPOCH: controller_apis.quorum_request,
    ApiKey.END_QUORUM_EPOCH: controller_apis.quorum_request,
    ApiKey.DESCRIBE_QUORUM: controller_apis.quorum_request,
    ApiKey.ALTER_PARTITION: controller_apis.decide,
    ApiKey.UPDATE_FEATURES: controller_apis.decide,
    ApiKey.ENVELOPE: envelope.handle,
    ApiKey.FETCH_SNAPSHOT: controller_apis.quorum_request,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster.handle,
    ApiKey.BROKER_REGISTRATION: controller_apis.decide,
    ApiKey.BROKER_HEARTBEAT: controller_apis.heartbeat,
    ApiKey.UNREGISTER_BROKER: controller_apis.decide,
    ApiKey.ALLOCATE_PRODUCER_IDS: controller_apis.decide,
    ApiKey.CONTROLLER_REGISTRATION: controller_apis.decide,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: controller_apis.decide,
}

_PRODUCE_SERVED_FROM = 3

BROKER_HANDLERS: dict[int, tuple[int, int, ColdHandler]] = {
    int(key): (*BROKER_APIS[key], handler) for key, handler in _BROKER.items()
}
BROKER_HANDLERS[ApiKey.PRODUCE] = (_PRODUCE_SERVED_FROM, BROKER_APIS[ApiKey.PRODUCE][1], _hot)
CONTROLLER_HANDLERS: dict[int, tuple[int, int, ColdHandler]] = {
    int(key): (*CONTROLLER_APIS[key], handler) for key, handler in _CONTROLLER.items()
}

unsupported_api_versions = api_versions.unsupported

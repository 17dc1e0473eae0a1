"""Which listener serves which API, in which versions, by which handler.

What is advertised (ApiVersions) is what stands here: an API without a handler is not offered. The exception are the
private requests between nodes, which no client is to hear of: they are served on the listener between brokers only, and
advertised nowhere. Version ranges are those of `wire.apis`, narrowed where this broker serves less.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tanist.broker.network.client_connection import Call, ColdHandler
from tanist.wire.apis import BROKER_APIS, CONTROLLER_APIS, INTER_BROKER_APIS, ApiKey

if TYPE_CHECKING:
    from tanist.broker.node import Node


def _later(module: str, name: str = "handle") -> ColdHandler:
    """A handler that is imported when it is first needed: a node starts faster by what it does not load."""
    handler: ColdHandler | None = None

    def load_and_handle(node: Node, request: Any, call: Call) -> None:
        nonlocal handler
        if handler is None:
            handler = getattr(import_module(f"tanist.broker.api.{module}"), name)
        handler(node, request, call)

    return load_and_handle


def _hot(node: Node, request: Any, call: Call) -> None:
    """Produce and Fetch go another way (`connection.ClientConnection.on_frame`); their rows only carry versions."""
    raise AssertionError("a hot request took the cold path")


_forward = _later("controller_apis", "forward")
_decide = _later("controller_apis", "decide")
_quorum = _later("controller_apis", "quorum_request")

_BROKER: dict[ApiKey, ColdHandler] = {
    ApiKey.PRODUCE: _hot,
    ApiKey.FETCH: _hot,
    ApiKey.LIST_OFFSETS: _later("list_offsets"),
    ApiKey.METADATA: _later("metadata"),
    ApiKey.OFFSET_COMMIT: _later("offset_commit"),
    ApiKey.OFFSET_FETCH: _later("offset_fetch"),
    ApiKey.FIND_COORDINATOR: _later("find_coordinator"),
    ApiKey.JOIN_GROUP: _later("join_group"),
    ApiKey.HEARTBEAT: _later("heartbeat"),
    ApiKey.LEAVE_GROUP: _later("leave_group"),
    ApiKey.SYNC_GROUP: _later("sync_group"),
    ApiKey.DESCRIBE_GROUPS: _later("describe_groups"),
    ApiKey.LIST_GROUPS: _later("list_groups"),
    ApiKey.API_VERSIONS: _later("api_versions"),
    ApiKey.CREATE_TOPICS: _forward,
    ApiKey.DELETE_TOPICS: _forward,
    ApiKey.DELETE_RECORDS: _later("delete_records"),
    ApiKey.INIT_PRODUCER_ID: _later("init_producer_id"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _later("offset_for_leader_epoch"),
    ApiKey.DESCRIBE_CONFIGS: _later("describe_configs"),
    ApiKey.DELETE_GROUPS: _later("delete_groups"),
    ApiKey.ALTER_CONFIGS: _later("alter_configs", "replace"),
    ApiKey.DESCRIBE_LOG_DIRS: _later("describe_log_dirs"),
    ApiKey.CREATE_PARTITIONS: _forward,
    ApiKey.ELECT_LEADERS: _forward,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _later("alter_configs", "increment"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _forward,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _forward,
    ApiKey.DESCRIBE_QUORUM: _forward,
    ApiKey.OFFSET_DELETE: _later("offset_delete"),
    ApiKey.UPDATE_FEATURES: _forward,
    ApiKey.DESCRIBE_CLUSTER: _later("describe_cluster"),
    ApiKey.DESCRIBE_PRODUCERS: _later("describe_producers"),
    ApiKey.UNREGISTER_BROKER: _forward,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _later("consumer_group_heartbeat"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _later("consumer_group_describe"),
    ApiKey.LIST_CONFIG_RESOURCES: _later("list_config_resources"),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _later("describe_topic_partitions"),
}

_INTER_BROKER: dict[ApiKey, ColdHandler] = {
    ApiKey.GET_REPLICA_LOG_INFO: _later("get_replica_log_info"),
}

_CONTROLLER: dict[ApiKey, ColdHandler] = {
    ApiKey.FETCH: _quorum,
    ApiKey.API_VERSIONS: _later("api_versions"),
    ApiKey.CREATE_TOPICS: _decide,
    ApiKey.DELETE_TOPICS: _decide,
    ApiKey.CREATE_PARTITIONS: _decide,
    ApiKey.ALTER_CONFIGS: _decide,
    ApiKey.DESCRIBE_CONFIGS: _later("describe_configs"),
    ApiKey.ELECT_LEADERS: _decide,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _decide,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _decide,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _decide,
    ApiKey.VOTE: _quorum,
    ApiKey.BEGIN_QUORUM_EPOCH: _quorum,
    ApiKey.END_QUORUM_EPOCH: _quorum,
    ApiKey.DESCRIBE_QUORUM: _quorum,
    ApiKey.ALTER_PARTITION: _decide,
    ApiKey.UPDATE_FEATURES: _decide,
    ApiKey.ENVELOPE: _later("envelope"),
    ApiKey.FETCH_SNAPSHOT: _quorum,
    ApiKey.DESCRIBE_CLUSTER: _later("describe_cluster"),
    ApiKey.BROKER_REGISTRATION: _decide,
    ApiKey.BROKER_HEARTBEAT: _later("controller_apis", "heartbeat"),
    ApiKey.UNREGISTER_BROKER: _decide,
    ApiKey.ALLOCATE_PRODUCER_IDS: _decide,
    ApiKey.CONTROLLER_REGISTRATION: _decide,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _decide,
}

_PRODUCE_SERVED_FROM = 3

BROKER_HANDLERS: dict[int, tuple[int, int, ColdHandler]] = {
    int(key): (*BROKER_APIS[key], handler) for key, handler in _BROKER.items()
}
BROKER_HANDLERS[ApiKey.PRODUCE] = (_PRODUCE_SERVED_FROM, BROKER_APIS[ApiKey.PRODUCE][1], _hot)
INTER_BROKER_HANDLERS: dict[int, tuple[int, int, ColdHandler]] = {
    **BROKER_HANDLERS,
    **{int(key): (*INTER_BROKER_APIS[key], handler) for key, handler in _INTER_BROKER.items()},
}
CONTROLLER_HANDLERS: dict[int, tuple[int, int, ColdHandler]] = {
    int(key): (*CONTROLLER_APIS[key], handler) for key, handler in _CONTROLLER.items()
}


def unsupported_api_versions(node: Node, call: Call) -> None:
    """An ApiVersions request of a version that nobody here knows."""
    from tanist.broker.api.api_versions import unsupported

    unsupported(node, call)

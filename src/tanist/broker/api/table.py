"""Which listener serves which API, in which versions, by which handler.

ApiVersions advertises the rows of this table: an API without a handler is not offered. The exception are the
private requests between nodes, which no client is to hear of: they are served on the listener between brokers only, and
advertised nowhere. Version ranges are those of `wire.apis`, narrowed where this broker serves less.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeAlias

from tanist.broker.api.fetch import Fetch
from tanist.broker.api.produce import Produce
from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler, Handlers
from tanist.broker.network.client_connection import ListenerApis
from tanist.wire.apis import BROKER_APIS, CONTROLLER_APIS, INTER_BROKER_APIS, TELEMETRY, UNSTABLE, ApiKey

_Builder: TypeAlias = tuple[str, str]
"""A module of this package, and its function that builds the handler of the parts."""

_FAST_PATH: _Builder = ("", "")
"""Produce and Fetch go another way (`client_connection.ClientConnection.on_frame`); their rows only carry versions."""
_FORWARD: _Builder = ("controller_apis", "build_forward")
_DECIDE: _Builder = ("controller_apis", "build_decide")
_QUORUM: _Builder = ("controller_apis", "build_quorum")
_SHARE_STATE: _Builder = ("read_share_group_state", "build")

_BROKER: dict[ApiKey, _Builder] = {
    ApiKey.PRODUCE: _FAST_PATH,
    ApiKey.FETCH: _FAST_PATH,
    ApiKey.LIST_OFFSETS: ("list_offsets", "build"),
    ApiKey.METADATA: ("metadata", "build"),
    ApiKey.OFFSET_COMMIT: ("offset_commit", "build"),
    ApiKey.OFFSET_FETCH: ("offset_fetch", "build"),
    ApiKey.FIND_COORDINATOR: ("find_coordinator", "build"),
    ApiKey.JOIN_GROUP: ("join_group", "build"),
    ApiKey.HEARTBEAT: ("heartbeat", "build"),
    ApiKey.LEAVE_GROUP: ("leave_group", "build"),
    ApiKey.SYNC_GROUP: ("sync_group", "build"),
    ApiKey.DESCRIBE_GROUPS: ("describe_groups", "build"),
    ApiKey.LIST_GROUPS: ("list_groups", "build"),
    ApiKey.SASL_HANDSHAKE: ("sasl_handshake", "build"),
    ApiKey.API_VERSIONS: ("api_versions", "build"),
    ApiKey.CREATE_TOPICS: _FORWARD,
    ApiKey.DELETE_TOPICS: _FORWARD,
    ApiKey.DELETE_RECORDS: ("delete_records", "build"),
    ApiKey.INIT_PRODUCER_ID: ("init_producer_id", "build"),
    ApiKey.ADD_PARTITIONS_TO_TXN: ("add_partitions_to_txn", "build"),
    ApiKey.ADD_OFFSETS_TO_TXN: ("add_offsets_to_txn", "build"),
    ApiKey.END_TXN: ("end_txn", "build"),
    ApiKey.WRITE_TXN_MARKERS: ("write_txn_markers", "build"),
    ApiKey.TXN_OFFSET_COMMIT: ("txn_offset_commit", "build"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ("offset_for_leader_epoch", "build"),
    ApiKey.DESCRIBE_ACLS: ("describe_acls", "build"),
    ApiKey.CREATE_ACLS: _FORWARD,
    ApiKey.DELETE_ACLS: _FORWARD,
    ApiKey.DESCRIBE_CONFIGS: ("describe_configs", "build"),
    ApiKey.DELETE_GROUPS: ("delete_groups", "build"),
    ApiKey.ALTER_CONFIGS: ("alter_configs", "build_replace"),
    ApiKey.ALTER_REPLICA_LOG_DIRS: ("alter_replica_log_dirs", "build"),
    ApiKey.DESCRIBE_LOG_DIRS: ("describe_log_dirs", "build"),
    ApiKey.SASL_AUTHENTICATE: ("sasl_authenticate", "build"),
    ApiKey.CREATE_PARTITIONS: _FORWARD,
    ApiKey.CREATE_DELEGATION_TOKEN: ("create_delegation_token", "build"),
    ApiKey.RENEW_DELEGATION_TOKEN: ("renew_delegation_token", "build_renew"),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ("renew_delegation_token", "build_expire"),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: ("describe_delegation_token", "build"),
    ApiKey.ELECT_LEADERS: _FORWARD,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ("alter_configs", "build_increment"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _FORWARD,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _FORWARD,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: ("describe_client_quotas", "build"),
    ApiKey.ALTER_CLIENT_QUOTAS: _FORWARD,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: ("describe_user_scram_credentials", "build"),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _FORWARD,
    ApiKey.DESCRIBE_QUORUM: _FORWARD,
    ApiKey.OFFSET_DELETE: ("offset_delete", "build"),
    ApiKey.UPDATE_FEATURES: _FORWARD,
    ApiKey.DESCRIBE_CLUSTER: ("describe_cluster", "build"),
    ApiKey.DESCRIBE_PRODUCERS: ("describe_producers", "build"),
    ApiKey.UNREGISTER_BROKER: _FORWARD,
    ApiKey.DESCRIBE_TRANSACTIONS: ("describe_transactions", "build"),
    ApiKey.LIST_TRANSACTIONS: ("list_transactions", "build"),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ("consumer_group_heartbeat", "build"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ("consumer_group_describe", "build"),
    ApiKey.LIST_CONFIG_RESOURCES: ("list_config_resources", "build"),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ("describe_topic_partitions", "build"),
    ApiKey.SHARE_GROUP_HEARTBEAT: ("share_group_heartbeat", "build"),
    ApiKey.SHARE_GROUP_DESCRIBE: ("share_group_describe", "build"),
    ApiKey.SHARE_FETCH: ("share_fetch", "build"),
    ApiKey.SHARE_ACKNOWLEDGE: ("share_acknowledge", "build"),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _SHARE_STATE,
    ApiKey.STREAMS_GROUP_HEARTBEAT: ("streams_group_heartbeat", "build"),
    ApiKey.STREAMS_GROUP_DESCRIBE: ("streams_group_describe", "build"),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: ("describe_share_group_offsets", "build_describe"),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: ("describe_share_group_offsets", "build_alter"),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: ("describe_share_group_offsets", "build_delete"),
    ApiKey.ADD_RAFT_VOTER: _FORWARD,
    ApiKey.REMOVE_RAFT_VOTER: _FORWARD,
    ApiKey.UNREGISTER_CONTROLLER: _FORWARD,
}

_INTER_BROKER: dict[ApiKey, _Builder] = {
    ApiKey.GET_REPLICA_LOG_INFO: ("get_replica_log_info", "build"),
}

_TELEMETRY: dict[ApiKey, _Builder] = {
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: ("get_telemetry_subscriptions", "build"),
    ApiKey.PUSH_TELEMETRY: ("push_telemetry", "build"),
}

_CONTROLLER: dict[ApiKey, _Builder] = {
    ApiKey.FETCH: _QUORUM,
    ApiKey.SASL_HANDSHAKE: ("sasl_handshake", "build"),
    ApiKey.API_VERSIONS: ("api_versions", "build"),
    ApiKey.CREATE_TOPICS: _DECIDE,
    ApiKey.DELETE_TOPICS: _DECIDE,
    ApiKey.DESCRIBE_ACLS: ("describe_acls", "build"),
    ApiKey.CREATE_ACLS: _DECIDE,
    ApiKey.DELETE_ACLS: _DECIDE,
    ApiKey.CREATE_PARTITIONS: _DECIDE,
    ApiKey.CREATE_DELEGATION_TOKEN: ("create_delegation_token", "build_decide"),
    ApiKey.RENEW_DELEGATION_TOKEN: ("renew_delegation_token", "build_decide_renew"),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ("renew_delegation_token", "build_decide_expire"),
    ApiKey.ALTER_CONFIGS: _DECIDE,
    ApiKey.SASL_AUTHENTICATE: ("sasl_authenticate", "build"),
    ApiKey.DESCRIBE_CONFIGS: ("describe_configs", "build"),
    ApiKey.ELECT_LEADERS: _DECIDE,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _DECIDE,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _DECIDE,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _DECIDE,
    ApiKey.ALTER_CLIENT_QUOTAS: _DECIDE,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _DECIDE,
    ApiKey.VOTE: _QUORUM,
    ApiKey.BEGIN_QUORUM_EPOCH: _QUORUM,
    ApiKey.END_QUORUM_EPOCH: _QUORUM,
    ApiKey.DESCRIBE_QUORUM: _QUORUM,
    ApiKey.ALTER_PARTITION: _DECIDE,
    ApiKey.UPDATE_FEATURES: _DECIDE,
    ApiKey.ENVELOPE: ("envelope", "build"),
    ApiKey.FETCH_SNAPSHOT: _QUORUM,
    ApiKey.DESCRIBE_CLUSTER: ("describe_cluster", "build"),
    ApiKey.BROKER_REGISTRATION: _DECIDE,
    ApiKey.BROKER_HEARTBEAT: ("controller_apis", "build_heartbeat"),
    ApiKey.UNREGISTER_BROKER: _DECIDE,
    ApiKey.ALLOCATE_PRODUCER_IDS: _DECIDE,
    ApiKey.CONTROLLER_REGISTRATION: _DECIDE,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _DECIDE,
    ApiKey.ADD_RAFT_VOTER: _QUORUM,
    ApiKey.REMOVE_RAFT_VOTER: _QUORUM,
    ApiKey.UPDATE_RAFT_VOTER: _QUORUM,
    ApiKey.UNREGISTER_CONTROLLER: _DECIDE,
}

_PRODUCE_SERVED_FROM = 3

_Table: TypeAlias = dict[int, tuple[int, int, _Builder]]

BROKER_TABLE: _Table = {int(key): (*BROKER_APIS[key], builder) for key, builder in _BROKER.items()}
BROKER_TABLE[ApiKey.PRODUCE] = (_PRODUCE_SERVED_FROM, BROKER_APIS[ApiKey.PRODUCE][1], _FAST_PATH)
INTER_BROKER_TABLE: _Table = {
    **BROKER_TABLE,
    **{int(key): (*INTER_BROKER_APIS[key], builder) for key, builder in _INTER_BROKER.items()},
}
UNSTABLE_TABLE: _Table = {int(key): (*versions, _BROKER[key]) for key, versions in UNSTABLE.items()}
TELEMETRY_TABLE: _Table = {int(key): (*TELEMETRY[key], builder) for key, builder in _TELEMETRY.items()}
CONTROLLER_TABLE: _Table = {int(key): (*CONTROLLER_APIS[key], builder) for key, builder in _CONTROLLER.items()}


class ApiTable:
    """The APIs of one node. A handler is built once, for all listeners that serve it."""

    def __init__(self, components: NodeComponents) -> None:
        self._components = components
        self._handlers: dict[_Builder, Handler] = {_FAST_PATH: _not_on_the_fast_path}
        self._produce = Produce(components)
        self._fetch = Fetch(components)

    def of_listener(self, name: str) -> ListenerApis:
        """The APIs of a listener, by its part in the configuration."""
        config = self._components.context.config
        if name in config.controller_listener_names:
            return ListenerApis(self._of_table(CONTROLLER_TABLE, controller=True), self._unsupported)
        private = config.private_requests_enable and name == config.inter_broker_listener_name
        table = INTER_BROKER_TABLE if private else BROKER_TABLE
        if config.unstable_api_versions_enable:
            table = {**table, **UNSTABLE_TABLE}
        if config.client_metrics_enable:
            table = {**table, **TELEMETRY_TABLE}
        return ListenerApis(self._of_table(table), self._unsupported, self._produce.handle, self._fetch.handle)

    def _of_table(self, table: _Table, *, controller: bool = False) -> Handlers:
        handlers = {key: (low, high, self._handler(builder)) for key, (low, high, builder) in table.items()}
        if self._components.access.enabled:
            from tanist.broker.guard import guarded, rows_before

            for key, (low, high, handler) in handlers.items():
                rows = rows_before(key, controller=controller)
                if rows:
                    handlers[key] = (low, high, guarded(handler, rows))
        return handlers

    def _handler(self, builder: _Builder) -> Handler:
        handler = self._handlers.get(builder)
        if handler is None:
            handler = self._handlers[builder] = _built_when_called(self._components, *builder)
        return handler

    def _unsupported(self, call: Call) -> None:
        """Answer an ApiVersions request of a version that is not known here."""
        from tanist.broker.api.api_versions import ApiVersions

        parts = self._components
        ApiVersions(parts.context, parts.metadata, parts.quorum).unsupported(call)


def _built_when_called(components: NodeComponents, module: str, build: str) -> Handler:
    """A handler that is imported when it is first needed: a node starts faster by what it does not load."""
    handler: Handler | None = None

    def build_and_handle(request: Any, call: Call) -> None:
        nonlocal handler
        if handler is None:
            made: Handler = getattr(import_module(f"tanist.broker.api.{module}"), build)(components)
            handler = made
        handler(request, call)

    return build_and_handle


def _not_on_the_fast_path(request: Any, call: Call) -> None:
    raise AssertionError("Produce and Fetch have handlers of their own")

"""The table of `requirements`, for the controller's listener: what nodes send, and what brokers pass on for clients.

A request in an Envelope is checked for the client whose principal the envelope has; the Envelope itself needs
CLUSTER_ACTION, so that only brokers can speak for others.
"""

from __future__ import annotations

from typing import Final

from tanist.security.requirements import (
    ALTER_CLUSTER,
    CLUSTER_ACTION,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS_CLUSTER,
    DESCRIBE_CONFIGS_GROUP,
    DESCRIBE_CONFIGS_TOPIC,
    DESCRIBE_TOPIC,
    Need,
    Row,
    of_cluster,
)
from tanist.wire.acls import CLUSTER_NAME, AclOperation, ResourceType
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode

_O, _R = AclOperation, ResourceType
_NAMES: Final = {_R.TOPIC: "a topic", _R.GROUP: "a group", _R.CLUSTER: "a broker, client metrics"}


def _alters(api: ApiKey, kind: ResourceType) -> Row:
    resource = CLUSTER_NAME if kind is _R.CLUSTER else "resource_name"
    return Row(api, (Need(_O.ALTER_CONFIGS, kind),), resource, "resource", _NAMES[kind])


CREATE_TOPICS_TOPIC = Row(
    ApiKey.CREATE_TOPICS, (Need(_O.CREATE, _R.CLUSTER), Need(_O.CREATE, _R.TOPIC)), "each topic", "topic"
)
CREATE_TOPICS_CONFIGS = Row(
    ApiKey.CREATE_TOPICS, (Need(_O.DESCRIBE_CONFIGS, _R.TOPIC),), "each topic",
    "topic_config_error_code is 29, without configurations and counts; the topic is created", logged=False,
)  # fmt: skip
DELETE_TOPICS_ANY = Row(
    ApiKey.DELETE_TOPICS, (Need(_O.DELETE, _R.CLUSTER),), CLUSTER_NAME, "the rows below are asked", logged=False
)
DELETE_TOPICS_DESCRIBE = Row(
    ApiKey.DELETE_TOPICS, (DESCRIBE_TOPIC,), "each topic",
    "topic, whether it exists or not; by id: without its name, and an unknown id is unknown to all",
    "without DELETE on the cluster",
)  # fmt: skip
DELETE_TOPICS_TOPIC = Row(
    ApiKey.DELETE_TOPICS, (Need(_O.DELETE, _R.TOPIC),), "each topic that exists", "topic",
    "without DELETE on the cluster",
)  # fmt: skip
CREATE_PARTITIONS_TOPIC = Row(ApiKey.CREATE_PARTITIONS, (Need(_O.ALTER, _R.TOPIC),), "each topic", "topic")
ALTER_CONFIGS_CLUSTER = _alters(ApiKey.ALTER_CONFIGS, _R.CLUSTER)
ALTER_CONFIGS_TOPIC = _alters(ApiKey.ALTER_CONFIGS, _R.TOPIC)
ALTER_CONFIGS_GROUP = _alters(ApiKey.ALTER_CONFIGS, _R.GROUP)
INCREMENTAL_CONFIGS_CLUSTER = _alters(ApiKey.INCREMENTAL_ALTER_CONFIGS, _R.CLUSTER)
INCREMENTAL_CONFIGS_TOPIC = _alters(ApiKey.INCREMENTAL_ALTER_CONFIGS, _R.TOPIC)
INCREMENTAL_CONFIGS_GROUP = _alters(ApiKey.INCREMENTAL_ALTER_CONFIGS, _R.GROUP)

CREATE_TOKEN_OWNER = Row(
    ApiKey.CREATE_DELEGATION_TOKEN, (Need(_O.CREATE_TOKENS, _R.USER),), "the owner", "response",
    "the token is for another owner", error=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
)  # fmt: skip

CONTROLLER_ROWS: Final[tuple[Row, ...]] = (
    of_cluster(ApiKey.FETCH, CLUSTER_ACTION),
    CREATE_TOPICS_TOPIC,
    CREATE_TOPICS_CONFIGS,
    DELETE_TOPICS_ANY,
    DELETE_TOPICS_DESCRIBE,
    DELETE_TOPICS_TOPIC,
    of_cluster(ApiKey.DESCRIBE_ACLS, DESCRIBE_CLUSTER),
    of_cluster(ApiKey.CREATE_ACLS, ALTER_CLUSTER),
    of_cluster(ApiKey.DELETE_ACLS, ALTER_CLUSTER),
    DESCRIBE_CONFIGS_CLUSTER,
    DESCRIBE_CONFIGS_TOPIC,
    DESCRIBE_CONFIGS_GROUP,
    ALTER_CONFIGS_CLUSTER,
    ALTER_CONFIGS_TOPIC,
    ALTER_CONFIGS_GROUP,
    CREATE_PARTITIONS_TOPIC,
    CREATE_TOKEN_OWNER,
    of_cluster(ApiKey.ELECT_LEADERS, ALTER_CLUSTER),
    INCREMENTAL_CONFIGS_CLUSTER,
    INCREMENTAL_CONFIGS_TOPIC,
    INCREMENTAL_CONFIGS_GROUP,
    of_cluster(ApiKey.ALTER_PARTITION_REASSIGNMENTS, ALTER_CLUSTER),
    of_cluster(ApiKey.LIST_PARTITION_REASSIGNMENTS, DESCRIBE_CLUSTER),
    of_cluster(ApiKey.ALTER_CLIENT_QUOTAS, Need(_O.ALTER_CONFIGS, _R.CLUSTER)),
    of_cluster(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ALTER_CLUSTER),
    of_cluster(ApiKey.VOTE, CLUSTER_ACTION),
    of_cluster(ApiKey.BEGIN_QUORUM_EPOCH, CLUSTER_ACTION),
    of_cluster(ApiKey.END_QUORUM_EPOCH, CLUSTER_ACTION),
    of_cluster(ApiKey.DESCRIBE_QUORUM, DESCRIBE_CLUSTER),
    of_cluster(ApiKey.ALTER_PARTITION, CLUSTER_ACTION),
    of_cluster(ApiKey.UPDATE_FEATURES, ALTER_CLUSTER),
    of_cluster(ApiKey.ENVELOPE, CLUSTER_ACTION),
    of_cluster(ApiKey.FETCH_SNAPSHOT, CLUSTER_ACTION),
    of_cluster(ApiKey.DESCRIBE_CLUSTER, ALTER_CLUSTER),
    of_cluster(ApiKey.BROKER_REGISTRATION, CLUSTER_ACTION),
    of_cluster(ApiKey.BROKER_HEARTBEAT, CLUSTER_ACTION),
    of_cluster(ApiKey.UNREGISTER_BROKER, ALTER_CLUSTER),
    of_cluster(ApiKey.ALLOCATE_PRODUCER_IDS, CLUSTER_ACTION),
    of_cluster(ApiKey.CONTROLLER_REGISTRATION, CLUSTER_ACTION),
    of_cluster(ApiKey.ASSIGN_REPLICAS_TO_DIRS, CLUSTER_ACTION),
    of_cluster(ApiKey.ADD_RAFT_VOTER, ALTER_CLUSTER),
    of_cluster(ApiKey.REMOVE_RAFT_VOTER, ALTER_CLUSTER),
    of_cluster(ApiKey.UPDATE_RAFT_VOTER, CLUSTER_ACTION),
    of_cluster(ApiKey.UNREGISTER_CONTROLLER, ALTER_CLUSTER),
)
"""What is checked on a controller's listener."""

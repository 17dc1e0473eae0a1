"""The one table of what each request needs: operation, resource, and what its client sees that lacks it.

Owns `Row` and the rows. A row whose `names` are given is checked before the request's handler (`guarded` in
`broker.guard`), and a denial refuses the whole request. The others are about what a request names or finds: its
handler asks `Call.may(row, name)` for each. There is no check but by a row; `tests/security/test_security_rows.py`
counts them. docs/authorization.md is made from this table. Rows of the controller's listener are in
`controller_requirements`.

Rows of one request stand in the order in which they are checked. What they say is Apache Kafka 4.3.1's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from tanist.wire.acls import CLUSTER_NAME, AclOperation, ResourceType
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode

Names: TypeAlias = Callable[[Any, int], Iterable[str | None]]
"""(request, its version): the resources that it needs. None of them is nobody's."""

DENIED: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error of what is denied, by the type of the resource."""
OMITTED: Final = "left out of the answer"


class Need(NamedTuple):
    """An operation on a resource of a type."""

    operation: AclOperation
    resource_type: ResourceType
    any_name: bool = False
    """It is enough if any resource of the type allows it (KIP-679)."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One check of one request."""

    api: ApiKey
    needs: tuple[Need, ...]
    """One of them is enough."""
    resource: str
    """Which resource; of type CLUSTER there is only one."""
    at: str
    """Where the error stands, or what the client sees instead of one."""
    when: str = ""
    names: Names | None = None
    """What the whole request needs; None: the handler asks about each."""
    error: ErrorCode | None = None
    """None: that of the last need's type."""
    logged: bool = True
    """Whether a denial is one for the operator; a list that leaves things out denies nothing."""
    bits: bool = False
    """No check: the operations that the client may do on such a resource, one bit for each."""

    @property
    def code(self) -> ErrorCode:
        """The error of a denial."""
        return self.error or DENIED[self.needs[-1].resource_type]


_O, _R = AclOperation, ResourceType

READ_TOPIC = Need(_O.READ, _R.TOPIC)
WRITE_TOPIC = Need(_O.WRITE, _R.TOPIC)
DESCRIBE_TOPIC = Need(_O.DESCRIBE, _R.TOPIC)
READ_GROUP = Need(_O.READ, _R.GROUP)
DESCRIBE_GROUP = Need(_O.DESCRIBE, _R.GROUP)
DELETE_GROUP = Need(_O.DELETE, _R.GROUP)
WRITE_TRANSACTION = Need(_O.WRITE, _R.TRANSACTIONAL_ID)
DESCRIBE_TRANSACTION = Need(_O.DESCRIBE, _R.TRANSACTIONAL_ID)
CLUSTER_ACTION = Need(_O.CLUSTER_ACTION, _R.CLUSTER)
DESCRIBE_CLUSTER = Need(_O.DESCRIBE, _R.CLUSTER)
ALTER_CLUSTER = Need(_O.ALTER, _R.CLUSTER)
_EACH_TOPIC, _EACH_GROUP, _GROUP_ID = "each topic", "each group", "group_id of the request"
_TRANSACTIONAL_ID = "transactional_id of the request"


def the_cluster(_request: Any, _version: int) -> tuple[str]:
    """The one resource of type CLUSTER."""
    return (CLUSTER_NAME,)


def _group(request: Any, _version: int) -> tuple[str]:
    return (request.group_id,)


def _transaction(request: Any, _version: int) -> tuple[str | None, ...]:
    return (request.transactional_id,)


def _of_group(api: ApiKey, need: Need = READ_GROUP, at: str = "response") -> Row:
    return Row(api, (need,), _GROUP_ID, at, names=_group)


def of_cluster(api: ApiKey, need: Need, at: str = "response", when: str = "", names: Names = the_cluster) -> Row:
    """A row about the cluster as a whole."""
    return Row(api, (need,), CLUSTER_NAME, at, when, names=names)


def _each_topic(api: ApiKey, need: Need, at: str = "partition", when: str = "", **more: Any) -> Row:
    return Row(api, (need,), _EACH_TOPIC, at, when, **more)


def _bits(api: ApiKey, kind: ResourceType, when: str, field: str) -> Row:
    return Row(api, (Need(_O.ANY, kind),), f"each {kind.name}", field, when, bits=True, logged=False)


PRODUCE_TRANSACTION = Row(
    ApiKey.PRODUCE, (WRITE_TRANSACTION,), _TRANSACTIONAL_ID, "every partition", "any batch is transactional"
)
PRODUCE_TOPIC = _each_topic(ApiKey.PRODUCE, WRITE_TOPIC)
FETCH_FOLLOWER = Row(
    ApiKey.FETCH, (CLUSTER_ACTION,), CLUSTER_NAME, "partition", "a replica id is given",
    error=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)  # fmt: skip
FETCH_TOPIC = _each_topic(ApiKey.FETCH, READ_TOPIC, when="a consumer asks; those of its session too")
LIST_OFFSETS_TOPIC = _each_topic(ApiKey.LIST_OFFSETS, DESCRIBE_TOPIC)

METADATA_ALL = _each_topic(ApiKey.METADATA, DESCRIBE_TOPIC, OMITTED, "all topics are asked for", logged=False)
METADATA_NAMED = _each_topic(ApiKey.METADATA, DESCRIBE_TOPIC, "topic", "topics are named")
METADATA_BY_ID = _each_topic(ApiKey.METADATA, DESCRIBE_TOPIC, "topic, without its name", "topics are asked for by id")
METADATA_CREATE = Row(
    ApiKey.METADATA, (Need(_O.CREATE, _R.CLUSTER), Need(_O.CREATE, _R.TOPIC)), _EACH_TOPIC, "topic",
    "a topic that is not there may be created by the request",
)  # fmt: skip
METADATA_CLUSTER = Row(
    ApiKey.METADATA, (DESCRIBE_CLUSTER,), CLUSTER_NAME, "cluster_authorized_operations is 0",
    "cluster operations are asked for", logged=False,
)  # fmt: skip
_OPERATIONS_ASKED = "operations are asked for"
METADATA_TOPIC_BITS = _bits(ApiKey.METADATA, _R.TOPIC, _OPERATIONS_ASKED, "topic_authorized_operations")
METADATA_CLUSTER_BITS = _bits(
    ApiKey.METADATA, _R.CLUSTER, "cluster operations are asked for", "cluster_authorized_operations"
)

OFFSET_COMMIT_TOPIC = _each_topic(ApiKey.OFFSET_COMMIT, READ_TOPIC)
OFFSET_FETCH_GROUP = Row(ApiKey.OFFSET_FETCH, (DESCRIBE_GROUP,), _EACH_GROUP, "group")
OFFSET_FETCH_TOPIC = _each_topic(ApiKey.OFFSET_FETCH, DESCRIBE_TOPIC, when="topics are named")
OFFSET_FETCH_ALL = _each_topic(ApiKey.OFFSET_FETCH, DESCRIBE_TOPIC, OMITTED, "all offsets are asked for", logged=False)
FIND_COORDINATOR_GROUP = Row(ApiKey.FIND_COORDINATOR, (DESCRIBE_GROUP,), "each key", "coordinator", "of a group")
FIND_COORDINATOR_TRANSACTION = Row(
    ApiKey.FIND_COORDINATOR, (DESCRIBE_TRANSACTION,), "each key", "coordinator", "of a transactional id"
)
DESCRIBE_GROUPS_GROUP = Row(ApiKey.DESCRIBE_GROUPS, (DESCRIBE_GROUP,), _EACH_GROUP, "group")
DESCRIBE_GROUPS_BITS = _bits(ApiKey.DESCRIBE_GROUPS, _R.GROUP, _OPERATIONS_ASKED, "authorized_operations")
LIST_GROUPS_GROUP = Row(
    ApiKey.LIST_GROUPS, (DESCRIBE_CLUSTER, DESCRIBE_GROUP), "each group found", OMITTED, logged=False
)
DELETE_RECORDS_TOPIC = _each_topic(ApiKey.DELETE_RECORDS, Need(_O.DELETE, _R.TOPIC))
OFFSET_FOR_LEADER_EPOCH_TOPIC = Row(
    ApiKey.OFFSET_FOR_LEADER_EPOCH, (CLUSTER_ACTION, DESCRIBE_TOPIC), _EACH_TOPIC, "partition"
)
ADD_PARTITIONS_TO_TXN_TOPIC = _each_topic(
    ApiKey.ADD_PARTITIONS_TO_TXN, WRITE_TOPIC, "partition; the others get OPERATION_NOT_ATTEMPTED (55)", "versions 0-3"
)
TXN_OFFSET_COMMIT_TOPIC = _each_topic(ApiKey.TXN_OFFSET_COMMIT, READ_TOPIC)
DESCRIBE_CONFIGS_CLUSTER = Row(
    ApiKey.DESCRIBE_CONFIGS, (Need(_O.DESCRIBE_CONFIGS, _R.CLUSTER),), CLUSTER_NAME, "resource",
    "a broker, its loggers, client metrics",
)  # fmt: skip
DESCRIBE_CONFIGS_TOPIC = Row(
    ApiKey.DESCRIBE_CONFIGS, (Need(_O.DESCRIBE_CONFIGS, _R.TOPIC),), "resource_name", "resource", "a topic",
)  # fmt: skip
DESCRIBE_CONFIGS_GROUP = Row(
    ApiKey.DESCRIBE_CONFIGS, (Need(_O.DESCRIBE_CONFIGS, _R.GROUP),), "resource_name", "resource", "a group",
)  # fmt: skip
DELETE_GROUPS_GROUP = Row(ApiKey.DELETE_GROUPS, (DELETE_GROUP,), _EACH_GROUP, "group")
ALTER_LOGGERS = Row(
    ApiKey.INCREMENTAL_ALTER_CONFIGS, (Need(_O.ALTER_CONFIGS, _R.CLUSTER),), CLUSTER_NAME, "resource",
    "the loggers of a broker; all else is forwarded",
)  # fmt: skip
OFFSET_DELETE_TOPIC = _each_topic(ApiKey.OFFSET_DELETE, READ_TOPIC)
DESCRIBE_CLUSTER_OPERATIONS = Row(
    ApiKey.DESCRIBE_CLUSTER, (DESCRIBE_CLUSTER,), CLUSTER_NAME, "cluster_authorized_operations is 0",
    "cluster operations are asked for; else nothing is needed", logged=False,
)  # fmt: skip
DESCRIBE_CLUSTER_BITS = _bits(
    ApiKey.DESCRIBE_CLUSTER, _R.CLUSTER, "cluster operations are asked for", "cluster_authorized_operations"
)
DESCRIBE_PRODUCERS_TOPIC = _each_topic(ApiKey.DESCRIBE_PRODUCERS, READ_TOPIC)
DESCRIBE_TRANSACTIONS_ID = Row(ApiKey.DESCRIBE_TRANSACTIONS, (DESCRIBE_TRANSACTION,), "each id", "transaction")
DESCRIBE_TRANSACTIONS_TOPIC = Row(
    ApiKey.DESCRIBE_TRANSACTIONS, (DESCRIBE_TOPIC,), "each topic of the transaction", OMITTED, logged=False
)
DESCRIBE_TOKEN = Row(
    ApiKey.DESCRIBE_DELEGATION_TOKEN, (Need(_O.DESCRIBE, _R.DELEGATION_TOKEN),), "each token of others", OMITTED,
    "the row below is asked next", logged=False,
    error=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
)  # fmt: skip
DESCRIBE_TOKEN_OWNER = Row(
    ApiKey.DESCRIBE_DELEGATION_TOKEN, (Need(_O.DESCRIBE_TOKENS, _R.USER),), "the owner of each token of others",
    OMITTED, "without DESCRIBE on the token", logged=False, error=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
)  # fmt: skip
LIST_TRANSACTIONS_ID = Row(ApiKey.LIST_TRANSACTIONS, (DESCRIBE_TRANSACTION,), "each id found", OMITTED, logged=False)
CONSUMER_GROUP_REGEX = Row(
    ApiKey.CONSUMER_GROUP_HEARTBEAT, (DESCRIBE_TOPIC,), "each topic that the regular expression matches",
    "left out of the subscription", "subscribed_topic_regex is given", logged=False,
)  # fmt: skip
CONSUMER_GROUP_DESCRIBE_GROUP = Row(ApiKey.CONSUMER_GROUP_DESCRIBE, (DESCRIBE_GROUP,), _EACH_GROUP, "group")
CONSUMER_GROUP_DESCRIBE_BITS = _bits(
    ApiKey.CONSUMER_GROUP_DESCRIBE, _R.GROUP, _OPERATIONS_ASKED, "authorized_operations"
)
CONSUMER_GROUP_DESCRIBE_TOPIC = Row(
    ApiKey.CONSUMER_GROUP_DESCRIBE, (DESCRIBE_TOPIC,), "each topic that a member has or will have",
    "group, without its members",
)  # fmt: skip
DESCRIBE_TOPIC_PARTITIONS_ALL = _each_topic(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS, DESCRIBE_TOPIC, OMITTED, "no topic is named", logged=False
)
DESCRIBE_TOPIC_PARTITIONS_NAMED = _each_topic(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS, DESCRIBE_TOPIC, "topic", "topics are named"
)
DESCRIBE_TOPIC_PARTITIONS_BITS = _bits(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS, _R.TOPIC, "always", "topic_authorized_operations"
)
SHARE_GROUP_DESCRIBE_GROUP = Row(ApiKey.SHARE_GROUP_DESCRIBE, (DESCRIBE_GROUP,), _EACH_GROUP, "group")
SHARE_GROUP_DESCRIBE_BITS = _bits(ApiKey.SHARE_GROUP_DESCRIBE, _R.GROUP, _OPERATIONS_ASKED, "authorized_operations")
SHARE_GROUP_DESCRIBE_TOPIC = Row(
    ApiKey.SHARE_GROUP_DESCRIBE, (DESCRIBE_TOPIC,), "each topic that a member has", "group, without its members"
)
_EACH_OF_TOPOLOGY = "each topic of the topology"
STREAMS_GROUP_HEARTBEAT_TOPIC = Row(
    ApiKey.STREAMS_GROUP_HEARTBEAT, (DESCRIBE_TOPIC,), _EACH_OF_TOPOLOGY, "response", "a member joins"
)
STREAMS_GROUP_HEARTBEAT_CREATE = Row(
    ApiKey.STREAMS_GROUP_HEARTBEAT, (Need(_O.CREATE, _R.CLUSTER), Need(_O.CREATE, _R.TOPIC)), "each internal topic",
    "status MISSING_INTERNAL_TOPICS says so; none is created", "internal topics are missing", logged=False,
)  # fmt: skip
STREAMS_GROUP_DESCRIBE_GROUP = Row(ApiKey.STREAMS_GROUP_DESCRIBE, (DESCRIBE_GROUP,), _EACH_GROUP, "group")
STREAMS_GROUP_DESCRIBE_BITS = _bits(ApiKey.STREAMS_GROUP_DESCRIBE, _R.GROUP, _OPERATIONS_ASKED, "authorized_operations")
STREAMS_GROUP_DESCRIBE_TOPIC = Row(
    ApiKey.STREAMS_GROUP_DESCRIBE, (DESCRIBE_TOPIC,), _EACH_OF_TOPOLOGY, "group, without its members"
)
SHARE_FETCH_TOPIC = _each_topic(ApiKey.SHARE_FETCH, READ_TOPIC, when="fetched or acknowledged")
SHARE_ACKNOWLEDGE_TOPIC = _each_topic(ApiKey.SHARE_ACKNOWLEDGE, READ_TOPIC)
DESCRIBE_SHARE_GROUP_OFFSETS_GROUP = Row(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, (DESCRIBE_GROUP,), _EACH_GROUP, "group")
DESCRIBE_SHARE_GROUP_OFFSETS_TOPIC = _each_topic(
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, DESCRIBE_TOPIC, when="topics are named"
)
DESCRIBE_SHARE_GROUP_OFFSETS_ALL = _each_topic(
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, DESCRIBE_TOPIC, OMITTED, "all are asked for", logged=False
)
ALTER_SHARE_GROUP_OFFSETS_TOPIC = _each_topic(ApiKey.ALTER_SHARE_GROUP_OFFSETS, READ_TOPIC)
DELETE_SHARE_GROUP_OFFSETS_TOPIC = _each_topic(ApiKey.DELETE_SHARE_GROUP_OFFSETS, READ_TOPIC, "topic")
_SHARE_STATES: Final = (
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
)

_SHARE_KEYS: Final = 2
BROKER_ROWS: Final[tuple[Row, ...]] = (
    PRODUCE_TRANSACTION,
    PRODUCE_TOPIC,
    FETCH_FOLLOWER,
    FETCH_TOPIC,
    LIST_OFFSETS_TOPIC,
    METADATA_ALL,
    METADATA_NAMED,
    METADATA_BY_ID,
    METADATA_CREATE,
    METADATA_CLUSTER,
    METADATA_TOPIC_BITS,
    METADATA_CLUSTER_BITS,
    _of_group(ApiKey.OFFSET_COMMIT, at="every partition"),
    OFFSET_COMMIT_TOPIC,
    OFFSET_FETCH_GROUP,
    OFFSET_FETCH_TOPIC,
    OFFSET_FETCH_ALL,
    FIND_COORDINATOR_GROUP,
    FIND_COORDINATOR_TRANSACTION,
    of_cluster(
        ApiKey.FIND_COORDINATOR, CLUSTER_ACTION, "every coordinator", "of a share group (version 6)",
        lambda request, version: (CLUSTER_NAME,) if version >= 6 and request.key_type == _SHARE_KEYS else (),
    ),
    _of_group(ApiKey.JOIN_GROUP),
    _of_group(ApiKey.HEARTBEAT),
    _of_group(ApiKey.LEAVE_GROUP),
    _of_group(ApiKey.SYNC_GROUP),
    DESCRIBE_GROUPS_GROUP,
    DESCRIBE_GROUPS_BITS,
    LIST_GROUPS_GROUP,
    DELETE_RECORDS_TOPIC,
    Row(
        ApiKey.INIT_PRODUCER_ID, (WRITE_TRANSACTION,), _TRANSACTIONAL_ID, "response", "a transactional_id is named",
        names=lambda request, _: () if request.transactional_id is None else (request.transactional_id,),
    ),
    Row(
        ApiKey.INIT_PRODUCER_ID, (Need(_O.TWO_PHASE_COMMIT, _R.TRANSACTIONAL_ID),), _TRANSACTIONAL_ID, "response",
        "enable_2pc (version 6)",
        names=lambda request, _: (request.transactional_id,) if request.enable2_pc else (),
    ),
    Row(
        ApiKey.INIT_PRODUCER_ID, (Need(_O.WRITE, _R.TOPIC, any_name=True), Need(_O.IDEMPOTENT_WRITE, _R.CLUSTER)),
        "any topic, or kafka-cluster", "response", "none is named",
        names=lambda request, _: (CLUSTER_NAME,) if request.transactional_id is None else (),
    ),
    OFFSET_FOR_LEADER_EPOCH_TOPIC,
    of_cluster(
        ApiKey.ADD_PARTITIONS_TO_TXN, CLUSTER_ACTION, when="version 4 and later, which brokers send",
        names=lambda _, version: (CLUSTER_NAME,) if version >= 4 else (),
    ),
    Row(
        ApiKey.ADD_PARTITIONS_TO_TXN, (WRITE_TRANSACTION,), _TRANSACTIONAL_ID, "every partition", "versions 0-3",
        names=lambda request, version: () if version >= 4 else (request.v3_and_below_transactional_id,),
    ),
    ADD_PARTITIONS_TO_TXN_TOPIC,
    Row(ApiKey.ADD_OFFSETS_TO_TXN, (WRITE_TRANSACTION,), _TRANSACTIONAL_ID, "response", names=_transaction),
    _of_group(ApiKey.ADD_OFFSETS_TO_TXN),
    Row(ApiKey.END_TXN, (WRITE_TRANSACTION,), _TRANSACTIONAL_ID, "response", names=_transaction),
    Row(
        ApiKey.WRITE_TXN_MARKERS, (ALTER_CLUSTER, CLUSTER_ACTION), CLUSTER_NAME, "every partition", names=the_cluster
    ),
    Row(ApiKey.TXN_OFFSET_COMMIT, (WRITE_TRANSACTION,), _TRANSACTIONAL_ID, "every partition", names=_transaction),
    _of_group(ApiKey.TXN_OFFSET_COMMIT, at="every partition"),
    TXN_OFFSET_COMMIT_TOPIC,
    of_cluster(ApiKey.DESCRIBE_ACLS, DESCRIBE_CLUSTER),
    DESCRIBE_CONFIGS_CLUSTER,
    DESCRIBE_CONFIGS_TOPIC,
    DESCRIBE_CONFIGS_GROUP,
    of_cluster(ApiKey.ALTER_REPLICA_LOG_DIRS, ALTER_CLUSTER, "every partition"),
    of_cluster(ApiKey.DESCRIBE_LOG_DIRS, DESCRIBE_CLUSTER, "response; versions 1-2 have no place for it and list none"),
    DELETE_GROUPS_GROUP,
    DESCRIBE_TOKEN,
    DESCRIBE_TOKEN_OWNER,
    ALTER_LOGGERS,
    _of_group(ApiKey.OFFSET_DELETE, DELETE_GROUP),
    OFFSET_DELETE_TOPIC,
    of_cluster(ApiKey.DESCRIBE_CLIENT_QUOTAS, Need(_O.DESCRIBE_CONFIGS, _R.CLUSTER)),
    of_cluster(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, DESCRIBE_CLUSTER),
    DESCRIBE_CLUSTER_OPERATIONS,
    DESCRIBE_CLUSTER_BITS,
    DESCRIBE_PRODUCERS_TOPIC,
    DESCRIBE_TRANSACTIONS_ID,
    DESCRIBE_TRANSACTIONS_TOPIC,
    LIST_TRANSACTIONS_ID,
    _of_group(ApiKey.CONSUMER_GROUP_HEARTBEAT),
    Row(
        ApiKey.CONSUMER_GROUP_HEARTBEAT, (DESCRIBE_TOPIC,), "each of subscribed_topic_names", "response",
        names=lambda request, _: request.subscribed_topic_names or (),
    ),
    CONSUMER_GROUP_REGEX,
    CONSUMER_GROUP_DESCRIBE_GROUP,
    CONSUMER_GROUP_DESCRIBE_BITS,
    CONSUMER_GROUP_DESCRIBE_TOPIC,
    of_cluster(ApiKey.LIST_CONFIG_RESOURCES, Need(_O.DESCRIBE_CONFIGS, _R.CLUSTER)),
    DESCRIBE_TOPIC_PARTITIONS_ALL,
    DESCRIBE_TOPIC_PARTITIONS_NAMED,
    DESCRIBE_TOPIC_PARTITIONS_BITS,
    _of_group(ApiKey.SHARE_GROUP_HEARTBEAT),
    Row(
        ApiKey.SHARE_GROUP_HEARTBEAT, (DESCRIBE_TOPIC,), "each of subscribed_topic_names", "response",
        names=lambda request, _: request.subscribed_topic_names or (),
    ),
    SHARE_GROUP_DESCRIBE_GROUP,
    SHARE_GROUP_DESCRIBE_BITS,
    SHARE_GROUP_DESCRIBE_TOPIC,
    _of_group(ApiKey.STREAMS_GROUP_HEARTBEAT),
    STREAMS_GROUP_HEARTBEAT_TOPIC,
    STREAMS_GROUP_HEARTBEAT_CREATE,
    STREAMS_GROUP_DESCRIBE_GROUP,
    STREAMS_GROUP_DESCRIBE_BITS,
    STREAMS_GROUP_DESCRIBE_TOPIC,
    _of_group(ApiKey.SHARE_FETCH),
    SHARE_FETCH_TOPIC,
    _of_group(ApiKey.SHARE_ACKNOWLEDGE),
    SHARE_ACKNOWLEDGE_TOPIC,
    *(of_cluster(api, CLUSTER_ACTION, "every partition") for api in _SHARE_STATES),
    DESCRIBE_SHARE_GROUP_OFFSETS_GROUP,
    DESCRIBE_SHARE_GROUP_OFFSETS_TOPIC,
    DESCRIBE_SHARE_GROUP_OFFSETS_ALL,
    _of_group(ApiKey.ALTER_SHARE_GROUP_OFFSETS),
    ALTER_SHARE_GROUP_OFFSETS_TOPIC,
    _of_group(ApiKey.DELETE_SHARE_GROUP_OFFSETS, DELETE_GROUP),
    DELETE_SHARE_GROUP_OFFSETS_TOPIC,
    of_cluster(ApiKey.GET_REPLICA_LOG_INFO, CLUSTER_ACTION, "every partition"),
)  # fmt: skip
"""What is checked on a listener for brokers and clients."""

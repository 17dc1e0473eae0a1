"""Random requests, drawn from the messages' own tables of fields: each value from a small set, so that requests meet.

A value is chosen by the struct and the field, else by the field, else by its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

from tanist.wire.apis import ApiKey, request_class
from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct
from tests.interop.requests import batches, newer_groups, roles
from tests.interop.requests.choosing import Choice, named, one_of
from tests.interop.requests.newer_groups import OF_SHARES, OF_STREAMS
from tests.interop.requests.roles import Roles
from tests.interop.requests.symbols import Symbol

TOPICS = ("t0", "t0", "t0", "t1", "t1", "t2")
"""t0 and t1 are there in the beginning, with two partitions and with one."""
GROUPS = ("g0", "g0", "g1")
TRANSACTIONS = ("x0", "x1")

WEIGHTS: Mapping[int, int] = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 8,
    ApiKey.LIST_OFFSETS: 5,
    ApiKey.METADATA: 2,
    ApiKey.OFFSET_COMMIT: 5,
    ApiKey.OFFSET_FETCH: 4,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.JOIN_GROUP: 4,
    ApiKey.SYNC_GROUP: 3,
    ApiKey.HEARTBEAT: 3,
    ApiKey.LEAVE_GROUP: 2,
    ApiKey.DESCRIBE_GROUPS: 3,
    ApiKey.CREATE_TOPICS: 3,
    ApiKey.DELETE_TOPICS: 1,
    ApiKey.DELETE_RECORDS: 3,
    ApiKey.INIT_PRODUCER_ID: 5,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 2,
    ApiKey.ADD_PARTITIONS_TO_TXN: 4,
    ApiKey.ADD_OFFSETS_TO_TXN: 3,
    ApiKey.END_TXN: 4,
    ApiKey.TXN_OFFSET_COMMIT: 3,
    ApiKey.DESCRIBE_CONFIGS: 3,
    ApiKey.ALTER_CONFIGS: 2,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 4,
    ApiKey.CREATE_PARTITIONS: 3,
    ApiKey.DELETE_GROUPS: 1,
    ApiKey.ELECT_LEADERS: 1,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: 1,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: 1,
    ApiKey.OFFSET_DELETE: 2,
    ApiKey.DESCRIBE_PRODUCERS: 3,
    ApiKey.DESCRIBE_TRANSACTIONS: 3,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 5,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 3,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: 2,
    ApiKey.LIST_GROUPS: 1,
    ApiKey.LIST_TRANSACTIONS: 2,
    ApiKey.DESCRIBE_LOG_DIRS: 1,
    **newer_groups.WEIGHTS,
    ApiKey.CREATE_ACLS: 15,
    ApiKey.DESCRIBE_ACLS: 5,
    ApiKey.DELETE_ACLS: 5,
}
"""How often each request is drawn. Those whose answers tell of the whole node are left out."""

_OF_GROUPS = frozenset(
    {
        ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP, ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE,
        ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.LIST_GROUPS,
    }
)  # fmt: skip
_OF_TRANSACTIONS = frozenset(
    {
        ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.OFFSET_FETCH, ApiKey.DELETE_RECORDS, ApiKey.LIST_TRANSACTIONS,
    }
)  # fmt: skip
_OF_TOPICS = frozenset(
    {
        ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.CREATE_PARTITIONS, ApiKey.ELECT_LEADERS, ApiKey.PRODUCE,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.DESCRIBE_LOG_DIRS,
    }
)  # fmt: skip
_OF_ACCESS = frozenset({ApiKey.CREATE_ACLS, ApiKey.DESCRIBE_ACLS, ApiKey.DELETE_ACLS})
_BESIDE_SHARES = frozenset({ApiKey.PRODUCE, ApiKey.DELETE_RECORDS, ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS})
_BESIDE_STREAMS = frozenset(
    {ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.TXN_OFFSET_COMMIT, ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS}
)
ALL = frozenset(WEIGHTS) - _OF_ACCESS
THEMES = (
    ALL, _OF_GROUPS, _OF_TRANSACTIONS, _OF_TOPICS, ALL | _OF_ACCESS, OF_SHARES | _BESIDE_SHARES,
    OF_STREAMS | _BESIDE_STREAMS,
)  # fmt: skip
"""What a sequence is about: fewer kinds of requests meet more often."""

_NAME = {each: Symbol("name", each) for each in {*TOPICS, *GROUPS, *TRANSACTIONS}}

topic = one_of(
    *(_NAME[each] for each in TOPICS), *(_NAME[each] for each in TOPICS), "", "not a name", Symbol("name", "t9")
)
topic_id = one_of(*(Symbol("topic id", each) for each in TOPICS * 2), ZERO_UUID, UUID(int=77))
group = one_of(*(_NAME[each] for each in GROUPS * 3), *named("g9", "s0", "a0"), "")
transaction = one_of(*(_NAME[each] for each in TRANSACTIONS * 3), Symbol("name", "x9"), "")
acl_resource = one_of(*(_NAME[each] for each in (*TOPICS, *GROUPS * 2, *TRANSACTIONS * 2)))
partition = one_of(0, 0, 0, 0, 1, 1, 2, -1)
offset = one_of(0, 0, 1, 2, 3, 5, 100, -1, -2)
member = one_of(Symbol("member", 0), Symbol("member", 0), Symbol("member", 1), Symbol("member", 2), "nobody", "")
epoch = one_of(-1, -1, -1, 0, 0, 1, -2)
producer = one_of(*(Symbol("producer", each) for each in (0, 0, 1, 1, 2, 3)), -1)
producer_epoch = one_of(*(Symbol("producer epoch", 0, plus) for plus in (0, 0, 0, -1, 1)), 0, 0, -1)
generation = one_of(*(Symbol("generation", 0, plus) for plus in (0, 0, 0, 0, -1, 1)), -1, 0)
member_epoch = one_of(*(Symbol("member epoch", 0, plus) for plus in (0, 0, 0, 0, -1, 1)), -1, 0, -2)
instance = one_of(None, None, None, "i0", "i1", "")

SETTINGS = (
    ("cleanup.policy", ("compact", "delete", "compact,delete", "", "shred")),
    ("retention.ms", ("-1", "86400000", "-2", "much")),
    ("segment.bytes", ("1048576", "14", "13", "99999999999")),
    ("min.insync.replicas", ("1", "2", "0")),
    ("max.message.bytes", ("100", "1048588", "-1")),
    ("compression.type", ("producer", "gzip", "uncompressed", "gzipp")),
    ("message.timestamp.type", ("CreateTime", "LogAppendTime", "createtime")),
    ("message.timestamp.before.max.ms", ("1000", "9223372036854775807")),
    ("unclean.leader.election.enable", ("true", "FALSE", "yes")),
    ("follower.replication.throttled.replicas", ("0:1", "*", "", "0-1")),
    ("flush.messages", ("1", "0")),
    ("no.such.config", ("1",)),
    ("segment.index.bytes", ("1048576", "3")),
)


def _setting(random: Random) -> tuple[str, str | None]:
    name, values = random.choice(SETTINGS)
    return name, random.choice((*values, *values, None))


BY_FIELD: Mapping[str, Choice] = {
    "topic": topic,
    "topic_name": topic,
    "topic_id": topic_id,
    "subscribed_topic_names": topic,
    "topic_names": topic,
    "partition": partition,
    "partition_index": partition,
    "index": partition,
    "partitions": partition,
    "partition_indexes": partition,
    "group_id": group,
    "groups": group,
    "groups_names": group,
    "group_ids": group,
    "coordinator_keys": one_of(_NAME["g0"], _NAME["x0"], ""),
    "key": one_of(_NAME["g0"], _NAME["x0"], "", "g:i:j"),
    "key_type": one_of(0, 0, 0, 1, 1, 2, 3, -1),
    "transactional_id": transaction,
    "v3_and_below_transactional_id": transaction,
    "transactional_ids": transaction,
    "producer_id": producer,
    "v3_and_below_producer_id": producer,
    "producer_epoch": producer_epoch,
    "v3_and_below_producer_epoch": producer_epoch,
    "member_id": member,
    "group_instance_id": instance,
    "instance_id": instance,
    "generation_id": generation,
    "member_epoch": member_epoch,
    "generation_id_or_member_epoch": lambda random: (
        generation(random) if random.random() < 0.6 else member_epoch(random)
    ),
    "current_leader_epoch": epoch,
    "last_fetched_epoch": one_of(-1, -1, -1, 0, 1),
    "leader_epoch": one_of(0, 0, 1, -1, 5),
    "committed_leader_epoch": one_of(-1, -1, 0, 3),
    "committed_offset": one_of(0, 1, 5, 100, -1, -5),
    "committed_metadata": one_of("", "", "note", None, "n" * 5000),
    "fetch_offset": offset,
    "offset": one_of(0, 1, 2, 3, -1, -1, -2, 50),
    "start_offset": offset,
    "log_start_offset": one_of(-1),
    "timestamp": one_of(-1, -1, -2, -2, -3, -4, -5, -6, -7, 0, 1_700_000_000_000, 1_700_000_000_200, 1 << 60),
    "isolation_level": one_of(0, 1),
    "replica_id": one_of(-1),
    "replica_epoch": one_of(-1),
    "max_wait_ms": one_of(0, 0, 10),
    "min_bytes": one_of(0, 1),
    "max_bytes": one_of(1 << 20, 1 << 20, 100, 0),
    "partition_max_bytes": one_of(1 << 20, 1 << 20, 100, 1, 0),
    "session_id": one_of(0, 0, 4711),
    "session_epoch": one_of(-1, -1, -1, 1),
    "timeout_ms": one_of(20_000),
    "acks": one_of(-1, -1, -1, 1, 2),
    "transaction_timeout_ms": one_of(60_000, 60_000, 0, -1, 1_000_000_000),
    "session_timeout_ms": one_of(30_000, 30_000, 30_000, 10, 10_000_000),
    "rebalance_timeout_ms": one_of(2_000),
    "protocol_type": one_of("consumer", "consumer", "consumer", "connect", ""),
    "protocol_name": one_of("range", "range", None, "other"),
    "server_assignor": one_of(None, None, "uniform", "range", "best"),
    "subscribed_topic_regex": one_of(None, None, None, "t.*", "(", ""),
    "rack_id": one_of("", ""),
    "retention_time_ms": one_of(-1, -1, 1000),
    "num_partitions": one_of(1, 1, 2, -1, 0, -2),
    "replication_factor": one_of(1, 1, -1, 0, 2, -2),
    "replicas": one_of(1, 1, 1, 2, -1),
    "broker_ids": one_of(1, 1, 2, -1),
    "count": one_of(1, 2, 3, 4, 0, -1),
    "election_type": one_of(0, 0, 1),
    "resource_type": one_of(2, 2, 2, 2, 32, 0),
    "resource_name": topic,
    "configuration_keys": lambda random: _setting(random)[0],
    "config_operation": one_of(0, 0, 0, 1, 2, 3),
    "include_documentation": one_of(False),
    "metadata": one_of(b"", b"\0\1"),
    "assignment": one_of(b"", b"mine"),
    "response_partition_limit": one_of(2000, 1, 0, -1),
    "allow_auto_topic_creation": one_of(False),
    "enable2_pc": one_of(False),
    "keep_prepared_txn": one_of(False),
    "validate_only": one_of(False, False, True),
    "desired_leaders": one_of(None),
    "cluster_id": one_of(None),
    "states_filter": one_of("Empty", "Stable", "empty", "Dead", "PreparingRebalance", "none"),
    "types_filter": one_of("classic", "consumer", "Share", "none"),
    "state_filters": one_of("Empty", "Ongoing", "CompleteCommit", "CompleteAbort", "ongoing", "none"),
    "producer_id_filters": producer,
    "duration_filter": one_of(-1, -1, 0, 1 << 40),
    "transactional_id_pattern": one_of(None, None, ".*x0", "", "(", "x0"),
    "resource_pattern_type": one_of(*(3,) * 12, *(4,) * 8, 0, 1, 2, 9),
    "pattern_type_filter": one_of(3, 4, 1, 2, 2, 0, 9),
    "resource_name_filter": acl_resource,
    "resource_type_filter": one_of(2, 2, 3, 3, 5, 5, 1, 1, 0, 9),
    "principal": one_of(*("User:ANONYMOUS",) * 6, "User:other", "nobody", ""),
    "principal_filter": one_of(None, None, "User:ANONYMOUS", "User:other", "nobody"),
    "host": one_of("*", "*", "*", "127.0.0.1", "127.0.0.9"),
    "host_filter": one_of(None, None, "*", "127.0.0.1"),
    "operation": one_of(*(*range(2, 13), 2, 3, 4, 8) * 3, 0, 1, 99),
    "permission_type": one_of(*(2, 2, 3, 3, 3) * 5, 0, 1),
    "include_synonyms": one_of(False),
}

BY_STRUCT: Mapping[tuple[str, str], Choice] = {
    ("InitProducerIdRequest", "transactional_id"): one_of(None, None, *(_NAME[each] for each in TRANSACTIONS * 3), ""),
    ("InitProducerIdRequest", "producer_id"): one_of(-1, -1, -1, Symbol("producer", 0), Symbol("producer", 1)),
    ("InitProducerIdRequest", "producer_epoch"): one_of(-1, -1, -1, Symbol("producer epoch", 0), 0),
    ("ProduceRequest", "transactional_id"): one_of(None, None, None, _NAME["x0"], _NAME["x1"]),
    ("JoinGroupRequest", "member_id"): one_of("", "", Symbol("member", 0), Symbol("member", 1), "nobody"),
    ("JoinGroupRequest", "protocol_type"): one_of("consumer", "consumer", "connect"),
    ("JoinGroupRequestProtocol", "name"): one_of("range", "range", "range", "other"),
    ("FetchTopic", "topic_id"): one_of(*(Symbol("topic id", each) for each in TOPICS * 2), UUID(int=77)),
    ("TopicRequest", "name"): one_of(*(_NAME[each] for each in TOPICS), Symbol("name", "t9")),
    ("ConsumerGroupHeartbeatRequest", "member_id"): one_of(
        Symbol("member", 0), Symbol("member", 1), "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ", ""
    ),
    ("ConsumerGroupHeartbeatRequest", "member_epoch"): one_of(
        0, 0, 0, *(Symbol("member epoch", 0, plus) for plus in (0, 0, 0, 1, -1)), -1, -2
    ),
    ("ConsumerGroupHeartbeatRequest", "rebalance_timeout_ms"): one_of(30_000, 30_000, -1),
    ("Cursor", "partition_index"): one_of(0, 1, -1),
    **newer_groups.BY_STRUCT,
    ("AclCreation", "resource_type"): one_of(*(2, 2, 2, 3, 3, 3, 5, 5) * 3, 0, 1, 9),
    ("AclCreation", "resource_name"): acl_resource,
}

_LENGTHS = (1, 1, 1, 1, 2, 2, 0)
_NULL_SHARE = 0.08
_NULL_SHARES: Mapping[tuple[str, str], float] = {("DescribeShareGroupOffsetsRequestGroup", "topics"): 0.4}
"""Where it is worth while more often, in likely requests too."""
_NAMED = frozenset(
    {
        "MetadataRequest",
        "ListPartitionReassignmentsRequest",
        "ElectLeadersRequest",
        "DescribeTopicPartitionsRequest",
        "DescribeConfigsResource",
        "AddPartitionsToTxnRequest",
        "DescribeLogDirsRequest",
    }
)
"""Where no list is all there is, and so what belongs to other sequences; or where Apache Kafka does not answer."""


def draw(
    random: Random, versions: Mapping[int, tuple[int, int]], theme: frozenset[int] = ALL, likely_share: float = 0.0
) -> tuple[Request, int]:
    """A request with symbols, and its version, within those that both nodes have."""
    keys = [each for each in WEIGHTS if each in versions and each in theme]
    key = random.choices(keys, [WEIGHTS[each] for each in keys])[0]
    first, last = versions[key]
    version = random.choice((last, random.randint(first, last)))
    likely = roles.draw(random) if random.random() < likely_share else None
    request = _struct(random, request_class(key), version, likely)
    assert isinstance(request, Request)
    return request, version


def _struct(random: Random, kind: type[Struct], version: int, who: Roles | None) -> Struct:
    values = {
        each.name: _value(random, kind, each, version, who)
        for each in kind.FIELDS
        if each.versions[0] <= version <= each.versions[1]
    }
    if kind.__name__ == "TopicProduceData":
        return kind(**values)
    if values.get("transactional_id") is not None and "acks" in values and random.random() < 0.9:
        values["acks"] = -1
    if {"value", "name"} <= values.keys() and "value" in kind.DEFAULTS:
        values["name"], values["value"] = _setting(random)
    newer_groups.fit(random, kind, values)
    return kind(**values)


def _value(random: Random, owner: type[Struct], field: Field, version: int, who: Roles | None) -> Any:
    kind, name = field.type, field.name
    may_be_null = field.nullable is not None and field.nullable[0] <= version <= field.nullable[1]
    chosen = BY_STRUCT.get((owner.__name__, name)) or BY_FIELD.get(name)
    likely = None if who is None else roles.likely(owner.__name__, name)
    if who is not None and likely is not None:
        chosen = partial(likely, who)
    if isinstance(kind, Array):
        if name in roles.NOTHING and who is not None:
            return ()
        null_share = _NULL_SHARES.get((owner.__name__, name), _NULL_SHARE if who is None else 0.0)
        if may_be_null and owner.__name__ not in _NAMED and random.random() < null_share:
            return None
        if name in newer_groups.RARE and random.random() < 0.8:
            return ()
        inside = owner.__name__ in _NAMED or not issubclass(owner, Request)
        count = 1 if who is not None else random.choice(_LENGTHS[:-1] if inside else _LENGTHS)
        if isinstance(kind.element, str):
            draw_one = chosen or _TYPES[kind.element]
            return tuple(dict.fromkeys(draw_one(random) for _ in range(count)))
        return tuple(_different(_struct(random, kind.element, version, who) for _ in range(count)))
    if not isinstance(kind, str):
        return None if may_be_null and random.random() < 0.7 else _struct(random, kind, version, who)
    if kind == "records" and who is not None:
        ids = Symbol("producer", who.transaction), Symbol("producer epoch", who.transaction)
        return batches.draw(random, *ids, transactional=who.transaction is not None)
    if kind == "records":
        of_transaction = random.random() < 0.4
        return batches.draw(
            random,
            producer(random) if of_transaction or random.random() < 0.5 else -1,
            producer_epoch(random),
            transactional=of_transaction,
        )
    if name == "name":
        chosen = chosen or topic
    found = (chosen or _TYPES[kind])(random)
    return found if found is not None or may_be_null else owner.default_of(name)


def _different(drawn: Iterable[Struct]) -> Iterable[Struct]:
    """None is named twice: what happens then is the whim of a map."""
    return {_what(each): each for each in drawn}.values()


def _what(drawn: Struct) -> object:
    topic_id = getattr(drawn, "topic_id", ZERO_UUID)
    return tuple(getattr(drawn, name) for name in _KEYS if hasattr(drawn, name)) if topic_id == ZERO_UUID else topic_id


_KEYS = (
    "name", "topic", "topic_name", "topic_id", "partition", "partition_index", "index", "transactional_id", "group_id",
    "member_id", "resource_name", "resource_name_filter", "first_offset", "subtopology_id",
)  # fmt: skip
"""What a part of a request is about."""

_TYPES: Mapping[str, Choice] = {
    "bool": one_of(False, True),
    "int8": one_of(0, 1, -1),
    "int16": one_of(0, 1, -1),
    "uint16": one_of(0, 1),
    "int32": one_of(0, 1, -1),
    "int64": one_of(0, 1, -1),
    "float64": one_of(0.0, 1.5),
    "string": one_of("", "some"),
    "bytes": one_of(b"", b"some"),
    "uuid": one_of(ZERO_UUID),
}

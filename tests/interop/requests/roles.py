"""Requests that are likely to succeed: of one member, one producer, and topics that are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

from tanist.wire.codec import encoder
from tanist.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tests.interop.requests.newer_groups import APPLICATIONS, MEMBERS, SHARE_GROUPS
from tests.interop.requests.symbols import Symbol


class Roles(NamedTuple):
    """Who asks: what a request has of groups and transactions fits together."""

    group: str
    transaction: str | None
    """None: a producer without one."""
    topic: str
    share_group: str
    application: str
    member: str
    """Of these two."""


Likely = Callable[[Roles, Random], Any]


def draw(random: Random) -> Roles:
    return Roles(
        random.choice(("g0", "g0", "g1")),
        random.choice(("x0", "x0", "x1", None)),
        random.choice(("t0", "t0", "t1")),
        random.choice(SHARE_GROUPS),
        random.choice(APPLICATIONS),
        random.choice((MEMBERS[0], *MEMBERS)),
    )


def _always(value: Any) -> Likely:
    return lambda roles, random: value


def _one_of(*values: Any) -> Likely:
    return lambda roles, random: random.choice(values)


def _topic(roles: Roles, random: Random) -> Symbol:
    return Symbol("name", roles.topic)


def _group(roles: Roles, random: Random) -> Symbol:
    return Symbol("name", roles.group)


def _transaction(roles: Roles, random: Random) -> Symbol:
    return Symbol("name", roles.transaction or "x0")


def _transaction_or_none(roles: Roles, random: Random) -> Symbol | None:
    return None if roles.transaction is None else Symbol("name", roles.transaction)


def _of_group(kind: str) -> Likely:
    return lambda roles, random: Symbol(kind, roles.group)


def _of_transaction(kind: str) -> Likely:
    return lambda roles, random: Symbol(kind, roles.transaction)


def _new_or(known: Likely, new: Any) -> Likely:
    return lambda roles, random: new if random.random() < 0.5 else known(roles, random)


def _share_group(roles: Roles, random: Random) -> Symbol:
    return Symbol("name", roles.share_group)


def _application(roles: Roles, random: Random) -> Symbol:
    return Symbol("name", roles.application)


def _member(roles: Roles, random: Random) -> str:
    return roles.member


def _of_share_group(kind: str) -> Likely:
    return lambda roles, random: Symbol(kind, roles.share_group)


def _session_epoch(roles: Roles, random: Random) -> Any:
    follows = Symbol("share epoch", f"{roles.share_group}/{roles.member}")
    return random.choice((*(follows,) * 12, 0, -1))


SUBSCRIPTION = b"\0\0" + encoder(ConsumerProtocolSubscription, 0)(ConsumerProtocolSubscription(topics=("t0",)))

_FIELDS: Mapping[str, Likely] = {
    "topic": _topic,
    "name": _topic,
    "topic_name": _topic,
    "subscribed_topic_names": _topic,
    "topic_names": _topic,
    "topic_id": lambda roles, random: Symbol("topic id", roles.topic),
    **dict.fromkeys(("partition", "partition_index", "partitions", "partition_indexes"), _always(0)),
    **dict.fromkeys(("group_id", "groups", "groups_names", "group_ids"), _group),
    **dict.fromkeys(("transactional_id", "v3_and_below_transactional_id", "transactional_ids"), _transaction),
    **dict.fromkeys(("producer_id", "v3_and_below_producer_id"), _of_transaction("producer")),
    **dict.fromkeys(("producer_epoch", "v3_and_below_producer_epoch"), _of_transaction("producer epoch")),
    "member_id": _of_group("member"),
    "generation_id": _of_group("generation"),
    "member_epoch": _of_group("member epoch"),
    "generation_id_or_member_epoch": lambda roles, random: Symbol(
        random.choice(("generation", "member epoch")), roles.group
    ),
    **dict.fromkeys(("group_instance_id", "instance_id", "rack_id", "subscribed_topic_regex"), _always(None)),
    "current_leader_epoch": _one_of(-1, 0),
    "last_fetched_epoch": _always(-1),
    "fetch_offset": _one_of(0, 0, 1, 2),
    "session_id": _always(0),
    "session_epoch": _always(-1),
    "acks": _always(-1),
    "session_timeout_ms": _always(30_000),
    "rebalance_timeout_ms": _always(2_000),
    "transaction_timeout_ms": _always(60_000),
    "protocol_type": _always("consumer"),
    "protocol_name": _always("range"),
    "metadata": _always(SUBSCRIPTION),
    "committed_offset": _one_of(0, 1, 5),
    "committed_metadata": _one_of("", "note"),
    "verify_only": _always(False),
    "server_assignor": _one_of(None, "uniform"),
}

_STRUCTS: Mapping[tuple[str, str], Likely] = {
    ("ProduceRequest", "transactional_id"): _transaction_or_none,
    ("InitProducerIdRequest", "transactional_id"): _transaction_or_none,
    ("InitProducerIdRequest", "producer_id"): _always(-1),
    ("InitProducerIdRequest", "producer_epoch"): _always(-1),
    ("JoinGroupRequest", "member_id"): _new_or(_of_group("member"), ""),
    ("JoinGroupRequestProtocol", "name"): _always("range"),
    ("CreatableTopic", "name"): _always(Symbol("name", "t2")),
    ("CreatableTopic", "num_partitions"): _one_of(1, 2),
    ("CreatableTopic", "replication_factor"): _always(1),
    ("ConsumerGroupHeartbeatRequest", "member_id"): _always("AAAAAAAAAAAAAAAAAAAAAA"),
    ("ConsumerGroupHeartbeatRequest", "member_epoch"): _new_or(_of_group("member epoch"), 0),
    **{
        (name, "group_id"): _share_group
        for name in (
            "ShareGroupHeartbeatRequest",
            "ShareFetchRequest",
            "ShareAcknowledgeRequest",
            "DescribeShareGroupOffsetsRequestGroup",
            "AlterShareGroupOffsetsRequest",
            "DeleteShareGroupOffsetsRequest",
        )
    },
    ("ShareGroupDescribeRequest", "group_ids"): _share_group,
    ("ShareGroupHeartbeatRequest", "member_id"): _member,
    ("ShareGroupHeartbeatRequest", "member_epoch"): _new_or(_of_share_group("member epoch"), 0),
    ("ShareFetchRequest", "member_id"): _member,
    ("ShareFetchRequest", "share_session_epoch"): _session_epoch,
    ("ShareFetchRequest", "max_bytes"): _always(1 << 20),
    ("ShareAcknowledgeRequest", "member_id"): _member,
    ("ShareAcknowledgeRequest", "share_session_epoch"): _session_epoch,
    ("AcknowledgementBatch", "first_offset"): _of_share_group("first acquired"),
    ("AcknowledgementBatch", "last_offset"): lambda roles, random: Symbol(
        random.choice(("first acquired", "last acquired", "last acquired")), roles.share_group
    ),
    ("AcknowledgementBatch", "acknowledge_types"): _one_of(1, 1, 2, 2, 3, 4),
    ("StreamsGroupHeartbeatRequest", "group_id"): _application,
    ("StreamsGroupHeartbeatRequest", "member_id"): _member,
    ("StreamsGroupHeartbeatRequest", "member_epoch"): _new_or(
        lambda roles, random: Symbol("member epoch", roles.application), 0
    ),
    ("StreamsGroupHeartbeatRequest", "process_id"): lambda roles, random: f"of {roles.member}",
    ("StreamsGroupHeartbeatRequest", "rebalance_timeout_ms"): _always(30_000),
    ("StreamsGroupDescribeRequest", "group_ids"): _application,
    ("TopicInfo", "name"): _always(Symbol("name", "c0")),
}

NOTHING = frozenset({"topic_partitions", "assignments", "configs"})
"""Lists that are empty then."""


def likely(owner: str, field: str) -> Likely | None:
    """A value of this field with which the request may well succeed; None: as it is drawn."""
    return _STRUCTS.get((owner, field)) or _FIELDS.get(field)

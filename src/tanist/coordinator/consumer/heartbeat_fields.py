"""The fields of consumer heartbeats as values of a group, and of its answers from them. A null field is unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from tanist.coordinator.consumer.member import Owned, Subscription
from tanist.coordinator.consumer.reconciliation import Reported
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.consumer_group_heartbeat_response import Assignment, TopicPartitions


def merged(
    before: Subscription | None, beat: ConsumerGroupHeartbeatRequest, client_id: str, client_host: str
) -> Subscription:
    """The member's new subscription: fields that it omits are unchanged."""
    old = before or Subscription()
    names, regex = beat.subscribed_topic_names, beat.subscribed_topic_regex
    return Subscription(
        instance_id=beat.instance_id if beat.instance_id is not None else old.instance_id,
        rack_id=beat.rack_id if beat.rack_id is not None else old.rack_id,
        client_id=client_id,
        client_host=client_host,
        topic_names=old.topic_names if names is None else tuple(sorted(set(names))),
        regex=old.regex if regex is None else regex or None,
        rebalance_timeout_ms=beat.rebalance_timeout_ms if beat.rebalance_timeout_ms >= 0 else old.rebalance_timeout_ms,
        server_assignor=beat.server_assignor if beat.server_assignor is not None else old.server_assignor,
    )


def reported_by(beat: ConsumerGroupHeartbeatRequest) -> Reported | None:
    if beat.topic_partitions is None:
        return None
    return {each.topic_id: frozenset(each.partitions) for each in beat.topic_partitions}


def has_all_fields(beat: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member says all again: then it is to hear all again."""
    return (
        beat.rebalance_timeout_ms != -1
        and (beat.subscribed_topic_names is not None or beat.subscribed_topic_regex is not None)
        and beat.topic_partitions is not None
    )


def is_within(reported: Reported, owned: Owned) -> bool:
    return all(index in owned.get(topic_id, {}) for topic_id, indexes in reported.items() for index in indexes)


def places_of(owned: Owned) -> Mapping[UUID, frozenset[int]]:
    return {topic_id: frozenset(indexes) for topic_id, indexes in owned.items() if indexes}


def assignment_of(owned: Owned) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(indexes)))
            for topic_id, indexes in sorted(owned.items())
            if indexes
        )
    )

"""A member of a consumer group: its subscription, its assignment, and their records.

Immutable, like the records: a change makes a new value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, Generic, TypeVar
from uuid import UUID

from tanist.wire.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerMemberValue,
    CurrentPartitions,
    MemberCurrentValue,
    MemberTargetValue,
    TargetPartitions,
)

K = TypeVar("K")

Target = Mapping[UUID, frozenset[int]]
"""Topic id -> partitions."""

Owned = Mapping[UUID, Mapping[int, int]]
"""Topic id -> partition -> the epoch of the member in which it was assigned (KIP-1251)."""

JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1
LEAVING_STATIC_EPOCH: Final = -2
"""A static member that leaves for a while: its place is kept until its session ends."""


class MemberState(IntEnum):
    """The state of a member on the way to its target, by Kafka's names and numbers."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has partitions to give up, and stays in its epoch until it has done so."""
    UNRELEASED_PARTITIONS = 2
    """It is in the new epoch, and waits for partitions that others have not given up yet."""


@dataclass(frozen=True, slots=True)
class Classic:
    """The protocols and timeouts of a member that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's identity and subscription."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: tuple[str, ...] = ()
    regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: Classic | None = None
    """None if it speaks the consumer protocol."""


@dataclass(frozen=True, slots=True)
class Current(Generic[K]):
    """A member's assignment: of a consumer group partitions by topic, of a Streams group tasks by subtopology."""

    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Mapping[K, Mapping[int, int]] = field(default_factory=dict)
    revoking: Mapping[K, Mapping[int, int]] = field(default_factory=dict)
    """Partitions that it must give up, and may still read."""

    def away(self) -> Current[K]:
        """Of a static member that leaves for a while. It has given up what it had to, and keeps the rest for the member
        that takes its place, whatever the epoch of that is.
        """
        kept = {key: dict.fromkeys(indexes, 0) for key, indexes in self.assigned.items()}
        return Current(LEAVING_STATIC_EPOCH, self.previous_epoch, assigned=kept)

    def back(self) -> Current[K]:
        """Of the member that takes the place of a static one."""
        return replace(self, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)


# -- records


def subscription_record(subscription: Subscription) -> ConsumerMemberValue:
    classic = subscription.classic
    return ConsumerMemberValue(
        instance_id=subscription.instance_id,
        rack_id=subscription.rack_id,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=subscription.topic_names,
        subscribed_topic_regex=subscription.regex,
        rebalance_timeout_ms=subscription.rebalance_timeout_ms,
        server_assignor=subscription.server_assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=tuple(ClassicProtocol(name=name, metadata=data) for name, data in classic.protocols),
        ),
    )


def subscription_of(value: ConsumerMemberValue) -> Subscription:
    classic = value.classic_member_metadata
    return Subscription(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=tuple(sorted(value.subscribed_topic_names)),
        regex=value.subscribed_topic_regex or None,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else Classic(
            classic.session_timeout_ms, tuple((each.name, bytes(each.metadata)) for each in classic.supported_protocols)
        ),
    )


def target_record(target: Target) -> MemberTargetValue:
    return MemberTargetValue(
        topic_partitions=tuple(
            TargetPartitions(topic_id=topic_id, partitions=tuple(sorted(partitions)))
            for topic_id, partitions in sorted(target.items())
            if partitions
        )
    )


def target_of(value: MemberTargetValue) -> Target:
    return {each.topic_id: frozenset(each.partitions) for each in value.topic_partitions}


def current_record(current: Current[UUID]) -> MemberCurrentValue:
    return MemberCurrentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=int(current.state),
        assigned_partitions=_stored(current.assigned),
        partitions_pending_revocation=_stored(current.revoking),
    )


def current_of(value: MemberCurrentValue) -> Current[UUID]:
    known = value.state in MemberState._value2member_map_
    return Current(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.STABLE,
        assigned=_read(value.assigned_partitions, value.member_epoch),
        revoking=_read(value.partitions_pending_revocation, value.member_epoch),
    )


def _stored(owned: Owned) -> tuple[CurrentPartitions, ...]:
    return tuple(
        CurrentPartitions(
            topic_id=topic_id,
            partitions=tuple(sorted(partitions)),
            assignment_epochs=tuple(partitions[index] for index in sorted(partitions)),
        )
        for topic_id, partitions in sorted(owned.items())
        if partitions
    )


def _read(stored: Iterable[CurrentPartitions], member_epoch: int) -> Owned:
    owned: dict[UUID, dict[int, int]] = {}
    for each in stored:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = (member_epoch,) * len(each.partitions)  # written before Kafka 4.3
        owned[each.topic_id] = dict(zip(each.partitions, epochs))
    return owned

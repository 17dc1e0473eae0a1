"""The migration of a group from the classic protocol to the consumer protocol, and back, with its members (KIP-848).

Upgrade, when the first member of the new protocol joins: the classic members stay, with their generation and
partitions, and must join again. Downgrade, when the last member of the new protocol leaves: the classic members
rebalance among themselves.
"""

from __future__ import annotations

from tanist.coordinator.consumer.classic_members import assignment_for, assignment_in, subscription_in
from tanist.coordinator.consumer.group import ConsumerGroup
from tanist.coordinator.consumer.member import (
    Classic,
    Current,
    Subscription,
    current_record,
    subscription_record,
    target_record,
)
from tanist.coordinator.membership import GroupState, Membership
from tanist.coordinator.rebalance import GroupSettings
from tanist.wire.consumer_group_records import (
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerMemberKey,
    MemberCurrentKey,
    MemberTargetKey,
    TargetAssignmentKey,
    TargetAssignmentValue,
)
from tanist.wire.consumer_protocol import PROTOCOL_TYPE
from tanist.wire.group_records import GroupMetadataMember, GroupMetadataValue

UPGRADES = frozenset({"upgrade", "bidirectional"})


def can_upgrade(group: Membership, settings: GroupSettings) -> bool:
    """Whether the members of a classic group can stay when members of the new protocol join."""
    if group.state is GroupState.EMPTY:
        return True
    return (
        group.protocol_type == PROTOCOL_TYPE
        and settings.migration_policy in UPGRADES
        and len(group.members) <= settings.consumer_max_size
    )


def upgrade(classic: Membership, group: ConsumerGroup, now_ms: int) -> None:
    """Take the members over. The group's epoch is their generation. `Refused` if a member is no consumer."""
    name, epoch = classic.group_id, classic.generation_id
    known = []
    for member in classic.members.values():
        known.append((member, subscription_in(member.protocols)))
    # A group that never had a generation begins as a new one does.
    group.emit(ConsumerGroupKey(group=name), ConsumerGroupValue(epoch=epoch))
    for member, classic_subscription in known:
        subscription = Subscription(
            instance_id=member.group_instance_id,
            rack_id=classic_subscription.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=tuple(sorted(set(classic_subscription.topics))),
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=Classic(member.session_timeout_ms, member.protocols),
        )
        has = {
            topic_id: dict.fromkeys((index for index in indexes if (topic_id, index) not in group.owners), epoch)
            for topic_id, indexes in assignment_in(member.assignment, group.topics).items()
        }
        member_id = member.member_id
        group.emit(ConsumerMemberKey(group=name, member_id=member_id), subscription_record(subscription))
        group.emit(
            MemberTargetKey(group=name, member_id=member_id),
            target_record({topic_id: frozenset(indexes) for topic_id, indexes in has.items()}),
        )
        current = Current(epoch=epoch, previous_epoch=epoch, assigned=has)
        group.emit(MemberCurrentKey(group=name, member_id=member_id), current_record(current))
    group.emit(TargetAssignmentKey(group=name), TargetAssignmentValue(assignment_epoch=epoch))
    group.loaded(now_ms)


def downgraded(group: ConsumerGroup) -> GroupMetadataValue:
    """The classic group of the remaining members. They are in its generation, and without a leader: they join again."""
    members: list[GroupMetadataMember] = []
    protocol = ""
    common: set[str] | None = None
    for subscription in group.members.values():
        names = {name for name, _ in (subscription.classic.protocols if subscription.classic is not None else ())}
        common = names if common is None else common & names
    for member_id, subscription in group.members.items():
        classic = subscription.classic
        if classic is None:
            raise ValueError(f"member {member_id} speaks the consumer protocol")
        protocol = protocol or next(
            (name for name, _ in classic.protocols if name in (common or ())), classic.protocols[0][0]
        )
        metadata = next((data for name, data in classic.protocols if name == protocol), classic.protocols[0][1])
        members.append(
            GroupMetadataMember(
                member_id=member_id,
                group_instance_id=subscription.instance_id,
                client_id=subscription.client_id,
                client_host=subscription.client_host,
                rebalance_timeout=subscription.rebalance_timeout_ms,
                session_timeout=classic.session_timeout_ms,
                subscription=metadata,
                assignment=assignment_for(group.current(member_id).assigned, group.topics, metadata),
            )
        )
    return GroupMetadataValue(
        protocol_type=PROTOCOL_TYPE,
        generation=group.epoch,
        protocol=protocol,
        leader=None,
        members=tuple(members),
    )

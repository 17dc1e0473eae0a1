"""Members of a consumer group that still speak the classic protocol, while the group migrates (KIP-848, "Migration").

For such a member its epoch is a generation, and the coordinator assigns: JoinGroup is answered at once, without a
leader; SyncGroup returns its assignment; a heartbeat makes it join again when its assignment changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tanist.coordinator.consumer.group import ConsumerGroup
from tanist.coordinator.consumer.member import Classic, MemberState, Owned, Subscription, subscription_record
from tanist.coordinator.consumer.reconciliation import Reported
from tanist.coordinator.consumer.topics import Topics
from tanist.coordinator.effects import Refused
from tanist.coordinator.membership import Protocols
from tanist.wire.codec import WireError
from tanist.wire.consumer_group_records import ConsumerMemberKey
from tanist.wire.consumer_protocol import (
    PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    encode_protocol,
    version_of,
)
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from tanist.wire.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from tanist.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tanist.wire.messages.join_group_request import JoinGroupRequest
from tanist.wire.messages.join_group_response import JoinGroupResponse
from tanist.wire.messages.leave_group_request import MemberIdentity
from tanist.wire.messages.leave_group_response import MemberResponse
from tanist.wire.messages.sync_group_request import SyncGroupRequest
from tanist.wire.messages.sync_group_response import SyncGroupResponse


def subscription_in(protocols: Protocols) -> ConsumerProtocolSubscription:
    """The member's subscription, from the first of its protocols. `Refused` if it is malformed."""
    metadata = protocols[0][1] if protocols else b""
    try:
        return decode_subscription(metadata)
    except WireError as error:
        raise Refused(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the subscription of protocol {protocols[0][0]!r}: {error}"
        ) from error


def assignment_in(assignment: bytes, topics: Topics) -> Owned:
    """The partitions in an assignment of the classic protocol, by topic id; deleted topics are left out."""
    try:
        decoded = decode_assignment(assignment)
    except WireError:
        return {}
    owned: dict[UUID, dict[int, int]] = {}
    for each in decoded.assigned_partitions:
        found = topics.find(each.topic)
        if found is not None:
            owned[found[0]] = dict.fromkeys(each.partitions, 0)
    return owned


def assignment_for(owned: Owned, topics: Topics, metadata: bytes) -> bytes:
    """The member's assignment in the classic protocol, in the version of its subscription."""
    parts: list[AssignedTopic] = []
    for topic_id, indexes in owned.items():
        name = topics.name_of(topic_id)
        if name is not None and indexes:
            parts.append(AssignedTopic(topic=name, partitions=tuple(sorted(indexes))))
    message = ConsumerProtocolAssignment(assigned_partitions=tuple(sorted(parts, key=lambda part: part.topic)))
    return encode_protocol(message, version_of(metadata))


def join(
    group: ConsumerGroup, request: JoinGroupRequest, member_id: str, client: tuple[str, str], now_ms: int
) -> JoinGroupResponse:
    """A classic member whose protocols the others share joins, or joins again, under this id."""
    protocols = _protocols_of(request)
    group.check_size(member_id, request.group_instance_id)
    before = group.members.get(member_id)
    if request.group_instance_id is not None:
        before = group.replace_static(request.group_instance_id, member_id)
    classic = subscription_in(protocols)
    subscription = Subscription(
        instance_id=request.group_instance_id,
        rack_id=classic.rack_id,
        client_id=client[0],
        client_host=client[1],
        topic_names=tuple(sorted(set(classic.topics))),
        rebalance_timeout_ms=_rebalance_timeout_ms(request),
        classic=Classic(request.session_timeout_ms, protocols),
    )
    if subscription != before:
        group.emit(ConsumerMemberKey(group=group.group_id, member_id=member_id), subscription_record(subscription))
    changed = before is None or before.topic_names != subscription.topic_names or before.regex is not None
    group.update_epoch_and_target(changed, before, now_ms)
    has = group.reconcile(member_id, _owned_by(classic, group.topics), changed)
    group.heard_of(member_id, now_ms)
    # From here on it has its rebalance timeout to send SyncGroup.
    group.patience[member_id] = (has.epoch, now_ms + subscription.rebalance_timeout_ms)
    group.rescan()
    return JoinGroupResponse(
        generation_id=has.epoch, protocol_type=PROTOCOL_TYPE, protocol_name=protocols[0][0], member_id=member_id
    )


def check_protocols(group: ConsumerGroup, request: JoinGroupRequest) -> None:
    """`Refused` if the classic members have no protocol in common with who joins."""
    protocols = _protocols_of(request)
    if request.protocol_type != PROTOCOL_TYPE or not _shares_protocol(group, request.member_id, protocols):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "the group's other members speak other protocols")


def _protocols_of(request: JoinGroupRequest) -> Protocols:
    return tuple((each.name, bytes(each.metadata)) for each in request.protocols)


def _owned_by(classic: ConsumerProtocolSubscription, topics: Topics) -> Reported:
    """An eager member has given up all partitions before it joins, and lists none; a cooperative one lists its
    partitions.
    """
    reported: dict[UUID, frozenset[int]] = {}
    for each in classic.owned_partitions:
        found = topics.find(each.topic)
        if found is not None:
            reported[found[0]] = frozenset(each.partitions)
    return reported


def _shares_protocol(group: ConsumerGroup, member_id: str, protocols: Protocols) -> bool:
    """The classic members must have a protocol in common, in case all consumer members leave."""
    common = {name for name, _ in protocols}
    for other_id, other in group.members.items():
        if other_id != member_id and other.classic is not None:
            common &= {name for name, _ in other.classic.protocols}
    return bool(common)


def sync(group: ConsumerGroup, request: SyncGroupRequest, now_ms: int) -> SyncGroupResponse:
    """A classic member asks for its assignment."""
    subscription = checked(group, request.member_id, request.group_instance_id)
    classic, current = subscription.classic, group.current(request.member_id)
    if classic is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, "the member speaks the consumer protocol")
    if request.generation_id != current.epoch:
        raise Refused(ErrorCode.ILLEGAL_GENERATION, f"the member is in generation {current.epoch}")
    protocol, metadata = classic.protocols[0]
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, protocol):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the member's protocol is {protocol}")
    if group.epoch > current.epoch and current.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_join(group, request.member_id, subscription, now_ms)
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS, "there is a new epoch; join again")
    group.patience.pop(request.member_id, None)
    group.heard_of(request.member_id, now_ms)
    return SyncGroupResponse(
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol,
        assignment=assignment_for(current.assigned, group.topics, metadata),
    )


def heartbeat(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> int:
    """A classic member's heartbeat; the error says whether it must join again."""
    subscription = checked(group, member_id, instance_id)
    if subscription.classic is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, "the member speaks the consumer protocol")
    current = group.current(member_id)
    if generation != current.epoch:
        raise Refused(ErrorCode.ILLEGAL_GENERATION, f"the member is in generation {current.epoch}")
    group.heard_of(member_id, now_ms)
    waiting = current.state is MemberState.UNRELEASED_PARTITIONS and not _something_is_free(group, member_id)
    settled = current.epoch >= group.epoch and (current.state is MemberState.STABLE or waiting)
    if settled and not group.refresh_requested:
        return ErrorCode.NONE
    if settled:
        # Topics may have changed: check, as the heartbeat of a member of the new protocol does.
        group.update_epoch_and_target(False, subscription, now_ms)
        if current.epoch >= group.epoch:
            return ErrorCode.NONE
    _expect_join(group, member_id, subscription, now_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS


def _something_is_free(group: ConsumerGroup, member_id: str) -> bool:
    """Whether others have given up a partition of the member's target."""
    mine = group.current(member_id).assigned
    return any(
        index not in mine.get(topic_id, {}) and (topic_id, index) not in group.owners
        for topic_id, indexes in group.target(member_id).items()
        for index in indexes
    )


def _expect_join(group: ConsumerGroup, member_id: str, subscription: Subscription, now_ms: int) -> None:
    if member_id not in group.patience:
        epoch = group.current(member_id).epoch
        group.patience[member_id] = (epoch, now_ms + max(subscription.rebalance_timeout_ms, 0))
        group.rescan()


def leave(group: ConsumerGroup, identities: Sequence[MemberIdentity]) -> tuple[MemberResponse, ...]:
    """Members leave, by LeaveGroup: classic ones by themselves, any by an operator's request."""
    gone: list[str] = []
    results: list[MemberResponse] = []
    for identity in identities:
        member_id = identity.member_id or group.static_members.get(identity.group_instance_id or "", "")
        error = ErrorCode.NONE
        try:
            checked(group, member_id, identity.group_instance_id)
        except Refused as refused:
            error = refused.error
        else:
            gone.append(member_id)
        results.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
        )
    if gone:
        group.remove(dict.fromkeys(gone))
    return tuple(results)


def checked(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Subscription:
    """The member, if its ids match (KIP-345); else `Refused`."""
    if instance_id is not None:
        group.static_members.check_holder(instance_id, member_id)
    found = group.members.get(member_id)
    if found is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"member {member_id} is not in the group")
    return found


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    return request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms

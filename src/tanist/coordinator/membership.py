"""The members of a group, static ones included (KIP-345), and the protocol that all of them know.

Owns the table of members and its queries; `group.py` decides when members join and leave. It must never answer a client
or read a clock.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Final

from tanist.wire.codec import WireError
from tanist.wire.consumer_protocol import PROTOCOL_TYPE, decode_subscription
from tanist.wire.group_records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue

NOT_WRITTEN_YET_MS: Final = 2**63 - 1
"""The time of a record until the appender fills it in: later than any, so that what it stores is not old."""

Protocols = tuple[tuple[str, bytes], ...]
"""Names of a member's protocols with its metadata for each, the preferred one first."""


class GroupState(Enum):
    """States of a group of the classic protocol, by Kafka's names."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(slots=True)
class ClassicGroupMember:
    """One member of a group."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    deadline_ms: int
    """When the member is removed, unless a request of it comes before."""
    assignment: bytes = b""
    join_ticket: object = None
    """The ticket of its JoinGroup, if that waits for an answer."""
    sync_ticket: object = None
    is_new: bool = True
    """It has not been in a generation yet."""

    def metadata_for(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""


class Membership:
    """The members of a group, and the generation that they are in."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.stored: GroupMetadataValue | None = None
        """Its last record: what the next coordinator knows of it."""
        self.members: dict[str, ClassicGroupMember] = {}
        """By member id, in order of joining: the first is a group's leader."""
        self.static_members: dict[str, str] = {}
        """Member id by group instance id."""
        self.pending_members: dict[str, int] = {}
        """Member ids that were given out (KIP-394) and not used yet, with their deadlines."""

    # -- what there is

    @property
    def state_timestamp_ms(self) -> int:
        """Time of day at which its last record was written; of an empty group: since when it is."""
        return -1 if self.stored is None else self.stored.current_state_timestamp

    def all_have_joined(self) -> bool:
        return not self.pending_members and all(m.join_ticket is not None for m in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def common_protocols(self) -> set[str]:
        """Those that every member knows."""
        known = Counter(name for member in self.members.values() for name in {name for name, _ in member.protocols})
        return {name for name, count in known.items() if count == len(self.members)}

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols can join the present members."""
        if not self.members:
            return bool(protocol_type) and bool(protocols)
        common = self.common_protocols()
        return protocol_type == self.protocol_type and any(name in common for name, _ in protocols)

    def select_protocol(self) -> str:
        """The protocol with most votes; each member votes for its preferred one among those that all know."""
        common = self.common_protocols()
        votes: Counter[str] = Counter()
        for member in self.members.values():
            votes[next(name for name, _ in member.protocols if name in common)] += 1
        return votes.most_common(1)[0][0]

    def subscribed_topics(self) -> frozenset[str] | None:
        """Topics that members have subscribed to; None if they are no consumers, or one is malformed."""
        if self.protocol_type != PROTOCOL_TYPE:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            for _, metadata in member.protocols:
                try:
                    subscription = decode_subscription(metadata)
                except WireError:
                    return None
                topics.update(subscription.topics)
        return frozenset(topics)

    # -- coming and going

    def add(self, member: ClassicGroupMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id

    def remove(self, member: ClassicGroupMember) -> None:
        del self.members[member.member_id]
        if member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)

    def rename_static(self, instance_id: str, new_id: str) -> ClassicGroupMember:
        """The static member continues under another id; requests with the old one are fenced."""
        old_id = self.static_members[instance_id]
        member = self.members[old_id]
        # In its old place: the order of members decides the next leader.
        self.members = {(new_id if key == old_id else key): value for key, value in self.members.items()}
        member.member_id = new_id
        self.static_members[instance_id] = new_id
        if self.leader_id == old_id:
            self.leader_id = new_id
        return member

    def elect_joined_leader(self) -> bool:
        """Make a member that has joined the next generation its leader; False if none has."""
        leader = self.members.get(self.leader_id or "")
        if leader is None or leader.join_ticket is None:
            leader = next((m for m in self.members.values() if m.join_ticket is not None), None)
            if leader is None:
                return False
            self.leader_id = leader.member_id
        return True

    # -- records

    def record(self, assignments: dict[str, bytes] | None = None) -> tuple[GroupMetadataKey, GroupMetadataValue]:
        """The record of the group, with these assignments (or the members' present ones)."""
        return GroupMetadataKey(group=self.group_id), GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation_id,
            protocol=self.protocol_name,
            leader=self.leader_id,
            members=tuple(
                GroupMetadataMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata_for(self.protocol_name),
                    assignment=member.assignment if assignments is None else assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ),
            current_state_timestamp=NOT_WRITTEN_YET_MS,
        )

    def restore(self, value: GroupMetadataValue) -> None:
        """Restore the group from a record: a group with members was stable when it was written."""
        self.generation_id = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol_name = value.protocol
        self.leader_id = value.leader
        self.members = {}
        self.static_members = {}
        for stored in value.members:
            member = ClassicGroupMember(
                member_id=stored.member_id,
                group_instance_id=stored.group_instance_id,
                client_id=stored.client_id,
                client_host=stored.client_host,
                rebalance_timeout_ms=stored.rebalance_timeout or stored.session_timeout,
                session_timeout_ms=stored.session_timeout,
                protocols=((value.protocol or "", stored.subscription),),
                deadline_ms=0,
                assignment=stored.assignment,
                is_new=False,
            )
            self.members[member.member_id] = member
            if member.group_instance_id is not None:
                self.static_members[member.group_instance_id] = member.member_id
        self.state = GroupState.STABLE if self.members else GroupState.EMPTY

"""A shard with a log that commits at once or on demand, and members that speak to it as clients do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tanist.coordinator.effects import (
    Answer,
    Append,
    DeleteShareState,
    Effect,
    FindShareState,
    InitializeShareState,
    MarkerAppend,
)
from tanist.coordinator.group import JoinContext
from tanist.coordinator.group_shard import GroupShard
from tanist.coordinator.rebalance import GroupSettings
from tanist.sim.checkers.coordinators import state_of_groups
from tanist.wire.coordinator_records import encode_key, encode_value
from tanist.wire.group_records import decode_group_record
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from tanist.wire.messages.leave_group_request import MemberIdentity
from tanist.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tanist.wire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from tanist.wire.schema import ZERO_UUID

GROUP = "g"


class StandingTopics:
    """`consumer.topics.Topics`: a cluster's topics, by name."""

    def __init__(self) -> None:
        self.version = 1
        self.topics: dict[str, tuple[UUID, int]] = {}

    def create(self, name: str, partitions: int) -> UUID:
        self.version += 1
        self.topics[name] = (UUID(int=0x1000 + self.version), partitions)
        return self.topics[name][0]

    def grow(self, name: str, partitions: int) -> None:
        self.version += 1
        self.topics[name] = (self.topics[name][0], partitions)

    def delete(self, name: str) -> None:
        self.version += 1
        del self.topics[name]

    def find(self, name: str) -> tuple[UUID, int] | None:
        return self.topics.get(name)

    def name_of(self, topic_id: UUID) -> str | None:
        return next((name for name, (each, _) in self.topics.items() if each == topic_id), None)

    def names(self) -> list[str]:
        return list(self.topics)


class Rig:
    """One shard. What it answers is in `answers`, by ticket."""

    def __init__(self, *, commits: bool = True, **settings: Any) -> None:
        self.settings = GroupSettings(**{"initial_rebalance_delay_ms": 0, **settings})
        self.topics = StandingTopics()
        self.topics.create("t", 6)
        self.shard = GroupShard(self.settings, self.topics)
        self.now_ms = 1_000
        self.commits = commits
        self.log: list[tuple[bytes, bytes | None]] = []
        self.uncommitted: list[Append | MarkerAppend] = []
        self.transactional: dict[int, int] = {}
        """Positions in the log of records of transactions, and their producers."""
        self.ended: dict[int, list[tuple[int, bool]]] = {}
        """The markers before a position of the log: their producers, and whether they commit."""
        self.answers: dict[object, Any] = {}
        self.asked: list[InitializeShareState | FindShareState | DeleteShareState] = []
        """What groups have asked of the coordinators of share partitions."""
        self._tickets = 0
        self._members = 0

    # -- the caller's part

    def ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Answer):
                assert effect.ticket not in self.answers, "answered twice"
                self.answers[effect.ticket] = effect.response
                continue
            if isinstance(effect, InitializeShareState | FindShareState | DeleteShareState):
                self.asked.append(effect)
                continue
            self.uncommitted.append(effect)
            if self.commits:
                self.commit_all()

    def commit_all(self) -> None:
        while self.uncommitted:
            append = self.uncommitted.pop(0)
            if isinstance(append, MarkerAppend):
                self.ended.setdefault(len(self.log), []).append((append.producer_id, append.committed))
            else:
                for key, value in append.records:
                    if append.producer is not None:
                        self.transactional[len(self.log)] = append.producer[0]
                    self.log.append((encode_key(key), None if value is None else encode_value(value)))
            self.shard.apply(append)
            self.carry_out(self.shard.written(append, 0, self.now_ms))

    def _replay_marker(self, position: int) -> None:
        for producer_id, committed in self.ended.get(position, ()):
            self.shard.replay_marker(producer_id, committed=committed)

    def fail(self, error: int) -> None:
        self.carry_out(self.shard.written(self.uncommitted.pop(0), error, self.now_ms))

    def refuse_all(self, error: int) -> None:
        """The log refuses all that one turn has decided: the runtime tells the last decision first."""
        refused, self.uncommitted = self.uncommitted, []
        for append in reversed(refused):
            self.carry_out(self.shard.written(append, error, self.now_ms))

    def failover(self) -> None:
        """Another broker takes over: it has what was committed, and none of the requests that waited.

        If nothing waited, it has all that its predecessor had.
        """
        before = None if self.uncommitted else state_of_groups(self.shard)
        self.shard = GroupShard(self.settings, self.topics)
        for position, (key, value) in enumerate(self.log):
            self._replay_marker(position)
            decoded = decode_group_record(key, value)
            assert decoded is not None
            producer_id = self.transactional.get(position)
            if producer_id is None:
                self.shard.replay(*decoded)
            else:
                self.shard.replay_pending(producer_id, *decoded)
        self._replay_marker(len(self.log))
        assert before is None or state_of_groups(self.shard) == before
        self.uncommitted.clear()
        self.carry_out(self.shard.loaded(self.now_ms))

    def run(self, ms: int) -> None:
        """Time passes, and timers run when they are due."""
        end_ms = self.now_ms + ms
        while self.shard.check_ms <= end_ms:
            self.now_ms = max(self.now_ms, self.shard.check_ms)
            self.carry_out(self.shard.tick(self.now_ms))
        self.now_ms = end_ms

    @property
    def group(self) -> Any:
        return self.shard.groups[GROUP]

    # -- the members' part

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: Sequence[tuple[str, bytes]] = (("range", b"topics"),),
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        known: bool = False,
        skip: bool = True,
        group: str = GROUP,
    ) -> int:
        """Ask to join; gives the ticket. `known`: the id is to be given out first (KIP-394)."""
        ticket = self.ticket()
        self._members += 1
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols),
        )
        context = JoinContext(ticket, "client", "/host", f"member-{self._members}", known, skip)
        self.carry_out(self.shard.join(request, context, self.now_ms))
        return ticket

    def sync(self, joined: Any, assignments: dict[str, bytes] | None = None, **changes: Any) -> int:
        """SyncGroup of who got this answer to its JoinGroup."""
        ticket = self.ticket()
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ),
        )
        for name, value in changes.items():
            setattr(request, name, value)
        self.carry_out(self.shard.sync(request, ticket, self.now_ms))
        return ticket

    def heartbeat(self, joined: Any, *, instance: str | None = None) -> int:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance,
        )
        ticket = self.ticket()
        self.carry_out(self.shard.heartbeat(request, ticket, self.now_ms))
        return int(self.answers[ticket].error_code)

    def leave(self, *members: tuple[str, str | None]) -> list[int]:
        ticket = self.ticket()
        identities = tuple(MemberIdentity(member_id=member, group_instance_id=instance) for member, instance in members)
        self.carry_out(self.shard.leave(GROUP, identities, ticket, self.now_ms))
        return [each.error_code for each in self.answers[ticket].members]

    def commit(
        self,
        offset: int,
        joined: Any = None,
        *,
        partition: int = 0,
        metadata: str | None = "",
        group: str = GROUP,
        topic_id: UUID = ZERO_UUID,
        exact: bool | None = None,
        **changes: Any,
    ) -> int:
        """`exact`: by version 9 or later; unless it is said, members of the newer protocols alone have that."""
        ticket = self.ticket()
        place = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_leader_epoch=3, committed_metadata=metadata
        )
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1 if joined is None else joined.generation_id,
            member_id="" if joined is None else joined.member_id,
            topics=(OffsetCommitRequestTopic(name="t", topic_id=topic_id, partitions=(place,)),),
        )
        for name, value in changes.items():
            setattr(request, name, value)
        exact = self.shard.by_epoch(group) is not None if exact is None else exact
        self.carry_out(self.shard.commit(request, ticket, self.now_ms, exact=exact))
        return ticket

    def commit_error(self, ticket: int) -> int:
        return int(self.answers[ticket].topics[0].partitions[0].error_code)

    def committed(self, partition: int = 0, group: str = GROUP) -> int | None:
        found = self.shard.committed(group).get(("t", partition))
        return None if found is None else found.offset

    def stable_group(self, count: int, **join: Any) -> list[Any]:
        """A stable group of so many members: their answers to JoinGroup, the leader's first."""
        tickets = [self.join(**join)]
        for _ in range(count - 1):
            tickets.append(self.join(**join))
            # Each member of the group already learns of the rebalance and joins again.
            for index, ticket in enumerate(tickets[:-1]):
                if ticket in self.answers:
                    tickets[index] = self.join(self.answers[ticket].member_id, **join)
        joined = [self.answers[ticket] for ticket in tickets]
        assert all(each.error_code == 0 for each in joined), joined
        synced = [self.sync(each) for each in joined[1:]]
        synced.insert(0, self.sync(joined[0], {each.member_id: each.member_id.encode() for each in joined}))
        assert [self.answers[t].assignment.decode() for t in synced] == [each.member_id for each in joined]
        return joined
